"""Findings of templates and selectors, evaluated against the objects that are declared.

`fanout validate` names the variants of every policy as a pass does and reports what a pass would
refuse or hold, without Git. An error is what makes a target fail in every sweep; a warning is what
may be intended, or what only the package can decide. Equal findings of many targets are one.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from fanout.api.faults import Severity
from fanout.api.meta import GROUP
from fanout.api.nearest import suggestion
from fanout.api.reasons import Reason
from fanout.api.stages import Stage
from fanout.api.targets import Template
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.gates.wording import counted
from fanout.ports import Sandbox
from fanout.reconcile.gathering import Gathered, gathered
from fanout.reconcile.names import Named, name_variants
from fanout.reconcile.report import Trouble
from fanout.reconcile.unmatched import missing_sources
from fanout.selection.collisions import collisions
from fanout.selection.model import VariantSpec
from fanout.selection.selectors import matches
from fanout.selection.targets import Target
from fanout.values import frozen

Locate = Callable[[str, str, str, str], str]
"""Group, kind, namespace and name of an object → `file:line`, or "" where that is not known."""

_SHOWN = 3  # targets that a finding names


@frozen
class _Fact:
    """What is wrong with one target, at a field of its policy."""

    field: str
    target: str  # its key
    problem: str
    reason: str
    severity: Severity = "error"


def target_findings(
    declared: Declared, sandbox: Sandbox, locate: Locate, found: Iterable[Finding]
) -> tuple[Finding, ...]:
    """Evaluate all policies; fields that `found` has an error about already are left out.

    Nothing is said of a policy while a file cannot be read: what is missing may be in it.
    """
    if declared.unread:
        return ()
    known = {(it.where.object, it.where.field) for it in found if it.severity == "error"}
    named = name_variants(declared, sandbox)
    refused = _collisions(named)
    return tuple(
        finding
        for item in named
        if item.policy is not None or item.written is not None
        for finding in _of_policy(item, refused, declared, locate)
        if (finding.where.object, finding.where.field) not in known
    )


def _of_policy(
    item: Named, refused: Mapping[str, str], declared: Declared, locate: Locate
) -> Iterator[Finding]:
    declaration = item.policy or item.written
    assert declaration is not None, "it was named for one of them"
    by_field: defaultdict[tuple[str, Severity], list[Trouble]] = defaultdict(list)
    for fact in _facts(item, refused, declared):
        target = item.targets.get(fact.target)
        short = (target.readable,) if target is not None else ()
        trouble = Trouble(
            declaration.identity, fact.target, fact.reason, fact.problem, "target", names=short
        )
        by_field[fact.field, fact.severity].append(trouble)
    for (field, severity), troubles in by_field.items():
        where = declared.where(declaration, field)
        for same in gathered(troubles):
            yield Finding(where, _sentence(same, item, locate), "", severity)
    if item.policy is not None:
        for index, stage in enumerate(item.policy.spec.stages):
            yield from _unmatched_groups(item, index, stage, declared)


def _sentence(same: Gathered, item: Named, locate: Locate) -> str:
    """Whom it is about, with the places of the first of them, and what it is."""
    names = sorted(same.subjects)
    if item.policy is None:
        return same.first.sentence
    shown = [
        _placed(name, item.targets.get(name), item.namespace, locate) for name in names[:_SHOWN]
    ]
    rest = len(names) - len(shown)
    listed = ", ".join(shown) + (f" and {rest} more" if rest else "")
    number = f"{counted(len(names), 'target')}: " if len(names) > 1 else "target "
    return f"{number}{listed}: {same.first.sentence}"


def _placed(name: str, target: Target | None, namespace: str, locate: Locate) -> str:
    """The target's key and where its object stands."""
    kind, _, rest = name.partition("/")
    kind, _, group = kind.partition(".")
    within, _, own = rest.partition("/")
    if target is not None and "repo" in target.object:  # a repository that was chosen by name
        group, within, own = GROUP, namespace, target.repository
    elif kind == "Repository" and not group:
        group = GROUP
    place = locate(group, kind, within, own)
    return f"{name} ({place})" if place else name


