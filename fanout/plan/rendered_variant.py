"""Third phase of a variant in a pass: the content of its next draft."""

from enum import StrEnum

from fanout.api.results import Hold
from fanout.errors import FanoutError
from fanout.plan.edits.edit_merge import MergedRendering
from fanout.plan.edits.merge_disputes import MergeDispute, build_disputes, parse_disputes
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value
from fanout.variants.render_model import RenderedPackage


class ChangeVerb(StrEnum):
    """Change of a package by a draft; the first word of the title of its pull request."""

    ADD = "Add"
    UPDATE = "Update"
    ADOPT = "Adopt"
    MOVE = "Move"
    ROLL_BACK = "Roll back"
    REMOVE = "Remove"


class RenderedVariant(Value):
    """Selected variant with the content of its next draft, if one is due.

    A variant that needs no draft, or is held, has no content.
    """

    selected: SelectedVariant
    rendering: RenderedPackage | None = None  # without edits made by hand
    merged: MergedRendering | None = None  # the rendering with edits made by hand
    rendering_failure: FanoutError | None = None
    postponed: Hold | None = None  # its draft is due, and is written in a later round

    @property
    def observed(self) -> ObservedVariant:
        """Return the variant as it was observed."""
        return self.selected.observed

    @property
    def spec(self) -> VariantSpec:
        """Return the spec of the variant."""
        return self.selected.observed.spec

    @property
    def render_failure(self) -> FanoutError | None:
        """Return why the candidate has no content: its package is invalid or rendering failed."""
        return self.selected.preparation_failure or self.rendering_failure

    @property
    def draft_content(self) -> RenderedPackage | None:
        """Return the content of the draft: the merged rendering, or the rendering alone."""
        return self.merged.content if self.merged is not None else self.rendering

    @property
    def is_declined(self) -> bool:
        """Return whether a person closed the pull request for the candidate."""
        declined = self.observed.declined
        return declined is not None and declined.revision == self.selected.revision

    @property
    def changes_nothing(self) -> bool:
        """Return whether the new content is what the branch has already, as the variant's own.

        Equal content does not make an unmanaged package fanout's own: adoption is published like
        any other draft.
        """
        if (content := self.draft_content) is None:
            return False
        observed = self.observed
        return content.tree == observed.path_state.tree and not (
            observed.is_unmanaged or observed.is_moving
        )

    @property
    def change_verb(self) -> ChangeVerb:
        """Return what the draft for the candidate does to the package."""
        if self.selected.is_rollback:
            return ChangeVerb.ROLL_BACK
        if self.observed.is_moving:
            return ChangeVerb.MOVE
        if self.observed.is_unmanaged:
            return ChangeVerb.ADOPT
        return ChangeVerb.UPDATE if self.observed.path_state.tree else ChangeVerb.ADD

    @property
    def disputes(self) -> tuple[MergeDispute, ...]:
        """Return the merge disputes of the draft being written.

        Disputes that commits on a replaced draft had settled are marked as decided.
        """
        if self.merged is None:
            return ()
        observed = self.observed
        settled = (
            dispute.key
            for _, _, draft in observed.open_drafts
            if draft is observed.draft or draft.has_edits
            for dispute in parse_disputes(draft.trailers.conflicts)
            if dispute.is_decided or dispute.key in draft.settled_keys
        )
        return build_disputes(self.merged.conflicts, settled)


def without_candidate(variant: ObservedVariant) -> RenderedVariant:
    """Return the variant without a candidate, as in a policy that an error stops."""
    return RenderedVariant(SelectedVariant(variant))
