"""Resolution of declared policies: their variants, repositories and PromotionPolicies.

This is the first step of a pass and needs no Git access.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fanout.api.field_errors import suggest_name
from fanout.api.git_repository import Repository
from fanout.api.package_variant import AdoptionPolicy, DeletionPolicy, PackageVariant, Upstream
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.reasons import Reason
from fanout.api.upstream_policy import DraftPer, UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, own_kind
from fanout.errors import Bug, ErrorLocation, FanoutError, InvalidInput
from fanout.gates.gate_rules import Variables
from fanout.pending_inputs import Responses, Result, complete
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.evidence.due_checks import machine_checks
from fanout.plan.gates.stage_rules import governing_promotions
from fanout.plan.observation.repository_state import repository_identity
from fanout.plan.records.policy_records import RecordEntry, RecordsKey
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.selection.target_selection import (
    TargetInventory,
    VariantTarget,
    build_rollout_variables,
    find_rollout_group,
    select_targets,
    to_object,
    usable_repositories,
)
from fanout.selection.template_fields import (
    ExpressionBatch,
    collect_values,
    list_repository_batches,
    list_variant_batches,
)
from fanout.selection.variant_builder import VariantBuilder, build_hand_written
from fanout.selection.variant_spec import TargetFailure, VariantSpec
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, field, replace

PolicyKey = tuple[str, str, bool]
"""Namespace and name of a policy (True) or of a hand-written variant (False)."""
_Evaluate = Callable[[Sequence[str], Sequence[Mapping[str, Any]]], list[list[Any]]]
"""Evaluation of expressions over rows, within the budget of one policy."""


class ResolvedPolicy(Value, kw_only=True):
    """Declared policy or hand-written variant, with variants and repositories resolved.

    Git is not read. All mappings are by variant name unless stated otherwise.
    """

    namespace: str
    name: str  # of the policy, or of the hand-written variant
    upstream_policy: UpstreamPolicy | None
    package_variant: PackageVariant | None
    upstream: Repository | None
    variants: tuple[VariantSpec, ...] = ()
    repositories: Mapping[str, Repository] = field(default_factory=dict)  # by variant
    # identities of these repositories, by variant
    place_by_variant: Mapping[str, str] = field(default_factory=dict)
    labels_by_target: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by target
    # of its stage's rollout, by variant
    rollout_groups: Mapping[str, int] = field(default_factory=dict)
    # for propagateWhen and checks
    expression_variables: Mapping[str, Variables] = field(default_factory=dict)
    failures: tuple[TargetFailure, ...] = ()
    error: FanoutError | None = None
    is_complete: bool = True  # False: what variants it has could not be found out
    targets: Mapping[str, VariantTarget] = field(default_factory=dict)  # by key

    @property
    def declaration(self) -> UpstreamPolicy | PackageVariant | None:
        """Return the declared object; None for a variant that is not declared any more."""
        return self.upstream_policy or self.package_variant

    @property
    def is_being_deleted(self) -> bool:
        """Return True if the declared object was deleted: it has no variants any more."""
        return self.declaration is not None and self.declaration.is_being_deleted

    @property
    def declared_upstream(self) -> Repository:
        """Return the upstream Repository. Without one the policy is stopped before it is asked."""
        assert self.upstream is not None, "a policy without its upstream is not asked"
        return self.upstream

    @property
    def upstream_spec(self) -> Upstream:
        """Return the upstream as declared. Raises Bug for a variant that is only on record."""
        if self.declaration is None:
            raise Bug(f"{self.title} is not declared")
        return self.declaration.spec.upstream

    @property
    def adopts_existing(self) -> bool:
        """Return True if the variants may adopt packages that already exist at their paths."""
        adopts = AdoptionPolicy.ADOPT_EXISTING
        return self.declaration is not None and self.declaration.spec.adoption_policy is adopts

    def shares_drafts(self, *, has_forge: bool) -> bool:
        """Return whether the released variants of a stage share one draft in a repository.

        With `Auto` they do where it has a forge, because a pull request for each is too many. A
        hand-written variant always has its own.
        """
        per = self.upstream_policy.spec.draft_per if self.upstream_policy else DraftPer.VARIANT
        return per is DraftPer.STAGE or (per is DraftPer.AUTO and has_forge)

    @property
    def orphans_packages(self) -> bool:
        """Return True if a package stays on the branch when its variant is removed."""
        orphans = DeletionPolicy.ORPHAN
        return self.declaration is not None and self.declaration.spec.deletion_policy is orphans

    @property
    def title(self) -> str:
        """Return namespace and name, for people."""
        return f"{self.namespace}/{self.name}"

    @property
    def subject(self) -> tuple[str, str]:
        """Return namespace and name, by which plans name it."""
        return self.namespace, self.name

    @property
    def distinct_repositories(self) -> tuple[Repository, ...]:
        """Return the downstream repositories: thousands of variants share a few objects."""
        return tuple({id(it): it for it in self.repositories.values()}.values())

    @property
    def key(self) -> PolicyKey:
        """Return the unique key: a name may be that of a hand-written variant after a policy's."""
        return self.namespace, self.name, self.upstream_policy is not None

    @property
    def records_key(self) -> RecordsKey:
        """Return the key of the records; hand-written variants of a namespace share one."""
        return RecordsKey(self.namespace, self.name if self.upstream_policy is not None else "")

    def select_records(self, records: Sequence[RecordEntry]) -> Sequence[RecordEntry]:
        """Return the records that are about it.

        Hand-written variants of a namespace share their records; each has those that name it.
        """
        if self.upstream_policy is not None:
            return records
        return tuple(it for it in records if self.name in it.spec.variants)

    def find_unchanged(
        self, targets: Sequence[VariantTarget], repository_by_name: Mapping[str, Repository]
    ) -> dict[str, VariantSpec | TargetFailure]:
        """Return the variants of targets whose templates would read unchanged values, by target.

        A failure may be due to lack of time or memory and is evaluated again.
        """
        spec_by_target = {spec.target: spec for spec in self.variants if not spec.offline_error}
        unchanged: dict[str, VariantSpec | TargetFailure] = {}
        for target in targets:
            spec, previous = spec_by_target.get(target.key), self.targets.get(target.key)
            # By identity: an unchanged object is the same object in each pass, and a comparison by
            # value of every target would cost as much as its expressions.
            if (
                spec is not None
                and previous is not None
                and previous.object is target.object
                and previous.entry == target.entry
                and repository_by_name.get(spec.repository) is self.repositories[spec.name]
            ):
                unchanged[target.key] = spec
        return unchanged


