"""State of one variant during a pass: spec, place, draft and obstacles."""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.gate_facts import Hold
from fanout.package.merge.merge_conflicts import NO_CHOICES, ConflictChoices
from fanout.plan.adoption.adoption_base import UpstreamOrigin
from fanout.plan.draft_trailers import NO_VALUE
from fanout.plan.edits.draft_errors import with_remedy
from fanout.plan.edits.edit_merge import MergedRendering
from fanout.plan.edits.merge_disputes import MergeDispute, build_disputes, parse_disputes
from fanout.plan.moves.move_locations import AbandonedLocation, MisplacedDraft, PreviousLocation
from fanout.plan.observation.repository_state import (
    OpenDraft,
    PathState,
    PristineRenderings,
    RepositoryState,
)
from fanout.plan.records.policy_status import PublishedLine, VariantLine
from fanout.plan.rollback.earlier_publication import (
    EarlierPublication,
    RevertedPublication,
    reverted_hold,
)
from fanout.selection.variant_naming import install_of, vendor_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.values import frozen, replace
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.render_model import RenderedPackage, RenderInputs


@frozen
class VariantCase:
    """One variant in this pass: observed, then with a candidate selected and rendered.

    The fields below the marker line are filled in after candidates are selected.
    """

    spec: VariantSpec
    repository_state: RepositoryState
    draft_ref: str  # of its draft
    path_state: PathState  # what is on the branch at its path
    status_line: VariantLine
    draft: OpenDraft | None = None
    published: PublishedLine | None = None
    is_unrecorded: bool = False  # the publication was found in Git and is not on record yet
    may_adopt: bool = False  # its policy lets it take over a package that is there already
    origin: UpstreamOrigin | None = None  # of the package that it takes over
    published_for_another: bool = False  # what was published at its path was published for another
    tag: str = ""  # the tag that an unrecorded publication has already
    choices: ConflictChoices = NO_CHOICES  # winners of its merge conflicts
    # the other place, where its published package is or was
    previous: PreviousLocation | None = None
    misplaced_drafts: tuple[MisplacedDraft, ...] = ()  # its drafts at other places
    abandoned: tuple[AbandonedLocation, ...] = ()  # where it was, and its package still is
    exchange_partners: frozenset[str] = frozenset()  # variants with which it changes places
    wait_hold: Hold | None = None  # for another variant, which is no fault of anybody's
    reverted_publication: RevertedPublication | None = None  # somebody took back what is published
    published_faults: tuple[InvalidInput, ...] = ()  # what people have broken in what is published
    missing_tag: str = ""  # of the published revision, which upstream does not have any more
    rewound_records: str = ""  # its newest publication is not on record any more: a sentence
    # before a publication of which only these moved
    unfinished_push: PristineRenderings | None = None
    obstacle: Hold | None = None  # nothing can be written for it, whatever the candidate
    # ----
    revision: str = ""  # the candidate
    package: PreparedPackage | None = None  # upstream's, at that revision
    inputs: RenderInputs | None = None
    rendered: RenderedPackage | None = None
    merged: MergedRendering | None = None  # the rendering with what people changed in it
    render_failure: FanoutError | None = None  # its rendering failed
    is_rollback: bool = False  # it goes back to the candidate, and nothing is rendered for it
    # what it goes back to; None: it never had the revision
    earlier_publication: EarlierPublication | None = None
    rollback_hold: Hold | None = None  # what keeps it from going back

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
    def is_granted(self) -> bool:
        """Return whether the recorded release is for exactly this draft at this place."""
        grant, draft = self.status_line.grant, self.draft
        return (
            grant is not None
            and draft is not None
            # A release for another place does not allow a publication here, though the
            # content is equal.
            and self.status_line.granted_place == (self.repository_state.identity, self.spec.path)
            and (grant.revision, grant.digest) == (draft.trailers.revision, draft.trailers.digest)
        )

    @property
    def is_moving(self) -> bool:
        """Return whether the published package is still at another place."""
        return self.previous is not None and not self.is_unrecorded

    @property
    def package_location(self) -> PreviousLocation:
        """Return where the variant's own package is, or is to be if it has none."""
        if self.previous is not None and self.is_moving:
            return self.previous
        return PreviousLocation(self.repository_state, self.spec.repository, self.spec.path)

    @property
    def package_state(self) -> PathState:
        """Return the state of the variant's own package on its branch."""
        if self.previous is not None and self.is_moving:
            return self.previous.path_state
        return self.path_state

    @property
    def onto_tree(self) -> str:
        """Return the tree that a draft written now replaces (trailer `Fanout-Onto`)."""
        return self.package_state.tree or NO_VALUE

    @property
    def published_rendering(self) -> str | None:
        """Return the tree under `published/` at the path, as it was before an unfinished push."""
        if self.unfinished_push is not None:
            return self.unfinished_push.published_tree
        return self.repository_state.published_renderings.get(self.spec.path)

    @property
    def drafted_rendering(self) -> str | None:
        """Return the tree under `drafts/` at the path, as it was before an unfinished push."""
        if self.unfinished_push is not None:
            return self.unfinished_push.drafted_tree
        return self.repository_state.drafted_renderings.get(self.spec.path)

    @property
    def pristine_tree(self) -> str | None:
        """Return the tree of the published rendering without edits, or None if lost.

        The recorded status has its id. So the branch of renderings may be lost or changed by
        hand: where nothing was merged, the repository's own history holds that tree.
        """
        if self.reverted_publication is not None:
            return self.reverted_publication.pristine_tree
        recorded = self.published.pristine if self.published else ""
        if recorded in ("", self.vendored_tree):
            return self.vendored_tree
        assert self.published is not None, "its pristine rendering is known"
        return recorded if recorded == self.published.tree else None

    @property
    def vendored_tree(self) -> str | None:
        """Return the tree that the branch of renderings has as published for this variant."""
        if self.published_for_another and not self.is_moving:
            return None
        if self.is_unrecorded and self.drafted_rendering is not None:
            return self.drafted_rendering
        if self.previous is not None and self.is_moving:
            return self.previous.pristine_tree
        return self.published_rendering

    @property
    def is_edited(self) -> bool:
        """Return whether the published package was changed or removed by hand.

        The pristine rendering tells also where the status was lost. Where nothing tells, the
        published tree may hold the edits of earlier revisions and counts as edited.
        """
        if self.published is None and self.vendored_tree is None:
            return False
        if self.reverted_publication is not None:
            return self.package_state.tree != self.reverted_publication.pristine_tree
        pristine = self.published.pristine if self.published else ""
        return self.package_state.tree != (pristine or self.vendored_tree)

    @property
    def has_edits_in_force(self) -> bool:
        """Return whether the published package is still in place with edits made by hand."""
        is_present = self.published is not None and self.package_state.tree is not None
        return is_present and self.reverted_publication is None and self.is_edited

    @property
    def lacks_base(self) -> bool:
        """Return whether the published package has edits but no base to merge from."""
        is_present = self.published is not None and self.package_state.tree is not None
        return is_present and self.is_edited and self.pristine_tree is None

    @property
    def is_removed_by_hand(self) -> bool:
        """Return whether the published package was removed from the branch by hand.

        If the records are lost, its pristine rendering shows that it was published.
        """
        return (
            self.package_state.tree is None
            and (self.published is not None or self.vendored_tree is not None)
            and self.package_location.repository_state.failure is None
            # Without this, a variant that was never published at this path would count as
            # removed from it.
            and self.status_line.place
            == (self.package_location.repository_state.identity, self.package_location.path)
        )

    @property
    def revert_hold(self) -> Hold | None:
        """Return a hold if the publication was removed or reverted by hand."""
        if self.is_removed_by_hand:
            return _removal_hold(self)
        if self.reverted_publication is None or self.published is None:
            return None
        location = f"{self.package_location.repository}:{self.package_location.path}"
        return reverted_hold(self.spec, location, self.reverted_publication, self.published)

    @property
    def is_unmanaged(self) -> bool:
        """Return whether the package at the path is not managed by fanout, or not any more."""
        if self.path_state.tree is None or self.is_moving:
            return False
        is_unknown = self.published is None and self.published_rendering is None
        return is_unknown or self.published_for_another or (self.may_adopt and self.lacks_base)

    @property
    def draft_content(self) -> RenderedPackage | None:
        """Return the content of the draft: the merged rendering, or the rendering alone."""
        return self.merged.content if self.merged is not None else self.rendered

    @property
    def needs_merge(self) -> bool:
        """Return whether edits made by hand must be merged into the new rendering."""
        if self.is_edited or self.is_unmanaged or (self.draft is not None and self.draft.has_edits):
            return True
        return bool(self.misplaced_drafts) and any(
            misplaced.draft.has_edits for misplaced in self.misplaced_drafts
        )

    @property
    def is_in_force(self) -> bool:
        """Return whether the candidate with the present inputs is what is published."""
        return (
            self.published is not None
            and not self.is_moving
            and self.reverted_publication is None
            and self.inputs is not None
            and (self.published.revision, self.published.digest)
            == (self.revision, self.inputs.digest)
        )

    @property
    def cluster_reads(self) -> Mapping[str, str]:
        """Return the cluster objects that the published content was made from: key to version.

        Empty if they are neither on record nor equal to those of the present inputs.
        """
        if self.published is None:
            return {}
        if not self.published.reads and self.is_in_force and self.inputs is not None:
            return self.inputs.object_versions
        return self.published.reads

    @property
    def has_current_draft(self) -> bool:
        """Return whether the open draft is up to date with the candidate."""
        return (
            self.draft is not None
            and self.inputs is not None
            and self.draft.trailers.digest == self.inputs.digest
            and self.draft.trailers.revision == self.revision
            and self.draft.trailers.onto == self.onto_tree
            and (
                self.earlier_publication is None
                or self.draft.trailers.tree == self.earlier_publication.tree
            )
            and self._follows_choices(self.draft)
            # The branch of renderings may have been put back or edited: a draft whose
            # pristine tree is not there has no base for the next merge, so it is written
            # again.
            and self.draft.trailers.rendered == self.drafted_rendering
            and all(it.is_contained_in(self.draft) for it in self.misplaced_drafts)
        )

    @property
    def disputes(self) -> tuple[MergeDispute, ...]:
        """Return the merge disputes of the draft being written.

        Disputes that commits on a replaced draft had settled are marked as decided.
        """
        if self.merged is None:
            return ()
        merged_drafts = [self.draft] if self.draft is not None else []
        merged_drafts += [
            misplaced.draft for misplaced in self.misplaced_drafts if misplaced.draft.has_edits
        ]
        settled = (
            dispute.key
            for draft in merged_drafts
            for dispute in parse_disputes(draft.trailers.conflicts)
            if dispute.is_decided or dispute.key in draft.settled_keys
        )
        return build_disputes(self.merged.conflicts, settled)

    def _follows_choices(self, draft: OpenDraft) -> bool:
        """Return whether every dispute that no commit settled has the chosen winner."""
        # Most drafts have no disputes, and their trailers need no parsing.
        if draft.trailers.conflicts == NO_VALUE or self.choices == NO_CHOICES:
            return True
        open_disputes = (
            it
            for it in parse_disputes(draft.trailers.conflicts)
            if it.key not in draft.settled_keys
        )
        return all(
            self.choices.winner(dispute.key, dispute.winner) is dispute.winner
            for dispute in open_disputes
        )

    @property
    def draft_hold(self) -> Hold | None:
        """Return the first hold that prevents a draft for the candidate, independent of gates."""
        return (
            # In order of what must be mended first: no draft can be reasoned about while
            # its repository or its published package is unusable.
            self.obstacle
            or _removal_hold(self)
            or _replaced_package_hold(self)
            or self.wait_hold
            or _draft_faults_hold(self)
            or self.rollback_hold
            or _candidate_hold(self)
        )

    @property
    def wants_draft(self) -> bool:
        """Return whether a draft must be rendered; decided by digests and ids (design §5)."""
        return (
            self.inputs is not None
            and self.render_failure is None
            and not self.spec.suspended
            and not self.is_in_force
            and not self.has_current_draft
            and self.draft_hold is None
        )


