"""`fanout explain`: what something waits for, since when, who can do what, when it can change."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from fanout.cli.called import called, names_of, target_names
from fanout.cli.completing import complete_subjects
from fanout.cli.exit_codes import ExitCode
from fanout.cli.folding import fold
from fanout.cli.leaving import explain_leaving, leaving_called
from fanout.cli.lookup import check_policies, not_found
from fanout.cli.naming import not_one, variant_called
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.remarks import disputed, of_conflicts, of_policy, of_stage, of_variant
from fanout.cli.settings import Format, Settings
from fanout.cli.sides import open_sides
from fanout.cli.start import Program, open_program
from fanout.cli.telling import tell_faults
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput, Stopped
from fanout.gates.answer import State
from fanout.gates.explain import Explanation, explain_policy, explain_stage, explain_variant
from fanout.gates.rules import Verdict
from fanout.package.merge.conflicts import Conflict
from fanout.plan.cases import Case
from fanout.plan.status import written
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass
from fanout.values import replace


@click.command()
@click.argument("subject", metavar="POLICY[/STAGE[/VARIANT]]", shell_complete=complete_subjects)
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings, subject: str) -> ExitCode:
    """Say what something waits for, and who can do what about it.

    Of a policy, a stage or a variant. A variant may be named by its target, its path or
    repository:path, and alone where no policy has that name, as one that was written by hand is.
    Exits with 3 when the policy is stopped, or something of what is explained failed or is held by
    what a person must mend.
    """
    with open_program(settings) as program:
        faults = tell_faults(program.declared())
        found, stage, variant = _meant(program, subject)
        explanations = [_explain(program, item, stage, variant) for item in found]
    if settings.output is Format.TABLE:
        write("".join(f"{line}\n" for one in explanations for line in _lines(fold(one), 0)))
    else:
        show_value([_plain(one) for one in explanations], settings.output)
    failed = any(item.problem is not None or _failed(item, stage, variant) for item in found)
    return ExitCode.SOME_FAILED if faults or failed else ExitCode.OK


def _meant(program: Program, subject: str) -> tuple[Sequence[PolicyPass], str, str]:
    """The policies of the name, a stage and a variant of theirs; or the one variant of the name.

    Raises InvalidInput when nothing has it.
    """
    policy, _, rest = subject.partition("/")
    stage, _, variant = rest.partition("/")
    namespace = program.settings.namespace
    try:
        check_policies([policy], program.declared(), namespace)
    except InvalidInput:
        policies = program.observe(Mode(namespace=namespace)).policies
        item, stage, variant = _alone(policies, subject, program.declared())
        if item is None:
            raise
        return [item], stage, variant
    mode = Mode(only=frozenset([policy]), namespace=namespace)
    return program.observe(mode).policies, stage, variant


def _alone(
    policies: Sequence[PolicyPass], name: str, declared: Declared
) -> tuple[PolicyPass | None, str, str]:
    """The one variant that goes by this name, whatever its policy, and its stage.

    One whose target is gone is there too. Raises InvalidInput when several have the name, and for
    a target without a variant, with the reason.
    """
    those = [(item, case) for item in policies for case in called(item.cases, name)]
    own = [it for it in those if name in names_of(it[1])] or those
    if len(own) == 1:
        item, case = own[0]
        by_hand = item.named.policy is None
        return item, case.spec.stage, "" if by_hand else case.spec.name
    if own:
        raise not_one(name, [case for _, case in own], (), "")
    for item in policies:
        _refuse_failed(item, name)
    gone = [(item, it) for item in policies for it in leaving_called(item, declared, name)]
    return (gone[0][0], "", gone[0][1]) if len(gone) == 1 else (None, "", "")


_THROUGH = (State.READY.value, Verdict.PASSED.value)


def _failed(item: PolicyPass, stage: str, variant: str) -> bool:
    """Could something of it not be served? A target that has no variant is in no stage."""
    about = {case.spec.name for case in item.cases if case.spec.stage == stage}
    if variant:
        about = {case.spec.name for case in called(item.cases, variant)}
    return any(it.unmended and (not stage or it.subject in about) for it in item.troubles)


def _explain(program: Program, item: PolicyPass, stage: str, variant: str) -> Explanation:
    if stage and item.named.policy is not None:
        stages = [rule.name for rule in item.named.policy.spec.stages]
        if stage not in stages:
            raise not_found("stage", [stage], stages)
    if item.problem is not None or item.facts is None or item.decision is None:
        problem = item.problem
        reason = problem.reason if problem else "Unknown"
        return Explanation(f"policy {item.named.name}", reason, str(problem))
    if variant:
        gone = leaving_called(item, program.declared(), variant)
        if len(gone) == 1 and not called(item.cases, variant):
            return explain_leaving(item, gone[0])
        case = _variant(item, stage, variant)
        explained = explain_variant(item.facts, item.decision, case.spec.name)
        return _with(explained, of_variant(item, case, _conflicts(program, case)))
    if stage:
        return _with(explain_stage(item.facts, item.decision, stage), of_stage(item, stage))
    explained = _with(explain_policy(item.facts, item.decision), of_policy(item))
    if item.named.policy is None:  # a variant written by hand, which is explained as its own policy
        for case in item.cases:
            told = of_conflicts(item, case, _conflicts(program, case))
            explained = _with(explained, tuple(told))
    return explained


def _conflicts(program: Program, case: Case) -> tuple[Conflict, ...]:
    """The conflicts of the variant's draft, decided or not, from merging it once more."""
    known = case.standing and disputed(case)
    return open_sides(program, case.spec.name).conflicts if known else ()


