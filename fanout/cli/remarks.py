"""What an explanation says beside the gates: who gets no variant, what is disputed, out of band.

The gates know how many values are disputed, not which; they do not know of targets without a
variant at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.decisions import Standing
from fanout.gates.explain import Explanation
from fanout.gates.instants import counts_from, written
from fanout.gates.pins import Pin, pinned
from fanout.gates.records import Action, Decision
from fanout.gates.rules import HAND_WRITTEN, StageRule, Verdict
from fanout.gates.wording import listed, stage_named
from fanout.package.merge.conflicts import Conflict
from fanout.plan.book import Recorded, standing
from fanout.plan.cases import Case
from fanout.plan.dates import ahead, counts_at_once
from fanout.plan.disputes import RESOLVE, read, resolutions
from fanout.reconcile.damage import broken, edited, lost_renderings, tag_trouble
from fanout.reconcile.gathering import gathered
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.upstream import tag_lost

_FOR_THE_POLICY = (
    Reason.MERGE_CONFLICT,
    Reason.PACKAGE_BROKEN,
    Reason.TAG_MISSING,
    Reason.TAG_MOVED,
)
_FOR_THE_STAGE = (Reason.MERGE_CONFLICT, Reason.TAG_MISSING, Reason.TAG_MOVED)


def of_policy(item: PolicyPass) -> tuple[Explanation, ...]:
    """Targets and variants without each other, open conflicts, and what people broke or lost."""
    found = (
        it
        for it in item.troubles
        if it.gone or it.noun in ("target", "repository") or it.reason in _FOR_THE_POLICY
    )
    told = (
        Explanation(
            str(Reason.TARGET_GONE) if it.first.gone else it.first.reason,
            "Failed" if it.first.failed else "Held",
            it.sentence,
        )
        for it in gathered(found)
    )
    pin = _pin(item, HAND_WRITTEN) if item.named.policy is None else ()
    return (*pin, *told, *_dated_ahead(item), *_leaving(item))


def _dated_ahead(item: PolicyPass) -> Iterator[Explanation]:
    """Yield the records that count for nothing yet; of most decisions the gates tell it."""
    now = item.facts.now if item.facts is not None else None
    for record in ahead(standing(item.about), now) if now is not None else ():
        by_gates = record.kind == "Decision" and record.spec["action"] in tuple(Action)
        if by_gates or record.withdrawn or counts_at_once(record):
            continue
        verb = "revoke" if record.kind == "Approval" else "withdraw"
        start = record.at if record.kind == "Evidence" else counts_from(record.at)
        reason = "" if verb == "revoke" else " --reason WHY"
        yield Explanation(
            str(Reason.FROM_THE_FUTURE),
            "Held",
            f"{record.kind} {record.name} of {record.by} is dated {written(record.at)}, more than"
            f" five minutes ahead; it counts for nothing before {written(start)}",
            until=start,
            who=f"whoever sets that clock; fanout {verb} {item.named.name} {record.name}{reason}",
        )


def _leaving(item: PolicyPass) -> Iterator[Explanation]:
    """The variants that go by themselves."""
    if going := item.removals.now:
        sentence = f"the next sweep removes what has no target any more: {listed(going)}"
        yield Explanation(str(Reason.TARGET_GONE), "Leaving", sentence)


def of_stage(item: PolicyPass, stage: str) -> tuple[Explanation, ...]:
    """Drafts with open conflicts, tags that are gone, what was published without its gates."""
    members = {case.spec.name for case in item.cases if case.spec.stage == stage}
    found = (it for it in item.troubles if it.reason in _FOR_THE_STAGE and it.subject in members)
    told = tuple(Explanation(it.first.reason, "Held", it.sentence) for it in gathered(found))
    cases = [case for case in item.cases if case.spec.name in members]
    return (*_pin(item, stage), *told, *_damage(cases), *_out_of_band(cases))


def of_variant(
    item: PolicyPass, case: Case, conflicts: Sequence[Conflict]
) -> tuple[Explanation, ...]:
    """Each conflict of its draft with who won and who decided, and whether it is out of band."""
    told = list(of_conflicts(item, case, conflicts))
    if case.lost_tag:
        told.append(Explanation(str(Reason.TAG_MISSING), "True", tag_lost(case)))
    if (own := tag_trouble(case)) is not None:
        told.append(Explanation(str(own[0]), "True", own[1]))
    if case.shows_edits:
        told.append(Explanation("Edited", "True", edited(case)))
    pin = _pin(item, case.spec.stage, case.spec.name)
    return (*pin, *told, *_damage([case]), *_out_of_band([case]))


def of_conflicts(
    item: PolicyPass, case: Case, conflicts: Sequence[Conflict]
) -> Iterator[Explanation]:
    """Each conflict of the variant's draft, and each value not taken in what is published."""
    yield from (_conflict(item, case, one) for one in conflicts)
    if case.published is None:
        return
    for line in case.published.rejected:
        sentence = f"decided when {case.published.revision} was published: {line}"
        yield Explanation(str(Reason.CONFLICT_DECIDED), "True", sentence, since=case.published.at)


