"""Two variants never share a path, nor is one inside the other. (Design §2.)

Paths that differ in case or Unicode form alone are one path: in a clone on Windows or macOS, and in
branch names on a server with such a file system, they are the same.
"""

from collections.abc import Iterable, Mapping

from fanout.api.names import folded
from fanout.package.paths import overlaps
from fanout.selection.model import VariantSpec

Place = tuple[str, str]
"""(identity of the Git repository, path in it)"""


def collisions(
    variants: Iterable[tuple[str, VariantSpec]], holders: Mapping[Place, str]
) -> dict[str, str]:
    """Which variants must not be written, and a sentence that says why, by variant name.

    `variants` come with the identity of their repository (two Repository objects may be one Git
    repository). Whoever had the path keeps it: `holders` knows which variant that is. Where nobody
    had it, all that ask for it are refused, since any choice would depend on an accident.
    """
    refused: dict[str, str] = {}
    by_repository: dict[str, list[VariantSpec]] = {}
    for place, variant in variants:
        by_repository.setdefault(place, []).append(variant)
    for place, those in by_repository.items():
        for first, second in overlaps([folded(variant.path) for variant in those]):
            pair = (those[first], those[second])
            for one, other in (pair, pair[::-1]):
                if holders.get((place, one.path)) != one.name:
                    refused.setdefault(one.name, _sentence(one, other))
    return refused


def _sentence(one: VariantSpec, other: VariantSpec) -> str:
    whose = f"{other.namespace}/{other.policy or other.name}"
    relation = "overlaps"
    if one.path == other.path:
        relation = "is"
    elif folded(one.path) == folded(other.path):
        relation = "is, but for case or Unicode form,"
    return (
        f"path {one.path} in repository {one.repository} {relation} that of variant {other.name}"
        f" ({whose}, target {other.target}), {other.path}; give one of them another"
        " downstream.package"
    )
