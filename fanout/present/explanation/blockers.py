"""Blockers of one policy: each distinct reason once, with the variants that it blocks.

Built from the result of a pass, so that an explanation always agrees with what a sweep does. Holds
and problems that differ only in the names of their variant are one blocker.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby

from fanout.api.durations import format_instant
from fanout.api.explanation_view import Blocker
from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import NEEDS_REPAIR, Reason, is_asked
from fanout.api.results import Hold, StageResult
from fanout.api.text_fields import pluralize
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PassProblem, PolicyResult
from fanout.values import replace

# Reasons for which nothing waits: the rollout goes on without these variants.
NOT_BLOCKING = frozenset({Reason.SKIPPED, Reason.OFFLINE, Reason.PINNED, Reason.OUT_OF_BAND})
# Ended by a person's decision alone, while nothing is wrong. A halted stage has failed variants,
# which need a person themselves.
_DECISION_NEEDED = frozenset(
    {
        Reason.ADOPTION_AWAITS,
        Reason.APPROVAL_MISSING,
        Reason.CHANGES_REQUESTED,
        Reason.MERGE_AWAITED,
        Reason.REQUEST_CLOSED,
    }
)
# A promotion helps only once nothing else blocks the variant.
_PROMOTION_NEEDED = frozenset({Reason.AUTOMATION_OFF, Reason.WOULD_GO_BACK})
# The sentence of Stuck repeats the first hold of a stage; Starving is a hold of its stage as well.
_LISTED_ELSEWHERE = frozenset({Reason.STUCK, Reason.STARVING})


class _BlockerGroups:
    """Groups of equal holds, in order of first occurrence."""

    def __init__(self, variants: Iterable[RenderedVariant]) -> None:
        self._variants = {it.spec.name: it for it in variants}
        # Parts of a blocker: each of one variant, or of none.
        self._groups: dict[tuple[str, str, str, str], list[Blocker]] = {}
        # Variants share the hold objects of their stage; the text of one is read only once. The
        # hold is kept beside its group, so that no other object gets its id.
        self._by_hold: dict[tuple[int, str], tuple[Hold, list[Blocker]]] = {}

    def add(
        self,
        hold: Hold,
        stage: str = "",
        name: str = "",
        revision: str = "",
        *,
        needs_person: bool = False,
        failed: bool = False,
    ) -> None:
        """Add a hold of a policy, of a stage or, with `name`, of a variant."""
        if (id(hold), stage) not in self._by_hold:
            self._by_hold[id(hold), stage] = (hold, self._find_group(hold, stage, name, revision))
        blocker = Blocker(
            str(hold.reason),
            hold.message,
            hold.who,
            hold.since,
            hold.until,
            stage=stage,
            variants=(name,) if name else (),
            revision=revision,
            needs_person=needs_person,
            failed=failed,
        )
        self._by_hold[id(hold), stage][1].append(blocker)

    def add_problem(self, problem: PassProblem, stage: str, *, needs_person: bool) -> None:
        """Add a problem; variants of several stages have some together, such as a lost tag."""
        hold, name = Hold(problem.reason, problem.message), problem.subject
        blocker = Blocker(
            hold.reason,
            hold.message,
            stage=stage,
            variants=(name,) if name else (),
            needs_person=needs_person,
            failed=problem.failed,
            noun=problem.noun,
        )
        self._find_group(hold, "", name, "").append(blocker)

    def _find_group(self, hold: Hold, stage: str, name: str, revision: str) -> list[Blocker]:
        """Return the group of a hold, by its sentence without names of its variant and instants."""
        shape = hold.message
        instants = [format_instant(it) for it in (hold.since, hold.until) if it is not None]
        names = {name}
        if (variant := self._variants.get(name)) is not None:
            spec = variant.spec
            place = f"{spec.repository}:{spec.path}"
            names = {spec.name, spec.target, place, spec.path, variant.observed.draft_ref}
        # Longest first: one name may be part of another.
        for text in (*sorted(names - {""}, key=len, reverse=True), *instants):
            shape = shape.replace(text, "\0")
        return self._groups.setdefault((stage, revision, str(hold.reason), shape), [])

    def build(self, failed_stages: Collection[str] = ()) -> Iterator[Blocker]:
        """Yield the blockers; `failed_stages`: those with failed variants."""
        for parts in self._groups.values():
            stages = {it.stage for it in parts}
            names = (name for it in parts for name in it.variants)
            # Where nothing has failed, what failed has left the revision: a person ends the halt.
            is_halted = parts[0].reason == Reason.HALTED
            yield replace(
                parts[0],
                since=min((it.since for it in parts if it.since), default=None),
                until=min((it.until for it in parts if it.until), default=None),
                stage=parts[0].stage if len(stages) == 1 else "",
                variants=tuple(name for name, _ in groupby(names)),
                needs_person=(is_halted and stages.isdisjoint(failed_stages))
                or any(it.needs_person for it in parts),
                failed=any(it.failed for it in parts),
                noun=parts[-1].noun,
            )


def find_blockers(item: PolicyResult, problems: Iterable[PassProblem]) -> tuple[Blocker, ...]:
    """Find all blockers of the policy and its problems: its own first, then by stage."""
    groups = _BlockerGroups(item.variants)
    decision = item.decision
    if item.error is not None or decision is None:
        _add_problems(groups, problems, {}, {})
        return tuple(groups.build())
    reasons_by_stage: dict[str, set[str]] = {}
    reasons_by_variant: dict[str, set[str]] = {}
    for evaluation in decision.variants.values():
        reasons = {str(hold.reason) for hold in evaluation.holds}
        reasons_by_variant[evaluation.name] = reasons
        stage = evaluation.stage if evaluation.stage in decision.stages else ""
        reasons_by_stage.setdefault(stage, set()).update(reasons)
    # A deleted policy rolls nothing out: what its stages and decisions lack is nobody's task.
    is_deleted = item.resolved_policy.is_being_deleted
    omitted = reasons_by_stage.get("", set()) | _LISTED_ELSEWHERE
    omitted |= {str(Reason.DECISION_WAITS)} if is_deleted else set()
    # Variants have it themselves, but for those without a target.
    omitted |= {str(Reason.PUSH_REFUSED)} & set().union(*reasons_by_variant.values())
    for hold in decision.holds:
        if hold.reason not in omitted:
            groups.add(hold, needs_person=_needs_person(hold.reason))
    for stage_evaluation in () if is_deleted else decision.stages.values():
        _add_stage_holds(
            groups, stage_evaluation, reasons_by_stage.get(stage_evaluation.name, set())
        )
    shared = {(str(it.reason), it.message) for it in decision.holds}
    conflicts = item.undecided_conflicts
    # An explanation has the remedy of a merge conflict as commands.
    problems = [
        replace(it, message=f"{pluralize(number, 'undecided merge conflict')} in its draft")
        if it.reason == Reason.MERGE_CONFLICT and (number := conflicts.get(it.subject))
        else it
        for it in problems
    ]
    # An obstacle is a hold of the gates and a failure of the pass.
    failures = frozenset((it.subject, it.reason) for it in problems if it.failed)
    for evaluation in decision.variants.values():
        reasons, name = reasons_by_variant[evaluation.name], evaluation.name
        # But for those that the policy as a whole has.
        for hold in evaluation.holds:
            if hold.reason in NOT_BLOCKING or (str(hold.reason), hold.message) in shared:
                continue
            is_last = hold.reason in _PROMOTION_NEEDED and reasons <= _PROMOTION_NEEDED
            failed = (name, str(hold.reason)) in failures
            groups.add(
                hold,
                evaluation.stage,
                name,
                evaluation.candidate,
                needs_person=is_last or failed or _needs_person(hold.reason, reasons),
                failed=failed,
            )
    stages = {it.spec.name: it.spec.stage for it in item.variants}
    _add_problems(groups, problems, stages, reasons_by_variant)
    failed_stages = {
        it.stage for it in decision.variants.values() if it.state is VariantState.FAILED
    }
    order = {stage: position for position, stage in enumerate(["", *decision.stages])}
    return tuple(sorted(groups.build(failed_stages), key=lambda it: order.get(it.stage, 0)))


def _add_stage_holds(
    groups: _BlockerGroups, evaluation: StageResult, variant_reasons: set[str]
) -> None:
    """Add the holds of the stage that none of its variants has, and those of newer revisions."""
    stage_reasons = {str(it.reason) for it in evaluation.holds}
    for hold in evaluation.holds:
        if hold.reason not in variant_reasons | NOT_BLOCKING:
            groups.add(
                hold,
                evaluation.name,
                revision=evaluation.candidate,
                needs_person=_needs_person(hold.reason, stage_reasons),
            )
    for other in evaluation.others:
        for hold in other.holds if other.newer else ():
            if hold.reason not in NOT_BLOCKING:
                groups.add(hold, evaluation.name, revision=other.revision)


def _add_problems(
    groups: _BlockerGroups,
    problems: Iterable[PassProblem],
    stages: Mapping[str, str],
    reasons_by_variant: Mapping[str, set[str]],
) -> None:
    """Add the problems that no hold of the same variant has the reason of."""
    for problem in problems:
        is_listed = problem.reason in reasons_by_variant.get(problem.subject, ())
        if is_listed or problem.reason in NOT_BLOCKING or problem.accepted:
            continue
        is_waiting = problem.gone and problem.reason == Reason.AUTOMATION_OFF
        groups.add_problem(
            problem,
            stages.get(problem.subject, ""),
            needs_person=problem.needs_fix or is_waiting or _needs_person(problem.reason),
        )


def _needs_person(reason: str, all_reasons: Collection[str] = ()) -> bool:
    """Return whether only a person can end a hold of this reason, by a decision or a repair.

    `all_reasons`: those of its variant or stage.
    """
    return reason in NEEDS_REPAIR or (reason in _DECISION_NEEDED and is_asked(reason, all_reasons))


def sort_by_urgency(blockers: Iterable[Blocker]) -> list[Blocker]:
    """Sort: what failed, what needs a person, what waits for an event, what time ends."""
    return sorted(blockers, key=rank_urgency)


def rank_urgency(blocker: Blocker) -> tuple[bool, bool, bool]:
    """Return the key that sorts blockers, the most urgent first."""
    return not blocker.needs_person, not blocker.failed, blocker.until is not None


def select_blockers(
    blockers: Iterable[Blocker], stage: str, variants: Iterable[RenderedVariant], *, is_stage: bool
) -> Iterator[Blocker]:
    """Yield the blockers of these variants, which are the whole stage if `is_stage`.

    What blocks the whole policy, or a repository, blocks each variant of it.
    """
    names = {name for it in variants for name in (it.spec.name, it.spec.repository)}
    for blocker in blockers:
        if blocker.variants:
            is_selected = not names.isdisjoint(blocker.variants)
        else:
            is_selected = blocker.stage in ("", stage)
        if is_selected or (is_stage and blocker.stage == stage):
            yield blocker
