"""Drafts that are due in a round, as many as a policy may write in one.

In a process that stays, a policy with thousands of outdated drafts would else keep all others
waiting until its last one is pushed.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.plan import plan_wording
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.selected_variant import SelectedVariant
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
    due_variants = [it for it in variants if it.wants_draft and it.spec.name not in suspended]
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
