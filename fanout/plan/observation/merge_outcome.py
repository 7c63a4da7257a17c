"""Outcome of asking a forge to merge a pull request.

A host merges at once, or accepts the merge and makes it later, or refuses it. That a merge has
taken place, Git shows: an accepted one is on no branch yet, and the host may drop it again.
"""

from collections.abc import Mapping
from enum import StrEnum

from fanout.api.reasons import Reason
from fanout.values import Value


class MergeRoute(StrEnum):
    """Way by which a host makes a merge later that it has accepted."""

    AUTO_MERGE = "auto-merge"
    QUEUE = "merge queue"


class Merged(Value):
    """The request was merged."""

    commit: str = ""  # on the base branch; "" if the host does not say


class Accepted(Value):
    """The host has taken the merge and makes it later, when what it waits for has come.

    `position` is that in the queue, from 1; 0 if there is none or the host does not say. `words`
    are the host's: what it waits for.
    """

    route: MergeRoute
    position: int = 0
    words: str = ""

    def describe(self) -> str:
        """Return where the request is, in the host's words."""
        place = f"in the {self.route}"
        if self.route is MergeRoute.AUTO_MERGE:
            place = "set to be merged automatically"
        if self.position:
            place += f" at position {self.position}"
        return f"{place} ({self.words})" if self.words else place


class RefusalKind(StrEnum):
    """Kind of a refusal, as far as the host's answer tells it."""

    NOT_NOW = "not now"  # checks, reviews, conflicts, rights: the words say more
    STYLE_FORBIDDEN = "style forbidden"
    SIGNATURE_REQUIRED = "signature required"
    QUEUE_REQUIRED = "queue required"


class Refused(Value):
    """The host does not merge the request; `words` are its own.

    `is_retryable`: the host says that the same call may go through in a moment, though nobody does
    anything. All others last until somebody does, or the host's own checks have ended.

    A head that has moved is no refusal but a Conflict, as with every other write: the pass
    judged a commit that is not there any more. A refusal is recorded, shown and held against the
    head that it is about; a lost race is observed again, and nothing of it is on record.
    """

    kind: RefusalKind
    words: str
    is_retryable: bool = False

    @property
    def reason(self) -> Reason:
        """Reason of the hold."""
        return _REASONS.get(self.kind, Reason.FORGE_REFUSES)


_REASONS: Mapping[RefusalKind, Reason] = {
    RefusalKind.STYLE_FORBIDDEN: Reason.MERGE_STYLE_FORBIDDEN,
    RefusalKind.SIGNATURE_REQUIRED: Reason.SIGNATURE_REQUIRED,
}
MergeOutcome = Merged | Accepted | Refused


class MergeabilityKind(StrEnum):
    """Kind of what a host says about a merge before it is asked for one."""

    CLEAN = "clean"
    BEHIND = "behind"  # its head lacks commits of the branch, and a rule wants them
    BLOCKED = "blocked"  # by a rule: statuses, reviews, conversations
    CONFLICT = "conflict"
    CHECKING = "checking"  # the host computes it, or has not begun to
    DRAFT = "draft"
    OTHER = "other"  # a word that is not known, of which the host says that it is no "clean"


class Mergeability(Value):
    """Words of a host about the merge of a pull request, before anybody asks for it."""

    kind: MergeabilityKind
    words: str

    def is_refused(self, *, checks_when_merging: bool) -> bool:
        """Return whether the host would refuse to merge now, whoever asks.

        A draft is none: it is made ready before the merge. `checks_when_merging`: an attempt makes
        the host compute what it does not know yet, so that "checking" is no refusal.
        """
        if self.kind is MergeabilityKind.CHECKING:
            return not checks_when_merging
        return self.kind not in (MergeabilityKind.CLEAN, MergeabilityKind.DRAFT)
