"""The rules of the gates as set arithmetic over a stated world: their second judge.

Written from the sentences of docs/concepts/gates.md and docs/concepts/rollouts.md and not from the
evaluator, of which it shares nothing but the words Verdict, Require and Override. Instants are
minutes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil

from fanout.api.gate_vocabulary import OverridableGate, Require, Verdict

PASSED, FAILED, PENDING = Verdict.PASSED, Verdict.FAILED, Verdict.PENDING

# ---- rules: each a sentence of the rules --------------------------------------------------------


def stage_verdict(
    counting: Collection[str], ready: Collection[str], failed: Collection[str], borne: int
) -> Verdict:
    """Passed when every variant that counts is ready, but for at most `borne` failed ones.

    Failed as soon as more have failed; else pending. Where nothing counts, nothing passes.
    """
    if len(set(failed) & set(counting)) > borne:
        return FAILED
    return PASSED if counting and set(counting) <= set(ready) | set(failed) else PENDING


def enough(require: Require | int | Fraction, listed: int) -> int:
    """Return the number of listed stages that must have passed; above the total means all."""
    if require is Require.ALL:
        return listed
    if require is Require.ANY:
        return 1
    if require is Require.MAJORITY:
        return listed // 2 + 1
    return min(listed, ceil(require * listed) if isinstance(require, Fraction) else require)


TOLERANCE = 5  # minutes by which a record may be dated ahead


def counting_instants(
    dates: Sequence[float], passes: Sequence[float], now: float
) -> list[float | None]:
    """Return the instant from which each record, in record order, counts; None: not yet.

    Its instant is its date, but never before that of the record before it. One that is dated more
    than five minutes ahead of the pass that reads it raises no lower bound for later ones, now
    or ever. `passes` are the earlier passes, all of which read all of the records.
    """
    instants: list[float | None] = []
    for number, date in enumerate(dates):
        if date > now + TOLERANCE:
            instants.append(None)
            continue
        wrong = any(date > at + TOLERANCE for at in passes)
        before = [
            other
            for other in dates[:number]
            if not any(other > at + TOLERANCE for at in (*passes, now))
        ]
        instants.append(date if wrong else max([date, *before]))
    return instants


@dataclass(frozen=True)
class UpstreamState:
    """State of one upstream stage for a revision, at one instant."""

    verdict: Verdict
    soaked: float = 0  # for how long it was ready without a break
    runs: bool = False  # its clock runs: time alone adds to that
    is_present: bool = True  # the revision is in the stage or is what it takes next
    left: bool = False  # the stage moved on from it

    def through(self, soak: float, lifted: Collection[OverridableGate]) -> bool:
        """Return whether it counts among those that passed."""
        has_passed = self.verdict is PASSED or OverridableGate.AFTER in lifted
        return has_passed and (self.soaked >= soak or OverridableGate.SOAK in lifted)

    def lost(self, lifted: Collection[OverridableGate]) -> bool:
        """Return whether it has failed without an override."""
        return self.verdict is FAILED and OverridableGate.AFTER not in lifted

    def hopeless(self, lifted: Collection[OverridableGate]) -> bool:
        """Return whether it cannot pass: it failed, is past the revision or will never have it."""
        is_past = self.left or (self.verdict is PENDING and not self.is_present)
        return self.lost(lifted) or is_past

    def reason(self, lifted: Collection[OverridableGate]) -> str:
        """Return the reasons to report for one that has not passed."""
        if self.lost(lifted):
            return "AfterFailed"
        if self.verdict is not PASSED:
            return "AfterPending"
        return "SoakCutShort" if self.left else "SoakRunning"


def gate(
    require: Require | int | Fraction,
    upstream: Sequence[UpstreamState],
    soak: float,
    lifted: Collection[OverridableGate] = (),
) -> Verdict:
    """The table of `after`: passed with enough of them, failed when there can be enough no more."""
    wanted = enough(require, len(upstream))
    if sum(it.through(soak, lifted) for it in upstream) >= wanted:
        return PASSED
    not_failed = sum(not it.lost(lifted) for it in upstream)
    return PENDING if not_failed >= wanted else FAILED


def can_pass(
    require: Require | int | Fraction,
    upstream: Sequence[UpstreamState],
    soak: float,
    lifted: Collection[OverridableGate] = (),
) -> bool:
    """Return whether the revision passed, or can: enough of `after` or its soak is running."""
    able = sum(it.through(soak, lifted) or not it.hopeless(lifted) for it in upstream)
    return able >= enough(require, len(upstream))


def candidate(
    allowed: Sequence[int],
    variants: Collection[tuple[int, int, bool]],
    passing: Collection[int],
    possible: Collection[int],
) -> int:
    """Return the revision that a stage takes next.

    Revisions are numbers, 0 is none. Each variant has a published one, one that it drafts, and
    perhaps an approval of that draft. `passing` pass `after`, `possible` still can.
    """
    # One that joins with nothing does not take the others back.
    least = min([has for has, *_ in variants if has], default=0)
    reached = [one for one in allowed if one >= least] or list(allowed)
    # A draft that would take its variant back says nothing, unless all that is allowed would.
    drafts = [
        (drafted, approved)
        for has, drafted, approved in variants
        if drafted in allowed and (drafted >= has or max(allowed) < has)
    ]
    present_revisions = [has for has, *_ in variants if has in allowed]
    present = max([drafted for drafted, _ in drafts] or present_revisions or [0])
    can = present in reached and present in {*passing, *possible}
    if can and (present, True) in drafts:
        return present
    passed = [one for one in reached if one in passing]
    if passed:
        return max(passed)
    return present if can else max(reached)


@dataclass(frozen=True)
class Member:
    """A variant with what ties it to others."""

    released: bool = True
    open: bool = True  # all its gates are
    held: bool = False  # its pull request cannot be merged
    branch: str = ""
    forge: bool = False  # a forge merges its branch, with all that is on it
    partners: frozenset[str] = frozenset()  # exchange places with it


def published_sets(members: Mapping[str, Member]) -> frozenset[str]:
    """Return who is published: who may be, and is tied to nobody who may not, however remotely.

    A variant is tied to those with which it exchanges places, and to those on its branch: with a
    forge to all of them, else to the released ones, because the others leave the branch.
    """

    def ties(name: str) -> set[str]:
        own = members[name]
        mates = {
            other
            for other, it in members.items()
            if own.branch and it.branch == own.branch and (it.released or it.forge)
        }
        return mates | own.partners

    def reach(name: str) -> set[str]:
        members, new = {name}, {name}
        while new:
            new = {tied for it in new for tied in ties(it)} - members
            members |= new
        return members

    able = {name for name, it in members.items() if it.open and not it.held}
    return frozenset(name for name in able if reach(name) <= able)


# ---- a stated world ------------------------------------------------------------------------------

NOW = 100
RECORDED = 80  # the last pass before; what was seen then is on record
SOAK = 60
EDGE = 120  # where windows open or close


@dataclass(frozen=True)
class Story:
    """Events of a variant of an upstream stage after its publication at instant 0."""

    answers: tuple[tuple[float, Verdict], ...] = ()
    published: bool = True
    left: float | None = None  # when it took the next revision
    back: float | None = None  # when it came back from that

    def away(self, when: float) -> bool:
        """Return whether it has the next revision at that instant."""
        return (
            self.left is not None and self.left <= when and (self.back is None or when < self.back)
        )

    def at(self, when: float) -> Verdict | None:
        """Return its verdict at that instant; None: it is absent."""
        verdicts = [verdict for at, verdict in self.answers if at <= when]
        return (verdicts or [PENDING])[-1] if self.published else None


STORIES = {
    "not there": Story(published=False),
    "published": Story(),
    "ready": Story(((70, PASSED),)),
    "ready and soaked": Story(((NOW - SOAK, PASSED),)),  # to the second
    "failed": Story(((5, FAILED),)),
    "withdrawn": Story(((10, PASSED), (90, FAILED))),
}
MORE = {  # what became of a stage as a whole
    "answered since": Story(((95, PASSED),)),
    "left in time": Story(((10, PASSED),), left=10 + SOAK),
    "left too early": Story(((10, PASSED),), left=60),
    "came back in time": Story(((10, PASSED), (35, PASSED)), left=30, back=35),
    "came back late": Story(((10, PASSED), (60, PASSED)), left=40, back=60),
    "came back since": Story(((10, PASSED), (90, PASSED)), left=40, back=90),
    "came back and stood before": Story(((1, PASSED), (75, PASSED)), left=65, back=75),
    "came back and failed": Story(((10, PASSED), (75, PASSED), (85, FAILED)), left=30, back=75),
}


_ALL = {**STORIES, **MORE}


@dataclass(frozen=True)
class Before:
    """One of the stages before: the stories of its variants, and how many failures it bears."""

    states: tuple[str, ...]
    borne: int = 0

    @property
    def stories(self) -> list[Story]:
        """In the order of the variants."""
        return [_ALL[state] for state in self.states]

    @property
    def left(self) -> float | None:
        """Return when its first variant took the next revision, if it still has it."""
        return min((it.left for it in self.stories if it.away(NOW)), default=None)

    def stretches(self, when: float) -> list[tuple[float, float | None]]:
        """From when to when it was ready, as seen then; what is withdrawn is as if it never was."""
        stories = self.stories
        moments = {0.0, *(at for it in stories for at, _ in it.answers)}
        moments |= {at for it in stories for at in (it.left, it.back) if at is not None}
        spans: list[tuple[float, float | None]] = []
        for moment in sorted(it for it in moments if it <= when):
            verdict = self.verdict(moment)
            ready = verdict is PASSED and not any(it.away(moment) for it in stories)
            runs = bool(spans) and spans[-1][1] is None
            if verdict is FAILED:
                spans = []
            elif ready and not runs:
                spans.append((moment, None))
            elif not ready and runs:
                spans[-1] = (spans[-1][0], moment)
        return spans

    def verdict(self, when: float = NOW) -> Verdict:
        """Of the revision, then."""
        stands = {str(number): it.at(when) for number, it in enumerate(self.stories)}
        ready = {name for name, stand in stands.items() if stand is PASSED}
        failed = {name for name, stand in stands.items() if stand is FAILED}
        return stage_verdict(stands.keys(), ready, failed, self.borne)

    def since(self, when: float) -> float | None:
        """Since when it has passed without a break, seen then; None: it has not."""
        moments = sorted({0.0, *(at for it in self.stories for at, _ in it.answers)}, reverse=True)
        ready_since = None
        for moment in (it for it in moments if it <= when):
            if self.verdict(moment) is not PASSED:
                break
            ready_since = moment
        return ready_since

    @cache  # noqa: B019
    def clock(self) -> float | None:
        """Since when it is ready: the latest event that its verdict rests on."""
        return self.since(NOW)

    @cache  # noqa: B019  # the stages that there are, are few
    def upstream_state(self, when: float = NOW, *, next_one: bool = False) -> UpstreamState:
        """Return its answer at `when` without new records; `next_one`: for a newer revision."""
        spans = [(begun, when if end is None else end) for begun, end in self.stretches(NOW)]
        soaked = max((end - begun for begun, end in spans), default=0.0)
        is_present = not next_one or any(it.published for it in self.stories)
        runs = any(end is None for _, end in self.stretches(NOW))
        return UpstreamState(self.verdict(), soaked, runs, is_present, self.left is not None)


REFUSALS = {
    "stands": True,
    "stands after an approval of the same person": True,
    "is of an older draft": True,
    "was answered by an approval of the same person": False,
    "is of another revision": False,
    "is of another variant": False,
    "is by somebody who is not asked": False,
}
"""Effect of a request for changes on the check, by what became of it: true where it holds."""


@dataclass(frozen=True)
class World:
    """Inputs of a stage with one variant, which has a draft and asks two people."""

    stages: tuple[Before, ...]
    require: Require | int | Fraction
    approvals: int = 2
    window: str = "none"  # or "open", "closed": until the edge
    newer: bool = False  # upstream has released another revision, which is nowhere yet
    automatic: bool = True
    decided: bool = False  # a person has promoted it
    lifts: frozenset[OverridableGate] = frozenset()  # gates that the decision overrides
    conflict: bool = False  # upstream and local changed the same, and nobody has decided
    accepted: bool = False  # a person has promoted this variant, conflicts included
    refusal: str = ""  # one of REFUSALS


@dataclass(frozen=True)
class Expected:
    """Verdict of the rules about the stage and its variant."""

    candidate: str
    gate: Verdict
    released: bool
    published: bool
    held: bool  # the variant is held, and not waiting for its gates alone
    must: frozenset[str]  # reasons that must be reported
    may: frozenset[str]  # and those that may be reported beside them
    opens: float | None  # when time alone opens the gate of the candidate, windows apart


def judge(inputs: World) -> Expected:
    """The answer of the rules."""
    lifts = inputs.lifts
    upstream = [it.upstream_state(next_one=inputs.newer) for it in inputs.stages]
    if inputs.newer and not can_pass(inputs.require, upstream, SOAK, lifts):
        # The newest is next, and of that there is no draft yet; it is in no stage before.
        must = frozenset({"NoDraft", "AfterPending"})
        return Expected("v2", PENDING, False, False, False, must, must | _asked(inputs), None)
    verdict = gate(inputs.require, upstream, SOAK, lifts)
    open_now = inputs.window != "closed" or OverridableGate.WINDOW in lifts
    wanted = inputs.automatic or inputs.decided or inputs.accepted
    undecided = inputs.conflict and not inputs.accepted
    agreed = _agreed(inputs) or OverridableGate.REQUIRES in lifts
    released = verdict is PASSED and open_now and wanted and not undecided
    must = _asked(inputs) | _waits(verdict, upstream, lifts)
    may = must | _waits(PENDING if verdict is FAILED else verdict, upstream, lifts)
    opens = None if verdict is PASSED else _opens(inputs)
    return Expected("v1", verdict, released, released and agreed, undecided, must, may, opens)


def _waits(
    verdict: Verdict, upstream: Iterable[UpstreamState], lifts: Collection[OverridableGate]
) -> frozenset[str]:
    """Return the reasons for which `after` waits; once failed, the failures."""
    if verdict is PASSED:
        return frozenset()
    late = [it for it in upstream if not it.through(SOAK, lifts)]
    return frozenset(
        it.reason(lifts) for it in late if verdict is not FAILED or it.verdict is FAILED
    )


def _agreed(inputs: World) -> bool:
    """Return whether enough people approve, and nobody who is asked requests changes."""
    return inputs.approvals >= 2 and not REFUSALS.get(inputs.refusal, False)


def _asked(inputs: World) -> frozenset[str]:
    """Return the reasons to wait besides `after`."""
    refused = REFUSALS.get(inputs.refusal, False)
    waits = not _agreed(inputs) and OverridableGate.REQUIRES not in inputs.lifts
    missing = {
        "WindowClosed": inputs.window == "closed" and OverridableGate.WINDOW not in inputs.lifts,
        "ChangesRequested": waits and refused,
        "ApprovalMissing": waits and not refused,
        "AutomationOff": not (inputs.automatic or inputs.decided or inputs.accepted),
        "MergeConflict": inputs.conflict and not inputs.accepted,
    }
    return frozenset(reason for reason, upstream_stage in missing.items() if upstream_stage)


def _opens(inputs: World) -> float | None:
    """Return the next instant at which the gate closes without any new record."""
    begun = [it.stretches(NOW)[-1][0] for it in inputs.stages if it.upstream_state().runs]
    ends = sorted(at + SOAK for at in begun if at + SOAK > NOW)
    for end in ends:
        if (
            gate(
                inputs.require, [it.upstream_state(end) for it in inputs.stages], SOAK, inputs.lifts
            )
            is PASSED
        ):
            return end
    return None
