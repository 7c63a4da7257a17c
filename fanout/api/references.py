"""What only several objects together can get wrong: names that nobody has, names that two have."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from fanout.api.approvers import approver_faults, governs
from fanout.api.commit_statuses import commit_status_faults
from fanout.api.configuration import FanoutConfiguration
from fanout.api.dependencies import dependency_faults
from fanout.api.doubts import doubts
from fanout.api.faults import Fault, Path
from fanout.api.functions import program_doubts
from fanout.api.kinds import KINDS
from fanout.api.meta import KRMObject
from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy, fits_any
from fanout.api.repository import Repository
from fanout.api.scenario import Scenario
from fanout.api.scenario_rules import scenario_faults
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.values import frozen

Kind = TypeVar("Kind", bound=KRMObject)
Finding = tuple[KRMObject, Fault]


@frozen
class Unusable:
    """What is declared too and has faults of its own, so that what it holds is not known.

    Nobody who refers to it is told that it is not there: that would be a second fault for one.
    """

    names: frozenset[tuple[str, str, str]] = frozenset()  # kind, namespace and name
    anything: bool = False  # there are files that could not be read

    def named(self, kind: str, namespace: str = "") -> frozenset[str]:
        """The names of this kind (in the namespace, if one is said); a misspelt kind is any."""
        return frozenset(
            name
            for other, place, name in self.names
            if _may_be(other, kind) and namespace in ("", place)
        )

    def keys(self, kind: str) -> frozenset[tuple[str, str]]:
        """The same with the namespace of each."""
        known = ((place, name) for other, place, name in self.names if _may_be(other, kind))
        return frozenset(known)


def _may_be(other: str, kind: str) -> bool:
    return other == kind or other not in KINDS


NOTHING = Unusable()


def cross_check(objects: Sequence[KRMObject], unusable: Unusable = NOTHING) -> list[Finding]:
    """Faults of objects as a set, with the object that each is about; warnings among them."""
    findings: list[Finding] = [*_twice(objects), *_misplaced(objects)]
    repositories = _of(Repository, objects)
    policies = _of(UpstreamPolicy, objects)
    promotions = _of(PromotionPolicy, objects)
    variants = _of(PackageVariant, objects)
    for policy in policies:
        findings += ((policy, fault) for fault in doubts(policy))
    for variant in variants:
        said = program_doubts(variant.spec.pipeline, ("spec", "pipeline"))
        findings += ((variant, fault) for fault in said)
    if unusable.anything:
        return findings
    for policy in policies:
        findings += _references(policy, _repositories_of_policy(policy), repositories, unusable)
        findings += ((policy, it) for it in _commit_statuses(policy, repositories))
        if not unusable.named("PromotionPolicy", policy.metadata.namespace):
            findings += ((policy, fault) for fault in approver_faults(policy, promotions))
    for variant in variants:
        findings += _references(variant, _repositories_of_variant(variant), repositories, unusable)
    for promotion in promotions:
        lost = unusable.named("UpstreamPolicy", promotion.metadata.namespace)
        findings += ((promotion, it) for it in _unknown_policies(promotion, policies, lost))
        findings += ((promotion, it) for it in _unknown_stages(promotion, policies, lost))
        lost = unusable.named("PackageVariant", promotion.metadata.namespace)
        findings += ((promotion, it) for it in _unknown_variants(promotion, variants, lost))
    for scenario in _of(Scenario, objects):
        lost = unusable.named("UpstreamPolicy", scenario.metadata.namespace)
        findings += ((scenario, it) for it in _scenario(scenario, policies, lost))
    findings += dependency_faults(
        variants, policies, unusable.keys("PackageVariant"), unusable.keys("UpstreamPolicy")
    )
    return findings


def visible(repository: Repository, namespace: str) -> bool:
    """May objects of this namespace use the repository?"""
    own = repository.metadata.namespace == namespace
    return own or namespace in repository.spec.allowed_namespaces


def _of(kind: type[Kind], objects: Iterable[KRMObject]) -> list[Kind]:
    return [item for item in objects if isinstance(item, kind)]


def _twice(objects: Iterable[KRMObject]) -> Iterator[Finding]:
    seen: set[tuple[str, str, str]] = set()
    for item in objects:
        key = (item.kind, item.metadata.namespace, item.metadata.name)
        if key in seen:
            problem = f"there are two of this name in the namespace {item.metadata.namespace}"
            yield item, Fault(("metadata", "name"), problem, "rename or remove one")
        if item.metadata.name:
            seen.add(key)


def _misplaced(objects: Iterable[KRMObject]) -> Iterator[Finding]:
    for item in _of(FanoutConfiguration, objects):
        problem = "a configuration among the objects is not read"
        yield item, Fault(("kind",), problem, "move it away and name it with --config")


def _repositories_of_policy(policy: UpstreamPolicy) -> Iterator[tuple[Path, str]]:
    yield ("spec", "upstream", "repository"), policy.spec.upstream.repository
    for index, entry in enumerate(policy.spec.targets):
        path = ("spec", "targets", index)
        downstream = entry.template.downstream
        if downstream.repository:
            yield (*path, "template", "downstream", "repository"), downstream.repository
        if downstream.repository or downstream.repository_expr:
            continue  # then the names of the entry are no downstream repositories
        for number, target in enumerate(entry.repositories or ()):
            yield (*path, "repositories", number, "name"), target.name


def _commit_statuses(policy: UpstreamPolicy, repositories: Sequence[Repository]) -> Iterator[Fault]:
    usable = [one for one in repositories if visible(one, policy.metadata.namespace)]
    _, *downstream = _repositories_of_policy(policy)
    return commit_status_faults(policy, {name for _, name in downstream}, usable)


def _repositories_of_variant(variant: PackageVariant) -> Iterator[tuple[Path, str]]:
    yield ("spec", "upstream", "repository"), variant.spec.upstream.repository
    yield ("spec", "downstream", "repository"), variant.spec.downstream.repository


def _references(
    item: KRMObject,
    named: Iterable[tuple[Path, str]],
    repositories: Sequence[Repository],
    unusable: Unusable,
) -> Iterator[Finding]:
    namespace = item.metadata.namespace
    usable = {one.metadata.name for one in repositories if visible(one, namespace)}
    elsewhere = {one.metadata.name: one.metadata.namespace for one in repositories}
    for path, name in named:
        if name in usable or name in unusable.named("Repository"):
            continue
        if name in elsewhere:
            problem = f"the Repository {name} of namespace {elsewhere[name]} is not for {namespace}"
            remedy = f"add {namespace} to its spec.allowedNamespaces"
        else:
            problem = f"there is no Repository {name} that namespace {namespace} may use"
            remedy = suggestion(name, sorted(usable), "declare it, or correct the name")
        yield item, Fault(path, problem, remedy)


def _unknown_policies(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy], unusable: frozenset[str]
) -> Iterator[Fault]:
    names = sorted({*_names_beside(promotion, policies), *unusable})
    known = frozenset(names)
    for index, pattern in enumerate(promotion.spec.policies):
        if fits_any(pattern, known):
            continue
        path: Path = ("spec", "policies", index)
        if "*" in pattern:
            problem = f"no UpstreamPolicy of this namespace fits {pattern}"
            yield Fault(path, problem, "nothing to do if one is to come", "warning")
        else:
            problem = f"there is no UpstreamPolicy {pattern} in this namespace"
            yield Fault(path, problem, suggestion(pattern, names, "declare it, or remove the name"))


def _unknown_stages(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy], unusable: frozenset[str]
) -> Iterator[Fault]:
    if any(fits_any(pattern, unusable) for pattern in promotion.spec.policies):
        return  # it may have them
    mine = [policy for policy in policies if governs(promotion, policy)]
    known = frozenset(stage.name for policy in mine for stage in policy.spec.stages)
    names = sorted(known)
    automatic = promotion.spec.auto_promotion
    for index, pattern in enumerate(automatic.stages if automatic and mine else ()):
        if fits_any(pattern, known):
            continue
        path: Path = ("spec", "autoPromotion", "stages", index)
        problem = f"no stage of the policies it names is called {pattern}"
        if "*" in pattern:
            yield Fault(path, problem, "nothing to do if one is to come", "warning")
        else:
            yield Fault(path, problem, suggestion(pattern, names, "correct or remove the name"))


def _scenario(
    scenario: Scenario, policies: Sequence[UpstreamPolicy], unusable: frozenset[str]
) -> Iterator[Fault]:
    name, stages = scenario.spec.policy, scenario.spec.stages
    if name:
        beside = [it for it in policies if it.metadata.namespace == scenario.metadata.namespace]
        policy = next((it for it in beside if it.metadata.name == name), None)
        if policy is None:
            problem = f"there is no UpstreamPolicy {name} in this namespace"
            remedy = suggestion(name, _names_beside(scenario, policies), "give its file with -f")
            if name not in unusable:
                yield Fault(("spec", "policy"), problem, remedy)
            return
        stages = policy.spec.stages
    yield from scenario_faults(scenario, stages)


def _unknown_variants(
    promotion: PromotionPolicy, variants: Sequence[PackageVariant], unusable: frozenset[str]
) -> Iterator[Fault]:
    names = sorted({*_names_beside(promotion, variants), *unusable})
    for index, name in enumerate(promotion.spec.variants):
        if name not in names:
            problem = f"there is no PackageVariant {name} in this namespace"
            remedy = suggestion(name, names, "declare it, or remove the name")
            yield Fault(("spec", "variants", index), problem, remedy)


def _names_beside(one: KRMObject, others: Iterable[KRMObject]) -> list[str]:
    namespace = one.metadata.namespace
    return sorted(item.metadata.name for item in others if item.metadata.namespace == namespace)
