"""What a decision to publish comes to where nothing, or not everything, is published."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from fanout.api.reasons import Reason
from fanout.cli.naming import meant
from fanout.errors import InvalidInput
from fanout.gates.answer import State
from fanout.gates.decisions import Standing
from fanout.gates.evaluate import evaluate
from fanout.gates.facts import Hold
from fanout.gates.pins import Pin, pinned
from fanout.gates.records import Action, Decision
from fanout.gates.wording import counted, listed, stage_named
from fanout.plan.actions import Kind
from fanout.plan.cases import Case
from fanout.plan.status import written
from fanout.reconcile.report import PolicyPass, Report
from fanout.values import replace


def nothing_to_publish(item: PolicyPass, stage: str, those: Sequence[Case], revision: str) -> str:
    """Why a decision made now would be about nothing; "" where it is about steps to the revision.

    For variants of which no draft can be looked at. Raises InvalidInput where one is due: whoever
    decided now would decide about what is not written yet.
    """
    due = [case for case in those if not in_force(case, revision)]
    if not due:
        return _idle(stage, revision, some=bool(those))
    drafted = any(_drafted(case, revision) for case in due)
    if drafted or all(_published(case, revision) for case in those):
        why = "; ".join(_reasons(item, stage, due, revision))
        raise InvalidInput(
            f"there is no draft of {revision} that is up to date: {why}",
            reason="NoDraft",
            remedy="`fanout sweep --drafts-only` brings drafts up to date",
        )
    return ""


def refuse_unreachable(
    item: PolicyPass, stage: str, variants: Sequence[str], revision: str, *, lifts: bool
) -> None:
    """Raises InvalidInput for a revision that the stage can not come to as things stand.

    A decision about it would wait until the policy changes. The gates say what is within reach;
    one that lifts verification is also about what is published. They are asked as if it were on
    record: it may end a rollback.
    """
    facts = item.facts
    if facts is None:
        return
    said = Decision("", facts.now, "", Action.PUBLISH, stage, tuple(variants), revision)
    then = replace(facts.records, decisions=(*facts.records.decisions, said))
    decided = evaluate(replace(facts, records=then)).stages.get(stage)
    there = {it.published.revision for it in meant(item, stage) if it.published is not None}
    if decided is None or revision in decided.eligible or (lifts and revision in there):
        return
    rule = next(rule for rule in item.rules if rule.name == stage)
    pin = pinned(rule, Standing(then.decisions, facts.now, facts.variants).rollbacks)
    if pin is not None:
        raise _goes_back(item, stage, revision, pin)
    known = tuple(item.revisions)  # oldest first
    remedy = f"change spec.upstream.revision so that {revision} is the newest it allows"
    if there.isdisjoint(known[: known.index(revision) + 1]):
        why = f"a stage never goes back by itself, and {listed(there)} is published there"
        about = f"{item.named.name} --stage {stage}" if stage else item.named.name
        back = f"fanout rollback {about} --revision {revision}"
        remedy = f"`{back}` takes it back to what it had of that; or {remedy}"
    else:
        why = f"{decided.candidate} is newer and its gate is open"
    raise InvalidInput(
        f"{revision} cannot be published in {stage_named(stage)}: {why}",
        reason=Reason.WOULD_GO_BACK,
        remedy=remedy,
    )


def _goes_back(item: PolicyPass, stage: str, revision: str, pin: Pin) -> InvalidInput:
    decision = pin.decision
    if decision is None:
        why = f"its policy pins it to {pin.revision}"
        remedy = f"take the pin out of stage {stage}, or change it"
    else:
        why = f"all of it goes back to {pin.revision}, by decision {decision.name} of {decision.by}"
        remedy = (
            "promote all of the stage, which ends that, or `fanout withdraw"
            f" {item.named.name} {decision.name}`"
        )
    return InvalidInput(
        f"{revision} cannot be published in {stage_named(stage)}: {why}",
        reason=Reason.PINNED,
        remedy=remedy,
    )


def unseen(
    item: PolicyPass, those: Sequence[Case], trees: Collection[str], revision: str
) -> Iterator[str]:
    """Which of the variants a decision is not about, because they had no draft to look at.

    What is suspended gets no draft before somebody resumes it; the gates tell that.
    """
    assert item.decision is not None, "the caller has looked"
    decided = item.decision.variants
    number = sum(
        not in_force(case, revision)
        and (case.draft is None or case.draft.tree not in trees)
        and decided[case.spec.name].state is not State.SUSPENDED
        for case in those
    )
    if number:
        have, it = ("has", "it") if number == 1 else ("have", "them")
        yield (
            f"{number} of {counted(len(those), 'variant')} {have} no draft of {revision} that is up"
            f" to date: the decision is not about {it}; decide again once there is one"
        )


def unpublished(
    report: Report, stage: str, variants: Sequence[str], revision: str
) -> Iterator[str]:
    """Why variants that were to be published are not, a sentence for each reason.

    The reasons are the gates' own, from the pass that the decision took part in.
    """
    for item in report.observed.policies:
        if item.problem is not None or item.decision is None:
            continue  # the pass has told it
        those = meant(item, stage, variants)
        published = {
            outcome.action.variant
            for outcome in report.outcomes
            if outcome.done and outcome.action.kind is Kind.PUBLISH
        }
        waiting = [
            case
            for case in those
            if case.spec.name not in published and not in_force(case, revision)
        ]
        if waiting:
            head = _head(len(waiting), len(those), bool(published))
            yield from (f"{head}: {line}" for line in _reasons(item, stage, waiting, revision))
        elif not published:
            yield _idle(stage, revision, some=bool(those))


def _idle(stage: str, revision: str, *, some: bool) -> str:
    if not some:
        return f"nothing is to be published: no variant is in {stage_named(stage)}"
    where = f"in {stage_named(stage)}" if stage else "of it"
    return f"nothing is to be published: {revision} is published {where} already"


def _published(case: Case, revision: str) -> bool:
    return case.published is not None and case.published.revision == revision


def _drafted(case: Case, revision: str) -> bool:
    return case.draft is not None and case.draft.trailers.revision == revision


def in_force(case: Case, revision: str) -> bool:
    """Is the revision published for the variant, with the inputs that it is to have?"""
    return _published(case, revision) and (case.revision != revision or case.in_force)


def _head(waiting: int, all_: int, some: bool) -> str:
    if not some:
        return "nothing is published yet"
    verb = "is" if waiting == 1 else "are"
    return f"{waiting} of {counted(all_, 'variant')} {verb} not published yet"


def _reasons(item: PolicyPass, stage: str, waiting: Sequence[Case], revision: str) -> Iterator[str]:
    assert item.decision is not None, "the caller has looked"
    decided = item.decision.stages.get(stage)
    if decided is not None and decided.candidate == revision:
        found = [item.decision.variants[case.spec.name].holds for case in waiting]
        yield from _counted(found)
    elif decided is not None:
        yield f"the candidate is {decided.candidate or 'none'}, not {revision}: the decision waits"


def _counted(found: Sequence[Sequence[Hold]]) -> Iterator[str]:
    """The first hold of each reason and who; of how many variants, where not of all."""
    having = Counter(key for holds in found for key in {(it.reason, it.who) for it in holds})
    for hold in _each_once(hold for holds in found for hold in holds):
        number = having[hold.reason, hold.who]
        of_them = f"for {number} of them " if number < len(found) else ""
        yield f"{of_them}{_sentence(hold)}"


def _each_once(holds: Iterable[Hold]) -> Iterable[Hold]:
    """The first hold of each reason and who."""
    first: dict[tuple[str, str], Hold] = {}
    for hold in holds:
        first.setdefault((hold.reason, hold.who), hold)
    return first.values()


def _sentence(hold: Hold) -> str:
    until = f"; can change at {written(hold.until)}" if hold.until else ""
    who = f"; who can act: {hold.who}" if hold.who else ""
    return f"{hold.sentence}{until}{who}"
