"""Patches for `git apply` that turn one package into another, with masked Secrets."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fanout.errors import InvalidInput
from fanout.package.field_edits import Edit, Path
from fanout.package.kptfile import find_package, package_directories
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_manifest
from fanout.package.tree_ids import FileContent, Files
from fanout.package.yaml_nodes import InvalidManifest

NO_NEWLINE = "\\ No newline at end of file"


PackageNames = tuple[str, str]  # names of the old and the new package


def format_masked_patch(old: Files, new: Files, names: PackageNames) -> list[str]:
    """Return the lines of `format_patch`, with the values of Secrets masked.

    A note takes the place of a patch if only the notation of values of Secrets differs.
    """
    before, after = mask_secrets((old, new), ("before", "after"))
    if not (patch := list(format_patch(before, after, names))) and old != new:
        note = f"# note: {names[0]} and {names[1]} differ in how values of Secrets are written"
        return [note]
    return patch


def format_patch(old: Files, new: Files, names: PackageNames) -> Iterator[str]:
    """Yield the lines of a patch that turns the old package into the new.

    Yields nothing if they are equal.

    `names`: names of the two packages, as first directory of each path.
    """
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        old_name, new_name = (_quote_name(f"{name}/{path}") for name in names)
        yield f"diff --git {old_name} {new_name}"
        if before is None or after is None:
            change, mode = ("deleted", before[0]) if before else ("new", after[0] if after else "")
            yield f"{change} file mode {mode}"
        elif before[0] != after[0]:
            yield f"old mode {before[0]}"
            yield f"new mode {after[0]}"
        old_lines, new_lines = (split_lines(side[1]) if side else [] for side in (before, after))
        shown = old_name if before else "/dev/null", new_name if after else "/dev/null"
        if old_lines is not None and new_lines is not None:
            # Lines keep their newline characters, so a last line without one differs, as it does
            # for Git.
            diff = difflib.unified_diff(old_lines, new_lines, *shown, lineterm="")
            for number, line in enumerate(diff):
                yield line.removesuffix("\n")
                if number > 1 and not line.startswith("@") and not line.endswith("\n"):
                    yield NO_NEWLINE
        elif before is None or after is None or before[1] != after[1]:
            yield f"Binary files {shown[0]} and {shown[1]} differ"


def _quote_name(name: str) -> str:
    """Return a name of a file as headers of patches have it.

    Git quotes a name with control characters, quotes or backslashes like a string in C.
    """
    if name.isprintable() and not _BACKSLASHED.intersection(name):
        return name
    quoted = ""
    for char in name:
        if char in _BACKSLASHED:
            quoted += f"\\{char}"
        elif char.isprintable():
            quoted += char
        else:
            quoted += "".join(f"\\{byte:03o}" for byte in char.encode())
    return f'"{quoted}"'


_BACKSLASHED = frozenset('"\\')


def split_lines(data: bytes) -> list[str] | None:
    """Split text into lines with their newline characters; return None for binary data."""
    if b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    # str.splitlines would also split at form feeds and Unicode separators, which Git does not.
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


_MASK = "***"
_KIND = "Secret"
_FIELDS = ("data", "stringData")
_ValueKey = tuple[Any, ...]  # package, namespace and name of the Secret, field and key
_SecretValue = tuple[_ValueKey, int, Path, Any]  # key, document index, path and value


def mask_secrets(sides: Sequence[Files], names: Sequence[str]) -> list[Files]:
    """Return the packages with the values of Secrets masked, as `kubectl diff` masks them.

    Every value below `data` and `stringData` becomes `***`. `names`: what is added to a value on
    each side where the sides differ in it. Values that are equal stay equal, and different ones
    stay different. A manifest that cannot be parsed and may contain a Secret is masked as a whole.
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

    def mask(number: int, path: str, content: FileContent) -> FileContent:
        """Return the file of side `number` with masked values."""
        if path not in manifests[number]:
            return content
        mode, data = content
        hidden = (mode, f"{_MASK} ({names[number]})\n".encode())
        manifest = manifests[number][path]
        if manifest is None:
            # Without a parser nobody can tell which lines are values.
            return hidden if _KIND.encode() in data else content
        edits = []
        for key, index, value_path, value in _secret_values(manifest, packages[path]):
            sides = zip(values_by_side, names, strict=True)
            present = [(side[key], name) for side, name in sides if key in side]
            equal = [name for other, name in present if other == value]
            # With a name only if the sides have different values. The first side with an equal
            # value names it, so that equal values stay equal.
            differs = 0 < len(equal) < len(present)
            edits.append(Edit(index, value_path, f"{_MASK} ({equal[0]})" if differs else _MASK))
        if not edits:
            return content
        try:
            return mode, manifest.apply_edits_to_text(edits)
        except InvalidInput:  # what cannot be edited must not be shown either
            return hidden

    return [
        {path: mask(number, path, content) for path, content in side.items()}
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
