"""What variants that people wrote wait for: `dependsOn` across objects.

Whether a policy has the target that is named is known only once its targets are chosen; until then
nothing is said, and the variant is held if there is none.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from fanout.api.faults import Fault, Path
from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.stage_order import cycles
from fanout.api.upstream_policy import UpstreamPolicy

_MADE = re.compile(r".+-[0-9a-f]{10}")  # the name of a variant that a policy makes (design §3)


def dependency_faults(
    variants: Sequence[PackageVariant],
    policies: Sequence[UpstreamPolicy],
    unusable_variants: frozenset[tuple[str, str]],
    unusable_policies: frozenset[tuple[str, str]],
) -> Iterator[tuple[PackageVariant, Fault]]:
    """Dependencies on what nobody declares, and variants that wait for each other.

    The last two are the namespaces and names of what is declared and cannot be read.
    """
    written = {(it.metadata.namespace, it.metadata.name): it for it in variants}
    made_by = {(it.metadata.namespace, it.metadata.name) for it in policies}
    with_policies = {namespace for namespace, _ in made_by}
    known_policies, known = made_by | unusable_policies, written.keys() | unusable_variants
    for variant in variants:
        namespace = variant.metadata.namespace
        for index, one in enumerate(variant.spec.depends_on):
            at: Path = ("spec", "dependsOn", index)
            if one.policy and (namespace, one.policy) not in known_policies:
                fault = _unknown("UpstreamPolicy", one.policy, namespace, made_by)
                yield variant, Fault((*at, "policy"), *fault)
            if one.variant and (namespace, one.variant) not in known:
                if _MADE.fullmatch(one.variant) and namespace in with_policies:
                    continue  # a policy may make it
                fault = _unknown("PackageVariant", one.variant, namespace, written)
                yield variant, Fault((*at, "variant"), *fault)
    yield from _circles(written)


def _unknown(
    kind: str, name: str, namespace: str, known: Iterable[tuple[str, str]]
) -> tuple[str, str]:
    """Problem and remedy."""
    names = sorted(other for place, other in known if place == namespace)
    problem = f"there is no {kind} {name} in this namespace"
    return problem, suggestion(name, names, "declare it, or remove the dependency")


def _circles(
    written: dict[tuple[str, str], PackageVariant],
) -> Iterator[tuple[PackageVariant, Fault]]:
    for namespace in sorted({namespace for namespace, _ in written}):
        edges: dict[str, dict[str, Path]] = {}
        for (place, name), variant in written.items():
            if place == namespace:
                edges[name] = {
                    one.variant: (name, "spec", "dependsOn", index, "variant")
                    for index, one in enumerate(variant.spec.depends_on)
                    if one.variant and (namespace, one.variant) in written
                }
        for fault in cycles(edges, "variants wait for each other", "remove one of these"):
            item = written[namespace, str(fault.path[0])]
            yield item, Fault(fault.path[1:], fault.problem, fault.remedy)
