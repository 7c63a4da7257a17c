"""Dependencies of hand-written variants (`dependsOn`): order and readiness.

A pass evaluates dependencies before their dependents, also when it covers only the
dependents, so candidate and readiness of a dependency are available.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from fanout.api.field_errors import suggest_name
from fanout.api.gate_vocabulary import VariantState
from fanout.api.package_variant import Dependency as DeclaredDependency
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.declared.declared_objects import DeclaredObjects
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy


def find_dependents(declared: DeclaredObjects, namespace: str, name: str) -> tuple[str, ...]:
    """Return hand-written variants that may depend on this policy or variant.

    Variant names begin with the policy's name, so the result may contain one too many.
    """
    return tuple(
        variant.metadata.name
        for variant in declared.variants
        if variant.metadata.namespace == namespace
        and any(
            dependency.policy == name or (dependency.variant or "").startswith(name)
            for dependency in variant.spec.depends_on
        )
    )


_DEPENDENCY_AUTHOR = "the author of the variant (dependsOn)"


@dataclass(slots=True)
class VariantDependencies:
    """Dependencies between all declared policies and hand-written variants."""

    all_policies: Sequence[ResolvedPolicy]
    _policy_by_name: dict[tuple[str, str], ResolvedPolicy] = field(default_factory=dict)
    # by variant
    _policy_by_variant: dict[tuple[str, str], ResolvedPolicy] = field(default_factory=dict)
    # by policy and target
    _variant_by_target: dict[tuple[str, str, str], str] = field(default_factory=dict)
    # for keys in a cycle
    _cycle_by_key: dict[PolicyKey, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Few installations use `dependsOn`; the indexes over all variants are then not needed.
        if not any(map(_declared_dependencies, self.all_policies)):
            return
        for resolved_policy in self.all_policies:
            if resolved_policy.upstream_policy is not None:
                self._policy_by_name[resolved_policy.subject] = resolved_policy
            namespace = resolved_policy.namespace
            for spec in resolved_policy.variants:
                self._policy_by_variant[namespace, spec.name] = resolved_policy
                self._variant_by_target[namespace, spec.policy, spec.target] = spec.name

    def with_dependencies(self, covered: Sequence[ResolvedPolicy]) -> tuple[ResolvedPolicy, ...]:
        """Return covered policies and their dependencies in evaluation order, policies first."""
        wanted_keys = dict.fromkeys(it.key for it in covered)
        pending = list(covered)
        while pending:
            resolved_policy = pending.pop()
            declared, namespace = _declared_dependencies(resolved_policy), resolved_policy.namespace
            found = (self._find_policy(namespace, it) for it in declared)
            new_dependencies = [it for it in found if it and it.key not in wanted_keys]
            wanted_keys |= dict.fromkeys(it.key for it in new_dependencies)
            pending += new_dependencies
        if len(wanted_keys) == len(covered) and not any(map(_declared_dependencies, covered)):
            return tuple(covered)
        selected = [it for it in self.all_policies if it.key in wanted_keys]
        policies = [it for it in selected if it.upstream_policy is not None]
        policy_by_key = {it.key: it for it in selected if it.upstream_policy is None}
        # Dictionaries instead of sets: the sorter's order must not depend on hash seeds.
        dependencies_by_key = {
            key: {
                policy.key: None
                for it in _declared_dependencies(resolved_policy)
                if (policy := self._find_policy(resolved_policy.namespace, it)) is not None
                and policy.key in policy_by_key
            }
            for key, resolved_policy in policy_by_key.items()
        }
        while True:
            sorter = TopologicalSorter(dependencies_by_key)
            try:
                return (*policies, *[policy_by_key[key] for key in sorter.static_order()])
            except CycleError as error:
                # Its members are stored, and the cycle is cut at one edge. Any edge will do: all
                # members are held for the cycle anyway.
                cycle = list(error.args[1])
                names = tuple(name for _, name, _ in reversed(cycle))
                for key in cycle:
                    self._cycle_by_key.setdefault(key, names)
                del dependencies_by_key[cycle[1]][cycle[0]]

    def find_holds(
        self, resolved_policy: ResolvedPolicy, results: Mapping[PolicyKey, PolicyResult]
    ) -> tuple[Hold, ...]:
        """Return the hold of each dependency that is not ready, by the results of policies."""
        holds: list[Hold] = []
        for dependency in _declared_dependencies(resolved_policy):
            policy = self._find_policy(resolved_policy.namespace, dependency)
            name, target = dependency.variant or "", dependency.target or ""
            if dependency.policy is not None:
                key = resolved_policy.namespace, dependency.policy, target
                name = self._variant_by_target.get(key, "")
            cycle = self._cycle_by_key.get(resolved_policy.key, ())
            policy_result = results.get(policy.key) if policy is not None else None
            decision = policy_result.decision if policy_result is not None else None
            variant = decision.variants.get(name) if decision is not None else None
            author, until = _DEPENDENCY_AUTHOR, None
            if policy is None or not name:
                sentence = _describe_missing(policy, dependency)
            elif name in cycle:
                sentence = f"variants form a cycle: {' → '.join(cycle)}"
            elif decision is None or variant is None:
                sentence, author = f"waits for variant {name}, which was not evaluated", ""
            elif variant.state is VariantState.READY:
                continue
            else:
                sentence = f"waits for variant {name}, which is {variant.state}"
                if variant.candidate:
                    sentence += f" at {variant.candidate}"
                # It is not ready at its candidate for its own first hold.
                if (hold := next(iter(variant.holds), None)) is not None and hold.message:
                    sentence += f": {hold.message}"
                author, until = hold.who if hold is not None else "", decision.next
            holds.append(Hold(Reason.DEPENDENCY_PENDING, sentence, author, until=until))
        return tuple(holds)

    def _find_policy(self, namespace: str, dependency: DeclaredDependency) -> ResolvedPolicy | None:
        if dependency.policy is not None:
            return self._policy_by_name.get((namespace, dependency.policy))
        return self._policy_by_variant.get((namespace, dependency.variant or ""))


def _describe_missing(policy: ResolvedPolicy | None, dependency: DeclaredDependency) -> str:
    """Say which variant the dependency names, although there is none."""
    if dependency.policy is None:
        return f"waits for variant {dependency.variant or ''}, which does not exist"
    if policy is None:
        return f"waits for UpstreamPolicy {dependency.policy}, which does not exist"
    target = dependency.target or ""
    for failure in policy.failures:
        if failure.target == dependency.target and failure.problem:
            beginning = f"waits for target {target} of {dependency.policy}, which has no variant"
            return f"{beginning}: {failure.problem}"
    keys = sorted(spec.target for spec in policy.variants)
    remedy = suggest_name(target, keys[:1000], "correct spec.dependsOn, or add the target")
    missing = f"which UpstreamPolicy {dependency.policy} does not have"
    return f"waits for target {target}, {missing}; {remedy}"


def _declared_dependencies(resolved_policy: ResolvedPolicy) -> tuple[DeclaredDependency, ...]:
    variant = resolved_policy.package_variant
    return variant.spec.depends_on if variant is not None else ()
