"""Aggregation of equal problems and warnings into one line each.

A repository that does not answer stops all its variants, and a mistake in a policy may
fail all targets. Such a line states the number and names the first few.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fanout.api.durations import format_instant
from fanout.api.text_fields import list_first, pluralize
from fanout.gates.gate_wording import format_names
from fanout.groups import group_pairs
from fanout.plan.actions import ActionResult
from fanout.reconcile.pass_results import PassProblem, PolicyResult
from fanout.values import Value

_MAX_SEPARATE_LINES = 10  # policies with equal problems that are printed separately


class ProblemGroup(Value):
    """Group of equal problems, represented by the first."""

    first: PassProblem
    subjects: tuple[str, ...]
    is_repeated: bool = False  # all of it was reported before

    @property
    def message(self) -> str:
        """Subjects and sentence of the problem, without the policy."""
        return self._with_subjects(self.first.message)

    @property
    def reminder(self) -> str:
        """Subjects and sentence, shortened to one line if it was reported completely before."""
        return self._with_subjects(self.first.again if self.is_repeated else self.first.message)

    def _with_subjects(self, sentence: str) -> str:
        if not self.first.subject or self.first.policy.endswith(f"/{self.first.subject}"):
            return sentence  # the sentence names the policy or the hand-written variant already
        if len(self.subjects) == 1:
            return f"{self.subjects[0]}: {sentence}"
        number = pluralize(len(self.subjects), self.first.noun)
        return f"{number} ({format_names(self.subjects)}): {sentence}"


def group_problems(problems: Iterable[PassProblem]) -> Iterator[ProblemGroup]:
    """Yield one group per policy, reason and sentence, in the order of first occurrence."""
    groups = group_pairs(
        ((it.policy, it.noun, it.reason, it.failed, _anonymize(it)), it) for it in problems
    )
    for group in groups.values():
        is_repeated = all(problem.again for problem in group)
        subjects = tuple(it.target_name or it.subject for it in group)
        yield ProblemGroup(group[0], subjects, is_repeated)


def format_lines(groups: Iterable[ProblemGroup]) -> Iterator[tuple[bool, str]]:
    """Yield whether it is a failure, and the line with the policy's name.

    If more than a few policies have equal problems, they share one line.
    """
    equal_groups: dict[tuple[object, ...], list[ProblemGroup]] = {}
    for group in groups:
        first = group.first
        key = (first.noun, first.reason, first.failed, group.is_repeated, _anonymize(first))
        equal_groups.setdefault(key, []).append(group)
    for same_groups in equal_groups.values():
        if len(same_groups) <= _MAX_SEPARATE_LINES:
            for it in same_groups:
                yield it.first.failed, f"{it.first.policy}: {it.reminder}"
            continue
        policies = format_names(it.first.policy for it in same_groups)
        problem_count = sum(len(it.subjects) for it in same_groups)
        first = same_groups[0].first
        total = f", {pluralize(problem_count, first.noun)} in all" if first.subject else ""
        yield first.failed, f"{policies}{total}; the first: {same_groups[0].reminder}"


def format_failed_outcomes(outcomes: Iterable[ActionResult]) -> Iterator[str]:
    """Yield a sentence for each problem: a failed push is one, for all drafts it contained."""
    for problem, failed in group_pairs((it.problem, it) for it in outcomes).items():
        yield f"{list_first([it.action.sentence() for it in failed], 1)}: {problem}"


def format_deferred_outcomes(outcomes: Iterable[ActionResult]) -> Iterator[str]:
    """Yield a sentence for each limit or refusal: how many actions wait, and until when."""
    for problem, waiting in group_pairs((it.problem, it) for it in outcomes).items():
        instant = min((it.until for it in waiting if it.until is not None), default=None)
        until = f" until {format_instant(instant)}" if instant is not None else ""
        number = pluralize(len(waiting), "action")
        verb = "waits" if len(waiting) == 1 else "wait"
        yield f"{number} {verb}{until}: {problem}"


def count_failures(problems: Iterable[PassProblem]) -> str:
    """Return the number of failures by kind, as `1 policy, 4 targets`; "" if there are none."""
    count_by_noun = Counter(problem.noun for problem in problems if problem.failed)
    nouns = [it for it in ("policy", "target", "variant") if count_by_noun[it]]
    return ", ".join(pluralize(count_by_noun[it], it) for it in nouns)


def _anonymize(problem: PassProblem) -> str:
    """Return the sentence without the names of its own subject."""
    if problem.gone:
        return ""  # locations differ, the remedy is equal
    shape = problem.message
    # Longest first: a name may be part of a longer one.
    for name in sorted({problem.subject, *problem.names} - {""}, key=len, reverse=True):
        shape = shape.replace(name, "\0")
    return shape


def summarize_function_warnings(policy_results: Sequence[PolicyResult]) -> list[str]:
    """Return a sentence for each warning of functions, with the variants it concerns."""
    variants_by_warning: dict[tuple[str, str], list[str]] = {}
    for policy_result in policy_results:
        for variant in policy_result.variants:
            for result in variant.rendering.results if variant.rendering else ():
                if result.severity == "warning":
                    key = (policy_result.resolved_policy.name, result.sentence)
                    variants_by_warning.setdefault(key, []).append(variant.spec.name)
    return [
        f"{policy}: {sentence} ({list_first(variants, 3)})"
        for (policy, sentence), variants in variants_by_warning.items()
    ]
