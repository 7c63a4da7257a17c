"""Injection points: where a package asks for configuration from the cluster (porch.md §2.1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fanout.api.labels import Label
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Document, Manifest
from fanout.selection.objects import group_of
from fanout.variants.functions.function import mapping

_MARK = Label.CONFIG_INJECTION.value
_WANTED = {"required": True, "optional": False}


@dataclass(frozen=True, slots=True)
class Point:
    """One object of the package whose `data` or `spec` comes from the cluster."""

    file: str
    document: int
    line: int
    group: str
    version: str
    kind: str
    name: str
    required: bool

    @property
    def key(self) -> str:
        """What the condition is named after; unique in a package."""
        return f"{self.kind}.{self.name}"

    @property
    def field(self) -> str:
        """The field that is overwritten as a whole: a ConfigMap's data, anything else's spec."""
        return "data" if (self.group, self.kind) == ("", "ConfigMap") else "spec"


def find_points(manifests: Mapping[str, Manifest]) -> tuple[Point, ...]:
    """All points, by file and document.

    Raises InvalidInput for a mark that is neither `required` nor `optional`, and for two points
    that could not be told apart in the Kptfile's conditions.
    """
    points = [
        point
        for file, manifest in manifests.items()
        for point in _points_of(file, manifest.documents)
    ]
    known: dict[str, Point] = {}
    for point in points:
        other = known.setdefault(point.key, point)
        if other is not point:
            raise InvalidInput(
                f"there is an injection point {point.key} in {other.file} too",
                reason=Reason.INVALID_PACKAGE,
                remedy="rename one of the two objects",
                where=Where(object=f"{point.kind}/{point.name}", file=point.file, line=point.line),
            )
    return tuple(points)


def _points_of(file: str, documents: Iterable[Document]) -> Iterable[Point]:
    for document in documents:
        item = mapping(document.value)
        meta = mapping(item.get("metadata"))
        notes = mapping(meta.get("annotations"))
        if _MARK not in notes:
            continue
        path = ("metadata", "annotations", _MARK)
        kind, name = str(item.get("kind", "")), str(meta.get("name", ""))
        line = document.line_of(path)
        where = Where(f"{kind}/{name}", f"metadata.annotations[{_MARK}]", file, line)
        required = _WANTED.get(notes[_MARK]) if isinstance(notes[_MARK], str) else None
        if required is None:
            raise InvalidInput(
                f"{notes[_MARK]!r} marks no injection point",
                reason=Reason.INVALID_PACKAGE,
                remedy="write required or optional",
                where=where,
            )
        if not kind or not name or kind == KPTFILE:
            raise InvalidInput(
                "nothing can be injected here",
                reason=Reason.INVALID_PACKAGE,
                remedy="mark an object with kind and name that is no Kptfile",
                where=where,
            )
        api_version = str(item.get("apiVersion", ""))
        yield Point(
            file=file,
            document=document.index,
            line=line,
            group=group_of(api_version),
            version=api_version.rpartition("/")[2],
            kind=kind,
            name=name,
            required=required,
        )
