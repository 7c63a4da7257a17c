"""Kptfiles: the fields fanout writes, as edits, and validation by kpt's rules.

Fields are set one by one, so comments and unmanaged fields between them stay. Unknown
fields are refused, as kpt does, so that a misspelt field is not ignored in silence
(docs/reference/kpt-differences.md).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from fanout.api.reasons import Reason
from fanout.api.text_fields import normalize_inside
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, REMOVE, Edit, Path, format_path, get_value
from fanout.package.manifest import Document, Manifest
from fanout.values import Value, asdict

KPTFILE: Final = "Kptfile"
API_VERSION: Final = "kpt.dev/v1"


def package_directories(paths: Iterable[str]) -> set[str]:
    """Return the directories of the package ("") and of its subpackages, by their Kptfiles."""
    return {"", *(p.rpartition("/")[0] for p in paths if p.endswith(f"/{KPTFILE}"))}


def find_package(path: str, directories: Collection[str]) -> str:
    """Return the directory of the innermost package that contains the file."""
    directory = path.rpartition("/")[0]
    while directory and directory not in directories:
        directory = directory.rpartition("/")[0]
    return directory


class UpstreamLock(Value):
    """Upstream state of a package, as its Kptfile has it in `upstream` and `upstreamLock`."""

    repo: str  # URL
    directory: str  # path in the repository, with or without slashes around it
    commit: str
    ref: str = ""  # the tag or commit that is followed; "": the Kptfile does not say

    def refers_to(self, url: str, directory: str) -> bool:
        """Return whether the lock names this directory of this repository, however spelled."""
        own, other = _normalize(self.repo, self.directory), _normalize(url, directory)
        return own == other


def _normalize(url: str, directory: str) -> tuple[str, str]:
    path = url.removeprefix("file://") if url.startswith("file:///") else url
    return path.rstrip("/").removesuffix(".git"), directory.strip("/")


class KptfileCondition(Value):
    """Entry of `status.conditions`, identified by its type."""

    type: str
    status: str  # "True" | "False" | "Unknown"
    reason: str = ""
    message: str = ""

    def fields(self) -> dict[str, str]:
        """Return the fields as in the file, without empty ones."""
        return {name: value for name, value in asdict(self).items() if value}


def package_problem(problem: str, remedy: str, where: ErrorLocation | None = None) -> InvalidInput:
    """Build the error for a package that is not as it must be."""
    return InvalidInput(problem, reason=Reason.INVALID_PACKAGE, remedy=remedy, where=where)


def find_kptfile(manifest: Manifest) -> Document:
    """Return the only document of a Kptfile. Raises InvalidInput if the file is not a Kptfile."""

    def refuse(problem: str, line: int) -> InvalidInput:
        remedy = f"it must be one object of apiVersion {API_VERSION} and kind {KPTFILE}"
        return package_problem(problem, remedy, ErrorLocation(file=manifest.file, line=line))

    if not manifest.documents:
        raise refuse("the Kptfile is empty", 1)
    document, *extra = manifest.documents
    if extra:
        raise refuse("the Kptfile has more than one document", extra[0].line_of(()))
    if not isinstance(document.value, dict):
        raise refuse("the Kptfile is not a mapping", document.line_of(()))
    for field, expected in (("apiVersion", API_VERSION), ("kind", KPTFILE)):
        if (actual := document.value.get(field)) != expected:
            problem = (
                f"the Kptfile's {field} is {actual!r}" if actual else f"the Kptfile has no {field}"
            )
            raise refuse(problem, document.line_of((field,)))
    return document


def upstream_edits(kptfile: Document, upstream: UpstreamLock) -> list[Edit]:
    """Build the edits of `upstream` and `upstreamLock`.

    Like kpt's, directories begin with a slash.
    """
    directory = "/" + upstream.directory.strip("/")
    git = {"repo": upstream.repo, "directory": directory, "ref": upstream.ref}
    lock = {**git, "commit": upstream.commit}
    fields: dict[Path, str] = {
        ("upstream", "type"): "git",
        **{("upstream", "git", key): value for key, value in git.items()},
        ("upstream", "updateStrategy"): "resource-merge",
        ("upstreamLock", "type"): "git",
        **{("upstreamLock", "git", key): value for key, value in lock.items()},
    }
    edits = [Edit(kptfile.index, path, value) for path, value in fields.items()]
    # A package may have come from a generic store. Beside an origin in git these fields
    # would contradict it, so they are removed.
    edits += [Edit(kptfile.index, (section, "generic")) for section in ("upstream", "upstreamLock")]
    return edits


def metadata_edits(
    document: Document, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> list[Edit]:
    """Build edits that set labels and annotations and keep all others. For objects of any kind."""
    return [
        Edit(document.index, ("metadata", section, key), value)
        for section, entries in (("labels", labels), ("annotations", annotations))
        for key, value in entries.items()
    ]


def gate_edits(kptfile: Document, types: Iterable[str]) -> list[Edit]:
    """Build edits that append missing `info.readinessGates`, in the order given.

    Raises InvalidInput if the present value is not a list.
    """
    path = ("info", "readinessGates")
    present = _read_list(kptfile, path)
    # Entries that are no mappings are invalid, but not fanout's: validation reports them.
    present_types = [gate.get("conditionType") for gate in present if isinstance(gate, dict)]
    new_gates = [
        {"conditionType": name} for name in dict.fromkeys(types) if name not in present_types
    ]
    return _append_edits(kptfile, path, present, new_gates)


def condition_edits(kptfile: Document, conditions: Iterable[KptfileCondition]) -> list[Edit]:
    """Build edits that set `status.conditions` by type.

    Other conditions and the order stay. Raises InvalidInput if the present value is not a list.
    """
    path = ("status", "conditions")
    present = _read_list(kptfile, path)
    positions = {item.get("type"): n for n, item in enumerate(present) if isinstance(item, dict)}
    edits: list[Edit] = []
    new_conditions: list[dict[str, str]] = []
    # A type identifies its condition: of two with the same type the last one counts.
    for condition in {condition.type: condition for condition in conditions}.values():
        if (number := positions.get(condition.type)) is None:
            new_conditions.append(condition.fields())
            continue
        fields = condition.fields()
        edits += [
            Edit(kptfile.index, (*path, number, field), fields.get(field, REMOVE))
            for field in ("status", "reason", "message")
        ]
    return edits + _append_edits(kptfile, path, present, new_conditions)


def _read_list(kptfile: Document, path: tuple[str, ...]) -> list[Any]:
    if (value := get_value(kptfile.value, path)) is MISSING or value is None:
        return []
    if not isinstance(value, list):
        field = ".".join(path)
        where = ErrorLocation(field=field, file=kptfile.file, line=kptfile.line_of(path))
        problem = f"the Kptfile's {field} is not a list"
        raise package_problem(problem, "make it a list, or remove it", where)
    return value


def _append_edits(
    kptfile: Document, path: tuple[str, ...], present: list[Any], items: list[Any]
) -> list[Edit]:
    if not present:
        return [Edit(kptfile.index, path, items)] if items else []
    return [
        Edit(kptfile.index, (*path, len(present) + number), item)
        for number, item in enumerate(items)
    ]


class _FieldsRule(Value):
    """Rule: a map with these fields and no others."""

    of: "Mapping[str, _Rule]"
    required: tuple[str, ...] = ()


# A tuple is a string, one of these if there are any; a list one of values with this rule; None any
# value, as the field belongs to other programs.
_Rule = tuple[str, ...] | list[Any] | _FieldsRule | Literal["texts"] | None
_TEXT: Final[_Rule] = ()
_TEXTS: Final[_Rule] = "texts"  # a map of strings with arbitrary keys
_SOURCE: Final = ("git", "generic")
_GIT: Final = {"repo": _TEXT, "directory": _TEXT, "ref": _TEXT}
_GENERIC: Final = _FieldsRule({"storeID": _TEXT, "resourceID": _TEXT, "resourceVersion": _TEXT})
_STRATEGY: Final = ("resource-merge", "fast-forward", "force-delete-replace", "copy-merge")
_SELECTOR: Final = _FieldsRule(
    {
        **dict.fromkeys(("apiVersion", "kind", "name", "namespace"), _TEXT),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
    }
)
_FUNCTION: Final = _FieldsRule(
    {
        **dict.fromkeys(("image", "exec", "tag", "configPath", "name"), _TEXT),
        "configMap": _TEXTS,
        "selectors": [_SELECTOR],
        "exclude": [_SELECTOR],
    }
)
_CONDITION: Final = _FieldsRule(
    {"type": _TEXT, "status": ("True", "False", "Unknown"), "reason": _TEXT, "message": _TEXT},
    ("type", "status"),
)
_INFO: Final = _FieldsRule(
    {
        **dict.fromkeys(("site", "license", "licenseFile", "description", "man"), _TEXT),
        "emails": [_TEXT],
        "keywords": [_TEXT],
        "readinessGates": [_FieldsRule({"conditionType": _TEXT}, ("conditionType",))],
    }
)
_META: Final = {"name": _TEXT, "namespace": _TEXT, "labels": _TEXTS, "annotations": _TEXTS}
_KPTFILE_RULE: Final = _FieldsRule(
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _FieldsRule(_META, ("name",)),
        "upstream": _FieldsRule(
            {
                "type": _SOURCE,
                "git": _FieldsRule(_GIT, ("repo", "ref")),
                "generic": _GENERIC,
                "updateStrategy": _STRATEGY,
            }
        ),
        "upstreamLock": _FieldsRule(
            {"type": _SOURCE, "git": _FieldsRule({**_GIT, "commit": _TEXT}), "generic": _GENERIC}
        ),
        "info": _INFO,
        "pipeline": _FieldsRule({"mutators": [_FUNCTION], "validators": [_FUNCTION]}),
        "inventory": _FieldsRule({**_META, "inventoryID": _TEXT}),
        "status": _FieldsRule({"conditions": [_CONDITION], "renderStatus": None}),
    },
    ("metadata",),
)
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::[0-9]{1,5})?/)?"
    rf"{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_MAX_IMAGE_LENGTH: Final = 500
_Breaches = Iterator[tuple[Path, str, str]]  # where, what is wrong, what to do


def find_kptfile_problems(kptfile: Document) -> list[InvalidInput]:
    """Return every breach of kpt's rules in a Kptfile, with file and line."""
    breaches = [*_check_rule(kptfile.value, _KPTFILE_RULE, ())]
    for path, entry in pipeline_functions(kptfile.value):
        if isinstance(entry, Mapping):
            breaches += _check_function(entry, path)
    return [
        package_problem(
            problem,
            remedy,
            ErrorLocation(KPTFILE, format_path(path), kptfile.file, kptfile.line_of(path)),
        )
        for path, problem, remedy in breaches
    ]


