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
from fanout.gates.course import Course, Statement, follow
from fanout.gates.facts import Published
from fanout.gates.instants import from_the_future, written
from fanout.gates.records import Evidence
from fanout.gates.rules import Verdict
from fanout.gates.wording import reporter
from fanout.values import replace


@dataclass(slots=True)
class _Channel:
    """All that was said about one check of one stage."""

    revisions: dict[str, list[Statement]] = field(default_factory=dict)  # about the whole stage
    commits: dict[str, list[Statement]] = field(default_factory=dict)
    variants: dict[str, list[Statement]] = field(default_factory=dict)  # about variants, by name
    latest: Statement | None = None  # about the whole stage

    def add(self, said: Statement) -> None:
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


class _Question(NamedTuple):
    """One check of one publication."""

    stage: str
    check: str
    published: Published
    retried: datetime | None
    drafted: bool
    floor: int  # the last that was said before it, where instants alone do not tell

    def hears(self, said: Statement) -> bool:
        """Was it said late enough to be about this?"""
        known = self.drafted and said.evidence.commit in self.published.commits
        return known or (said.at >= self.published.at and said.order > self.floor)


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
            channel.add(Statement(order, item.at, item))

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

    def _answer(
        self, question: _Question, own: Sequence[Statement], channel: _Channel
    ) -> CheckView:
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
        ahead = [said for said in in_time if self._is_ahead(said)]
        if not ahead:
            return self._view(question, follow(in_time, question.retried), about, own, channel)
        self.starts.update(said.at for said in ahead)
        counting = [said for said in in_time if said not in ahead]
        course = follow(counting, question.retried)
        view = self._view(question, course, about, own, channel)
        if view.verdict is Verdict.PASSED:
            return view
        passes = _passes(in_time, ahead, question.retried)
        if view.verdict is Verdict.PENDING:
            view = self._waiting(question, view, ahead, passes)
        return replace(view, passes=passes)

    def _view(
        self,
        question: _Question,
        course: Course,
        about: Sequence[Statement],
        own: Sequence[Statement],
        channel: _Channel,
    ) -> CheckView:
        view = _fold(question, course)
        if course.latest:
            return view
        return _missing(view, question, about[-1] if about else _last(own, channel.latest))

    def _is_ahead(self, said: Statement) -> bool:
        """Does it not count before its own instant?

        A failure counts at once, unless its clock is wrong by more than is put up with: it starts
        no clock, and only what it says withdraws anything.
        """
        if said.evidence.status is Verdict.FAILED:
            return from_the_future(said.at, self._now)
        return said.at > self._now

    def _waiting(
        self,
        question: _Question,
        view: CheckView,
        ahead: list[Statement],
        passes: datetime | None,
    ) -> CheckView:
        """Nothing that counts answers the check, but something may by its date."""
        first = min(ahead, key=lambda said: said.at)
        if from_the_future(first.at, self._now):
            return _ahead(question.check, question.stage, first)
        if passes is None:
            return replace(view, until=first.at)
        sentence = f"check {question.check}: {_quoted(first)}, which counts from then on"
        return CheckView(
            question.check,
            Verdict.PENDING,
            sentence,
            reason=Reason.VERIFICATION_PENDING,
            who="time alone",
            until=first.at,
        )

    def _plain(self, question: _Question, said: Statement) -> bool:
        """Is that one answer enough? It is so for most variants of most policies."""
        passed = said.evidence.status is Verdict.PASSED
        return passed and question.hears(said) and said.at <= self._now


def _passed(question: _Question, since: datetime, last: Statement) -> CheckView:
    sentence = f"check {question.check} passed: {_quoted(last)}"
    return CheckView(question.check, Verdict.PASSED, sentence, since, last=last.at)


def _is_about(evidence: Evidence, published: Published) -> bool:
    """Evidence that names both must be right in both; evidence that names neither never is."""
    if not evidence.revision and not evidence.commit:
        return False
    return (not evidence.revision or evidence.revision == published.revision) and (
        not evidence.commit or evidence.commit in published.commits
    )


def _last(own: Iterable[Statement], wide: Statement | None) -> Statement | None:
    candidates = [*own, *([wide] if wide else [])]
    return max(candidates, key=lambda said: said.order, default=None)


def _passes(
    in_time: Sequence[Statement], ahead: Iterable[Statement], retried: datetime | None
) -> datetime | None:
    """Return when the check will have passed if nobody says anything more; None if never."""
    known = {said.order for said in ahead}
    for at in sorted(said.at for said in ahead):
        then = [said for said in in_time if said.order not in known or said.at <= at]
        if follow(then, retried).verdict is Verdict.PASSED:
            return at
    return None


def _fold(question: _Question, course: Course) -> CheckView:
    """One answer per reporter. A failure is a failure whoever else is still at work."""
    stage, check, published = question.stage, question.check, question.published
    if course.since is not None:
        return _passed(question, course.since, max(course.latest, key=lambda said: said.order))
    by = {
        status: [it for it in course.latest if it.evidence.status is status] for status in Verdict
    }
    passed, failed, pending = (by[status] for status in _IN_THIS_ORDER)
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


def _ahead(check: str, stage: str, first: Statement) -> CheckView:
    sentence = (
        f"check {check}: {_quoted(first)}, which is more than five minutes ahead; it does not count"
        f" before {written(first.at)}"
    )
    return CheckView(
        check,
        Verdict.PENDING,
        sentence,
        reason=Reason.FROM_THE_FUTURE,
        who=f"whoever sets the clock of {first.evidence.by}; {reporter(check, stage)}",
        until=first.at,
    )


def _elsewhere(commit: str) -> str:
    return f"commit {commit[:12]}, at which the branch does not have the package as it is published"


def _missing(view: CheckView, question: _Question, said: Statement | None) -> CheckView:
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
        step = "drafted" if question.drafted else "published"
        step = "tried again" if question.hears(said) else step
        fault = f"was recorded before {published.revision} was {step}"
    sentence = f"{view.sentence}; evidence {evidence.name} of {evidence.by} {fault}: does not count"
    return CheckView(view.name, view.verdict, sentence, view.at, view.reason, view.who)


_IN_THIS_ORDER = (Verdict.PASSED, Verdict.FAILED, Verdict.PENDING)


def _quoted(said: Statement) -> str:
    return f"{said.evidence.by} reported {said.evidence.status.value} at {written(said.at)}"
