"""What is to be replaced by what, as `ApplyReplacements` objects say it (kustomize's syntax)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fanout.errors import InvalidInput
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions import fieldpath, labelselector
from fanout.variants.functions.fieldpath import ANY, Part
from fanout.variants.functions.function import Object, mapping
from fanout.variants.functions.labelselector import Term

_KINDS = (("fn.kpt.dev/", "ApplyReplacements"), ("kpt.dev/", "Replacements"))
_IDENTITY = ("group", "version", "kind", "name", "namespace")
_SELECTORS = ("labelSelector", "annotationSelector")
_NAME = "metadata.name"
T = TypeVar("T")


@frozen
class Selector:
    """Objects by what is given of their identity, labels and annotations."""

    identity: tuple[str, str, str, str, str]
    labels: tuple[Term, ...] = ()
    annotations: tuple[Term, ...] = ()

    def fits(self, item: Object) -> bool:
        """Does it select the object?"""
        meta = mapping(item.get("metadata"))
        api_version = str(item.get("apiVersion", ""))
        found = (
            group_of(api_version),
            api_version.rpartition("/")[2],
            item.get("kind"),
            meta.get("name"),
            meta.get("namespace") or "default",
        )
        return (
            all(not want or want == have for want, have in zip(self.identity, found, strict=True))
            and all(term.holds(mapping(meta.get("labels"))) for term in self.labels)
            and all(term.holds(mapping(meta.get("annotations"))) for term in self.annotations)
        )

    def __str__(self) -> str:
        """What is given of it."""
        given = zip(_IDENTITY, self.identity, strict=True)
        parts = [f"{key} {value}" for key, value in given if value]
        parts += ["its labels"] if self.labels else []
        parts += ["its annotations"] if self.annotations else []
        return ", ".join(parts) or "anything"


@frozen
class Options:
    """Which part of a text is meant, and whether a field is made that is not there."""

    delimiter: str = ""
    index: int = 0
    create: bool = False


@frozen
class Target:
    """Fields of the objects that are selected and not rejected."""

    at: str  # its field in the configuration
    select: Selector
    reject: tuple[Selector, ...]
    paths: tuple[tuple[Part, ...], ...]
    texts: tuple[str, ...]  # the paths as they are written
    options: Options

    def fits(self, item: Object) -> bool:
        """Is the object a target?"""
        return self.select.fits(item) and not any(one.fits(item) for one in self.reject)


@frozen
class Replacement:
    """One value, and where it goes."""

    source: Selector | None  # None: it is `value`
    path: tuple[Part, ...]
    text: str  # the path as it is written
    options: Options
    value: str
    targets: tuple[Target, ...]


def read(config: Object) -> tuple[Replacement, ...]:
    """The replacements in their order. Raises InvalidInput, which names the field."""
    api_version, kind = str(config.get("apiVersion", "")), config.get("kind")
    if not any(api_version.startswith(group) and kind == known for group, known in _KINDS):
        raise InvalidInput(
            f"the configuration is of kind {kind} ({api_version})",
            remedy="name a fn.kpt.dev/v1alpha1 ApplyReplacements by configPath",
        )
    return _each(config.get("replacements"), "replacements", _replacement)


def _replacement(row: Mapping[str, Any], at: str) -> Replacement:
    _known(row, at, ("source", "sourceValue", "targets"))
    if ("source" in row) is ("sourceValue" in row):
        raise InvalidInput(f"{at}.source: there must be one source", remedy="give one")
    targets = _each(row.get("targets"), f"{at}.targets", _target)
    if "sourceValue" in row:
        value = _typed(row, at, "sourceValue", str, "")
        return Replacement(None, (), "", Options(), value, targets)
    source = _map(row["source"], f"{at}.source")
    _known(source, f"{at}.source", (*_IDENTITY, "fieldPath", "options"))
    path = _typed(source, f"{at}.source", "fieldPath", str, "") or _NAME
    return Replacement(
        _selector(source, f"{at}.source"),
        _path(path, f"{at}.source.fieldPath"),
        path,
        _options(source, f"{at}.source"),
        "",
        targets,
    )


def _target(row: Mapping[str, Any], at: str) -> Target:
    _known(row, at, ("select", "reject", "fieldPaths", "options"))
    select = _map(row.get("select"), f"{at}.select")
    _known(select, f"{at}.select", (*_IDENTITY, *_SELECTORS))
    reject = _each(row["reject"], f"{at}.reject", _rejected) if row.get("reject") else ()
    paths = row.get("fieldPaths") or [_NAME]
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise InvalidInput(f"{at}.fieldPaths is no list of texts", remedy="list field paths")
    parts = tuple(_path(path, f"{at}.fieldPaths[{n}]") for n, path in enumerate(paths))
    options = _options(row, at)
    if options.create and any(ANY in path for path in parts):
        raise InvalidInput(f"{at}.options.create does not go with *", remedy="drop one of the two")
    selector = _selector(select, f"{at}.select")
    return Target(at, selector, reject, parts, tuple(paths), options)


def _rejected(row: Mapping[str, Any], at: str) -> Selector:
    _known(row, at, (*_IDENTITY, *_SELECTORS))
    if not row:
        raise InvalidInput(f"{at} rejects everything", remedy="say what is rejected")
    return _selector(row, at)


def _selector(row: Mapping[str, Any], at: str) -> Selector:
    group, version, kind, name, namespace = (_typed(row, at, key, str, "") for key in _IDENTITY)
    labels, annotations = (_typed(row, at, key, str, "") for key in _SELECTORS)
    try:
        return Selector(
            (group, version, kind, name, namespace),
            labelselector.parse(labels),
            labelselector.parse(annotations),
        )
    except InvalidInput as problem:
        raise InvalidInput(f"{at}: {problem.problem}", remedy=problem.remedy) from None


def _options(row: Mapping[str, Any], at: str) -> Options:
    at = f"{at}.options"
    options = _map(row.get("options") or {}, at)
    _known(options, at, ("delimiter", "index", "create"))
    return Options(
        _typed(options, at, "delimiter", str, ""),
        _typed(options, at, "index", int, 0),
        _typed(options, at, "create", bool, False),
    )


def _path(text: str, at: str) -> tuple[Part, ...]:
    try:
        return fieldpath.parse(text)
    except InvalidInput as problem:
        raise InvalidInput(f"{at}: {problem.problem}", remedy=problem.remedy) from None


def _each(rows: object, at: str, read_one: Callable[[Mapping[str, Any], str], T]) -> tuple[T, ...]:
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{at} is no list with entries", remedy="give at least one")
    return tuple(read_one(_map(row, f"{at}[{n}]"), f"{at}[{n}]") for n, row in enumerate(rows))


def _map(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{at} is no map", remedy="see kustomize's replacements")
    return value


def _known(row: Mapping[str, Any], at: str, known: tuple[str, ...]) -> None:
    for key in row:
        if key not in known:
            raise InvalidInput(f"{at}.{key} is not understood", remedy=f"use {', '.join(known)}")


def _typed(row: Mapping[str, Any], at: str, key: str, kind: type[T], default: T) -> T:
    value = row.get(key)
    if value is None:
        return default
    if type(value) is not kind:
        word = {str: "text", int: "whole number", bool: "true or false"}.get(kind, kind.__name__)
        raise InvalidInput(f"{at}.{key} is no {word}", remedy="correct the value")
    return value