def _facts(item: Named, refused: Mapping[str, str], declared: Declared) -> Iterator[_Fact]:
    declaration = item.policy or item.written
    assert declaration is not None, "it was named for one of them"
    for failure in item.failures:
        # The sentence of a pass begins with the place, which the finding has by itself.
        place = f"{declared.where(declaration, failure.field)}: "
        problem = failure.problem.removeprefix(place)
        yield _Fact(failure.field, failure.target, problem, failure.reason)
    for spec in item.variants:
        yield from _of_variant(item, spec, declared)
        if spec.name in refused:
            field = _package_field(item, spec.target)
            # Whoever has the path keeps it, and that is not known here.
            yield _Fact(field, spec.target, refused[spec.name], Reason.PATH_COLLISION, "warning")


def _of_variant(item: Named, spec: VariantSpec, declared: Declared) -> Iterator[_Fact]:
    if item.policy is not None:
        stages = [stage.name for stage in item.policy.spec.stages]
        if stages and spec.stage not in stages:
            yield _in_no_stage(item, spec, stages)
        if spec.unclear:
            field = f"spec.targets[{item.targets[spec.target].entry}].offlineWhen"
            place = f"{declared.where(item.policy, field)}: "
            yield _Fact(field, spec.target, spec.unclear.removeprefix(place), Reason.OFFLINE)
    for index, problem in missing_sources(spec, declared.objects):
        field = _injector_field(item, spec.target, index)
        sentence = f"{problem}; a required injection point of the package holds the variant"
        reason = Reason.REQUIRED_INJECTION_MISSING
        yield _Fact(field, spec.target, sentence, reason, "warning")


def _in_no_stage(item: Named, spec: VariantSpec, stages: Sequence[str]) -> _Fact:
    """A stage that the policy does not have fails the target; no stage at all may be meant."""
    field = _stage_field(item, spec.target)
    if not spec.stage:
        problem = "it is in no stage, so its variant is held"
        return _Fact(field, spec.target, problem, Reason.NOT_IN_STAGE, "warning")
    remedy = suggestion(spec.stage, stages, f"there are: {', '.join(stages)}")
    problem = f"the policy has no stage {spec.stage}; {remedy}"
    return _Fact(field, spec.target, problem, Reason.NOT_IN_STAGE)


def _template_of(item: Named, key: str) -> tuple[str, Template | None]:
    """The path of the fields that a target's variant is made of, and its template if it has one."""
    if item.policy is None:
        return "spec", None
    entry = item.targets[key].entry
    return f"spec.targets[{entry}].template", item.policy.spec.targets[entry].template


def _injector_field(item: Named, key: str, index: int) -> str:
    path, template = _template_of(item, key)
    by_expression = template is not None and template.injectors[index].name_expr
    return f"{path}.injectors[{index}].{'nameExpr' if by_expression else 'name'}"


def _package_field(item: Named, key: str) -> str:
    path, template = _template_of(item, key)
    by_expression = template is not None and template.downstream.package_expr
    return f"{path}.downstream.{'packageExpr' if by_expression else 'package'}"


def _stage_field(item: Named, key: str) -> str:
    path, template = _template_of(item, key)
    by_expression = template is not None and template.stage_expr
    return f"{path}.{'stageExpr' if by_expression else 'stage'}"


def _unmatched_groups(
    item: Named, index: int, stage: Stage, declared: Declared
) -> Iterator[Finding]:
    """A warning for each group of a rollout that chooses none of the stage's variants."""
    assert item.policy is not None, "hand-written variants have no stages"
    members = [spec for spec in item.variants if spec.stage == stage.name]
    groups = stage.rollout.groups if stage.rollout and members else ()
    for number, group in enumerate(groups):
        if any(matches(group, {**item.labels[it.target], **it.labels}) for it in members):
            continue
        where = declared.where(item.policy, f"spec.stages[{index}].rollout.groups[{number}]")
        problem = (
            f"none of {counted(len(members), 'variant')} of stage {stage.name} has these labels"
        )
        yield Finding(where, problem, "compare them with the labels of the targets", "warning")


def _collisions(named: Collection[Named]) -> Mapping[str, str]:
    """What is wrong with variants whose downstream paths are equal or nested, by their names."""
    return collisions(
        ((item.places[spec.name], spec) for item in named for spec in item.variants), {}
    )
