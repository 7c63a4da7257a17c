"""Files that are merged or kept, and probably mean something else than their authors think."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fanout.package.jsontext import is_json
from fanout.package.merge.documents import File, Reader, is_manifest
from fanout.package.merge.identity import identity_of, is_list
from fanout.package.scalars import TRUTHS

Files = Mapping[str, tuple[str, bytes]]  # mode and content by path
_NO_TEXT: Final = "|".join((*sorted(TRUTHS), r"[-+.0-9][^\n]*"))
_SUSPECT: Final = re.compile(rf"\bname(?:space)?:[ \t]+(?:{_NO_TEXT})[ \t]*[\n#,}}]".encode())
_NO_KRM: Final = "it is kept as it is"


def doubtful_files(sides: tuple[Files, Files, Files], reader: Reader) -> Iterator[str]:
    """Yield a note for each local file that is no KRM, and each object whose name is no text.

    `sides` are origin, upstream and local. Files that are as they were in the origin are not read:
    whoever wrote them was told then.
    """
    origin, upstream, local = sides
    for path in sorted({*upstream, *local}):
        if not is_manifest(path) or is_json(path):
            continue
        known = origin.get(path)
        if known is None and path not in upstream:
            yield from _not_krm(path, reader.parse(path, local[path][1]))
        changed = [files[path] for files in (upstream, local) if files.get(path, known) != known]
        # Most files are not read by a merge that takes them from one side as they are.
        suspects = [data for _, data in changed if _SUSPECT.search(data)]
        files = [reader.parse(path, data) for data in suspects]
        yield from dict.fromkeys(note for file in files if file for note in _named_oddly(file))


def _not_krm(path: str, file: File | None) -> Iterator[str]:
    if file is None:
        yield f"{path}: no readable YAML; {_NO_KRM}"
    elif not any(_is_krm(document.value.data) for document in file.documents):
        yield f"{path}: no KRM object is in it; {_NO_KRM}"


def _is_krm(data: Any) -> bool:
    return is_list(data) or identity_of(data) is not None or _odd_name(data) is not None


def _named_oddly(file: File) -> Iterator[str]:
    for document in file.documents:
        odd = _odd_name(document.value.data)
        if odd is None:
            continue
        field, value = odd
        kind = document.value.data["kind"]
        meaning = f"a boolean ({str(value).lower()})" if isinstance(value, bool) else "a number"
        yield (
            f"{file.path}:{document.line + 1}: metadata.{field} of this {kind} is {meaning} to"
            " Kubernetes, and names no object; put it in quotes"
        )


def _odd_name(data: Any) -> tuple[str, Any] | None:
    """The field that names the object, and its value, where YAML takes that for something else."""
    if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
        return None
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping) or "apiVersion" not in data:
        return None
    for field in ("name", "namespace"):
        value = metadata.get(field)
        if isinstance(value, bool | int | float):
            return field, value
    return None