def resolve_policies(
    declared: DeclaredObjects,
    sandbox: Sandbox,
    previous: Sequence[ResolvedPolicy] = (),
    unchanged: Collection[PolicyKey] = (),
    budgets: BudgetStore | None = None,
) -> tuple[ResolvedPolicy, ...]:
    """Resolve all policies and hand-written variants, in order of name.

    `previous`: result for earlier declarations; unchanged targets are not evaluated again.
    `unchanged`: keys of those among them that no change concerns. `budgets`: of the policies'
    expressions; None: each is whole. A failure becomes the `error` of its policy or variant.
    """
    previous_by_key = {it.key: it for it in previous}
    usable_by_namespace = {
        namespace: usable_repositories(namespace, declared.repositories)
        for namespace in {it.metadata.namespace for it in declared.declarations}
    }

    def resolve(declaration: UpstreamPolicy | PackageVariant) -> ResolvedPolicy:
        if (key := declaration_key(declaration)) in unchanged:
            return previous_by_key[key]
        if declaration.is_being_deleted:
            # Without targets and upstream: no expression, and no repository of theirs, can hold
            # the removal of what it has downstream.
            return _unresolved(declaration)
        usable = usable_by_namespace[declaration.metadata.namespace]
        previous_result = previous_by_key.get(key)
        # Of an earlier policy of this name nothing can be reused.
        if previous_result is not None and previous_result.declaration is not declaration:
            previous_result = None
        if isinstance(declaration, PackageVariant):
            work = partial(_resolve_package_variant, declaration, declared, usable)
        else:
            budget = budgets.get_budget(declaration) if budgets else EvaluationBudget()
            evaluate = partial(sandbox.evaluate, budget=budget)
            work = partial(
                _resolve_policy, declaration, declared, usable, evaluate, previous_result
            )
        outcome = run_isolated(work)
        if isinstance(outcome, FanoutError):
            return with_error(_unresolved(declaration), outcome)
        return outcome

    return tuple(map(resolve, declared.declarations))


