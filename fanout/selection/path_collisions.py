"""Collisions of variants that name one downstream path, or a path inside another's (design §2).

Paths that differ in case or Unicode form alone are one path: in a clone on Windows or
macOS, and in branch names on a server with such a file system, they are the same.
"""

from collections.abc import Iterable, Mapping

from fanout.api.text_fields import fold_path
from fanout.package.package_limits import find_overlaps
from fanout.selection.variant_spec import VariantSpec

PackagePlace = tuple[str, str]
"""Identity of the Git repository, and path in it."""
PathOwner = tuple[str, str]
"""Namespace and name of a variant."""


def find_collisions(
    variants: Iterable[tuple[str, VariantSpec]], owner_by_path: Mapping[PackagePlace, PathOwner]
) -> dict[PathOwner, str]:
    """Find the variants that must not be written, with the reason of each.

    `variants` come with the identity of their repository (two Repository objects may be one
    Git repository). A variant that had the path keeps it. Where no variant had it, all that
    ask for it are refused, since any choice would depend on an accident.
    """
    refused: dict[PathOwner, str] = {}
    by_repository: dict[str, list[VariantSpec]] = {}
    for repository_id, variant in variants:
        by_repository.setdefault(repository_id, []).append(variant)
    for repository_id, colocated in by_repository.items():
        for first, second in find_overlaps([fold_path(variant.path) for variant in colocated]):
            pair = (colocated[first], colocated[second])
            # Both directions: each of the two is refused unless it owns its path.
            for variant, other in (pair, pair[::-1]):
                claimant = variant.namespace, variant.name
                if owner_by_path.get((repository_id, variant.path)) != claimant:
                    refused.setdefault(claimant, _describe_collision(variant, other))
    return refused


def _describe_collision(variant: VariantSpec, other: VariantSpec) -> str:
    owner = f"{other.namespace}/{other.policy or other.name}"
    relation = "overlaps"
    if variant.path == other.path:
        relation = "is"
    elif fold_path(variant.path) == fold_path(other.path):
        relation = "differs only in case or Unicode form from"
    return (
        f"path {variant.path} in repository {variant.repository} {relation} that of"
        f" variant {other.name} ({owner}, target {other.target}), {other.path};"
        " give one of them another downstream.package"
    )
