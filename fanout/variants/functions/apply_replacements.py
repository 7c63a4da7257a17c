"""apply-replacements: copy values between objects (kustomize's replacements).

Replacements are made in order, each on the result of those before it, so one may copy
what another has set.

A field path is `spec.containers.[name=app].env.*.value`; a label selector is
`app=web,tier in (a, b),!canary`, as kubectl reads it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, BlockedPath, ValueEditor, get_value
from fanout.package.yaml_scalars import format_scalar
from fanout.selection.cluster_objects import group_of
from fanout.values import Value, replace
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    FunctionResult,
    Object,
    ObjectText,
    PackageFacts,
    Path,
    SizeLimiter,
    UnfitObject,
    VisibleObject,
    errors_at,
    mapping,
)

ANY_ELEMENT = "*"


class ElementMatch(Value):
    """The element of a list in which a key has a value."""

    key: str
    value: str

    def matches(self, element: object) -> bool:
        """Return whether this is the element; with an empty key it must itself have the value."""
        present = get_value(element, (self.key,)) if self.key else element
        text = str(present).lower() if isinstance(present, bool) else str(present)
        return present is not MISSING and text == self.value


PathPart = str | ElementMatch


def parse_field_path(text: str) -> tuple[PathPart, ...]:
    """Parse a path separated by dots, except dots in brackets or after a backslash.

    Raises InvalidInput.
    """
    parts: list[PathPart] = []
    part, bracket, escaped = "", False, False
    for char in f"{text}.":
        if escaped:
            part += char if char in ".\\" else f"\\{char}"
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "." and not bracket:
            key, equals, value = part, "", ""
            if part.startswith("[") and part.endswith("]"):
                key, equals, value = part[1:-1].partition("=")
            if not key and not equals:
                raise InvalidInput(f"the field path {text} has an empty part", remedy="remove it")
            parts.append(ElementMatch(key, value) if equals else key)
            part = ""
        else:
            bracket = char == "[" if not bracket else char != "]"
            part += char
    if bracket or escaped:
        raise InvalidInput(f"the field path {text} has an open bracket", remedy="close the bracket")
    return tuple(parts)


def find_paths(
    value: object, parts: tuple[PathPart, ...], count: Callable[[int], None], path: Path = ()
) -> Iterator[Path]:
    """Yield the paths of the existing values that the field path selects.

    `count` is called with the number of values that each part is compared with.
    """
    if not parts:
        yield path
        return
    count(len(value) if isinstance(value, list) else 1)
    for part in _matching_keys(value, parts[0]):
        yield from find_paths(get_value(value, (part,)), parts[1:], count, (*path, part))


def find_deepest_path(value: object, parts: tuple[PathPart, ...]) -> Path:
    """Return the path of the deepest existing value on the field path."""
    path: Path = ()
    for part in parts:
        if not (keys := _matching_keys(value, part)):
            break
        path = (*path, keys[0])
        value = get_value(value, (keys[0],))
    return path


def _matching_keys(value: object, part: PathPart) -> list[str | int]:
    if isinstance(value, dict):
        if part == ANY_ELEMENT:
            return list(value)
        return [part] if isinstance(part, str) and part in value else []
    if not isinstance(value, list):
        return []
    if part == ANY_ELEMENT:
        return list(range(len(value)))
    if isinstance(part, ElementMatch):
        return [index for index, element in enumerate(value) if part.matches(element)]
    # No list is so long; Python refuses to convert thousands of digits.
    is_index = part.isdecimal() and len(part) < 10 and int(part) < len(value)
    return [int(part)] if is_index else []


def plan_creation(value: object, parts: tuple[PathPart, ...]) -> Iterator[tuple[Path, object]]:
    """Yield the changes that create the field, the last one with MISSING for its value.

    Changes before the last create the elements of lists on the way. Raises UnfitObject
    where the path does not name a single place.
    """
    path: Path = ()
    for depth, part in enumerate(parts):
        if part == ANY_ELEMENT:
            raise UnfitObject(path, "[*] cannot create an element", "select one element by name")
        if keys := _matching_keys(value, part):
            path = (*path, keys[0])
            value = get_value(value, (keys[0],))
            continue
        if isinstance(part, ElementMatch):
            if not part.key or not (value is MISSING or value is None or isinstance(value, list)):
                raise UnfitObject(
                    path, f"there is no list for [{part.key}={part.value}]", "create it"
                )
            path = (*path, len(value) if isinstance(value, list) else 0)
            yield path, {part.key: part.value}
            value = {part.key: part.value}
            continue
        if isinstance(value, list) or (depth and isinstance(value, str | int | float | bool)):
            raise UnfitObject(path, f"{part} does not exist", "correct the field path")
        path = (*path, part)
        value = MISSING
    yield path, MISSING


_LABEL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_LABEL_VALUE = rf"(?:{_LABEL_NAME})?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<none>{_LABEL_NAME})"
    rf"|(?P<key>{_LABEL_NAME})(?:\s*(?P<sign>==|=|!=)\s*(?P<value>{_LABEL_VALUE})"
    r"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|\Z)"
)


class LabelRequirement(Value):
    """A requirement of a label selector on the value or presence of a label."""

    key: str
    positive: bool
    values: frozenset[str] | None  # None: any

    def is_met(self, labels: Mapping[str, object]) -> bool:
        """Return whether the labels meet it; an absent label has none of the values."""
        if self.values is None:
            return (self.key in labels) is self.positive
        return (labels.get(self.key) in self.values) is self.positive


def parse_label_selector(text: str) -> tuple[LabelRequirement, ...]:
    """Parse the requirements, all of which must be met. Raises InvalidInput."""
    requirements, position = [], 0
    if not text.strip():
        return ()
    while position < len(text):
        # The values in parentheses contain commas, so the text cannot be split at them beforehand.
        if (match := _REQUIREMENT.match(text, position)) is None:
            raise InvalidInput(
                f"{text!r} is not a label selector",
                remedy="write it like app=web,tier in (a,b),!canary",
            )
        if match["absent"]:
            requirements.append(LabelRequirement(match["none"], False, None))
        elif match["word"]:
            values = frozenset(value.strip() for value in match["values"].split(","))
            requirements.append(LabelRequirement(match["key"], match["word"] == "in", values))
        else:
            value = frozenset({match["value"]}) if match["sign"] else None
            requirements.append(LabelRequirement(match["key"], match["sign"] != "!=", value))
        position = match.end()
    return tuple(requirements)


_CONFIG_KINDS = (("fn.kpt.dev/", "ApplyReplacements"), ("kpt.dev/", "Replacements"))
_IDENTITY = ("group", "version", "kind", "name", "namespace")
_SELECTOR_FIELDS = ("labelSelector", "annotationSelector")
_SELECTOR_KEYS = (*_IDENTITY, *_SELECTOR_FIELDS)
_NAME = "metadata.name"
MAX_LOOKUPS = 1_000_000  # of one function, some seconds
T = TypeVar("T")


class ReplacementSelector(Value):
    """Selection of objects by the given parts of their identity, labels and annotations."""

    identity: tuple[str, str, str, str, str]
    labels: tuple[LabelRequirement, ...] = ()
    annotations: tuple[LabelRequirement, ...] = ()

    def selects(self, item: Object) -> bool:
        """Return whether it selects the object."""
        meta = mapping(item.get("metadata"))
        api_version = str(item.get("apiVersion", ""))
        identity = (
            group_of(api_version),
            api_version.rpartition("/")[2],
            item.get("kind"),
            meta.get("name"),
            meta.get("namespace") or "default",
        )
        return (
            all(
                not expected or expected == actual
                for expected, actual in zip(self.identity, identity, strict=True)
            )
            and all(term.is_met(mapping(meta.get("labels"))) for term in self.labels)
            and all(term.is_met(mapping(meta.get("annotations"))) for term in self.annotations)
        )

    def __str__(self) -> str:
        """Return the given conditions, for messages."""
        given = zip(_IDENTITY, self.identity, strict=True)
        parts = [f"{key} {value}" for key, value in given if value]
        parts += ["its labels"] if self.labels else []
        parts += ["its annotations"] if self.annotations else []
        return ", ".join(parts) or "anything"


class ReplacementOptions(Value):
    """Part of a text that is meant, and whether a missing field is created."""

    delimiter: str = ""
    index: int = 0
    create: bool = False


class ReplacementTarget(Value):
    """Fields of the objects that are selected and not rejected."""

    config_field: str  # its field in the configuration
    select: ReplacementSelector
    reject: tuple[ReplacementSelector, ...]
    paths: tuple[tuple[PathPart, ...], ...]
    path_texts: tuple[str, ...]  # the paths as written
    options: ReplacementOptions


class Replacement(Value):
    """One value and its targets."""

    source: ReplacementSelector | None  # None: `value` is used
    path: tuple[PathPart, ...]
    path_text: str  # the path as written
    options: ReplacementOptions
    value: str
    targets: tuple[ReplacementTarget, ...]


def parse_replacements(config: Object) -> tuple[Replacement, ...]:
    """Parse an ApplyReplacements object. Raises InvalidInput naming the field."""
    api_version, kind = str(config.get("apiVersion", "")), config.get("kind")
    if not any(
        api_version.startswith(group) and kind == known_keys for group, known_keys in _CONFIG_KINDS
    ):
        raise InvalidInput(
            f"the configuration is of kind {kind} ({api_version})",
            remedy="name a fn.kpt.dev/v1alpha1 ApplyReplacements by configPath",
        )
    keys = ("source", "sourceValue", "targets")
    rows = _read_rows(config.get("replacements"), "replacements", keys)
    return tuple(_parse_replacement(*it) for it in rows)


def _parse_replacement(row: Mapping[str, Any], config_field: str) -> Replacement:
    if ("source" in row) is ("sourceValue" in row):
        raise InvalidInput(
            f"{config_field}: one source is required", remedy="set either source or sourceValue"
        )
    keys = ("select", "reject", "fieldPaths", "options")
    rows = _read_rows(row.get("targets"), f"{config_field}.targets", keys)
    targets = tuple(_parse_target(*it) for it in rows)
    if "sourceValue" in row:
        value = _get_typed(row, config_field, "sourceValue", str, "")
        return Replacement(None, (), "", ReplacementOptions(), value, targets)
    source_keys = (*_IDENTITY, "fieldPath", "options")
    source = _require_map(row["source"], f"{config_field}.source", source_keys)
    path = _get_typed(source, f"{config_field}.source", "fieldPath", str, "") or _NAME
    selector = _parse_selector(source, f"{config_field}.source")
    with errors_at(f"{config_field}.source.fieldPath"):
        parts = parse_field_path(path)
    options = _parse_options(source, f"{config_field}.source")
    return Replacement(selector, parts, path, options, "", targets)


def _parse_target(row: Mapping[str, Any], config_field: str) -> ReplacementTarget:
    select = _require_map(row.get("select"), f"{config_field}.select", _SELECTOR_KEYS)
    reject = []
    if rejected := row.get("reject"):
        for entry, place in _read_rows(rejected, f"{config_field}.reject", _SELECTOR_KEYS):
            if not entry:
                raise InvalidInput(f"{place} rejects everything", remedy="select what is rejected")
            reject.append(_parse_selector(entry, place))
    paths = row.get("fieldPaths") or [_NAME]
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise InvalidInput(
            f"{config_field}.fieldPaths is not a list of strings", remedy="list field paths"
        )
    parts: list[tuple[PathPart, ...]] = []
    for number, path in enumerate(paths):
        with errors_at(f"{config_field}.fieldPaths[{number}]"):
            parts.append(parse_field_path(path))
    options = _parse_options(row, config_field)
    if options.create and any(ANY_ELEMENT in path for path in parts):
        raise InvalidInput(
            f"{config_field}.options.create and * exclude each other", remedy="keep one of them"
        )
    selector = _parse_selector(select, f"{config_field}.select")
    return ReplacementTarget(
        config_field, selector, tuple(reject), tuple(parts), tuple(paths), options
    )


def _parse_selector(row: Mapping[str, Any], config_field: str) -> ReplacementSelector:
    group, version, kind, name, namespace = (
        _get_typed(row, config_field, key, str, "") for key in _IDENTITY
    )
    labels, annotations = (_get_typed(row, config_field, key, str, "") for key in _SELECTOR_FIELDS)
    with errors_at(config_field):
        return ReplacementSelector(
            (group, version, kind, name, namespace),
            parse_label_selector(labels),
            parse_label_selector(annotations),
        )


def _parse_options(row: Mapping[str, Any], config_field: str) -> ReplacementOptions:
    config_field = f"{config_field}.options"
    options = _require_map(row.get("options") or {}, config_field, ("delimiter", "index", "create"))
    return ReplacementOptions(
        _get_typed(options, config_field, "delimiter", str, ""),
        _get_typed(options, config_field, "index", int, 0),
        _get_typed(options, config_field, "create", bool, False),
    )


def _read_rows(
    rows: object, config_field: str, known_keys: tuple[str, ...]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the maps of a list that must have some, each with its field."""
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{config_field} is not a list with entries", remedy="add at least one")
    for number, row in enumerate(rows):
        field_of_row = f"{config_field}[{number}]"
        yield _require_map(row, field_of_row, known_keys), field_of_row