def with_candidate(
    case: VariantCase, revision: str, package: PreparedPackage, inputs: RenderInputs
) -> VariantCase:
    """Return the case with its candidate selected and earlier renderings discarded."""
    return replace(
        case,
        revision=revision,
        package=package,
        inputs=inputs,
        rendered=None,
        merged=None,
        render_failure=None,
        is_rollback=False,
        earlier_publication=None,
        rollback_hold=None,
    )


def _removal_hold(case: VariantCase) -> Hold | None:
    """Return a hold if the published package was removed by hand: it is not put back."""
    if not case.is_removed_by_hand:
        return None
    spec = case.spec
    remedy = "remove the PackageVariant"
    if spec.policy:
        remedy = f"take its target out and `fanout remove {spec.policy} {spec.name} --reason WHY`"
    location = f"{case.package_location.repository}:{case.package_location.path}"
    if case.published is None:
        branch = vendor_ref(install_of(case.draft_ref)).removeprefix("refs/heads/")
        remedy = f"take published/{spec.path} off branch {branch} to have it written anew"
    return Hold(
        "EditedDownstream",
        f"{location} was removed from the branch by hand; put it back, as with `git revert`, or"
        f" {remedy}",
        actor="the maintainers of " + spec.repository,
    )


def _replaced_package_hold(case: VariantCase) -> Hold | None:
    """Return a hold if another package stands in place of the published one."""
    reverted = case.reverted_publication
    if reverted is None or not (reverted.is_other_package or reverted.pristine_tree is None):
        return None
    return case.revert_hold


