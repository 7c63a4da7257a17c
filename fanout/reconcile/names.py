"""The first steps of a pass: which variants there are to be, and in which repositories."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError, InvalidInput, Where
from fanout.gates.rules import Variables
from fanout.plan.asking import asks_machines
from fanout.plan.book import BookKey
from fanout.plan.repository import place_at
from fanout.ports import Sandbox
from fanout.selection.assemble import Assembly
from fanout.selection.hand_written import hand_written
from fanout.selection.model import TargetFailure, VariantSpec
from fanout.selection.questions import Answers, Question, first_round, second_round
from fanout.selection.rollout import group_of, variables_of
from fanout.selection.targets import Inventory, Target, as_object, select, usable_by
from fanout.telemetry.barrier import BARRIER, run_contained
from fanout.values import frozen, replace


@frozen
class Named:
    """One policy's variants by name (or one hand-written variant), before Git was looked at."""

    namespace: str
    name: str  # of the policy, or of the hand-written variant
    policy: UpstreamPolicy | None
    written: PackageVariant | None
    upstream: Repository | None
    variants: tuple[VariantSpec, ...] = ()
    repositories: Mapping[str, Repository] = field(default_factory=dict)  # by variant
    places: Mapping[str, str] = field(default_factory=dict)  # by variant: `place_of` these
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by target
    groups: Mapping[str, int] = field(default_factory=dict)  # of its stage's rollout, by variant
    variables: Mapping[str, Variables] = field(default_factory=dict)  # for propagateWhen and checks
    failures: tuple[TargetFailure, ...] = ()
    problem: FanoutError | None = None
    complete: bool = True  # False: what variants it has could not be found out
    targets: Mapping[str, Target] = field(default_factory=dict)  # by key


def name_variants(
    declared: Declared, sandbox: Sandbox, before: Sequence[Named] = ()
) -> tuple[Named, ...]:
    """All policies and hand-written variants, each with its variants, in order of name.

    `before` is what was answered when less or other things were declared: where a target is as it
    was, nothing is asked about it again. What fails is that policy's or variant's `problem`.
    """
    known = {(it.namespace, it.name): it for it in before if it.policy is not None}
    named = []
    for policy in declared.policies:
        meta = policy.metadata
        old = known.get((meta.namespace, meta.name))
        made = run_contained(partial(_policy, policy, declared, sandbox, old))
        failed = Named(meta.namespace, meta.name, policy, None, None)
        named.append(unnamed(failed, made) if isinstance(made, FanoutError) else made)
    for variant in declared.variants:
        made = run_contained(partial(_written, variant, declared))
        failed = Named(variant.metadata.namespace, variant.metadata.name, None, variant, None)
        named.append(unnamed(failed, made) if isinstance(made, FanoutError) else made)
    return tuple(named)


def unnamed(named: Named, problem: FanoutError) -> Named:
    """The policy or variant, stopped by a problem before anybody knew its variants."""
    return Named(
        named.namespace,
        named.name,
        named.policy,
        named.written,
        None,
        problem=problem,
        complete=False,
    )


def _policy(
    policy: UpstreamPolicy, declared: Declared, sandbox: Sandbox, before: Named | None
) -> Named:
    meta = policy.metadata
    usable = usable_by(meta.namespace, declared.repositories)
    upstream = usable.get(policy.spec.upstream.repository)
    problem = None
    if upstream is None:
        where = declared.where(policy, "spec.upstream.repository")
        problem = _unknown(policy.spec.upstream.repository, meta.namespace, usable, where)
    targets, failures = select(policy, Inventory(usable, declared.objects))
    kept = _as_before(before, policy, targets, usable)
    new = [target for target in targets if target.key not in kept]
    places, lost = _repositories(policy, new, usable, sandbox)
    made = _variants(policy, [it for it in new if it.key in places], places, sandbox)
    entries = {target.key: target for target in targets}
    made |= kept
    variants = tuple(
        _with_place(item, target.entry, policy, declared)
        for target in targets
        if isinstance(item := made.get(target.key), VariantSpec)
    )
    failed = tuple(item for item in made.values() if isinstance(item, TargetFailure))
    labels = _Labels(entries, usable)
    return Named(
        meta.namespace,
        meta.name,
        policy,
        None,
        upstream,
        variants=variants,
        repositories={item.name: usable[item.repository] for item in variants},
        places=_places(variants, usable),
        labels=labels,
        groups=_groups(policy, variants, labels),
        variables=_variables(policy, variants, entries),
        failures=tuple(_placed(it, policy, declared) for it in (*failures, *lost, *failed)),
        problem=problem,
        targets=entries,
    )