def declaration_key(declaration: UpstreamPolicy | PackageVariant) -> PolicyKey:
    """Return the key that the resolved policy of a declared object has."""
    meta = declaration.metadata
    return meta.namespace, meta.name, isinstance(declaration, UpstreamPolicy)


def _unresolved(declaration: UpstreamPolicy | PackageVariant) -> ResolvedPolicy:
    return ResolvedPolicy(
        namespace=declaration.metadata.namespace,
        name=declaration.metadata.name,
        upstream_policy=declaration if isinstance(declaration, UpstreamPolicy) else None,
        package_variant=declaration if isinstance(declaration, PackageVariant) else None,
        upstream=None,
    )


def with_error(resolved_policy: ResolvedPolicy, error: FanoutError) -> ResolvedPolicy:
    """Return the policy without variants, stopped by an error before resolution."""
    declaration = resolved_policy.declaration
    assert declaration is not None, "only declared policies are resolved"
    return replace(_unresolved(declaration), error=error, is_complete=False)


def _resolve_policy(
    policy: UpstreamPolicy,
    declared: DeclaredObjects,
    repository_by_name: Mapping[str, Repository],
    evaluate: _Evaluate,
    previous: ResolvedPolicy | None,
) -> ResolvedPolicy:
    name, namespace = policy.spec.upstream.repository, policy.metadata.namespace
    upstream, error = repository_by_name.get(name), None
    if upstream is None:
        where = declared.where(policy, "spec.upstream.repository")
        error = _build_repository_error(name, namespace, repository_by_name, declared, where)
    previous_targets = previous.targets if previous is not None else {}
    inventory = TargetInventory(repository_by_name, declared.objects, previous_targets)
    targets, failures = select_targets(policy, inventory)
    # With thousands of targets a pass is mostly their expressions, and few targets change.
    unchanged = previous.find_unchanged(targets, repository_by_name) if previous else {}
    changed_targets = [target for target in targets if target.key not in unchanged]
    # Two rounds of expressions: all other fields may read the repository, so the repository's
    # own expression is evaluated first and cannot see it.
    repository_by_target, failures_without_repository = _with_values(
        evaluate,
        partial(_resolve_repositories, policy, changed_targets, repository_by_name, declared),
    )
    targets_with_repository = [it for it in changed_targets if it.key in repository_by_target]
    spec_by_target = _with_values(
        evaluate, partial(_build_variants, policy, targets_with_repository, repository_by_target)
    )
    target_by_key = {target.key: target for target in targets}
    spec_by_target |= unchanged
    variants: list[VariantSpec] = []
    for target in targets:
        spec = spec_by_target.get(target.key)
        if isinstance(spec, VariantSpec):
            if spec.offline_error:
                where = declared.where(policy, f"spec.targets[{target.entry}].offlineWhen")
                spec = replace(spec, offline_error=f"{where}: {spec.offline_error}")
            variants.append(spec)
    failed_targets = [it for it in spec_by_target.values() if isinstance(it, TargetFailure)]
    labels = _TargetLabels(target_by_key, repository_by_name)
    places = {
        name: repository_place(repository_by_name[name])
        for name in {spec.repository for spec in variants}
    }
    stages = policy.spec.stages
    grouped = {it.name: it for it in stages if it.rollout and it.rollout.groups}
    with_expressions = {
        it.name
        for it in stages
        if it.propagate_when or machine_checks((*it.verification, *it.requires))
    }
    return replace(
        _unresolved(policy),
        upstream=upstream,
        variants=tuple(variants),
        repositories={spec.name: repository_by_name[spec.repository] for spec in variants},
        place_by_variant={spec.name: places[spec.repository] for spec in variants},
        labels_by_target=labels,
        rollout_groups={
            spec.name: find_rollout_group(grouped[spec.stage], spec, labels[spec.target])
            for spec in variants
            if spec.stage in grouped
        },
        expression_variables={
            spec.name: build_rollout_variables(policy, spec, target_by_key[spec.target])
            for spec in variants
            if spec.stage in with_expressions
        },
        # With the location of the field at the start of the sentence.
        failures=tuple(
            replace(it, problem=f"{declared.where(policy, it.field)}: {it.problem}")
            for it in (*failures, *failures_without_repository, *failed_targets)
        ),
        error=error,
        targets=target_by_key,
    )


