"""What keeps an approval from being given, and what keeps one that is given from counting."""

from collections.abc import Collection, Sequence

from fanout.api.people import person
from fanout.errors import InvalidInput
from fanout.gates.approvals import ApprovalIndex, taken_back
from fanout.gates.decisions import Standing
from fanout.gates.facts import VariantFacts
from fanout.gates.instants import written
from fanout.gates.judgement import survey
from fanout.gates.rules import ApprovalRule, Verdict
from fanout.gates.wording import listed, stage_named
from fanout.plan.cases import Case
from fanout.plan.repository import Identity
from fanout.reconcile.report import PolicyPass
from fanout.values import replace


def may_approve(rule: ApprovalRule, who: Identity) -> bool:
    """Is it somebody whose yes counts?"""
    return _person(who) in rule.subjects


def stranger(rule: ApprovalRule, who: Identity) -> str:
    """Why somebody's yes does not count."""
    groups = " or ".join(rule.groups) or "any group"
    return f"{who.email.lower()} is not in {groups} (PromotionPolicy.approvers)"


def no_draft(item: PolicyPass, stage: str, revision: str, those: Sequence[Case]) -> InvalidInput:
    """Why there is no draft of a revision to approve, and when there is to be one.

    A stage has drafts of its candidate alone: of what passes its `after`, or of what it has in hand
    meanwhile.
    """
    problem = f"stage {stage} of {item.title} has no draft of {revision}"
    decided = item.decision.variants if item.decision else {}
    taken = {decided[case.spec.name].candidate for case in those}
    if revision not in item.revisions:
        there = ", ".join(item.revisions)
        remedy = f"choose one that the policy's rule allows: {there}" if there else "there is none"
    elif not those:
        problem, remedy = f"{problem}: no variant is in it", "see `fanout get variants`"
    elif revision not in taken:
        problem = f"{problem}: its candidate is {listed(taken)}"
        remedy = _when(item, stage, revision)
    elif all(case.published is not None and case.published.revision == revision for case in those):
        problem = f"{problem}: it is published there already"
        remedy = "there is nothing to approve"
    else:
        problem = f"{problem} that is up to date"
        remedy = "see `fanout get drafts`; `fanout sweep --drafts-only` brings drafts up to date"
    return InvalidInput(problem, reason="NoDraft", remedy=remedy)


def _when(item: PolicyPass, stage: str, revision: str) -> str:
    """When drafts of a revision are written that is not the stage's candidate."""
    assert item.facts is not None, "a policy that is judged has its facts"
    judgement = survey(item.facts)
    judgement.final()
    rule = next(rule for rule in item.facts.stages if rule.name == stage)
    pin, candidate = judgement.pin(rule), judgement.candidate(stage)
    if pin is not None and pin.revision == candidate:
        return f"{stage_named(stage)} goes back to {candidate} and stays at it"
    if judgement.ages.older(revision, candidate):
        return "that is newer, and a stage never goes back by itself"
    gate = judgement.stage_gate(rule, revision)
    if gate.verdict is Verdict.PASSED:
        return f"drafts of {revision} are written when the stage is done with {candidate}"
    why = "; ".join(dict.fromkeys(hold.sentence for hold in gate.holds))
    then = f"drafts of {revision} are written when it may be taken"
    if gate.next is not None:
        return f"{then} (at {written(gate.next)}, if nothing else changes): {why}"
    foretold = f"`fanout forecast {item.named.name} --revision {revision}`"
    return f"{then}: {why}; {foretold} tells when at the earliest"


def seen(item: PolicyPass, those: Sequence[Case], trees: Collection[str]) -> list[VariantFacts]:
    """Those of the variants whose drafts have these trees, as the gates know them."""
    names = {case.spec.name for case in those}
    known = item.facts.variants if item.facts else ()
    return [it for it in known if it.name in names and it.draft and it.draft.tree in trees]


def uncounted(rule: ApprovalRule, who: Identity, drafted: Sequence[VariantFacts]) -> str:
    """Why an approval of these variants' drafts does not count, or not for all; "": it does."""
    if not may_approve(rule, who):
        return f"it is recorded and does not count: {stranger(rule, who)}"
    own = own_work(rule, who, drafted)
    if not own:
        return ""
    those = "" if len(own) == len(drafted) else f" for {len(own)} of them ({listed(own)})"
    return (
        f"it does not count{those}: {_person(who)} has changed what is in"
        f" {'it' if len(own) == 1 else 'them'}, and nobody approves what they have changed"
        " themselves (PromotionPolicy.requiresSeparation)"
    )


def own_work(rule: ApprovalRule, who: Identity, drafted: Sequence[VariantFacts]) -> list[str]:
    """The variants whose drafts this person has changed, where that keeps a yes from counting."""
    if not rule.separation:
        return []
    return [it.name for it in drafted if it.draft is not None and _person(who) in it.draft.authors]


def approved_before(
    item: PolicyPass, rule: ApprovalRule, who: Identity, drafted: Sequence[VariantFacts]
) -> list[str]:
    """Those of the variants whose drafts this person has approved, where nobody took that back."""
    facts = item.facts
    if facts is None:
        return []
    said, revoked = facts.records.approvals, taken_back(facts.records.approvals, facts.stages)
    own = [it for it in said if it.by == _person(who) and it.name not in revoked]
    standing = Standing(facts.records.decisions, facts.now, facts.variants)
    index = ApprovalIndex(own, facts.stages, facts.now, standing)
    asking = {it.name: replace(it, requires=(rule,)) for it in facts.stages}
    return [it.name for it in drafted if it.draft and index.wanted(asking[it.stage], it, it.draft)]


def _person(who: Identity) -> str:
    return person(f"{who.name} <{who.email}>")