def _as_before(
    before: Named | None,
    policy: UpstreamPolicy,
    targets: Sequence[Target],
    usable: Mapping[str, Repository],
) -> dict[str, VariantSpec | TargetFailure]:
    """The variants of the targets of which nothing has changed that their templates can see.

    What failed may have failed for want of time or memory, and is asked again.
    """
    if before is None or before.policy is not policy:
        return {}
    specs = {spec.target: spec for spec in before.variants if not spec.unclear}
    kept: dict[str, VariantSpec | TargetFailure] = {}
    for target in targets:
        spec, known = specs.get(target.key), before.targets.get(target.key)
        if spec is None or known is None:
            continue
        same = known.object is target.object and known.entry == target.entry
        if same and usable.get(spec.repository) is before.repositories[spec.name]:
            kept[target.key] = spec
    return kept


def _places(variants: Sequence[VariantSpec], usable: Mapping[str, Repository]) -> dict[str, str]:
    places = {name: place_of(usable[name]) for name in {item.repository for item in variants}}
    return {item.name: places[item.repository] for item in variants}


def _variants(
    policy: UpstreamPolicy,
    targets: Sequence[Target],
    places: Mapping[str, Repository],
    sandbox: Sandbox,
) -> dict[str, VariantSpec | TargetFailure]:
    """What is made of each target whose repository is known, by key."""
    unique = {it.metadata.name: it for it in places.values()}
    objects = {name: as_object(repository) for name, repository in unique.items()}
    seen = {key: objects[repository.metadata.name] for key, repository in places.items()}
    assembly = Assembly(policy, _ask(second_round(policy, targets, seen), sandbox))
    made: dict[str, VariantSpec | TargetFailure] = {}
    for target in targets:
        try:
            with BARRIER:
                made[target.key] = assembly.variant(target, places[target.key])
        except FanoutError as error:
            made[target.key] = _failure(policy, target, error)
    return made


def _groups(
    policy: UpstreamPolicy,
    variants: Sequence[VariantSpec],
    labels: Mapping[str, Mapping[str, str]],
) -> Mapping[str, int]:
    stages = {it.name: it for it in policy.spec.stages if it.rollout and it.rollout.groups}
    return {
        spec.name: group_of(stages[spec.stage], spec, labels[spec.target])
        for spec in variants
        if spec.stage in stages
    }


def _variables(
    policy: UpstreamPolicy, variants: Sequence[VariantSpec], targets: Mapping[str, Target]
) -> Mapping[str, Variables]:
    """Of those in whose stage somebody asks."""
    asking = {it.name for it in policy.spec.stages if it.propagate_when or asks_machines(it)}
    return {
        spec.name: variables_of(policy, spec, targets[spec.target])
        for spec in variants
        if spec.stage in asking
    }


class _Labels(Mapping[str, Mapping[str, str]]):
    """Of the objects of targets, by key; a repository that was chosen by name is its Repository.

    Few ask for them, and of few targets.
    """

    __slots__ = ("_targets", "_usable")

    def __init__(self, targets: Mapping[str, Target], usable: Mapping[str, Repository]) -> None:
        self._targets = targets
        self._usable = usable

    def __getitem__(self, key: str) -> Mapping[str, str]:
        target = self._targets[key]
        if "metadata" not in target.object:
            named = self._usable.get(target.repository)
            return named.metadata.labels if named else {}
        found = target.object["metadata"].get("labels")
        texts = found.items() if isinstance(found, Mapping) else ()
        return {str(key): value for key, value in texts if isinstance(value, str)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)


def _repositories(
    policy: UpstreamPolicy,
    targets: Sequence[Target],
    usable: Mapping[str, Repository],
    sandbox: Sandbox,
) -> tuple[dict[str, Repository], list[TargetFailure]]:
    """The downstream repository of each target, by key."""
    assembly = Assembly(policy, _ask(first_round(policy, targets), sandbox))
    places: dict[str, Repository] = {}
    failures: list[TargetFailure] = []
    for target in targets:
        try:
            with BARRIER:
                name = assembly.repository(target)
        except FanoutError as error:
            name = _failure(policy, target, error)
        if isinstance(name, TargetFailure):
            failures.append(name)
        elif name not in usable:
            failures.append(_nowhere(policy, target, name, usable))
        else:
            places[target.key] = usable[name]
    return places, failures


