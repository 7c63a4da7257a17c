"""How a policy stands as a whole: one sentence and its reason, the most pressing first."""

from collections.abc import Sequence
from typing import Any

from fanout.api.reasons import Reason
from fanout.gates.answer import State, VariantDecision
from fanout.gates.facts import Hold
from fanout.gates.wording import counted
from fanout.plan.found import unreadable
from fanout.reconcile.gone import summary
from fanout.reconcile.report import PolicyPass

Plain = dict[str, Any]


def conditions(item: PolicyPass, holds: Sequence[Hold]) -> list[Plain]:
    """Its conditions; `holds` are those of the policy itself."""
    if item.problem is not None:
        stalled = {"reason": item.problem.reason, "message": str(item.problem)}
        return [
            {"type": "Ready", "status": "False", **stalled},
            {"type": "Stalled", "status": "True", **stalled},
        ]
    ready, reason, sentence = _readiness(item, holds)
    return [{"type": "Ready", "status": ready, "reason": reason, "message": sentence}]


def _readiness(item: PolicyPass, holds: Sequence[Hold]) -> tuple[str, str, str]:
    decided = item.decision.variants.values() if item.decision else ()
    ready = sum(variant.state is State.READY for variant in decided)
    sentence = f"{ready} of {counted(len(decided), 'variant')} ready"
    if item.named.failures:
        targets = counted(len(item.named.failures), "target")
        return "False", Reason.TARGETS_FAILED, f"{targets} without a variant; {sentence}"
    if failures := failed(item):
        hold = failures[0].holds[0] if failures[0].holds else None
        why = f": {hold.sentence}" if hold else ""
        reason = hold.reason if hold else Reason.VERIFICATION_FAILED
        told = f"{counted(len(failures), 'variant')} failed, {failures[0].name} first"
        return "False", reason, f"{told}{why}; {sentence}"
    if unread := [case for case in item.cases if case.home.view.failure is not None]:
        first = unread[0]
        assert first.home.view.failure is not None, "those were chosen"
        hold = unreadable(first.home.view.failure, "")
        told = f"{counted(len(unread), 'variant')} cannot be looked at, {first.spec.name} first"
        return "False", hold.reason, f"{told}: {hold.sentence}; {sentence}"
    if item.gone:
        reason, gone = summary(item.gone, item.removals)
        return "False", reason, f"{gone}; {sentence}"
    if decided and ready == len(decided):
        return "True", Reason.READY, sentence
    if holds:
        return "False", holds[0].reason, f"{holds[0].sentence}; {sentence}"
    return "False", Reason.PROGRESSING, sentence


def failed(item: PolicyPass) -> list[VariantDecision]:
    """The variants that failed: to be rendered, a check, or to be in a stage that there is."""
    decided = item.decision.variants.values() if item.decision else ()
    return [it for it in decided if it.state is State.FAILED or _misplaced(it)]


def _misplaced(decision: VariantDecision) -> bool:
    """Does it name a stage that the policy does not have? Sweeps tell that as a failure too."""
    return bool(decision.stage) and any(it.reason == Reason.NOT_IN_STAGE for it in decision.holds)