def _with(one: Explanation, remarks: tuple[Explanation, ...]) -> Explanation:
    return replace(one, children=(*one.children, *remarks))


def _variant(item: PolicyPass, stage: str, name: str) -> Case:
    """The variant that is meant; a target without one says why."""
    _refuse_failed(item, name)
    try:
        return variant_called(item, name, stage)
    except InvalidInput as error:
        if error.reason == "NotInStage":
            own = variant_called(item, name).spec.stage
            error.remedy = f"say `fanout explain {item.named.name}/{own}/{name}`"
        raise


def _refuse_failed(item: PolicyPass, name: str) -> None:
    """Raises Stopped with what became of the target of this name that has no variant."""
    short = not called(item.cases, name)
    for failure in item.named.failures:
        if failure.target == name or (short and name in target_names(failure.target)):
            raise Stopped(failure.problem, reason=failure.reason)


def _lines(one: Explanation, depth: int) -> Iterator[str]:
    marks = {"passed": "+", "Ready": "+", "failed": "x", "Failed": "x"}
    about = [one.sentence]
    if one.since and written(one.since) not in one.sentence:
        about.append(f"since {written(one.since)}")
    if one.until and written(one.until) not in one.sentence:
        about.append(f"can change at {written(one.until)}")
    if one.who:
        about.append(f"who can act: {one.who}")
    mark = "-" if one.waits and one.state in _THROUGH else marks.get(one.state, "-")
    head = f"{'  ' * depth}{mark} {one.subject}: {one.state}"
    yield f"{head}: {'; '.join(about)}"
    for child in one.children:
        yield from _lines(child, depth + 1)


def _plain(one: Explanation) -> dict[str, object]:
    body: dict[str, object] = {
        "subject": one.subject,
        "state": one.state,
        "sentence": one.sentence,
        "since": _instant(one.since),
        "until": _instant(one.until),
        "who": one.who,
        "waits": one.waits,
        "children": [_plain(child) for child in one.children],
    }
    return {name: value for name, value in body.items() if value}


def _instant(moment: datetime | None) -> str:
    return written(moment) if moment else ""