def _build_variants(
    policy: UpstreamPolicy,
    targets: Sequence[VariantTarget],
    repository_by_target: Mapping[str, Repository],
    responses: Responses,
) -> dict[str, VariantSpec | TargetFailure]:
    """Build the variant, or the failure, of each target with a repository, by key."""
    repository_by_name = {it.metadata.name: it for it in repository_by_target.values()}
    # One object per repository, shared by its targets: thousands may go to one repository.
    objects = {name: to_object(repository) for name, repository in repository_by_name.items()}
    object_by_target = {
        key: objects[repository.metadata.name] for key, repository in repository_by_target.items()
    }
    assembly = VariantBuilder(
        policy, collect_values(list_variant_batches(policy, targets, object_by_target), responses)
    )
    spec_by_target: dict[str, VariantSpec | TargetFailure] = {}
    for target in targets:
        repository = repository_by_target[target.key]
        spec = run_isolated(partial(assembly.build_variant, target, repository))
        if isinstance(spec, FanoutError):
            spec = _build_failure(target, spec)
        spec_by_target[target.key] = spec
    return spec_by_target


@dataclass(slots=True, eq=False)
class _TargetLabels(Mapping[str, Mapping[str, str]]):
    """Labels of target objects by key, read on demand: few callers need them, for few targets.

    A target by name has its Repository's labels.
    """

    _targets: Mapping[str, VariantTarget]
    _usable_repositories: Mapping[str, Repository]

    def __getitem__(self, key: str) -> Mapping[str, str]:
        target = self._targets[key]
        if "metadata" not in target.object:
            repository = self._usable_repositories.get(target.repository)
            return repository.metadata.labels if repository else {}
        labels = target.object["metadata"].get("labels")
        texts = labels.items() if isinstance(labels, Mapping) else ()
        return {str(key): value for key, value in texts if isinstance(value, str)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)


def _resolve_repositories(
    policy: UpstreamPolicy,
    targets: Sequence[VariantTarget],
    repository_by_name: Mapping[str, Repository],
    declared: DeclaredObjects,
    responses: Responses,
) -> tuple[dict[str, Repository], list[TargetFailure]]:
    """Return the downstream repository of each target by key, and the failures."""
    assembly = VariantBuilder(
        policy, collect_values(list_repository_batches(policy, targets), responses)
    )
    repository_by_target: dict[str, Repository] = {}
    failures: list[TargetFailure] = []
    for target in targets:
        name = run_isolated(partial(assembly.find_repository, target))
        if isinstance(name, FanoutError):
            failures.append(_build_failure(target, name))
        elif isinstance(name, TargetFailure):
            failures.append(name)
        elif name not in repository_by_name:
            refusal = _build_repository_error(
                name, policy.metadata.namespace, repository_by_name, declared
            )
            downstream = policy.spec.targets[target.entry].template.downstream
            field_name = "repositoryExpr" if downstream.repository_expr else "repository"
            failures.append(
                TargetFailure(
                    target.key,
                    refusal.reason,
                    str(refusal),
                    f"spec.targets[{target.entry}].template.downstream.{field_name}",
                    is_consequence=refusal.reason == Reason.INVALID_OBJECT,
                )
            )
        else:
            repository_by_target[target.key] = repository_by_name[name]
    return repository_by_target, failures


def _build_failure(target: VariantTarget, error: FanoutError) -> TargetFailure:
    return TargetFailure(target.key, error.reason, str(error), f"spec.targets[{target.entry}]")


