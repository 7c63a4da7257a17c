"""Two variants never share a path, nor is one inside the other. (Design §2.)"""

from collections.abc import Iterable, Mapping

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
        for first, second in overlaps([variant.path for variant in those]):
            pair = (those[first], those[second])
            for one, other in (pair, pair[::-1]):
                if holders.get((place, one.path)) != one.name:
                    refused.setdefault(one.name, _sentence(one, other))
    return refused


def _sentence(one: VariantSpec, other: VariantSpec) -> str:
    whose = f"{other.namespace}/{other.policy or other.name}"
    relation = "is" if one.path == other.path else "overlaps"
    return (
        f"path {one.path} in repository {one.repository} {relation} that of variant {other.name}"
        f" ({whose}, target {other.target}), {other.path}; give one of them another"
        " downstream.package"
    )
