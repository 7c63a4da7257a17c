"""Masking of the values of Secrets in differences of packages, as `kubectl diff` masks them.

Every value below `data` and `stringData` of an object of kind Secret becomes `***`. Where
the packages differ in a value, the name of the side is added, so that the difference
remains visible and the values do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fanout.errors import InvalidInput
from fanout.package.field_edits import Edit, Path
from fanout.package.kptfile import find_package, package_directories
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_manifest
from fanout.package.merge.package_update import FileContent, Files
from fanout.package.yaml_nodes import InvalidManifest

_MASK = "***"
_KIND = "Secret"
_FIELDS = ("data", "stringData")
_ValueKey = tuple[Any, ...]  # package, namespace and name of the Secret, field and key
_SecretValue = tuple[_ValueKey, int, Path, Any]  # key, document index, path and value


def mask_secrets(sides: Sequence[Files], names: Sequence[str]) -> list[Files]:
    """Return the packages with the values of Secrets masked.

    `names`: what is added to a value on each side where the sides differ in it. Values that
    are equal stay equal, and different ones stay different. A manifest that cannot be parsed
    and may contain a Secret is masked as a whole.
    """
    # By path, the manifests that may contain Secrets; None: unreadable.
    manifests: list[dict[str, Manifest | None]] = [{} for _ in sides]
    for side, parsed in zip(sides, manifests, strict=True):
        for path, (_, data) in side.items():
            # Escapes can spell the kind in other ways, so only files without any are left out.
            if is_manifest(path) and any(hint in data for hint in _HINTS):
                try:
                    parsed[path] = Manifest.parse(data, path)
                except InvalidManifest:
                    parsed[path] = None
    directories = set().union(*map(package_directories, sides))
    packages = {path: find_package(path, directories) for it in manifests for path in it}
    values_by_side: list[dict[_ValueKey, Any]] = [
        {
            key: value
            for path, it in parsed.items()
            if it
            for key, _, _, value in _secret_values(it, packages[path])
        }
        for parsed in manifests
    ]
    return [
        {
            path: _mask_file(
                content, manifests[number][path], packages[path], values_by_side, names, number
            )
            if path in manifests[number]
            else content
            for path, content in side.items()
        }
        for number, side in enumerate(sides)
    ]


_HINTS = (_KIND.encode(), b"\\")


def _secret_values(manifest: Manifest, package: str) -> Iterator[_SecretValue]:
    """Yield the values of all Secrets in a file, items of Lists included."""
    for document in manifest.documents:
        for path, item in _find_secrets((), document.value):
            metadata = item.get("metadata")
            fields = metadata if isinstance(metadata, Mapping) else {}
            subject = (package, repr(fields.get("namespace")), repr(fields.get("name")))
            for field in _FIELDS:
                content = item.get(field)
                if isinstance(content, Mapping):
                    for key, value in content.items():
                        yield (*subject, field, key), document.index, (*path, field, key), value
                elif content is not None:
                    yield (*subject, field), document.index, (*path, field), content


def _find_secrets(path: Path, value: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield all mappings of kind Secret in a value, at any depth, with their paths."""
    if isinstance(value, Mapping):
        if value.get("kind") == _KIND:
            yield path, value
        for key, child in value.items():
            yield from _find_secrets((*path, key), child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _find_secrets((*path, index), child)


def _mask_file(
    content: FileContent,
    manifest: Manifest | None,
    package: str,
    values_by_side: Sequence[Mapping[_ValueKey, Any]],
    names: Sequence[str],
    number: int,
) -> FileContent:
    """Return the file of side `number` with masked values."""
    mode, data = content
    hidden = (mode, f"{_MASK} ({names[number]})\n".encode())
    if manifest is None:
        # Without a parser nobody can tell which lines are values.
        return hidden if _KIND.encode() in data else content
    edits = []
    for key, index, path, value in _secret_values(manifest, package):
        sides = zip(values_by_side, names, strict=True)
        present = [(side[key], name) for side, name in sides if key in side]
        equal = [name for other, name in present if other == value]
        # With a name only if the sides have different values. The first side with an equal value
        # names it, so that equal values stay equal.
        differs = 0 < len(equal) < len(present)
        edits.append(Edit(index, path, f"{_MASK} ({equal[0]})" if differs else _MASK))
    if not edits:
        return content
    try:
        return mode, manifest.apply_edits_to_text(edits)
    except InvalidInput:  # what cannot be edited must not be shown either
        return hidden