def _with_values(evaluate: _Evaluate, resolve: Callable[[Responses], Result]) -> Result:
    """Return the result of `resolve`, given the values of the expressions that it requests."""
    responses: dict[ExpressionBatch, list[list[Any]]] = {}

    def obtain(batches: Sequence[ExpressionBatch]) -> None:
        for batch in batches:
            responses[batch] = evaluate(batch.expressions, batch.rows)

    [result] = complete([partial(resolve, responses)], obtain)
    return result


def _build_repository_error(
    name: str,
    namespace: str,
    repository_by_name: Mapping[str, Repository],
    declared: DeclaredObjects,
    where: ErrorLocation | None = None,
) -> InvalidInput:
    """Build the error for a name that is not among the usable Repositories."""
    where = where or ErrorLocation()
    problem, kind = "", own_kind(Repository)
    # Of other namespaces only those that may allow this one: others are not known to exist.
    if any(
        it.kind == kind and it.concerns(kind, namespace) and it.source.endswith(f"/{name}")
        for it in declared.unusable
    ):
        problem = f"Repository {name} has errors and cannot be used"
        remedy = "run `fanout validate`, and correct its errors"
    elif unread := [it.source for it in declared.unread if it.concerns(kind, namespace)]:
        problem = f"Repository {name} may be declared in {unread[0]}, which cannot be read"
        remedy = "correct the file, or have an administrator grant the right to read it"
    if problem:
        return InvalidInput(problem, reason=Reason.INVALID_OBJECT, remedy=remedy, where=where)
    return InvalidInput(
        f"there is no Repository {name} that namespace {namespace} may use",
        reason=Reason.UNKNOWN_REPOSITORY,
        remedy=suggest_name(
            name,
            sorted(repository_by_name),
            "create it, or add the namespace to its spec.allowedNamespaces",
        ),
        where=where,
    )


def _resolve_package_variant(
    variant: PackageVariant, declared: DeclaredObjects, repository_by_name: Mapping[str, Repository]
) -> ResolvedPolicy:
    namespace = variant.metadata.namespace
    upstream = repository_by_name.get(variant.spec.upstream.repository)
    downstream = repository_by_name.get(variant.spec.downstream.repository)
    resolved_policy = replace(_unresolved(variant), upstream=upstream)
    for repository, side in ((upstream, "upstream"), (downstream, "downstream")):
        if repository is None:
            name = getattr(variant.spec, side).repository
            where = declared.where(variant, f"spec.{side}.repository")
            resolved_policy = replace(
                resolved_policy,
                error=_build_repository_error(name, namespace, repository_by_name, declared, where),
            )
    if downstream is None:
        return resolved_policy
    spec = build_hand_written(variant, downstream)
    return replace(
        resolved_policy,
        variants=(spec,),
        repositories={spec.name: downstream},
        place_by_variant={spec.name: repository_place(downstream)},
        labels_by_target={spec.target: {**variant.metadata.labels, **variant.spec.labels}},
    )


def full_branch_name(repository: Repository) -> str:
    """Return the full name of the branch that packages are published to."""
    return f"refs/heads/{repository.spec.branch}"


def repository_place(repository: Repository) -> str:
    """Return the name of a repository in the status: canonical URL and branch."""
    return repository_identity(repository.spec.url, full_branch_name(repository))


def repository_key(repository: Repository) -> str:
    """Return the identity of a Repository object across namespaces."""
    return f"{repository.metadata.namespace}/{repository.metadata.name}"


def find_promotions(
    resolved_policy: ResolvedPolicy, promotions: Sequence[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """Return the PromotionPolicies that name the policy, or the hand-written variant."""
    if resolved_policy.upstream_policy is not None:
        return governing_promotions(resolved_policy.upstream_policy, promotions)
    return tuple(
        promotion
        for promotion in promotions
        if promotion.metadata.namespace == resolved_policy.namespace
        and resolved_policy.name in promotion.spec.variants
    )


def are_all_promotions_read(declared: DeclaredObjects, namespace: str) -> bool:
    """Return True if every PromotionPolicy of the namespace could be read."""
    return not any(declared.find_unusable_own(PromotionPolicy, namespace))
