"""Whom a command means: one policy, a stage of it, variants by any of their names."""

from collections.abc import Sequence

from fanout.api.reasons import Reason
from fanout.cli.start import Program
from fanout.errors import InvalidInput, Stopped
from fanout.gates.wording import listed
from fanout.plan.cases import Case
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass

_UNKNOWN = (Reason.RECORD_UNREADABLE, Reason.RECORDS_LOST)  # what is on record


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
    problem = item.problem
    if problem is not None and (not item.book.head or problem.reason in _UNKNOWN):
        refuse_stopped(item)
    return item


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


def names_of(case: Case) -> tuple[str, ...]:
    """All that a variant may be called on the command line."""
    spec = case.spec
    return (spec.name, spec.target, f"{spec.repository}:{spec.path}", spec.path)


def variant_called(item: PolicyPass, called: str, stage: str = "") -> Case:
    """The variant of this name, target, place (`repository:path`) or path.

    Raises InvalidInput when there is none, when there are several, and when it is not in the stage.
    """
    found = [case for case in item.cases if called in names_of(case)]
    if len(found) != 1:
        names = [case.spec.name for case in item.cases if stage in ("", case.spec.stage)]
        raise InvalidInput(
            f"{item.title} has no variant {called}"
            if not found
            else f"{called} is several variants of {item.title}",
            reason="NotFound",
            remedy=f"there are: {listed(names)}" if names else "see `fanout get variants`",
        )
    own = found[0].spec.stage
    if stage and stage != own:
        place = f"in stage {own}, not in {stage}" if own else "in no stage"
        raise InvalidInput(
            f"variant {called} of {item.title} is {place}",
            reason="NotInStage",
            remedy=f"say --stage {own}, or leave it out" if own else "leave the stage out",
        )
    return found[0]


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
