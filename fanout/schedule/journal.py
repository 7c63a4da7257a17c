"""What the loop logs: a line for each pass that did something, and each problem once."""

from collections import Counter
from collections.abc import Iterable, Iterator

import structlog

from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.plan.actions import Kind
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass, Report

_log = structlog.get_logger()
_COUNTED = {
    Kind.RELEASE: "released",
    Kind.WRITE_DRAFT: "drafts_written",
    Kind.PUBLISH: "published",
    Kind.REMOVE_DRAFT: "drafts_removed",
    Kind.RECORD: "recorded",
}
AT_ONCE = 20  # lines per policy and pass: thousands of variants may fail for one reason


class Journal:
    """Remembers which problems were told, so that a pass each minute does not repeat them."""

    def __init__(self) -> None:
        self._told: dict[str, frozenset[str]] = {}

    def files(self, declared: Declared, problems: Iterable[FanoutError]) -> None:
        """What is wrong with the files as they are now."""
        faults = [str(fault) for fault in declared.faults if fault.severity == "error"]
        for sentence in self._new("", [*faults, *map(str, problems)]):
            _log.warning("Something is wrong in the files", problem=sentence)

    def report(self, report: Report, mode: Mode, triggers: Iterable[str]) -> None:
        """A pass: counts where it did something, and whatever is newly wrong."""
        done = Counter(_COUNTED[it.action.kind] for it in report.outcomes if it.done)
        counts = {name: done[name] for name in _COUNTED.values() if done[name]}
        failed = {"failed": len(report.failed)} if report.failed else {}
        tell = _log.info if counts else _log.debug
        tell("Pass done", trigger=sorted(triggers), sweep=mode.sweep, **counts, **failed)
        for item in report.observed.policies:
            for sentence in self._new(item.title, _problems(item, report)):
                _log.warning(
                    "Something is wrong with a policy", policy=item.title, problem=sentence
                )

    def _new(self, about: str, sentences: Iterable[str]) -> list[str]:
        """Those that were not told the last time; what is well again is told anew when it fails."""
        now = list(dict.fromkeys(sentences))
        before = self._told.get(about, frozenset())
        self._told[about] = frozenset(now)
        return [sentence for sentence in now if sentence not in before]


def _problems(item: PolicyPass, report: Report) -> Iterator[str]:
    if item.problem is not None:
        yield str(item.problem)
    for failure in item.failures:
        yield f"{failure.target}: {failure.problem}"
    for case in item.cases:
        if case.obstacle is not None:
            yield case.obstacle.sentence  # the same for all variants in one repository
        elif case.failure is not None:
            yield f"{case.spec.name}: {case.failure}"
    about = (item.named.namespace, item.named.name)
    for outcome in report.failed:
        action = outcome.action
        if (action.namespace, action.policy or action.variant) == about:
            yield f"{action.sentence()}: {outcome.problem}"
