"""What the recorded evidence says about one check of one published variant: three values.

Records are indexed once per pass by stage, check, subject and variant, so that an answer costs what
was said about this variant and not what was ever said. (Design §6, "Checks".)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView
from fanout.gates.facts import Published
from fanout.gates.instants import counts_from, from_the_future, written
from fanout.gates.records import Evidence
from fanout.gates.rules import Verdict
from fanout.gates.wording import reporter


@dataclass(slots=True, eq=False)
class _Said:
    order: int
    at: datetime
    evidence: Evidence


@dataclass(slots=True)
class _Channel:
    """All that was said about one check of one stage."""

    revisions: dict[str, list[_Said]] = field(default_factory=dict)  # about the whole stage
    commits: dict[str, list[_Said]] = field(default_factory=dict)
    variants: dict[str, list[_Said]] = field(default_factory=dict)  # about variants, by name
    latest: _Said | None = None  # about the whole stage

    def add(self, said: _Said) -> None:
        evidence = said.evidence
        if evidence.variants:
            for name in set(evidence.variants):
                self.variants.setdefault(name, []).append(said)
            return
        self.latest = said
        if evidence.commit:
            self.commits.setdefault(evidence.commit, []).append(said)
        elif evidence.revision:
            self.revisions.setdefault(evidence.revision, []).append(said)


_SILENCE = _Channel()
_BEFORE_ALL = -1


class _Run(NamedTuple):
    """The last thing that one reporter said, and since when they say so without a break."""

    since: datetime
    last: _Said


class _Question(NamedTuple):
    """One check of one publication."""

    stage: str
    check: str
    published: Published
    retried: datetime | None
    drafted: bool
    floor: int  # the last that was said before it, where instants alone do not tell

    def hears(self, said: _Said) -> bool:
        """Was it said late enough to be about this?"""
        known = self.drafted and said.evidence.commit in self.published.commits
        return known or (said.at >= self.published.at and said.order > self.floor)

    def forgets(self, said: _Said) -> bool:
        """Was it a failure before a person asked for another try?"""
        failed = said.evidence.status is Verdict.FAILED
        return failed and self.retried is not None and said.at <= self.retried


class EvidenceIndex:
    """All evidence of one policy, ready to be asked about any variant."""

    def __init__(self, evidence: Iterable[Evidence], now: datetime) -> None:
        self._now = now
        self._channels: dict[tuple[str, str], _Channel] = {}
        self._known: dict[tuple[object, ...], CheckView] = {}
        self._orders: dict[str, int] = {}
        self.starts: set[datetime] = set()  # when evidence that is dated ahead begins to count
        for order, item in enumerate(evidence):
            self._orders[item.name] = order
            if item.withdrawn:
                continue
            channel = self._channels.setdefault((item.stage, item.check), _Channel())
            channel.add(_Said(order, item.at, item))

    def answer(
        self,
        stage: str,
        check: str,
        variant: str,
        published: Published,
        retried: datetime | None = None,
        *,
        drafted: bool = False,
    ) -> CheckView:
        """How the check stands for what the variant has published.

        Evidence counts when it is about the published revision or one of its commits, and recorded
        no earlier than the publication, nor among what was on record then. Anything else is
        missing, and missing is pending; so is a failure that was recorded before a person asked for
        another try. Of what is only `drafted`, and is written down as if it were published at its
        release, a commit may be told of earlier.
        """
        channel = self._channels.get((stage, check), _SILENCE)
        own = channel.variants.get(variant, ())
        floor = self._orders.get(published.heard, _BEFORE_ALL)
        if not own and not channel.commits:  # what was said is said of all that were published then
            common = (stage, check, published.revision, published.at, floor, retried)
            view = self._known.get(common)
            if view is None:
                question = _Question(stage, check, published, retried, drafted, floor)
                view = self._known[common] = self._answer(question, own, channel)
            return view
        question = _Question(stage, check, published, retried, drafted, floor)
        return self._answer(question, own, channel)

    def _answer(self, question: _Question, own: Sequence[_Said], channel: _Channel) -> CheckView:
        published = question.published
        about = [said for said in own if _is_about(said.evidence, published)]
        if channel.commits:
            for commit in published.commits & channel.commits.keys():
                about += (s for s in channel.commits[commit] if _is_about(s.evidence, published))
        about += channel.revisions.get(published.revision, ())
        if len(about) == 1 and self._plain(question, about[0]):
            return _passed(question, about[0].at, about[0])
        about.sort(key=lambda said: said.order)
        in_time = [said for said in about if question.hears(said)]
        ahead = [said for said in in_time if from_the_future(said.at, self._now)]
        self.starts.update(counts_from(said.at) for said in ahead)
        runs: dict[str, _Run] = {}
        for said in in_time:
            if said not in ahead:
                before = runs.get(said.evidence.by)
                runs[said.evidence.by] = _Run(_since(said, before), said)
        latest = [run for run in runs.values() if not question.forgets(run.last)]
        view = _fold(question, latest)
        if view.verdict is Verdict.PENDING and ahead:
            return _ahead(question.check, question.stage, ahead)
        if not latest:
            return _missing(view, question, about[-1] if about else _last(own, channel.latest))
        return view

    def _plain(self, question: _Question, said: _Said) -> bool:
        """Is that one answer enough? It is so for most variants of most policies."""
        passed = said.evidence.status is Verdict.PASSED
        return passed and question.hears(said) and not from_the_future(said.at, self._now)


def _passed(question: _Question, since: datetime, last: _Said) -> CheckView:
    sentence = f"check {question.check} passed: {_quoted(last)}"
    return CheckView(question.check, Verdict.PASSED, sentence, since, last=last.at)


def _is_about(evidence: Evidence, published: Published) -> bool:
    """Evidence that names both must be right in both; evidence that names neither never is."""
    if not evidence.revision and not evidence.commit:
        return False
    return (not evidence.revision or evidence.revision == published.revision) and (
        not evidence.commit or evidence.commit in published.commits
    )


def _last(own: Iterable[_Said], wide: _Said | None) -> _Said | None:
    candidates = [*own, *([wide] if wide else [])]
    return max(candidates, key=lambda said: said.order, default=None)


def _since(said: _Said, before: _Run | None) -> datetime:
    """Since when a reporter says without a break what they say now."""
    if before is not None and before.last.evidence.status is said.evidence.status:
        return before.since
    return said.at


def _fold(question: _Question, runs: list[_Run]) -> CheckView:
    """One answer per reporter. A failure is a failure whoever else is still at work."""
    stage, check, published = question.stage, question.check, question.published
    by = {status: [it for it in runs if it.last.evidence.status is status] for status in Verdict}
    if by[Verdict.PASSED] and len(by[Verdict.PASSED]) == len(runs):
        last = max((run.last for run in runs), key=lambda said: said.order)
        return _passed(question, max(run.since for run in runs), last)
    passed, failed, pending = ([it.last for it in by[status]] for status in _IN_THIS_ORDER)
    who = reporter(check, stage)
    if failed and passed:
        sentence = (
            f"check {check} is contradictory: {_quoted(passed[-1])}, but {_quoted(failed[-1])}"
        )
        at = max(passed[-1].at, failed[-1].at)
        return CheckView(check, Verdict.FAILED, sentence, at, Reason.CONTRADICTION, who)
    if failed:
        sentence = f"check {check} failed: {_quoted(failed[-1])}"
        at = failed[-1].at
        return CheckView(check, Verdict.FAILED, sentence, at, Reason.VERIFICATION_FAILED, who)
    if pending:
        sentence = f"check {check} is under way: {_quoted(pending[-1])}"
        at = pending[-1].at
        return CheckView(check, Verdict.PENDING, sentence, at, Reason.VERIFICATION_PENDING, who)
    sentence = f"nobody has reported check {check} for {published.revision} yet"
    return CheckView(
        check, Verdict.PENDING, sentence, published.at, Reason.VERIFICATION_PENDING, who
    )


def _ahead(check: str, stage: str, ahead: list[_Said]) -> CheckView:
    first = min(ahead, key=lambda said: said.at)
    sentence = (
        f"check {check}: {_quoted(first)}, which is more than five minutes ahead; it does not count"
        f" before {written(counts_from(first.at))}"
    )
    return CheckView(
        check,
        Verdict.PENDING,
        sentence,
        reason=Reason.FROM_THE_FUTURE,
        who=f"whoever sets the clock of {first.evidence.by}; {reporter(check, stage)}",
        until=counts_from(first.at),
    )


def _elsewhere(commit: str) -> str:
    return f"commit {commit[:12]}, at which the branch does not have the package as it is published"


def _missing(view: CheckView, question: _Question, said: _Said | None) -> CheckView:
    """Names the answer that was given and does not count, so that nobody wonders where it went."""
    if said is None:
        return view
    evidence, published = said.evidence, question.published
    if not evidence.revision and not evidence.commit:
        fault = "names neither revision nor commit"
    elif not _is_about(evidence, published):
        if said.at < published.at:
            return view  # the answer to an earlier question
        fault = f"is about {evidence.revision or _elsewhere(evidence.commit)}"
    else:
        step = "tried again" if question.hears(said) else "published"
        fault = f"was recorded before {published.revision} was {step}"
    sentence = f"{view.sentence}; evidence {evidence.name} of {evidence.by} {fault}: does not count"
    return CheckView(view.name, view.verdict, sentence, view.at, view.reason, view.who)


_IN_THIS_ORDER = (Verdict.PASSED, Verdict.FAILED, Verdict.PENDING)


def _quoted(said: _Said) -> str:
    return f"{said.evidence.by} reported {said.evidence.status.value} at {written(said.at)}"
