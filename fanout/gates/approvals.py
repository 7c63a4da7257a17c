"""Who has said yes to a draft: distinct people, of the rule's, on exactly this tree.

An approval names trees; a new tree asks again, for itself only. And it is for the next step: one
that is older than the variant's last publication, or its removal, is not asked for a like tree that
comes later, as after a move. (Design §2 and §6.)
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView
from fanout.gates.decisions import Standing
from fanout.gates.facts import Draft, VariantFacts
from fanout.gates.instants import counts_from, from_the_future, soonest, written
from fanout.gates.records import Approval
from fanout.gates.rules import ApprovalRule, StageRule, Verdict
from fanout.gates.wording import listed, members
from fanout.values import replace

_Dated = tuple[datetime, Approval]


class ApprovalIndex:
    """All approvals of one policy that were not taken back, by stage, check and tree."""

    def __init__(
        self,
        approvals: Iterable[Approval],
        stages: Iterable[StageRule],
        now: datetime,
        standing: Standing,
    ) -> None:
        self._now = now
        self._standing = standing
        self._by_tree: dict[tuple[str, str, str], list[_Dated]] = {}
        self._by_revision: dict[tuple[str, str, str], list[_Dated]] = {}
        said = list(approvals)
        revoked = taken_back(said, stages)
        for approval in said:
            if approval.revokes or approval.name in revoked:
                continue
            about = (approval.stage, approval.check, approval.revision)
            self._by_revision.setdefault(about, []).append((approval.at, approval))
            for tree in approval.trees:
                key = (approval.stage, approval.check, tree)
                self._by_tree.setdefault(key, []).append((approval.at, approval))

    def answer(self, rule: ApprovalRule, variant: VariantFacts, draft: Draft) -> CheckView:
        """Have enough people approved the draft, and until when does that hold?"""
        live: dict[str, datetime] = {}  # person → when their approval expires or was given
        ends: list[datetime | None] = []
        ahead: list[datetime] = []
        own: list[str] = []  # what they changed themselves
        latest: datetime | None = None
        for at, approval in self._about(rule, variant, draft):
            if rule.separation and approval.by in draft.authors:
                own.append(approval.by)
                continue
            end = at + rule.expires if rule.expires else None
            if from_the_future(at, self._now):
                ahead.append(counts_from(at))
            elif end is None or end > self._now:
                live[approval.by] = at
                ends.append(end)
                latest = at if latest is None else max(latest, at)
        until = soonest([*ends, *ahead], self._now)
        if len(live) >= rule.at_least:
            sentence = f"{rule.name}: approved by {listed(live)}"
            return CheckView(rule.name, Verdict.PASSED, sentence, latest, until=until)
        view = _lacking(rule, live, latest, ahead, until)
        if own:
            hint = f"{listed(own)} approved what they have changed themselves: that does not count"
            view = replace(view, sentence=f"{view.sentence}; {hint}")
        outside = {it.by for _, it in self._given(rule, variant, draft)} - rule.subjects
        if outside and rule.subjects:
            hint = f"{listed(outside)} approved it without being {members(rule)}"
            view = replace(view, sentence=f"{view.sentence}; {hint}")
        elsewhere = self._elsewhere(rule, variant, draft) - live.keys() - {*own}
        if not elsewhere:
            return view
        hint = (
            f"{listed(elsewhere)} approved drafts of {draft.revision} among which this one is not"
        )
        return replace(view, sentence=f"{view.sentence}; {hint}")

    def wanted(self, stage: StageRule, variant: VariantFacts, draft: Draft) -> bool:
        """Has anybody approved this draft, so that replacing it would undo a person's work?"""
        return any(
            not from_the_future(at, self._now)
            and (rule.expires is None or at + rule.expires > self._now)
            for rule in stage.approvals
            for at, _ in self._about(rule, variant, draft)
        )

    def _elsewhere(self, rule: ApprovalRule, variant: VariantFacts, draft: Draft) -> frozenset[str]:
        """Who approved the revision, but other drafts of it: earlier ones, or those of others."""
        about = (variant.stage, rule.name, draft.revision)
        return frozenset(
            approval.by
            for at, approval in self._by_revision.get(about, ())
            if approval.by in rule.subjects
            and draft.tree not in approval.trees
            and (not approval.variants or variant.name in approval.variants)
            and not self._before(at, variant)
        )

    def _before(self, at: datetime, variant: VariantFacts) -> bool:
        """Was it said before the step that the variant has taken last, or before it went back?"""
        if variant.stepped is not None and at < variant.stepped:
            return True
        back = self._standing.went_back(variant.stage, variant.name)
        return back is not None and at < back.at

    def _about(self, rule: ApprovalRule, variant: VariantFacts, draft: Draft) -> Iterable[_Dated]:
        """The approvals of the draft by those who may give one."""
        given = self._given(rule, variant, draft)
        return ((at, approval) for at, approval in given if approval.by in rule.subjects)

    def _given(self, rule: ApprovalRule, variant: VariantFacts, draft: Draft) -> Iterable[_Dated]:
        """The approvals of the draft, by whomever."""
        for at, approval in self._by_tree.get((variant.stage, rule.name, draft.tree), ()):
            if (
                approval.revision == draft.revision
                and (not approval.variants or variant.name in approval.variants)
                and not self._before(at, variant)
            ):
                yield at, approval


def taken_back(approvals: Iterable[Approval], stages: Iterable[StageRule]) -> frozenset[str]:
    """Names of those that were taken back: by who gave them, or by anybody who could have.

    Taking back counts at once, also when the clock of who does it runs ahead.
    """
    rules = {(stage.name, rule.name): rule for stage in stages for rule in stage.approvals}
    given: dict[str, Approval] = {}
    revoked: set[str] = set()
    for approval in approvals:
        given[approval.name] = approval
        earlier = given.get(approval.revokes)
        if not approval.revokes or earlier is None:
            continue
        rule = rules.get((earlier.stage, earlier.check))
        if approval.by == earlier.by or (rule and approval.by in rule.subjects):
            revoked.add(earlier.name)
    return frozenset(revoked)


def _lacking(
    rule: ApprovalRule,
    live: Mapping[str, datetime],
    latest: datetime | None,
    ahead: list[datetime],
    until: datetime | None,
) -> CheckView:
    given = f"approved by {listed(live)}, " if live else ""
    sentence = f"{rule.name}: {given}{len(live)} of {rule.at_least} approvals for this draft"
    if len(rule.subjects) < rule.at_least:
        sentence += f"; only {len(rule.subjects)} may give one"
    reason = Reason.APPROVAL_MISSING
    if ahead:
        reason = Reason.FROM_THE_FUTURE
        sentence += f"; one is dated ahead and does not count before {written(min(ahead))}"
    return CheckView(rule.name, Verdict.PENDING, sentence, latest, reason, members(rule), until)
