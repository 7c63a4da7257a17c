"""Why automation does not publish a draft although its gate is open, and a person may.

Automatic promotion is an administrator's to switch on; it never goes back to an older revision, and
what a person has to look at first is nothing for it. (Design §2.)
"""

from collections.abc import Sequence
from functools import cached_property

from fanout.api.reasons import Reason
from fanout.gates.census import Member
from fanout.gates.decisions import Order
from fanout.gates.facts import Draft, Hold
from fanout.gates.judgement import Judgement
from fanout.gates.records import Decision
from fanout.gates.rules import StageRule
from fanout.gates.wording import listed, stage_named
from fanout.values import replace


class Automation:
    """What one stage's automation does not do by itself."""

    def __init__(self, judgement: Judgement, rule: StageRule, candidate: str) -> None:
        self._judgement = judgement
        self._rule = rule
        self._candidate = candidate

    def barred(self, member: Member, draft: Draft, *, back: bool = False) -> Hold | None:
        """Why automation does not do it, though a person may; `back`: the stage is pinned."""
        looked = _looked_at(member, draft)
        if looked is not None:
            return looked
        if not self._rule.automatic:
            return self._off
        if not back and self._goes_back(member):
            return self._back
        return None if self._judgement.facts.sweep else self._sweep

    def _goes_back(self, member: Member) -> bool:
        published = member.facts.published
        if published is None:
            return False
        ages = self._judgement.ages
        if ages.comparable(self._candidate, published.revision):
            return ages.older(self._candidate, published.revision)
        return self._judgement.ledgers[self._rule.name].past(self._candidate).left is not None

    @cached_property
    def _off(self) -> Hold:
        named = stage_named(self._rule.name)
        sentence = f"nobody has switched automatic promotion on for {named}"
        if self._rule.opposed:
            sentence = (
                f"PromotionPolicy {listed(self._rule.opposed)} does not switch automatic promotion"
                f" on for {named} as others do, and all that have autoPromotion must"
            )
        return Hold(
            Reason.AUTOMATION_OFF,
            sentence,
            "an administrator: PromotionPolicy.autoPromotion; whoever may decide: fanout promote",
        )

    @cached_property
    def _sweep(self) -> Hold:
        return Hold(
            Reason.SWEEP_AWAITED,
            "automatic promotion publishes in sweeps, and this pass is none",
            "the next sweep; whoever may decide: fanout promote",
        )

    @cached_property
    def _back(self) -> Hold:
        return Hold(
            Reason.WOULD_GO_BACK,
            f"it has a newer revision than {self._candidate}, and automation never goes back",
            "whoever may decide: fanout promote",
        )


def unseen(member: Member, draft: Draft, orders: Sequence[Order]) -> Hold | None:
    """What a person has to look at first: who decided before there was this draft has not."""
    if any(draft.tree in order.decision.trees for order in orders):
        return None
    return _looked_at(member, draft)


def unmeant(barred: Hold | None, orders: Sequence[Order]) -> Hold | None:
    """With whoever promoted when this draft was not there to see: it is rewritten, or the first."""
    if barred is None or not orders:
        return barred
    said = orders[-1].decision
    told = (
        f"decision {said.name} of {said.by} is about drafts of {said.revision} among which this one"
        " is not"
    )
    return replace(barred, sentence=f"{barred.sentence}; {told}")


def _looked_at(member: Member, draft: Draft) -> Hold | None:
    """Why a person has to look at it, whoever is to publish."""
    if member.facts.published is not None and member.facts.published.undone is not None:
        return member.facts.published.undone
    return _ADOPTION if draft.adopts else None


def conflict(draft: Draft, orders: Sequence[Order]) -> Hold | None:
    """The hold of a draft with undecided merge conflicts, whoever is to publish it (design §4).

    `orders` are the decisions that cover the draft. One of them lets it go as it stands if it
    accepts conflicts, names the variant, and lists the draft's tree: whoever decided has seen it.
    """
    if not draft.disputed or any(_accepts(order.decision, draft) for order in orders):
        return None
    number = draft.disputed
    conflicts = "1 merge conflict" if number == 1 else f"{number} merge conflicts"
    return Hold(
        Reason.MERGE_CONFLICT,
        f"{conflicts} in its draft: upstream and local changed the same, and nobody has decided",
        "whoever maintains the package: a commit on the draft that changes the file, `fanout"
        " resolve`, or `fanout promote` with --variant and --accept-conflicts",
    )


def _accepts(decision: Decision, draft: Draft) -> bool:
    # A stage-wide decision cannot accept: nobody looks at the conflicts of a whole stage.
    named = decision.accept_conflicts and bool(decision.variants)
    return named and draft.tree in decision.trees


_ADOPTION = Hold(
    Reason.ADOPTION_AWAITS,
    "it is the first draft for a package that fanout did not write, and that is never published"
    " automatically",
    "whoever may decide: fanout promote",
)
