"""Rules of a branch, as far as the account of fanout may read them.

A rule that the host does not have, or that the branch has not, is False, 0 or empty; one that the
host hides from the account is Unknown, and never taken for either.
"""

from collections.abc import Iterator
from typing import TypeAlias

from fanout.api.promotion_policy import MergeStyle
from fanout.values import Value

Unknown: TypeAlias = None
"""Value of a rule that the account may not read."""

ALL_STYLES = frozenset(MergeStyle)


class RequiredStatus(Value):
    """Status without which nothing is merged to a branch; "*" may be part of its name."""

    context: str
    app: str = ""  # login or app that must set it; "": whoever may write does


class BranchFacts(Value, kw_only=True):
    """Rules of a branch.

    `allowed_styles` are those of the branch alone: a repository may allow fewer.
    """

    is_protected: bool | Unknown
    required_statuses: frozenset[RequiredStatus] | Unknown = frozenset()
    required_approvals: int | Unknown = 0
    may_push: bool | Unknown  # fanout's account, without a request
    requires_code_owners: bool | Unknown = False
    requires_linear_history: bool | Unknown = False
    requires_signatures: bool | Unknown = False
    requires_resolved_conversations: bool | Unknown = False
    ignores_last_pusher: bool | Unknown = False  # whose approval does not count
    requires_queue: bool | Unknown = False
    allowed_styles: frozenset[MergeStyle] | Unknown = ALL_STYLES

    def list_requirements(self) -> tuple[str, ...]:
        """Return what the branch requires of a merge, beside statuses and styles."""
        return tuple(words for value, words in self._requirements() if value)

    def list_unknown(self) -> tuple[str, ...]:
        """Return what the branch may require of a merge, and the account may not read."""
        return tuple(words for value, words in self._requirements() if value is None)

    def _requirements(self) -> Iterator[tuple[int | Unknown, str]]:
        number = self.required_approvals
        approvals = "approvals" if number is None else f"{number} approval{'s'[: number != 1]}"
        yield number, approvals
        yield self.requires_code_owners, "approvals of code owners"
        yield self.ignores_last_pusher, "an approval by others than the last to push"
        yield self.requires_resolved_conversations, "resolved conversations"
        yield self.requires_signatures, "signed commits"
        yield self.requires_linear_history, "a linear history"
        yield self.requires_queue, "its merge queue"
