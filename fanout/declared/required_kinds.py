"""Kinds of cluster objects that declared policies choose as targets, inject or check."""

from collections.abc import Iterable, Iterator

from fanout.api.object_meta import GROUP
from fanout.api.package_variant import InjectionPointFilter, PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.cluster_objects import group_of
from fanout.values import frozen


@frozen
class RequiredKind:
    """A kind whose objects are read, in the version that somebody names."""

    kind: str
    group: str | None = None  # None: any
    version: str = ""  # "": the one that the cluster prefers

    @classmethod
    def of(cls, api_version: str, kind: str) -> "RequiredKind":
        """Return the kind as an `apiVersion` and a `kind` name it."""
        return cls(kind, group_of(api_version), api_version.rpartition("/")[2])


def list_required_kinds(
    policies: Iterable[UpstreamPolicy], variants: Iterable[PackageVariant]
) -> tuple[RequiredKind, ...]:
    """Return the kinds that these policies and variants name, each once.

    Which kinds an injector without a kind is for is known only from the package.
    """
    required = [it for policy in policies for it in _list_of_policy(policy)]
    required += [it for variant in variants for it in _list_injected(variant.spec.injectors)]
    return tuple(it for it in dict.fromkeys(required) if it.group != GROUP)


def has_open_injectors(
    policies: Iterable[UpstreamPolicy], variants: Iterable[PackageVariant]
) -> bool:
    """Return whether an injector names no kind, so that it is for all of the package."""
    templates = (entry.template for policy in policies for entry in policy.spec.targets)
    injectors = [injector for template in templates for injector in template.injectors]
    by_hand = (injector for variant in variants for injector in variant.spec.injectors)
    return any(not it.kind for it in (*injectors, *by_hand))


def _list_of_policy(policy: UpstreamPolicy) -> Iterator[RequiredKind]:
    for entry in policy.spec.targets:
        if entry.object_selector is not None:
            yield RequiredKind.of(entry.object_selector.api_version, entry.object_selector.kind)
        yield from _list_injected(entry.template.injectors)
    for stage in policy.spec.stages:
        for check in (*stage.verification, *stage.requires):
            if check.object is not None:
                yield RequiredKind.of(check.object.api_version, check.object.kind)


def _list_injected(injectors: Iterable[InjectionPointFilter]) -> Iterator[RequiredKind]:
    for injector in injectors:
        if injector.kind:
            yield RequiredKind(injector.kind, injector.group, injector.version or "")
