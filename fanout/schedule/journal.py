"""What the loop logs: what each pass did, and each problem once, with its end."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import structlog

from fanout.cluster.declared import Declared
from fanout.cluster.findings import EACH, folded
from fanout.errors import FanoutError
from fanout.gates.wording import listed
from fanout.plan.actions import Action, Kind, Outcome
from fanout.reconcile.gathering import gathered, undone
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass, Report
from fanout.telemetry.barrier import run_contained

_log = structlog.get_logger()
_COUNTED = {
    Kind.RELEASE: "released",
    Kind.WRITE_DRAFT: "drafts_written",
    Kind.PUBLISH: "published",
    Kind.REMOVE_PACKAGE: "packages_removed",
    Kind.REMOVE_DRAFT: "drafts_removed",
    Kind.RECORD: "recorded",
}
_NAMED = {
    Kind.WRITE_DRAFT: "Draft written",
    Kind.PUBLISH: "Published",
    Kind.REMOVE_PACKAGE: "Package removed",
    Kind.REMOVE_DRAFT: "Draft removed",
}


class Journal:
    """Remembers which problems were told, so that a pass each minute does not repeat them."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, None]] = {}
        self._failing = ""  # what the pass before failed with

    def files(self, declared: Declared) -> None:
        """What is wrong with the files as they are now."""
        errors = [fault for fault in declared.faults if fault.severity == "error"]
        fresh, over = self._news("", (line for _, line in folded(errors)))
        for sentence in fresh:
            _log.warning("Something is wrong in the files", problem=sentence)
        for sentence in over:
            _log.info("Something in the files is right again", problem=sentence)

    def failed(self, error: FanoutError, pause: float) -> None:
        """A pass that came to nothing, and when it is tried again; for the same error told once."""
        tell = _log.debug if self._failing == str(error) else _log.warning
        self._failing = str(error)
        tell("Pass failed", reason=error.reason, problem=str(error), tried_again_in=pause)

    def own(self, about: str, problems: Iterable[str]) -> None:
        """What fails of fanout's own beside a pass, each once; `about` names the part of it."""
        fresh, over = self._news(about, problems)
        for sentence in fresh:
            _log.warning("Something of fanout itself failed", problem=sentence)
        for sentence in over:
            _log.info("It works again", problem=sentence)

    def worked(self) -> None:
        """Passes come to their end; said where the one before did not."""
        if self._failing:
            _log.info("Passes work again")
        self._failing = ""

    def report(self, report: Report, mode: Mode, triggers: Iterable[str]) -> None:
        """A pass: what it did, what is newly wrong, and what is well again."""
        for outcome in report.outcomes:
            if outcome.done and outcome.action.kind in _NAMED:
                _log.info(_NAMED[outcome.action.kind], **_about(outcome.action))
        done = Counter(_COUNTED[it.action.kind] for it in report.outcomes if it.done)
        counts = {name: done[name] for name in _COUNTED.values() if done[name]}
        failed = {"failed": len(report.failed)} if report.failed else {}
        tell = _log.info if counts else _log.debug
        tell("Pass done", trigger=sorted(triggers), sweep=mode.sweep, **counts, **failed)
        fresh, over = self._news("undeclared", report.observed.undeclared)
        for sentence in fresh:
            _log.warning("Something on record is not declared", problem=sentence)
        for sentence in over:
            _log.info("It is not missed any more", problem=sentence)
        failures = _by_policy(report.failed)
        wrong: dict[str, list[str]] = {}  # policies by sentence
        well: dict[str, list[str]] = {}
        for item in report.observed.policies:
            undone_here = failures.get((item.named.namespace, item.named.name), ())
            problems = run_contained(partial(_problems, item, undone_here))
            if isinstance(problems, FanoutError):
                problems = [str(problems)]
            fresh, over = self._news(item.title, problems)
            for news, sentences in ((wrong, fresh), (well, over)):
                for sentence in sentences:
                    news.setdefault(sentence, []).append(item.title)
        for policy, sentence in _each(wrong):
            _log.warning("Something is wrong with a policy", policy=policy, problem=sentence)
        for policy, sentence in _each(well):
            _log.info("Something of a policy is well again", policy=policy, problem=sentence)

    def _news(self, about: str, sentences: Iterable[str]) -> tuple[list[str], list[str]]:
        """What was not told the last time, and what was told then and is over."""
        now, before = dict.fromkeys(sentences), self._told.get(about, {})
        self._told[about] = now
        fresh = [sentence for sentence in now if sentence not in before]
        return fresh, [sentence for sentence in before if sentence not in now]


def _about(action: Action) -> dict[str, str]:
    said = {
        "policy": f"{action.namespace}/{action.policy}" if action.policy else "",
        "variant": action.variant,
        "stage": action.stage,
        "revision": action.revision,
        "repository": action.repository,
        "path": action.path,
    }
    return {name: value for name, value in said.items() if value}


def _problems(item: PolicyPass, failed: Sequence[Outcome]) -> list[str]:
    """Sentences; what is the same for many variants is one."""
    return [*(one.sentence for one in gathered(item.troubles)), *undone(failed)]


def _each(news: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Policy and sentence; what is the same for more than a few policies is one."""
    for sentence, policies in news.items():
        named = policies if len(policies) <= EACH else [listed(policies)]
        yield from ((policy, sentence) for policy in named)


def _by_policy(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        action = outcome.action
        found.setdefault((action.namespace, action.policy or action.variant), []).append(outcome)
    return found
