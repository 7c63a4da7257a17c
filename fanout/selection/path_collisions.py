"""Collisions of variants that name one downstream path, or a path inside another's.

Paths that differ in case or Unicode form alone are one path: in a clone on Windows or
macOS, and in branch names on a server with such a file system, they are the same.
"""

from collections.abc import Mapping, Sequence

from fanout.api.text_fields import fold_path
from fanout.package.package_limits import find_overlaps
from fanout.selection.variant_spec import VariantSpec

PackagePlace = tuple[str, str]
"""Identity of the Git repository, and path in it."""
PathOwner = tuple[str, str]
"""Namespace and name of a variant."""
PathClaim = tuple[str, VariantSpec]
"""Identity of the Git repository, and the variant that is to have its path there."""


def find_collisions(
    claims: Sequence[PathClaim], owner_by_path: Mapping[PackagePlace, PathOwner]
) -> dict[PathOwner, str]:
    """Find the variants of one repository that must not be written, with the reason of each.

    A variant that had the path keeps it. Where no variant had it, all that ask for it are
    refused, since any choice would depend on an accident. Claims on two branches collide, too:
    tags and drafts name the path alone.
    """
    refused: dict[PathOwner, str] = {}
    for first, second in find_overlaps([fold_path(variant.path) for _, variant in claims]):
        pair = (claims[first], claims[second])
        # Both directions: each of the two is refused unless it owns its path.
        for (place, variant), (_, other) in (pair, pair[::-1]):
            claimant = variant.namespace, variant.name
            if owner_by_path.get((place, variant.path)) != claimant:
                refused.setdefault(claimant, _describe_collision(variant, other))
    return refused


def find_intrusions(
    claims: Sequence[PathClaim], present_claims: Sequence[PathClaim]
) -> dict[PathOwner, str]:
    """Find the variants of one repository whose path is, contains or is in that of a present one.

    Returns the reason of each.
    """
    if not claims or not present_claims:
        return {}
    variant_by_path: dict[str, VariantSpec] = {}
    inner_variants: dict[str, VariantSpec] = {}  # one of those inside, by directory
    for _, variant in present_claims:
        path = fold_path(variant.path)
        variant_by_path.setdefault(path, variant)
        for directory in _list_parents(path):
            inner_variants.setdefault(directory, variant)
    refused: dict[PathOwner, str] = {}
    for _, variant in claims:
        path = fold_path(variant.path)
        paths = (path, *_list_parents(path))
        other = next((variant_by_path[it] for it in paths if it in variant_by_path), None)
        other = other or inner_variants.get(path)
        if other is not None:
            refused[variant.namespace, variant.name] = _describe_collision(variant, other)
    return refused


def _list_parents(path: str) -> list[str]:
    """Return the directories that a path is in, the nearest first; "" is the repository."""
    if not path:
        return []
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts) - 1, -1, -1)]


def _describe_collision(variant: VariantSpec, other: VariantSpec) -> str:
    owner = "a variant in another namespace"
    if variant.namespace == other.namespace:
        policy = f"{other.namespace}/{other.policy or other.name}"
        owner = f"variant {other.name} ({policy}, target {other.target})"
    relation = "overlaps"
    if variant.path == other.path:
        relation = "is"
    elif fold_path(variant.path) == fold_path(other.path):
        relation = "differs only in case or Unicode form from"
    return (
        f"path {variant.path} in repository {variant.repository} {relation} that of {owner},"
        f" {other.path}; give one of them another downstream.package"
    )
