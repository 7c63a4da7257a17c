"""What only several objects together can get wrong: names that nobody has, names that two have."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from fanout.api.configuration import FanoutConfiguration
from fanout.api.faults import Fault, Path
from fanout.api.meta import KRMObject
from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy, matches
from fanout.api.repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy

Kind = TypeVar("Kind", bound=KRMObject)
Finding = tuple[KRMObject, Fault]


def cross_check(objects: Sequence[KRMObject]) -> list[Finding]:
    """Faults of objects as a set, with the object that each is about; warnings among them."""
    findings: list[Finding] = [*_twice(objects), *_misplaced(objects)]
    repositories = _of(Repository, objects)
    policies = _of(UpstreamPolicy, objects)
    promotions = _of(PromotionPolicy, objects)
    variants = _of(PackageVariant, objects)
    for policy in policies:
        findings += _references(policy, _repositories_of_policy(policy), repositories)
        findings += ((policy, fault) for fault in _missing_groups(policy, promotions))
        findings += ((policy, fault) for fault in _doubts(policy))
    for variant in variants:
        findings += _references(variant, _repositories_of_variant(variant), repositories)
    for promotion in promotions:
        findings += ((promotion, fault) for fault in _unknown_policies(promotion, policies))
        findings += ((promotion, fault) for fault in _unknown_stages(promotion, policies))
        findings += ((promotion, fault) for fault in _unknown_variants(promotion, variants))
    return findings


def visible(repository: Repository, namespace: str) -> bool:
    """May objects of this namespace use the repository?"""
    own = repository.metadata.namespace == namespace
    return own or namespace in repository.spec.allowed_namespaces


def governs(promotion: PromotionPolicy, policy: UpstreamPolicy) -> bool:
    """Does the PromotionPolicy name the policy? Only those of its own namespace can."""
    return promotion.metadata.namespace == policy.metadata.namespace and any(
        matches(pattern, policy.metadata.name) for pattern in promotion.spec.policies
    )


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


def _repositories_of_variant(variant: PackageVariant) -> Iterator[tuple[Path, str]]:
    yield ("spec", "upstream", "repository"), variant.spec.upstream.repository
    yield ("spec", "downstream", "repository"), variant.spec.downstream.repository


def _references(
    item: KRMObject, named: Iterable[tuple[Path, str]], repositories: Sequence[Repository]
) -> Iterator[Finding]:
    namespace = item.metadata.namespace
    usable = {one.metadata.name for one in repositories if visible(one, namespace)}
    elsewhere = {one.metadata.name: one.metadata.namespace for one in repositories}
    for path, name in named:
        if name in usable:
            continue
        if name in elsewhere:
            problem = f"the Repository {name} of namespace {elsewhere[name]} is not for {namespace}"
            remedy = f"add {namespace} to its spec.allowedNamespaces"
        else:
            problem = f"there is no Repository {name} that namespace {namespace} may use"
            remedy = suggestion(name, sorted(usable), "declare it, or correct the name")
        yield item, Fault(path, problem, remedy)


def _missing_groups(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> Iterator[Fault]:
    groups = sorted(
        approvers.group
        for promotion in promotions
        if governs(promotion, policy)
        for approvers in promotion.spec.approvers
    )
    for index, stage in enumerate(policy.spec.stages):
        for number, check in enumerate(stage.requires):
            for place, group in enumerate(check.approval.from_ if check.approval else ()):
                if group not in groups:
                    at = ("spec", "stages", index, "requires", number, "approval", "from", place)
                    problem = f"no PromotionPolicy for this policy has approvers {group}"
                    otherwise = "have an administrator add the group to spec.approvers"
                    yield Fault(at, problem, suggestion(group, groups, otherwise))


def _doubts(policy: UpstreamPolicy) -> Iterator[Fault]:
    for index, stage in enumerate(policy.spec.stages):
        if not stage.verification:
            at: Path = ("spec", "stages", index, "verification")
            problem = f"stage {stage.name} verifies nothing: a variant is ready when published"
            yield Fault(at, problem, "add a check if something can be asked", "warning")
    for index, entry in enumerate(policy.spec.targets):
        if entry.template.stage is None and entry.template.stage_expr is None:
            at = ("spec", "targets", index, "template", "stage")
            problem = "the targets of this entry are in no stage: their drafts are never published"
            yield Fault(at, problem, "add stage or stageExpr", "warning")


def _unknown_policies(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy]
) -> Iterator[Fault]:
    names = _names_beside(promotion, policies)
    for index, pattern in enumerate(promotion.spec.policies):
        if any(matches(pattern, name) for name in names):
            continue
        path: Path = ("spec", "policies", index)
        if "*" in pattern:
            problem = f"no UpstreamPolicy of this namespace fits {pattern}"
            yield Fault(path, problem, "nothing to do if one is to come", "warning")
        else:
            problem = f"there is no UpstreamPolicy {pattern} in this namespace"
            yield Fault(path, problem, suggestion(pattern, names, "declare it, or remove the name"))


def _unknown_stages(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy]
) -> Iterator[Fault]:
    mine = [policy for policy in policies if governs(promotion, policy)]
    names = sorted({stage.name for policy in mine for stage in policy.spec.stages})
    automatic = promotion.spec.auto_promotion
    for index, pattern in enumerate(automatic.stages if automatic and mine else ()):
        if any(matches(pattern, name) for name in names):
            continue
        path: Path = ("spec", "autoPromotion", "stages", index)
        problem = f"no stage of the policies it names is called {pattern}"
        if "*" in pattern:
            yield Fault(path, problem, "nothing to do if one is to come", "warning")
        else:
            yield Fault(path, problem, suggestion(pattern, names, "correct or remove the name"))


def _unknown_variants(
    promotion: PromotionPolicy, variants: Sequence[PackageVariant]
) -> Iterator[Fault]:
    names = _names_beside(promotion, variants)
    for index, name in enumerate(promotion.spec.variants):
        if name not in names:
            problem = f"there is no PackageVariant {name} in this namespace"
            remedy = suggestion(name, names, "declare it, or remove the name")
            yield Fault(("spec", "variants", index), problem, remedy)


def _names_beside(promotion: PromotionPolicy, others: Iterable[KRMObject]) -> list[str]:
    namespace = promotion.metadata.namespace
    return sorted(item.metadata.name for item in others if item.metadata.namespace == namespace)
