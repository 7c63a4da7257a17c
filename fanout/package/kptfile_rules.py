"""What a Kptfile may say: kpt's own rules, every breach with its place (porch.md §8.1).

kpt refuses unknown fields, so that a misspelt one is not passed by in silence; here too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fanout.api.paths import path_inside
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import Path, show
from fanout.package.kptfile import NAME
from fanout.package.manifests import Document
from fanout.values import frozen


@frozen
class _Text:
    """A text, or one of these."""

    among: tuple[str, ...] = ()


@frozen
class _Texts:
    """A map of texts under names of all kinds."""


@frozen
class _Fields:
    """A map with these fields and no others."""

    of: "Mapping[str, _Rule]"
    required: tuple[str, ...] = ()


@frozen
class _List:
    """A list of such values."""

    of: "_Rule"


@frozen
class _Anything:
    """Whatever the programs that write it put there."""


_Rule = _Text | _Texts | _Fields | _List | _Anything
_TEXT: Final[_Rule] = _Text()
_TEXTS: Final[_Rule] = _Texts()
_SOURCE: Final = _Text(("git", "generic"))
_GIT: Final = {"repo": _TEXT, "directory": _TEXT, "ref": _TEXT}
_GENERIC: Final = _Fields({"storeID": _TEXT, "resourceID": _TEXT, "resourceVersion": _TEXT})
_STRATEGY: Final = _Text(("resource-merge", "fast-forward", "force-delete-replace", "copy-merge"))
_SELECTOR: Final = _Fields(
    {
        **dict.fromkeys(("apiVersion", "kind", "name", "namespace"), _TEXT),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
    }
)
_FUNCTION: Final = _Fields(
    {
        **dict.fromkeys(("image", "exec", "tag", "configPath", "name"), _TEXT),
        "configMap": _TEXTS,
        **dict.fromkeys(("selectors", "exclude"), _List(_SELECTOR)),
    }
)
_CONDITION: Final = _Fields(
    {
        "type": _TEXT,
        "status": _Text(("True", "False", "Unknown")),
        "reason": _TEXT,
        "message": _TEXT,
    },
    ("type", "status"),
)
_INFO: Final = _Fields(
    {
        **dict.fromkeys(("site", "license", "licenseFile", "description", "man"), _TEXT),
        **dict.fromkeys(("emails", "keywords"), _List(_TEXT)),
        "readinessGates": _List(_Fields({"conditionType": _TEXT}, ("conditionType",))),
    }
)
_META: Final = {"name": _TEXT, "namespace": _TEXT, "labels": _TEXTS, "annotations": _TEXTS}
_KPTFILE: Final = _Fields(
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _Fields(_META, ("name",)),
        "upstream": _Fields(
            {
                "type": _SOURCE,
                "git": _Fields(_GIT, ("repo", "ref")),
                "generic": _GENERIC,
                "updateStrategy": _STRATEGY,
            }
        ),
        "upstreamLock": _Fields(
            {"type": _SOURCE, "git": _Fields({**_GIT, "commit": _TEXT}), "generic": _GENERIC}
        ),
        "info": _INFO,
        "pipeline": _Fields(dict.fromkeys(("mutators", "validators"), _List(_FUNCTION))),
        "inventory": _Fields({**_META, "inventoryID": _TEXT}),
        "status": _Fields({"conditions": _List(_CONDITION), "renderStatus": _Anything()}),
    },
    ("metadata",),
)
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::[0-9]{1,5})?/)?"
    rf"{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_LONGEST_IMAGE: Final = 500
_Found = Iterator[tuple[Path, str, str]]  # where, what is wrong, what to do


def kptfile_faults(kptfile: Document) -> list[InvalidInput]:
    """Every breach of the rules in a Kptfile's document, with file and line."""
    found = [*_check(kptfile.value, _KPTFILE, ())]
    for path, entry in functions_of(kptfile.value):
        if isinstance(entry, Mapping):
            found += _function(entry, path)
    return [
        InvalidInput(
            problem,
            reason=Reason.INVALID_PACKAGE,
            remedy=remedy,
            where=Where(NAME, show(path), kptfile.file, kptfile.line_of(path)),
        )
        for path, problem, remedy in found
    ]


def pipeline_faults(kptfile: Document) -> list[InvalidInput]:
    """Those that are about the pipeline: with one of them nobody knows what is to be run."""
    faults = kptfile_faults(kptfile)
    return [fault for fault in faults if fault.where.field.split(".")[0] == "pipeline"]


def functions_of(kptfile: Any) -> Iterator[tuple[Path, Any]]:
    """The entries of a Kptfile's pipeline, each with its path."""
    pipeline = kptfile.get("pipeline") if isinstance(kptfile, Mapping) else None
    for section in ("mutators", "validators"):
        entries = pipeline.get(section) if isinstance(pipeline, Mapping) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield ("pipeline", section, index), entry


def _check(value: Any, rule: _Rule, path: Path) -> _Found:
    match rule:
        case _Text(among):
            if not isinstance(value, str):
                yield path, f"{_shown(value)} is no text", "put it in quotes"
            elif among and value not in among:
                yield path, f"{_shown(value)} is not known", f"write one of {', '.join(among)}"
        case _Texts():
            if not isinstance(value, Mapping):
                yield path, f"{_shown(value)} is no map", "give names and texts"
                return
            for key, child in value.items():
                yield from _check(child, _TEXT, (*path, key))
        case _List(of):
            if not isinstance(value, list):
                yield path, f"{_shown(value)} is no list", "make it a list"
                return
            for index, child in enumerate(value):
                yield from _check(child, of, (*path, index))
        case _Fields():
            yield from _check_fields(value, rule, path)


def _check_fields(value: Any, rule: _Fields, path: Path) -> _Found:
    if not isinstance(value, Mapping):
        yield path, f"{_shown(value)} is no map", f"there are {', '.join(rule.of)}"
        return
    for key, child in value.items():
        if key not in rule.of:
            yield (*path, key), "the field is not known", f"there are {', '.join(rule.of)}"
        elif child is not None:
            yield from _check(child, rule.of[key], (*path, key))
    for key in rule.required:
        if value.get(key) in (None, ""):
            yield (*path, key), "the field is missing", "add it"


def _function(entry: Mapping[str, Any], path: Path) -> _Found:
    image, config = entry.get("image"), entry.get("configPath")
    if bool(image) == bool(entry.get("exec")):
        yield path, "it does not say which function", "give exactly one of image and exec"
    if entry.get("configMap") and config:
        yield path, "configMap and configPath are both given", "give one of them"
    if isinstance(image, str) and image and not _is_image(image):
        yield (
            (*path, "image"),
            f"{_shown(image)} is no image",
            "write name:tag or name@digest",
        )
    if isinstance(config, str) and config and not path_inside(config):
        yield (
            (*path, "configPath"),
            f"{_shown(config)} leads out of the package",
            ("name a file beside the Kptfile or below it"),
        )


def _is_image(image: str) -> bool:
    return len(image) <= _LONGEST_IMAGE and bool(_IMAGE.fullmatch(image))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "a map" if isinstance(value, Mapping) else "a list"
    return repr(value)
