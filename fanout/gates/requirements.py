"""What a stage requires of a draft before it is published, and whether that is given.

Approvals and reports count for the draft's tree, answers of machines for its digest. A check that
fails makes the variant failed; one that is pending holds. (Design §6, "Checks".)
"""

from collections.abc import Sequence
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView
from fanout.gates.approvals import ApprovalIndex
from fanout.gates.checks import EvidenceIndex
from fanout.gates.decisions import Order, Standing
from fanout.gates.facts import Answer, Draft, Hold, Published, VariantFacts
from fanout.gates.machine import fold, fresh, in_time, stale
from fanout.gates.records import Override
from fanout.gates.registrar import forgotten, lifted
from fanout.gates.rules import ApprovalRule, CheckRule, StageRule, Verdict, Way
from fanout.values import replace


class Requirements:
    """Asks what stages require of drafts."""

    def __init__(
        self, evidence: EvidenceIndex, approvals: ApprovalIndex, standing: Standing, now: datetime
    ) -> None:
        self._evidence = evidence
        self._approvals = approvals
        self._standing = standing
        self._now = now

    def ask(
        self, rule: StageRule, facts: VariantFacts, draft: Draft, orders: Sequence[Order]
    ) -> tuple[tuple[CheckView, ...], tuple[Answer, ...]]:
        """How each check stands, and the answers that are to be on record."""
        if not rule.requires:
            return (), ()
        retried = self._standing.retried(rule.name, facts.name, draft.revision)
        about = _as_published(facts, draft, self._now)
        views: list[CheckView] = []
        answers: list[Answer] = []
        for check in rule.requires:
            if isinstance(check, ApprovalRule):
                view = self._approvals.answer(check, facts, draft)
            else:
                view = self._check(rule, check, facts, about, retried, answers)
            grant = facts.granted(draft)
            if grant is not None:
                begun = grant.at if retried is None else max(grant.at, retried)
                view = in_time(check, view, begun, self._now)
            views.append(_unless_lifted(view, orders))
        return tuple(views), tuple(answers)

    def _check(
        self,
        rule: StageRule,
        check: CheckRule,
        facts: VariantFacts,
        about: Published,
        retried: datetime | None,
        answers: list[Answer],
    ) -> CheckView:
        if check.way is not Way.REPORT:
            known = [it for it in facts.answers if not forgotten(it, retried)]
            folded = fold(check, about, facts.readings, known, self._now)
            view, answer = fresh(check, folded, self._now)
            answers += [answer] if answer is not None else []
            return view
        since = facts.draft.written if facts.draft is not None else None
        if since is not None:
            about = replace(about, at=since)  # reports count from when the draft was first written
        view = self._evidence.answer(
            rule.name, check.name, facts.name, about, retried, drafted=True
        )
        if check.fresh_for is None or view.verdict is not Verdict.PASSED:
            return view
        assert view.last is not None, "what was reported was reported some time"
        end = view.last + check.fresh_for
        return stale(check, view) if end <= self._now else replace(view, until=end)


def failing(facts: VariantFacts, required: Sequence[CheckView]) -> Hold | None:
    """Why the variant fails the candidate before it could be published."""
    if facts.failed is not None:
        return facts.failed
    for check in required:
        if check.verdict is Verdict.FAILED:
            return Hold(Reason.REQUIRES_FAILED, check.sentence, check.who, check.at, check.until)
    return None


def _as_published(facts: VariantFacts, draft: Draft, now: datetime) -> Published:
    """The draft as checks see it: machines are asked from its release on."""
    grant = facts.granted(draft)
    at = grant.at if grant is not None else now
    return Published(draft.revision, draft.digest, draft.tree, at, draft.commits)


def _unless_lifted(view: CheckView, orders: Sequence[Order]) -> CheckView:
    if view.verdict is Verdict.PASSED:
        return view
    for order in orders:
        if Override.REQUIRES in order.decision.overrides:
            return lifted(view, order.decision.by, order.at)
    return view