def pipeline_functions(kptfile: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the entries of a Kptfile's pipeline with their paths."""
    pipeline = kptfile.get("pipeline") if isinstance(kptfile, Mapping) else None
    for section in ("mutators", "validators"):
        entries = pipeline.get(section) if isinstance(pipeline, Mapping) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield ("pipeline", section, index), entry


def _check_rule(value: Any, rule: _Rule, path: Path) -> _Breaches:
    match rule:
        case None:
            return
        case tuple(among):
            if not isinstance(value, str):
                yield path, f"{_describe_value(value)} is not a string", "quote it"
            elif among and value not in among:
                problem = f"unsupported value {_describe_value(value)}"
                yield path, problem, f"use one of {', '.join(among)}"
        case "texts":
            if not isinstance(value, Mapping):
                yield path, f"{_describe_value(value)} is not a map", "write names and strings"
                return
            for key, child in value.items():
                yield from _check_rule(child, _TEXT, (*path, key))
        case [of]:
            if not isinstance(value, list):
                yield path, f"{_describe_value(value)} is not a list", "make it a list"
                return
            for index, child in enumerate(value):
                yield from _check_rule(child, of, (*path, index))
        case _FieldsRule():
            yield from _check_fields(value, rule, path)


def _check_fields(value: Any, rule: _FieldsRule, path: Path) -> _Breaches:
    if not isinstance(value, Mapping):
        yield path, f"{_describe_value(value)} is not a map", f"use {', '.join(rule.of)}"
        return
    for key, child in value.items():
        if key not in rule.of:
            yield (*path, key), "unknown field", f"use {', '.join(rule.of)}"
        elif child is not None:
            yield from _check_rule(child, rule.of[key], (*path, key))
    for key in rule.required:
        if value.get(key) in (None, ""):
            yield (*path, key), "required field is missing", "add it"


def _check_function(entry: Mapping[str, Any], path: Path) -> _Breaches:
    image, config = entry.get("image"), entry.get("configPath")
    if bool(image) == bool(entry.get("exec")):
        yield path, "one function is required", "set either image or exec"
    if entry.get("configMap") and config:
        yield path, "configMap and configPath exclude each other", "keep one of them"
    text = image if isinstance(image, str) else ""
    if text and (len(text) > _MAX_IMAGE_LENGTH or not _IMAGE.fullmatch(text)):
        problem = f"{_describe_value(image)} is not an image"
        yield (*path, "image"), problem, "write name:tag or name@digest"
    if isinstance(config, str) and config and not normalize_inside(config):
        problem = f"{_describe_value(config)} is outside the package"
        yield (*path, "configPath"), problem, "use a file in the Kptfile's directory or below it"


def _describe_value(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "a map" if isinstance(value, Mapping) else "a list"
    return repr(value)
