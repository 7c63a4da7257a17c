"""Which revision a stage is to take next. (Design §6, "Which revision".)

Asked before anything is rendered, so it looks at nothing that depends on its own answer: not at
`Draft.current`, `VariantFacts.held` or `VariantFacts.failed`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from fanout.api.reasons import Reason
from fanout.gates.after import Gate
from fanout.gates.answer import State
from fanout.gates.approvals import ApprovalIndex
from fanout.gates.census import Census, Member
from fanout.gates.facts import Draft, Hold
from fanout.gates.order import Ages
from fanout.gates.rules import Verdict
from fanout.gates.soak import over_at, soaked
from fanout.gates.timers import TIME_ALONE, landing
from fanout.gates.verdict import Ledger
from fanout.gates.wording import counted, stage_named
from fanout.values import frozen

Ask = Callable[[str], Gate]


@frozen
class Choice:
    """A stage's candidate, the newer revisions that wait behind it, and what else it may become."""

    revision: str
    queued: tuple[str, ...] = ()
    eligible: tuple[str, ...] = ()
    kept: Hold | None = None  # why it stays, though a newer one passes


def choose(
    census: Census, ledger: Ledger, ask: Ask, approvals: ApprovalIndex, ages: Ages
) -> Choice:
    """Of the revisions that are allowed, in the design's order.

    The present one while its draft has approvals and it can still pass; the newest that passes;
    the present one while it can still pass; the newest.
    """
    allowed = within_reach(census, ledger, ages)
    if not allowed:
        return Choice("")
    present = _present(census, ages)
    gate = ask(present) if present in allowed else None
    can_pass = gate is not None and (gate.verdict is Verdict.PASSED or gate.possible)
    passing = (name for name in reversed(allowed) if ask(name).verdict is Verdict.PASSED)
    chosen, kept = next(passing, present if can_pass else allowed[-1]), None
    if can_pass and chosen != present and _approved(census, present, approvals):
        chosen, kept = present, _signed(chosen, present)
    # The newest that passes goes first, so nothing older comes after it.
    passed = ask(chosen).verdict is Verdict.PASSED
    eligible = allowed[allowed.index(chosen) :] if passed else allowed
    return Choice(chosen, ages.newer_than(chosen), eligible, kept)


def _signed(newer: str, present: str) -> Hold:
    sentence = f"{newer} waits: drafts of {present} have approvals, and it can still pass"
    who = f"whoever answers what {present} waits for; who approved it: fanout revoke"
    return Hold(Reason.REVISION_QUEUED, sentence, who)


def serialized(
    chosen: Choice,
    census: Census,
    ledger: Ledger,
    ask: Ask,
    after: Sequence[tuple[timedelta, Census]],
    ages: Ages,
    now: datetime,
) -> Choice:
    """The choice of a policy in which a newer revision waits for what is under way.

    It waits for what is in flight in the stage, and until the stages after it, of which `after` has
    the soak, have had the soak that they wait for: else nothing would ever soak where releases come
    faster. What has failed, or halted the stage, is not waited for; nor is what was only released
    and can pass the gate no more, for nothing would ever come of it.
    """
    present = _present(census, ages)
    if present in ("", chosen.revision) or not ages.older(present, chosen.revision):
        return chosen
    if ledger.verdict(present) is Verdict.FAILED:
        return chosen
    past = ledger.past(present)
    soaks = [
        (other.rule.name, soak)
        for soak, other in after
        if ledger.stays(present) and soaked(past, now) < soak and _wanting(other, present, ages)
    ]
    gate = ask(present)
    can_pass = gate.verdict is Verdict.PASSED or gate.possible
    flying = [
        member
        for member in census.members
        if member.state is State.VERIFYING or (member.on_its_way and can_pass)
    ]
    if flying:
        kept = _in_flight(chosen.revision, present, census, flying)
    elif soaks:
        end = over_at(past, max(soak for _, soak in soaks))
        kept = _soaking(chosen.revision, present, [name for name, _ in soaks], end)
    else:
        return chosen
    newer = ages.newer_than(present)
    return Choice(present, newer, (present, *newer), kept)


def _in_flight(newer: str, present: str, census: Census, flying: Sequence[Member]) -> Hold:
    number, named = counted(len(flying), "variant"), stage_named(census.rule.name)
    sentence = f"{newer} waits, by inFlight: Serialize: {number} in flight in {named} at {present}"
    who, until = landing(flying, "whoever answers the checks of those in flight")
    return Hold(Reason.SERIALIZED, sentence, who, until=until)


def _soaking(newer: str, present: str, stages: Sequence[str], until: datetime | None) -> Hold:
    behind = ", ".join(map(stage_named, stages))
    sentence = f"{newer} waits, by inFlight: Serialize: {behind} waits for the soak of {present}"
    who = TIME_ALONE if until is not None else "the next sweep, which records it"
    return Hold(Reason.SERIALIZED, sentence, who, until=until)


def _wanting(census: Census, revision: str, ages: Ages) -> bool:
    """Does a stage that comes later lack the revision still?"""
    if census.rule.control_flow:
        return True
    return any(
        not member.away
        and (
            member.facts.published is None or ages.older(member.facts.published.revision, revision)
        )
        for member in census.members
    )


def coming(census: Census, ledger: Ledger, candidate: str, revision: str, ages: Ages) -> bool:
    """Can the stage still come to have passed the revision without going back?

    It can while the revision is its candidate, is newer than that, or is published in it and the
    stage has not moved on. Once it has, only as its candidate, when nobody there has a newer one.
    """
    if ledger.past(revision).left is not None:
        newer = (other for other in census.published if ages.older(revision, other))
        return revision == candidate and next(newer, None) is None
    if revision == candidate or ages.older(candidate, revision):
        return True
    if revision not in census.published:
        return False
    return not any(ages.older(revision, other) for other in census.published)


def within_reach(census: Census, ledger: Ledger, ages: Ages) -> tuple[str, ...]:
    """The revisions a stage may take, oldest first: what is left when it never goes back.

    Nothing older than what every variant with a publication has. Where ages cannot be compared,
    nothing that the stage is on record to have left. When that leaves nothing, because the rule was
    narrowed or a tag was deleted, everything allowed is left: a candidate to be seen and to be
    promoted by hand, for `release` keeps automation from going back to it.
    """
    reach = tuple(name for name in ages.allowed if not _behind(name, census, ledger, ages))
    return reach or ages.allowed


def _behind(revision: str, census: Census, ledger: Ledger, ages: Ages) -> bool:
    known = [other for other in census.published if ages.comparable(revision, other)]
    if known:
        return all(ages.older(revision, other) for other in known)
    return bool(census.published) and ledger.past(revision).left is not None


def _drafts(census: Census) -> list[tuple[Member, Draft]]:
    """Open drafts of the variants that nobody suspended, or of all when the stage is at rest."""
    return [
        (member, member.facts.draft)
        for member in census.members
        if member.facts.draft is not None and (not member.away or not census.active)
    ]


def _present(census: Census, ages: Ages) -> str:
    """The revision in hand: the highest of its drafts, else of its grants, else of what it has."""
    drafted = {draft.revision for _, draft in _drafts(census)}
    granted = {m.facts.grant.revision for m in census.members if m.facts.grant is not None}
    return ages.newest(drafted) or ages.newest(granted) or ages.newest(census.published)


def _approved(census: Census, revision: str, approvals: ApprovalIndex) -> bool:
    return any(
        draft.revision == revision and approvals.wanted(census.rule, member.facts, draft)
        for member, draft in _drafts(census)
    )