def _failure(policy: UpstreamPolicy, target: Target, error: FanoutError) -> TargetFailure:
    """The failure of a target of which no variant can be made."""
    field_name = f"spec.targets[{target.entry}]"
    return TargetFailure(policy.metadata.name, target.key, error.reason, str(error), field_name)


def _nowhere(
    policy: UpstreamPolicy, target: Target, name: str, usable: Mapping[str, Repository]
) -> TargetFailure:
    downstream = policy.spec.targets[target.entry].template.downstream
    field_name = "repositoryExpr" if downstream.repository_expr else "repository"
    return TargetFailure(
        policy.metadata.name,
        target.key,
        "UnknownRepository",
        str(_unknown(name, policy.metadata.namespace, usable, Where())),
        f"spec.targets[{target.entry}].template.downstream.{field_name}",
    )


def _placed(failure: TargetFailure, policy: UpstreamPolicy, declared: Declared) -> TargetFailure:
    """The failure with the place of the field that is at fault in its sentence."""
    where = declared.where(policy, failure.field)
    return replace(failure, problem=f"{where}: {failure.problem}")


def _with_place(
    spec: VariantSpec, entry: int, policy: UpstreamPolicy, declared: Declared
) -> VariantSpec:
    """The variant; what nobody can say of it has the place of the field that is at fault."""
    if not spec.unclear:
        return spec
    where = declared.where(policy, f"spec.targets[{entry}].offlineWhen")
    return replace(spec, unclear=f"{where}: {spec.unclear}")


def _ask(questions: Sequence[Question], sandbox: Sandbox) -> Answers:
    answers: dict[tuple[int, str], dict[str, object]] = {}
    for question in questions:
        columns = sandbox.evaluate(question.expressions, question.rows)
        keys = [target.key for target in question.targets]
        for expression, column in zip(question.expressions, columns, strict=True):
            answers[question.entry, expression] = dict(zip(keys, column, strict=True))
    return answers


def _unknown(
    name: str, namespace: str, usable: Mapping[str, Repository], where: Where
) -> InvalidInput:
    otherwise = "create it, or add the namespace to its spec.allowedNamespaces"
    return InvalidInput(
        f"there is no Repository {name} that namespace {namespace} may use",
        reason="UnknownRepository",
        remedy=suggestion(name, sorted(usable), otherwise),
        where=where,
    )


def _written(variant: PackageVariant, declared: Declared) -> Named:
    meta = variant.metadata
    usable = usable_by(meta.namespace, declared.repositories)
    upstream = usable.get(variant.spec.upstream.repository)
    downstream = usable.get(variant.spec.downstream.repository)
    named = Named(meta.namespace, meta.name, None, variant, upstream)
    for repository, side in ((upstream, "upstream"), (downstream, "downstream")):
        if repository is None:
            name = getattr(variant.spec, side).repository
            where = declared.where(variant, f"spec.{side}.repository")
            named = replace(named, problem=_unknown(name, meta.namespace, usable, where))
    if downstream is None:
        return named
    spec = hand_written(variant, downstream)
    return replace(
        named,
        variants=(spec,),
        repositories={spec.name: downstream},
        places={spec.name: place_of(downstream)},
        labels={spec.target: {**variant.metadata.labels, **variant.spec.labels}},
    )


def book_key(named: Named) -> BookKey:
    """Whose records are a policy's; hand-written variants of a namespace share theirs."""
    return BookKey(named.namespace, named.name if named.policy is not None else "")


def branch_of(repository: Repository) -> str:
    """The full name of the branch that packages are published to."""
    return f"refs/heads/{repository.spec.branch}"


def place_of(repository: Repository) -> str:
    """What the status calls a repository: its url, in one spelling, and its branch."""
    return place_at(repository.spec.url, branch_of(repository))


def repository_key(repository: Repository) -> str:
    """The identity of a Repository object over all namespaces."""
    return f"{repository.metadata.namespace}/{repository.metadata.name}"
