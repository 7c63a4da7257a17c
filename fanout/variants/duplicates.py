"""Objects that stand in a package twice: whatever reads the package would take one of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import Path
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.merge.identity import Identity, identity_of, is_list, shown
from fanout.variants.functions.function import is_local


def duplicates(manifests: Mapping[str, Manifest]) -> Iterator[InvalidInput]:
    """A fault for each object that an earlier one is already; subpackages count by themselves.

    What is for tools alone may be called like an object: it may be what replaces it.
    """
    packages = {path[: -len(KPTFILE)] for path in manifests if _is_kptfile(path)}
    known: dict[tuple[str, bool, Identity], str] = {}
    for path, manifest in manifests.items():
        if _is_kptfile(path):
            continue
        parents = [path[: at + 1] for at, char in enumerate(path) if char == "/"]
        package = next((parent for parent in reversed(parents) if parent in packages), "")
        for identity, local, line in identities(manifest):
            place = known.setdefault((package, local, identity), f"{path}:{line}")
            if place != f"{path}:{line}":
                yield InvalidInput(
                    f"the object is at {place} too",
                    reason=Reason.INVALID_PACKAGE,
                    remedy="remove or rename one of the two",
                    where=Where(shown(identity), "", path, line),
                )


def _is_kptfile(path: str) -> bool:
    return path.rpartition("/")[2] == KPTFILE


def identities(manifest: Manifest) -> Iterator[tuple[Identity, bool, int]]:
    """Each object of a file: who it is, whether it is for tools alone, and its line."""
    for document in manifest.documents:
        value = document.value
        items: list[tuple[Any, Path]] = [(value, ())]
        if is_list(value):
            items = [(item, ("items", at)) for at, item in enumerate(value["items"])]
        for item, path in items:
            if identity := identity_of(item):
                yield identity, is_local(item) or is_local(value), document.line_of(path)
