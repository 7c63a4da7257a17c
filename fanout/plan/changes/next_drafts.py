"""Drafts that come next: where they are, which are due in a round, and what each has.

In a process that stays, a policy with thousands of outdated drafts would else keep all others
waiting until its last one is pushed. So a policy writes a limited number in each round.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.plan import plan_wording
from fanout.plan.commit_statement import NO_VALUE, PackageStatement
from fanout.plan.edits.merge_disputes import format_disputes, rejected_lines
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import ChangeVerb, RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.selection.ref_names import SetScope, draft_ref, install_of, set_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value

_Variant = TypeVar("_Variant", ObservedVariant, SelectedVariant)


class DraftLimit(Value):
    """Number of drafts that each policy writes in a pass.

    `failing`: namespaces and names of the Repository objects to which the last push failed. Their
    drafts come last, because they would take every share of the policy.
    """

    number: int
    failing: frozenset[tuple[str, str]] = frozenset()

    def rank(self, variants: Iterable[_Variant]) -> list[_Variant]:
        """Return the variants in the order of their drafts: by priority, then by repository.

        So a share is in few repositories, each of which costs a push.
        """
        return sorted(
            variants,
            key=lambda it: (
                (it.spec.namespace, it.spec.repository) in self.failing,
                -it.spec.priority,
                it.spec.repository,
            ),
        )


class DueDrafts(Value):
    """Variants whose draft is missing or outdated, by name: those of this round, and the rest.

    A variant of the rest is held: its open draft is outdated, and must not be published instead.
    """

    written: frozenset[str]
    postponed: frozenset[str] = frozenset()
    hold: Hold | None = None  # of those that are postponed


def find_due_drafts(
    variants: Sequence[SelectedVariant],
    suspended: Collection[str] = (),
    limit: DraftLimit | None = None,
) -> DueDrafts:
    """Return the drafts that are due, as many as the limit allows.

    `limit`: None: no limit. Variants named in `suspended` get no draft. Drafts that variants share
    are not counted, because they are one commit whatever is in them.
    """
    free = (it for it in variants if not it.spec.suspended and it.spec.name not in suspended)
    due_variants = [it for it in free if it.is_outdated]
    names = frozenset(it.spec.name for it in due_variants)
    if limit is None or len(due_variants) <= limit.number:
        return DueDrafts(names)
    own_drafts = (it for it in due_variants if not it.observed.shares_draft)
    postponed = frozenset(it.spec.name for it in limit.rank(own_drafts)[limit.number :])
    sentence = (
        f"its policy has written {pluralize(limit.number, 'draft')} in this round (draftsPerRound)"
    )
    hold = Hold(Reason.NO_DRAFT, sentence, plan_wording.NEXT_RUN)
    return DueDrafts(names - postponed, postponed, hold)


def find_release_draft(variant: RenderedVariant) -> OpenDraft | None:
    """Return the draft whose release is to be decided, or None.

    In a stage draft that is the new content, which nothing has before its release. Else it is the
    draft on the variant's branch.
    """
    return find_next_draft(variant) if variant.observed.shares_draft else variant.observed.draft


def find_next_draft(variant: RenderedVariant) -> OpenDraft | None:
    """Return the draft with the new content of the variant, else the one on its branch, or None.

    The commit of new content is "" until it is written.
    """
    if variant.draft_content is None or variant.changes_nothing:
        return variant.observed.draft
    return build_draft(variant)


def build_draft(variant: RenderedVariant) -> OpenDraft:
    """Build the draft that is written for a rendered variant, with what its commit states."""
    assert variant.draft_content is not None, "a draft is rendered before it is written"
    assert variant.rendering is not None, "draft content is merged from a rendering"
    assert variant.selected.inputs is not None, "a rendered variant has inputs"
    observed, spec, merged = variant.observed, variant.spec, variant.merged
    taken = [draft for _, draft in replaced_drafts(variant)]
    return OpenDraft(
        ref=observed.draft_ref,
        path=spec.path,
        commit="",
        tree=variant.draft_content.tree,
        trailers=PackageStatement(
            install=install_of(observed.draft_ref),
            policy=f"{spec.namespace}/{spec.policy}",
            variant=spec.name,
            stage=spec.stage or NO_VALUE,
            revision=variant.selected.revision,
            commit=variant.selected.upstream_commit,
            digest=variant.selected.inputs.digest,
            onto=observed.onto_tree,
            tree=variant.draft_content.tree,
            conflicts=format_disputes(variant.disputes),
            takes=" ".join(sorted(draft.commit for draft in taken)),
            rendered=variant.rendering.tree,
        ),
        editors=frozenset().union(*(draft.editors for draft in taken)),
        rejected_lines=rejected_lines(merged.conflicts) if merged is not None else (),
    )


def draft_subject(variant: RenderedVariant) -> str:
    """Return the subject of the commit that writes the draft of one variant."""
    spec, verb, location = variant.spec, variant.change_verb, variant.spec.path
    revision = f"{spec.upstream_package} {variant.selected.revision}"
    if verb is ChangeVerb.ROLL_BACK:
        return f"Take {location} back to {revision}"
    if verb is ChangeVerb.MOVE:
        location = f"{variant.observed.package_location.path} to {location}"
    return f"{verb} {location} at {revision}"


def replaced_drafts(variant: RenderedVariant) -> list[tuple[RepositoryState, OpenDraft]]:
    """Return the edited drafts that the new one replaces, with their repositories."""
    return [(state, draft) for state, _, draft in variant.observed.open_drafts if draft.has_edits]


class DraftLocation(Value):
    """The branch of a variant's draft, and the draft there.

    `occupant` is the draft of another variant at this place.
    """

    ref: str
    path: str
    draft: OpenDraft | None
    occupant: OpenDraft | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return the key that a draft has here."""
        return self.ref, self.path


def locate_draft(
    spec: VariantSpec, repository_state: RepositoryState, install: str, *, is_shared: bool
) -> DraftLocation:
    """Return where the draft of the variant is, or is to be written.

    `is_shared`: the policy asks for one branch of all variants of a stage. A draft with edits stays
    where it is until it is published: its branch is the only place that has them.
    """
    own = _at(spec, repository_state, install, is_shared=False)
    if not spec.policy:
        return own
    shared = _at(spec, repository_state, install, is_shared=True)
    wanted, other = (shared, own) if is_shared else (own, shared)
    return other if other.draft is not None and other.draft.has_edits else wanted


def draft_branch(spec: VariantSpec, install: str, *, is_shared: bool) -> str:
    """Return the full ref of the branch of the variant's draft."""
    if is_shared:
        return set_ref(SetScope.STAGE, install, spec.namespace, spec.policy, spec.stage)
    return draft_ref(install, spec.path, spec.policy or spec.name)


def find_draft(
    spec: VariantSpec, repository_state: RepositoryState, install: str
) -> OpenDraft | None:
    """Return the draft of the variant at its path, wherever it is, or None."""
    own, shared = (_at(spec, repository_state, install, is_shared=it).draft for it in (False, True))
    return own or shared


def _at(
    spec: VariantSpec, repository_state: RepositoryState, install: str, *, is_shared: bool
) -> DraftLocation:
    ref = draft_branch(spec, install, is_shared=is_shared)
    draft = repository_state.find_draft(ref, spec.path)
    owner = (draft.trailers.policy, draft.trailers.variant) if draft is not None else None
    # A variant written by hand may have the name of one in another namespace.
    if owner in (None, (f"{spec.namespace}/{spec.policy}", spec.name)):
        return DraftLocation(ref, spec.path, draft)
    return DraftLocation(ref, spec.path, None, draft)
