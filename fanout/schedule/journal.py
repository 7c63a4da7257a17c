"""What the loop logs: what each pass did, and each problem once, with its end."""

from collections import Counter
from collections.abc import Iterable, Iterator

import structlog

from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.plan.actions import Action, Kind
from fanout.reconcile.gathering import gathered
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass, Report

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
        self._told: dict[str, tuple[str, ...]] = {}
        self._failing = False

    def files(self, declared: Declared) -> None:
        """What is wrong with the files as they are now."""
        faults = [str(fault) for fault in declared.faults if fault.severity == "error"]
        fresh, over = self._news("", faults)
        for sentence in fresh:
            _log.warning("Something is wrong in the files", problem=sentence)
        for sentence in over:
            _log.info("Something in the files is right again", problem=sentence)

    def failed(self, error: FanoutError, pause: float) -> None:
        """A pass that came to nothing, and when it is tried again."""
        self._failing = True
        _log.warning("Pass failed", reason=error.reason, problem=str(error), tried_again_in=pause)

    def worked(self) -> None:
        """Passes come to their end; said where the one before did not."""
        if self._failing:
            _log.info("Passes work again")
        self._failing = False

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
        for item in report.observed.policies:
            fresh, over = self._news(item.title, _problems(item, report))
            for sentence in fresh:
                _log.warning(
                    "Something is wrong with a policy", policy=item.title, problem=sentence
                )
            for sentence in over:
                _log.info(
                    "Something of a policy is well again", policy=item.title, problem=sentence
                )

    def _news(self, about: str, sentences: Iterable[str]) -> tuple[list[str], list[str]]:
        """What was not told the last time, and what was told then and is over."""
        now = list(dict.fromkeys(sentences))
        before = self._told.get(about, ())
        self._told[about] = tuple(now)
        fresh = [sentence for sentence in now if sentence not in frozenset(before)]
        return fresh, [sentence for sentence in before if sentence not in frozenset(now)]


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


def _problems(item: PolicyPass, report: Report) -> Iterator[str]:
    """Sentences; what is the same for many variants is one."""
    for one in gathered(item.troubles):
        yield one.sentence
    about = (item.named.namespace, item.named.name)
    for outcome in report.failed:
        action = outcome.action
        if (action.namespace, action.policy or action.variant) == about:
            yield f"{action.sentence()}: {outcome.problem}"
