"""Log of the loop: what each pass did, and each problem once when it begins and ends."""

from collections import Counter
from collections.abc import Iterable, Iterator

import structlog

from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import MAX_SEPARATE, group_findings
from fanout.errors import FanoutError
from fanout.gates.gate_wording import format_names
from fanout.groups import group_pairs
from fanout.plan.actions import ActionKind
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject, subject_of
from fanout.reconcile.problem_aggregation import format_failed_outcomes, group_problems
from fanout.telemetry.error_isolation import BARRIER

_log = structlog.get_logger()
# Name of the count of each kind, and message of a line about one action ("": there is none).
_NAMES = {
    ActionKind.RELEASE: ("released", ""),
    ActionKind.WRITE_DRAFT: ("drafts_written", "Draft written"),
    ActionKind.DRAFT_REMOVAL: ("removal_drafts_written", "Removal draft written"),
    ActionKind.PUBLISH: ("published", "Published"),
    ActionKind.REMOVE_PACKAGE: ("packages_removed", "Package removed"),
    ActionKind.REMOVE_DRAFT: ("drafts_removed", "Draft removed"),
    ActionKind.OPEN_REQUEST: ("requests_opened", "Pull request opened"),
    ActionKind.UPDATE_REQUEST: ("requests_updated", "Pull request updated"),
    ActionKind.CLOSE_REQUEST: ("requests_closed", "Pull request closed"),
    ActionKind.SET_STATUS: ("statuses_set", ""),
    ActionKind.MERGE_REQUEST: ("requests_merged", "Pull request merged"),
    ActionKind.RECORD: ("recorded", ""),
}


class LoopLog:
    """Logger that reports each problem once, not with every pass."""

    def __init__(self) -> None:
        self._reported: dict[str, dict[str, None]] = {}
        self._last_failure = ""  # error of the previous pass

    def log_declared_errors(self, declared: DeclaredObjects) -> None:
        """Log errors of what is declared that are new, and those that ended."""
        errors = [finding for finding in declared.faults if finding.severity == "error"]
        self._log_changes(
            "",
            (line for _, line in group_findings(errors)),
            "Declarations have an error",
            "Error of declarations is gone",
        )

    def log_failed_pass(self, error: FanoutError, pause: float) -> None:
        """Log a failed pass and the seconds until it is retried; repetitions at debug level."""
        log = _log.debug if self._last_failure == str(error) else _log.warning
        self._last_failure = str(error)
        log("Pass failed", reason=error.reason, problem=str(error), tried_again_in=pause)

    def log_internal_problems(self, part: str, problems: Iterable[str]) -> None:
        """Log failures of fanout's own outside a pass; `part` names the part that failed."""
        self._log_changes(part, problems, "Internal error", "Internal error is gone")

    def log_internal_error(self, part: str, result: object) -> None:
        """Log the result of a part of fanout if it is an error, or that it works again."""
        self.log_internal_problems(part, [str(result)] if isinstance(result, FanoutError) else [])

    def log_recovery(self) -> None:
        """Log that passes work again if the previous one failed."""
        if self._last_failure:
            _log.info("Passes succeed again")
        self._last_failure = ""

    def retain(self, declared: Iterable[PassSubject]) -> None:
        """Forget the problems of all policies but these."""
        present = {f"{it.namespace}/{it.name}" for it in declared}
        # All other subjects are parts of fanout, which have no namespace.
        self._reported = {
            subject: problems
            for subject, problems in self._reported.items()
            if "/" not in subject or subject in present
        }

    def log_report(self, report: PassReport, mode: PassMode, triggers: Iterable[str]) -> None:
        """Log a pass: its actions, new problems, and problems that ended."""
        for outcome in report.outcomes:
            action, (_, message) = outcome.action, _NAMES[outcome.action.kind]
            if outcome.is_done and message:
                fields = {
                    "policy": f"{action.namespace}/{action.policy}" if action.policy else "",
                    "variant": action.variant,
                    "stage": action.stage,
                    "revision": action.revision,
                    "repository": action.repository,
                    "path": action.path,
                }
                _log.info(message, **{name: value for name, value in fields.items() if value})
        done_counts = Counter(it.action.kind for it in report.outcomes if it.is_done)
        counts = {name: done_counts[it] for it, (name, _) in _NAMES.items() if done_counts[it]}
        failed = {"failed": len(report.failed_outcomes)} if report.failed_outcomes else {}
        deferred = {"deferred": len(report.deferred_outcomes)} if report.deferred_outcomes else {}
        log = _log.info if counts else _log.debug
        done = {**counts, **failed, **deferred}
        log("Pass done", trigger=sorted(triggers), sweep=mode.sweep, **done)
        self._log_changes(
            "undeclared",
            report.pass_plan.undeclared_warnings,
            "Recorded object is not declared",
            "Recorded object is declared again, or removed",
        )
        failures = group_pairs((subject_of(it.action), it) for it in report.failed_outcomes)
        # Each with the title of its policy.
        all_new: list[tuple[str, str]] = []
        all_ended: list[tuple[str, str]] = []
        for item in report.pass_plan.policies:
            resolved = item.resolved_policy
            failed_actions = failures.get(PassSubject(resolved.namespace, resolved.name), ())
            try:
                with BARRIER:
                    # Equal problems of many variants are joined.
                    problems = [group.message for group in group_problems(item.problems)]
                    problems += format_failed_outcomes(failed_actions)
            except FanoutError as error:
                problems = [str(error)]
            new_problems, ended_problems = self._compare_problems(item.title, problems)
            all_new += ((sentence, item.title) for sentence in new_problems)
            all_ended += ((sentence, item.title) for sentence in ended_problems)
        for policy, sentence in _group_by_problem(all_new):
            _log.warning("Policy has a problem", policy=policy, problem=sentence)
        for policy, sentence in _group_by_problem(all_ended):
            _log.info("Problem of a policy is gone", policy=policy, problem=sentence)

    def _log_changes(
        self, subject: str, sentences: Iterable[str], new_message: str, ended_message: str
    ) -> None:
        new_problems, ended_problems = self._compare_problems(subject, sentences)
        for sentence in new_problems:
            _log.warning(new_message, problem=sentence)
        for sentence in ended_problems:
            _log.info(ended_message, problem=sentence)

    def _compare_problems(
        self, subject: str, sentences: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """Return the problems of a subject that are new, and those that ended."""
        current, previous = dict.fromkeys(sentences), self._reported.get(subject, {})
        self._reported[subject] = current
        new_problems = [sentence for sentence in current if sentence not in previous]
        return new_problems, [sentence for sentence in previous if sentence not in current]


def _group_by_problem(news: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield policy and problem; a problem of many policies is yielded once with all names."""
    for sentence, policies in group_pairs(news).items():
        policy_names = policies if len(policies) <= MAX_SEPARATE else [format_names(policies)]
        yield from ((policy, sentence) for policy in policy_names)