def _pin(item: PolicyPass, stage: str, variant: str = "") -> Iterator[Explanation]:
    """What the stage or the variant goes back to and stays at, and who says so."""
    rule = next((rule for rule in item.rules if rule.name == stage), None)
    if item.facts is None or rule is None:
        return
    said = Standing(item.facts.records.decisions, item.facts.now, item.facts.variants)
    pin = pinned(rule, said.rollbacks, variant)
    if pin is None:
        yield from _own_pins(item, rule, said) if not variant else ()
    elif pin.decision is None:
        sentence = f"the policy pins {stage_named(stage)} to {pin.revision}"
        yield Explanation(str(Reason.PINNED), "True", sentence, who="the policy's author")
    else:
        yield _rolled_back(item, "it", pin, pin.decision)


def _own_pins(item: PolicyPass, rule: StageRule, said: Standing) -> Iterator[Explanation]:
    """The variants that go back without the rest of their stage, by decision."""
    going: dict[str, list[str]] = {}
    pins: dict[str, tuple[Pin, Decision]] = {}
    for case in item.cases:
        pin = pinned(rule, said.rollbacks, case.spec.name)
        if case.spec.stage == rule.name and pin is not None and pin.decision is not None:
            going.setdefault(pin.decision.name, []).append(case.spec.name)
            pins[pin.decision.name] = pin, pin.decision
    for name, (pin, decision) in pins.items():
        yield _rolled_back(item, listed(going[name]), pin, decision)


def _rolled_back(item: PolicyPass, what: str, pin: Pin, decision: Decision) -> Explanation:
    return Explanation(
        str(Reason.PINNED),
        "True",
        f"decision {decision.name} of {decision.by} takes {what} back to {pin.revision}, to stay"
        f" there: {decision.reason}",
        since=pin.at,
        who=f"whoever may decide: fanout withdraw {item.named.name} {decision.name}",
    )


def _conflict(item: PolicyPass, case: Case, one: Conflict) -> Explanation:
    subject = f"conflict {one.key}"
    decision = _decision(item, case, one)
    if decision is not None:
        why = decision.spec.get("reason", "")
        said = f"{one} and stands in the draft, as {decision.by} decided in {decision.name}: {why}"
        return Explanation(subject, Verdict.PASSED.value, said, since=decision.at)
    if case.draft is not None and one.key in case.draft.settled:
        said = f"{one}; a commit on the draft has decided it, and its value stands"
        return Explanation(subject, Verdict.PASSED.value, said)
    if case.choices.otherwise is not None:
        said = f"{one} and stands in the draft, as spec.onConflict says"
        return Explanation(subject, Verdict.PASSED.value, said, who="the policy's author")
    other = "local" if one.winner == "upstream" else "upstream"
    return Explanation(
        subject,
        Verdict.PENDING.value,
        f"{one} and stands in the draft until a person decides",
        who="whoever maintains the package: a commit on the draft that changes the file, or"
        f" fanout resolve"
        f" {item.named.name} --variant {case.spec.name} --reason WHY; with --take"
        f" {one.key}={other} for the other value",
    )


def _decision(item: PolicyPass, case: Case, one: Conflict) -> Recorded | None:
    """The last decision that covers the conflict."""
    spec = case.spec
    for record in reversed(item.book.records):
        if record.kind != "Decision" or record.spec["action"] != RESOLVE:
            continue
        [said] = resolutions([record])
        here = case.draft is not None and said.revision == case.draft.trailers.revision
        meant = one.key in said.choices if said.choices else here
        if said.is_about(spec.stage, spec.name) and meant:
            return record
    return None


def _damage(cases: Sequence[Case]) -> Iterator[Explanation]:
    """Published packages that people broke, and repositories that have lost their renderings."""
    for case in cases:
        if case.faults:
            yield Explanation(str(Reason.PACKAGE_BROKEN), "True", broken(case))
    for repository, sentence in lost_renderings(cases):
        yield Explanation(str(Reason.BASE_MISSING), "True", f"{repository}: {sentence}")


def _out_of_band(cases: Iterable[Case]) -> Iterator[Explanation]:
    """A line for each revision that people published without its gates."""
    found: dict[str, list[tuple[str, datetime]]] = {}
    for case in cases:
        if case.published is not None and case.published.out_of_band:
            told = (case.spec.name, case.published.at)
            found.setdefault(case.published.revision, []).append(told)
    for revision, published in found.items():
        names = listed(name for name, _ in published)
        sentence = f"{names}: a person merged {revision} without its gates"
        since = min(at for _, at in published)
        yield Explanation(str(Reason.OUT_OF_BAND), "True", sentence, since=since)


def disputed(case: Case) -> bool:
    """Does the open draft have conflicts, decided or not?"""
    return case.draft is not None and bool(read(case.draft.trailers.conflicts))
