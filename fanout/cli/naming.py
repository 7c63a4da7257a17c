"""Whom a command means: one policy, a stage of it, variants by any of their names."""

from collections.abc import Sequence

from fanout.api.nearest import suggestion
from fanout.api.reasons import Reason
from fanout.cli.called import called, names_of, short_names_of
from fanout.cli.start import Program
from fanout.errors import InvalidInput, Stopped
from fanout.gates.wording import listed
from fanout.plan.cases import Case
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass

_UNKNOWN = (
    Reason.RECORD_UNREADABLE,
    Reason.RECORDS_LOST,
    Reason.RECORDS_REWOUND,
)  # what is on record


def judged(program: Program, policy: str) -> PolicyPass:
    """The policy (or hand-written variant) of this name as it stands.

    Raises InvalidInput, and Stopped when something stops the policy.
    """
    item = found(program, policy)
    refuse_stopped(item)
    return item


def recordable(program: Program, policy: str) -> PolicyPass:
    """The same, also where something stops the policy and yet more can be put on record about it.

    What failed and what has to stop must be told when upstream is in trouble too. Raises
    InvalidInput; and Stopped where nobody can say what is on record: one more record would make
    records that are lost look like a beginning.
    """
    item = found(program, policy)
    refuse_unrecordable(item)
    return item


def refuse_unrecordable(item: PolicyPass) -> None:
    """Raise Stopped where nobody can say what is on record about the policy."""
    problem = item.problem
    if problem is not None and (not item.book.head or problem.reason in _UNKNOWN):
        refuse_stopped(item)


def refuse_stopped(item: PolicyPass) -> None:
    """Raises Stopped with what stops the policy, as a sweep tells it."""
    problem = item.problem
    if problem is not None:
        raise Stopped(f"{item.title}: {problem}", reason=problem.reason) from problem


def found(program: Program, policy: str) -> PolicyPass:
    """The same, also where something stops the policy as a whole. Raises InvalidInput."""
    mode = Mode(only=frozenset([policy]), namespace=program.settings.namespace)
    policies = program.observe(mode).policies
    if len(policies) != 1:
        problem = "there is no policy" if not policies else "several namespaces have a policy"
        raise InvalidInput(
            f"{problem} {policy}",
            reason="NotFound",
            remedy="see `fanout get policies`" if not policies else "name one with -n",
        )
    return policies[0]


def variant_called(item: PolicyPass, name: str, stage: str = "") -> Case:
    """The variant of this name, target, place (`repository:path`), path or short name.

    Raises InvalidInput when there is none, when there are several, and when it is not in the stage.
    """
    found = called(item.cases, name)
    if len(found) != 1:
        there = [case for case in item.cases if stage in ("", case.spec.stage)]
        raise not_one(name, found, there, f"{item.title} has no variant {name}")
    own = found[0].spec.stage
    if stage and stage != own:
        place = f"in stage {own}, not in {stage}" if own else "in no stage"
        raise InvalidInput(
            f"variant {name} of {item.title} is {place}",
            reason="NotInStage",
            remedy=f"say --stage {own}, or leave it out" if own else "leave the stage out",
        )
    return found[0]


def not_one(name: str, found: Sequence[Case], there: Sequence[Case], none: str) -> InvalidInput:
    """The error for a name that none or several of the variants have."""
    if found:
        those = listed(f"{case.spec.name} (target {case.spec.target})" for case in found)
        return InvalidInput(
            f"{name} is several variants", reason="NotFound", remedy=f"name one of them: {those}"
        )
    names = [case.spec.name for case in there]
    known = [one for case in there for one in (*names_of(case), *short_names_of(case))]
    otherwise = f"there are: {listed(names)}" if names else "see `fanout get variants`"
    return InvalidInput(none, reason="NotFound", remedy=suggestion(name, known, otherwise))


def refuse_no_stage(item: PolicyPass, stage: str) -> None:
    """Raises InvalidInput when a policy is named and none of its stages."""
    if item.named.policy is not None and not stage:
        stages = ", ".join(rule.name for rule in item.rules)
        raise InvalidInput(
            f"no stage of {item.title} is named",
            reason="NotFound",
            remedy=f"name the stage with --stage; there are: {stages}",
        )


def refuse_unknown_stage(item: PolicyPass, stage: str) -> None:
    """Raises InvalidInput when a stage is named that the policy does not have."""
    stages = [rule.name for rule in item.rules if rule.name]
    if stage and stage not in stages:
        raise InvalidInput(
            f"{item.title} has no stage {stage}",
            reason="NotFound",
            remedy=f"choose one of: {', '.join(stages)}" if stages else "leave the stage out",
        )


def meant(item: PolicyPass, stage: str, variants: Sequence[str] = ()) -> list[Case]:
    """The variants of a stage, or those of these names in it."""
    return [
        case
        for case in item.cases
        if case.spec.stage == stage and (not variants or case.spec.name in variants)
    ]


def candidate_of(item: PolicyPass, stage: str) -> str:
    """The stage's candidate. Raises InvalidInput where it has none."""
    decided = item.decision.stages.get(stage) if item.decision else None
    if decided is None or not decided.candidate:
        raise InvalidInput(
            f"{item.title} has no candidate in stage {stage or '(none)'}",
            reason="NotFound",
            remedy="name the stage with --stage; see `fanout get stages`",
        )
    return decided.candidate
