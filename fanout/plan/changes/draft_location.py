"""Location of a variant's draft: a branch of its own, or the draft of its stage."""

from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.selection.ref_names import SetScope, draft_ref, set_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value


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
