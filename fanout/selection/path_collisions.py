"""Path collisions: two variants never share a path, nor is one inside the other.

Paths that differ in case or Unicode form alone are one path: in a clone on Windows or
macOS, and in branch names on a server with such a file system, they are the same.

(Design §2.)
"""

from collections.abc import Iterable, Mapping

from fanout.api.path_fields import fold_path
from fanout.package.package_path_rules import find_overlaps
from fanout.selection.variant_spec import VariantSpec

PackageLocation = tuple[str, str]
"""Identity of the Git repository, and path in it."""


def find_collisions(
    variants: Iterable[tuple[str, VariantSpec]], owners: Mapping[PackageLocation, str]
) -> dict[str, str]:
    """Find the variants that must not be written, with the reason by variant name.

    `variants` come with the identity of their repository (two Repository objects may be one
    Git repository). A variant that had the path keeps it: `owners` maps paths to these.
    Where no variant had it, all that ask for it are refused, since any choice would depend
    on an accident.
    """
    refused: dict[str, str] = {}
    by_repository: dict[str, list[VariantSpec]] = {}
    for repository_id, variant in variants:
        by_repository.setdefault(repository_id, []).append(variant)
    for repository_id, colocated in by_repository.items():
        for first, second in find_overlaps([fold_path(variant.path) for variant in colocated]):
            pair = (colocated[first], colocated[second])
            # Both directions: each of the two is refused unless it owns its path.
            for variant_spec, other in (pair, pair[::-1]):
                if owners.get((repository_id, variant_spec.path)) != variant_spec.name:
                    refused.setdefault(variant_spec.name, _sentence(variant_spec, other))
    return refused


def _sentence(variant_spec: VariantSpec, other: VariantSpec) -> str:
    owner = f"{other.namespace}/{other.policy or other.name}"
    relation = "overlaps"
    if variant_spec.path == other.path:
        relation = "is"
    elif fold_path(variant_spec.path) == fold_path(other.path):
        relation = "is, but for case or Unicode form,"
    return (
        f"path {variant_spec.path} in repository {variant_spec.repository} {relation} that of"
        f" variant {other.name}"
        f" ({owner}, target {other.target}), {other.path}; give one of them another"
        " downstream.package"
    )
