"""What the recorded evidence says about one check of one published variant: three values.

Records are indexed once per pass by stage, check, subject and variant, so that an answer costs what
was said about this variant and not what was ever said. (Design §6, "Checks".)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView
from fanout.gates.facts import Published
from fanout.gates.instants import counts_from, from_the_future, in_record_order, written
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


class EvidenceIndex:
    """All evidence of one policy, ready to be asked about any variant."""

    def __init__(self, evidence: Iterable[Evidence], now: datetime) -> None:
        self._now = now
        self._channels: dict[tuple[str, str], _Channel] = {}
        self._known: dict[tuple[object, ...], CheckView] = {}
        for order, (at, item) in enumerate(in_record_order(evidence, now)):
            channel = self._channels.setdefault((item.stage, item.check), _Channel())
            channel.add(_Said(order, at, item))

    def answer(self, stage: str, check: str, variant: str, published: Published) -> CheckView:
        """How the check stands for what the variant has published.

        Evidence counts when it is about the published revision or one of its commits, and recorded
        no earlier than the publication. Anything else is missing, and missing is pending.
        """
        channel = self._channels.get((stage, check), _SILENCE)
        own = channel.variants.get(variant, ())
        if not own and not channel.commits:  # what was said is said of all that were published then
            common = (stage, check, published.revision, published.at)
            view = self._known.get(common)
            if view is None:
                view = self._known[common] = self._answer(stage, check, own, channel, published)
            return view
        return self._answer(stage, check, own, channel, published)

    def _answer(
        self,
        stage: str,
        check: str,
        own: Sequence[_Said],
        channel: _Channel,
        published: Published,
    ) -> CheckView:
        about = [said for said in own if _is_about(said.evidence, published)]
        for commit in published.commits & channel.commits.keys():
            about += (s for s in channel.commits[commit] if _is_about(s.evidence, published))
        about += channel.revisions.get(published.revision, ())
        about.sort(key=lambda said: said.order)
        in_time = [said for said in about if said.at >= published.at]
        ahead = [said for said in in_time if from_the_future(said.at, self._now)]
        latest = {said.evidence.by: said for said in in_time if said not in ahead}
        view = _fold(stage, check, published, list(latest.values()))
        if view.verdict is not Verdict.FAILED and ahead:
            return _ahead(check, stage, ahead)
        if not latest:
            return _missing(view, published, about[-1] if about else _last(own, channel.latest))
        return view


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


def _fold(stage: str, check: str, published: Published, answers: list[_Said]) -> CheckView:
    """One answer per reporter. A failure is a failure whoever else is still at work."""
    failed = [said for said in answers if said.evidence.status is Verdict.FAILED]
    passed = [said for said in answers if said.evidence.status is Verdict.PASSED]
    pending = [said for said in answers if said.evidence.status is Verdict.PENDING]
    if passed and not failed and not pending:
        sentence = f"check {check} passed: {_quoted(passed[-1])}"
        return CheckView(check, Verdict.PASSED, sentence, passed[-1].at)
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


def _missing(view: CheckView, published: Published, said: _Said | None) -> CheckView:
    """Names the answer that was given and does not count, so that nobody wonders where it went."""
    if said is None:
        return view
    evidence = said.evidence
    if not evidence.revision and not evidence.commit:
        fault = "names neither revision nor commit"
    elif not _is_about(evidence, published):
        if said.at < published.at:
            return view  # the answer to an earlier question
        fault = f"is about {evidence.revision or evidence.commit}"
    else:
        fault = f"was recorded before {published.revision} was published"
    sentence = f"{view.sentence}; evidence {evidence.name} of {evidence.by} {fault}: does not count"
    return CheckView(view.name, view.verdict, sentence, view.at, view.reason, view.who)


def _quoted(said: _Said) -> str:
    return f"{said.evidence.by} reported {said.evidence.status.value} at {written(said.at)}"
