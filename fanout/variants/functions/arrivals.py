"""An object that takes the place of another, or a new one: what changes, and where it goes."""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.package.edits import MISSING, REMOVE, same
from fanout.variants.functions.function import Change, Object, Path, mapping


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], path: Path = ()
) -> Iterator[Change]:
    """The changes that make the second of the first, each as deep as it can be: what is alike
    keeps its comments."""
    for key in before:
        if key not in after:
            yield (*path, key), REMOVE
    for key, value in after.items():
        yield from _difference(before.get(key, MISSING), value, (*path, key))


def _difference(before: Any, after: Any, path: Path) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict) and before and after:
        yield from differences(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and 0 < len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _difference(one, other, (*path, index))
    elif not same(before, after):
        yield path, after


def file_of(item: Object) -> str:
    """Where kpt puts an object that has no file: below its namespace, by kind and name."""
    meta = mapping(item.get("metadata"))
    file = f"{str(item.get('kind', '')).lower()}_{meta.get('name', '')}.yaml".replace(":", "_")
    namespace = str(meta.get("namespace") or "")
    return f"{namespace}/{file}" if namespace else file