def _draft_faults_hold(case: VariantCase) -> Hold | None:
    """Return a hold if edits have broken the draft: it is neither published nor rewritten."""
    draft = case.draft
    if draft is None or not draft.faults:
        draft = next(
            (misplaced.draft for misplaced in case.misplaced_drafts if misplaced.draft.faults), None
        )
    if draft is None or case.is_unrecorded:
        return None
    first, *more = draft.faults
    more_faults = f" (and {len(more)} more)" if more else ""
    branch = draft.ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_BROKEN,
        f"{with_remedy(first)} on branch {branch}{more_faults}, or remove the branch to have the"
        " draft"
        " written anew",
        actor="the maintainers of " + case.spec.repository,
    )


def _candidate_hold(case: VariantCase) -> Hold | None:
    if case.inputs is None or case.is_in_force or case.has_current_draft or case.is_rollback:
        return None
    spec = case.spec
    if case.lacks_base and not case.is_unmanaged:
        branch_state = "has something else" if case.vendored_tree else "does not have it"
        return Hold(
            "BaseMissing",
            f"{spec.repository}:{spec.path} has people's edits, and fanout's branch of renderings"
            f" {branch_state}: nobody can tell the edits from upstream's; restore that branch,"
            " or set"
            " adoptionPolicy: AdoptExisting to take the package over anew, with its upstreamLock"
            " as the base",
            actor="the maintainers of " + spec.repository,
        )
    if case.inputs.missing_injections:
        missing = "; ".join(
            f"{injection.point}: {injection.problem}"
            for injection in case.inputs.missing_injections
        )
        return Hold(
            "RequiredInjectionMissing",
            f"{spec.repository}:{spec.path}: nothing to inject: {missing}",
            actor="whoever owns the cluster objects",
        )
    return None