def _require_map(
    value: object, config_field: str, known_keys: tuple[str, ...]
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{config_field} is not a map", remedy="see kustomize's replacements")
    for key in value:
        if key not in known_keys:
            raise InvalidInput(
                f"unknown field {config_field}.{key}", remedy=f"use {', '.join(known_keys)}"
            )
    return value


def _get_typed(row: Mapping[str, Any], config_field: str, key: str, kind: type[T], default: T) -> T:
    if (value := row.get(key)) is None:
        return default
    if type(value) is not kind:
        words: dict[type, str] = {str: "a string", int: "a whole number", bool: "true or false"}
        raise InvalidInput(f"{config_field}.{key} is not {words[kind]}", remedy="correct the value")
    return value


_Config = tuple[Replacement, ...]


@dataclass(slots=True)
class _ObjectDraft:
    """One object while the replacements are made."""

    edited: ValueEditor
    file: str
    size_limiter: SizeLimiter
    changes: list[Change] = field(default_factory=list)
    unfit: UnfitObject | None = None

    @property
    def value(self) -> Object:
        value: Object = self.edited.value
        return value

    def set(self, path: Path, value: object) -> None:
        self.size_limiter.count_change(self.file, path, self.edited.peek(path), value)
        try:
            self.edited.set(path, value)
        except BlockedPath as blocked:
            raise UnfitObject(
                path[: blocked.depth], blocked.message, "correct the field path"
            ) from None
        self.changes.append((path, value))


@dataclass(slots=True)
class _Survey:
    """Drafts of all objects, by the identity of their `text`, which no two objects share."""

    drafts: dict[int, _ObjectDraft]
    skips_missing: bool  # a missing field is skipped; False: refused
    unmatched_targets: list[ReplacementTarget] = field(default_factory=list)  # select no object
    # By field path of the configuration and as written: the objects without it, and with it.
    skipped: dict[tuple[str, str], Counter[bool]] = field(default_factory=dict)
    lookups: int = 0  # objects and values that selectors and paths were compared with

    def changes_of(self, text: ObjectText) -> Iterator[Change]:
        """Return the changes to the object of this text. Raises UnfitObject."""
        draft = self.drafts[id(text)]
        if draft.unfit is not None:
            raise draft.unfit
        return iter(draft.changes)

    def count(self, lookups: int) -> None:
        """Count lookups. Raises InvalidInput beyond the limit: many times many take hours."""
        self.lookups += lookups
        if self.lookups > MAX_LOOKUPS:
            raise InvalidInput(
                f"the replacements take more than {MAX_LOOKUPS:,} comparisons with objects and"
                " fields",
                reason=Reason.LIMIT_EXCEEDED,
                remedy="write fewer replacements, or split the package",
            )


def _run_replacements(
    config: _Config, items: Sequence[VisibleObject], *, skips_missing: bool = False
) -> _Survey:
    drafts = {
        id(item.text): _ObjectDraft(ValueEditor(item.value), item.file, item.size_limiter)
        for item in items
    }
    survey = _Survey(drafts, skips_missing)
    for number, replacement in enumerate(config):
        value = _find_source_value(replacement, f"replacements[{number}].source", survey)
        for target in replacement.targets:
            survey.count(len(drafts) * (1 + len(target.reject)))
            targeted = [
                draft
                for draft in drafts.values()
                if target.select.selects(draft.value)
                and not any(selector.selects(draft.value) for selector in target.reject)
            ]
            if not targeted:
                survey.unmatched_targets.append(target)
            for draft in targeted:
                try:
                    _replace_fields(draft, target, value, survey)
                except UnfitObject as unfit:
                    # Raised with the changes of this object instead of here, where the pipeline can
                    # name its file and line.
                    draft.unfit = unfit
                    return survey
    return survey


def _find_source_value(replacement: Replacement, config_field: str, survey: _Survey) -> object:
    survey.count(len(survey.drafts))
    if replacement.source is None:
        return replacement.value
    values = [draft.value for draft in survey.drafts.values()]
    sources = [value for value in values if replacement.source.selects(value)]
    if len(sources) != 1:
        problem = "nothing matches" if not sources else f"{len(sources)} objects match"
        raise InvalidInput(
            f"{config_field}: {problem} {replacement.source}",
            remedy="select one object of the package",
        )
    paths = list(find_paths(sources[0], replacement.path, survey.count))
    value = get_value(sources[0], paths[0]) if len(paths) == 1 else None
    if value in (None, "", {}, []):
        raise InvalidInput(
            f"{config_field}.fieldPath ({replacement.path_text}) has no value in"
            f" {sources[0].get('kind')}/{sources[0].get('metadata', {}).get('name')}",
            remedy="correct the path",
        )
    options = replacement.options
    if not options.delimiter:
        return value
    parts = _to_text(value, f"{config_field}.options").split(options.delimiter)
    if not 0 <= options.index < len(parts):
        raise InvalidInput(
            f"{config_field}.options.index {options.index}: the value has {len(parts)} parts",
            remedy="count from 0",
        )
    return parts[options.index]


def _to_text(value: object, config_field: str) -> str:
    if isinstance(value, dict | list):
        raise InvalidInput(f"{config_field}.delimiter needs a string", remedy="remove it")
    return value if isinstance(value, str) else "" if value is None else format_scalar(value)


def _replace_fields(
    draft: _ObjectDraft, target: ReplacementTarget, value: object, survey: _Survey
) -> None:
    """Set the value at the target's fields. Raises UnfitObject, which names the missing field."""
    for number, (parts, text) in enumerate(zip(target.paths, target.path_texts, strict=True)):
        config_field = f"{target.config_field}.fieldPaths[{number}]"
        if survey.skips_missing and not target.options.create:
            is_present = any(True for _ in find_paths(draft.value, parts, survey.count))
            survey.skipped.setdefault((config_field, text), Counter())[is_present] += 1
            if not is_present:
                continue
        try:
            paths = list(find_paths(draft.value, parts, survey.count))
            if not paths and not target.options.create:
                raise UnfitObject(
                    find_deepest_path(draft.value, parts),
                    "the object has no such field",
                    "correct the path, or set options.create",
                )
            if not paths:
                *element_changes, (path, _) = plan_creation(draft.value, parts)
                for change in element_changes:
                    draft.set(*change)
                paths = [path]
            for path in paths:
                draft.set(path, _new_value(draft, path, value, target.options))
        except UnfitObject as unfit:
            problem = f"{config_field} ({text}): {unfit.problem}"
            raise UnfitObject(unfit.path, problem, unfit.remedy, unfit.reason) from None


def _new_value(
    draft: _ObjectDraft, path: Path, value: object, options: ReplacementOptions
) -> object:
    """Return the field's new value. A text stays a text, whatever value is copied there."""
    present = draft.edited.peek(path)
    if options.delimiter:
        if isinstance(present, dict | list) or isinstance(value, dict | list):
            raise UnfitObject(path, "delimiter needs a string", "remove it")
        parts = _to_text("" if present is MISSING else present, "").split(options.delimiter)
        text = _to_text(value, "")
        if options.index < 0:
            parts.insert(0, text)
        elif options.index >= len(parts):
            parts.append(text)
        else:
            parts[options.index] = text
        return draft.size_limiter.join(options.delimiter, parts, path)
    if isinstance(present, str) and not isinstance(value, dict | list | str):
        return _to_text(value, "")
    return value


def _report_package(
    _config: _Config, _items: Sequence[VisibleObject], facts: PackageFacts
) -> Iterator[FunctionResult]:
    """Report targets that select nothing, which the catalog's function ignores silently."""
    for target in facts.survey.unmatched_targets:
        rejected = ", or all of them are rejected" if target.reject else ""
        problem = f"no object is selected by {target.select}{rejected}"
        where = ErrorLocation(field=f"{target.config_field}.select")
        yield FunctionResult(problem, "warning", where=where)
    for (config_field, path), numbers in facts.survey.skipped.items():
        if not numbers[False]:
            continue
        objects = pluralize(numbers[False], "selected object")
        problem = (
            f"{objects} without {path}, which v0.1 of the function skips and newer ones refuse"
        )
        # A path that fits some kinds and not others is often meant.
        severity = "info" if numbers[True] else "warning"
        yield FunctionResult(problem, severity, where=ErrorLocation(field=config_field))


APPLY_REPLACEMENTS = CatalogFunction(
    "apply-replacements",
    "1",
    parse_replacements,
    lambda _config, item, facts: facts.survey.changes_of(item.text),
    includes_local=True,
    survey=_run_replacements,
    report_package=_report_package,
)

# Up to v0.1.1 the catalog's function was built with a kustomize that skips missing fields.
APPLY_REPLACEMENTS_V0_1 = replace(
    APPLY_REPLACEMENTS, version="1 of v0.1", survey=partial(_run_replacements, skips_missing=True)
)
