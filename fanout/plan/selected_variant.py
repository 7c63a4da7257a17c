"""Second phase of a variant in a pass: its candidate and the inputs of its rendering."""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.errors import FanoutError
from fanout.plan import plan_wording
from fanout.plan.history.earlier_publication import EarlierPublication
from fanout.plan.observed_variant import ObservedVariant
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.render_model import RenderInputs


class SelectedVariant(Value):
    """Observed variant with the candidate of its stage, or the revision of its pin."""

    observed: ObservedVariant
    revision: str = ""  # the candidate; "" if none is selected
    package: PreparedPackage | None = None  # upstream's, at that revision
    inputs: RenderInputs | None = None
    preparation_failure: FanoutError | None = None  # the candidate cannot be prepared
    is_rollback: bool = False  # an earlier publication is written; nothing is rendered
    earlier_publication: EarlierPublication | None = None  # None: it never had the revision
    # what prevents a rollback, or a draft of a revision that upstream has withdrawn
    revision_hold: Hold | None = None

    @property
    def spec(self) -> VariantSpec:
        """Return the spec of the variant."""
        return self.observed.spec

    @property
    def upstream_commit(self) -> str:
        """Return the upstream commit of the candidate, or "" if none is selected."""
        if self.earlier_publication is not None:
            return self.earlier_publication.commit
        return self.package.upstream.revision.commit if self.package else ""

    @property
    def upstream_time(self) -> int:
        """Return the time of the candidate's upstream commit in Unix seconds.

        It is 0 for a rollback: an earlier publication is no newer than its branch.
        """
        return self.package.upstream.revision.committed_at if self.package else 0

    @property
    def is_in_force(self) -> bool:
        """Return whether the candidate with the present inputs is what is published."""
        observed = self.observed
        return (
            observed.published is not None
            and not observed.is_moving
            and observed.reverted_publication is None
            and self.inputs is not None
            and (observed.published.revision, observed.published.digest)
            == (self.revision, self.inputs.digest)
        )

    @property
    def cluster_reads(self) -> Mapping[str, str]:
        """Return the cluster objects that the published content was made from: key to version.

        Empty if they are neither on record nor equal to those of the present inputs.
        """
        if (published := self.observed.published) is None:
            return {}
        if not published.reads and self.is_in_force and self.inputs is not None:
            return self.inputs.object_versions
        return published.reads

    @property
    def has_current_draft(self) -> bool:
        """Return whether the open draft is up to date with the candidate."""
        observed = self.observed
        if (draft := observed.draft) is None or self.inputs is None:
            return False
        trailers = draft.trailers
        return (
            trailers.digest == self.inputs.digest
            and trailers.revision == self.revision
            and trailers.onto == observed.onto_tree
            and (self.earlier_publication is None or trailers.tree == self.earlier_publication.tree)
            and observed.follows_choices(draft)
            # The branch of renderings may have been put back or edited: a draft whose pristine tree
            # is not there has no base for the next merge, so it is written again.
            and trailers.rendered == observed.drafted_rendering
            and all(it.is_contained_in(draft) for it in observed.misplaced_drafts)
        )

    @property
    def draft_hold(self) -> Hold | None:
        """Return the first hold that prevents a draft for the candidate, independent of gates."""
        observed, spec = self.observed, self.spec
        hold = observed.draft_hold or self.revision_hold
        if hold is not None or self.inputs is None or self.is_rollback:
            return hold
        if self.is_in_force or self.has_current_draft:
            return None
        # The candidate cannot be merged, or lacks what is to be injected.
        location = f"{spec.repository}:{spec.path}"
        if observed.lacks_base and not observed.is_unmanaged:
            state = "has another rendering of it" if observed.vendored_tree else "lacks it"
            return Hold(
                Reason.BASE_MISSING,
                f"{location} has edits and the vendor branch {state}; restore that branch, or set"
                " adoptionPolicy: AdoptExisting to use its upstreamLock as base",
                who=plan_wording.format_maintainers(spec.repository),
            )
        if self.inputs.missing_injections:
            missing = (f"{it.point}: {it.problem}" for it in self.inputs.missing_injections)
            return Hold(
                Reason.REQUIRED_INJECTION_MISSING,
                f"{location}: nothing to inject: {'; '.join(missing)}",
                who="the owner of the cluster objects",
            )
        return None

    @property
    def is_outdated(self) -> bool:
        """Return whether neither the package nor a draft has the candidate with these inputs."""
        return (
            self.inputs is not None
            and self.preparation_failure is None
            # First what is true of most variants.
            and not self.has_current_draft
            and not self.is_in_force
            and self.draft_hold is None
        )
