"""Injection points: where a package asks for configuration from the cluster (porch.md §2.1)."""

from collections.abc import Iterable

from fanout.api.configuration import InjectionRules
from fanout.api.labels import Label
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions.function import mapping
from fanout.variants.parts import Part

_MARK = Label.CONFIG_INJECTION.value
_WANTED = {"required": True, "optional": False}


@frozen
class Point:
    """One object of the package whose `data` or `spec` comes from the cluster."""

    file: str
    number: int  # of the object in the file
    line: int
    group: str
    version: str
    kind: str
    name: str
    required: bool
    key: str  # what the condition is named after; unique in a package
    field: str  # what is overwritten as a whole: a ConfigMap's data, anything else's spec


def find_points(parts: Iterable[tuple[str, int, Part]]) -> tuple[Point, ...]:
    """All points among these objects, each given with its file and number.

    Raises InvalidInput for a mark that is neither `required` nor `optional`, and for two points
    that could not be told apart in the Kptfile's conditions.
    """
    points = [point for place in parts if (point := _point(*place))]
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


def may_be_filled(point: Point, injectable: InjectionRules) -> bool:
    """An administrator's to say; Secrets never, whatever is said."""
    if (point.group, point.kind) == ("", "Secret"):
        return False
    return injectable.allows(point.group, point.kind, point.field)


def _point(file: str, number: int, part: Part) -> Point | None:
    item = mapping(part.value)
    meta = mapping(item.get("metadata"))
    notes = mapping(meta.get("annotations"))
    if _MARK not in notes:
        return None
    path = ("metadata", "annotations", _MARK)
    kind, name = str(item.get("kind", "")), str(meta.get("name", ""))
    line = part.line_of(path)
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
    group = group_of(api_version)
    return Point(
        file=file,
        number=number,
        line=line,
        group=group,
        version=api_version.rpartition("/")[2],
        kind=kind,
        name=name,
        required=required,
        key=f"{kind}.{name}",
        field="data" if (group, kind) == ("", "ConfigMap") else "spec",
    )
