"""Kptfiles: what fanout writes into them, as edits that leave everything else alone.

Fields are set one by one, so comments and foreign fields between them stay. (porch.md §8.1 has the
format, design §4 what goes in.)
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, Edit, Path, get
from fanout.package.manifests import Document, Manifest
from fanout.values import frozen

NAME: Final = "Kptfile"
API_VERSION: Final = "kpt.dev/v1"


@frozen
class Upstream:
    """Where a package came from, as it stands in `upstream` and `upstreamLock`."""

    repo: str  # URL
    directory: str  # path in the repository, with or without slashes around it
    ref: str  # the tag or commit that is followed
    commit: str
    strategy: str = "resource-merge"


@frozen
class Condition:
    """One of `status.conditions`; its type is its identity."""

    type: str
    status: str  # "True" | "False" | "Unknown"
    reason: str = ""
    message: str = ""

    def fields(self) -> dict[str, str]:
        """As in the file; what is empty is left out."""
        fields = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
        }
        return {name: value for name, value in fields.items() if value}


def kptfile_of(manifest: Manifest) -> Document:
    """The one document of a Kptfile; raises InvalidInput when the file is none."""

    def refused(problem: str, line: int, remedy: str) -> InvalidInput:
        where = Where(file=manifest.file, line=line)
        return InvalidInput(problem, reason=Reason.INVALID_PACKAGE, remedy=remedy, where=where)

    shape = f"it must be one object of apiVersion {API_VERSION} and kind {NAME}"
    if not manifest.documents:
        raise refused("the Kptfile is empty", 1, shape)
    document, *more = manifest.documents
    if more:
        raise refused("the Kptfile has more than one document", more[0].line_of(()), shape)
    if not isinstance(document.value, dict):
        raise refused("the Kptfile is no mapping", document.line_of(()), shape)
    for field, expected in (("apiVersion", API_VERSION), ("kind", NAME)):
        found = document.value.get(field)
        if found != expected:
            problem = (
                f"the Kptfile's {field} is {found!r}" if found else f"the Kptfile has no {field}"
            )
            raise refused(problem, document.line_of((field,)), shape)
    return document


def name_edits(kptfile: Document, name: str) -> list[Edit]:
    """The package's name."""
    return [Edit(kptfile.index, ("metadata", "name"), name)]


def upstream_edits(kptfile: Document, upstream: Upstream) -> list[Edit]:
    """`upstream` and `upstreamLock` as kpt writes them: directories begin with a slash."""
    git = {
        "repo": upstream.repo,
        "directory": "/" + upstream.directory.strip("/"),
        "ref": upstream.ref,
    }
    fields: dict[Path, str] = {("upstream", "type"): "git"}
    fields |= {("upstream", "git", key): value for key, value in git.items()}
    fields["upstream", "updateStrategy"] = upstream.strategy
    fields["upstreamLock", "type"] = "git"
    fields |= {
        ("upstreamLock", "git", key): value
        for key, value in {**git, "commit": upstream.commit}.items()
    }
    edits = [Edit(kptfile.index, path, value) for path, value in fields.items()]
    # a package that came from a generic store
    edits += [Edit(kptfile.index, (section, "generic")) for section in ("upstream", "upstreamLock")]
    return edits


def metadata_edits(
    document: Document, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> list[Edit]:
    """Labels and annotations, set one by one; others stay. Fits any object, not Kptfiles alone."""
    return [
        Edit(document.index, ("metadata", section, key), value)
        for section, entries in (("labels", labels), ("annotations", annotations))
        for key, value in entries.items()
    ]


def gate_edits(kptfile: Document, types: Iterable[str]) -> list[Edit]:
    """Add `info.readinessGates` that are not there yet, in the order given, behind those that are.

    Raises InvalidInput when the present ones are no list.
    """
    path = ("info", "readinessGates")
    present = _list(kptfile, path)
    known = {gate.get("conditionType") for gate in present if isinstance(gate, dict)}
    wanted = [{"conditionType": name} for name in dict.fromkeys(types) if name not in known]
    return _appended(kptfile, path, present, wanted)


def condition_edits(kptfile: Document, conditions: Iterable[Condition]) -> list[Edit]:
    """Set `status.conditions` by type; foreign ones and the order of all stay as they are.

    Raises InvalidInput when the present ones are no list.
    """
    path = ("status", "conditions")
    present = _list(kptfile, path)
    place = {item.get("type"): n for n, item in enumerate(present) if isinstance(item, dict)}
    edits: list[Edit] = []
    new: list[dict[str, str]] = []
    for condition in {condition.type: condition for condition in conditions}.values():
        number = place.get(condition.type)
        if number is None:
            new.append(condition.fields())
            continue
        fields = condition.fields()
        for field in ("status", "reason", "message"):
            at = (*path, number, field)
            edits.append(Edit(kptfile.index, at, fields[field]) if field in fields
                         else Edit(kptfile.index, at))  # fmt: skip
    return edits + _appended(kptfile, path, present, new)


def _list(kptfile: Document, path: tuple[str, ...]) -> list[Any]:
    value = get(kptfile.value, path)
    if value is MISSING or value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(
            f"the Kptfile's {'.'.join(path)} is no list",
            reason=Reason.INVALID_PACKAGE,
            remedy="make it a list, or remove it",
            where=Where(field=".".join(path), file=kptfile.file, line=kptfile.line_of(path)),
        )
    return value


def _appended(
    kptfile: Document, path: tuple[str, ...], present: list[Any], new: list[Any]
) -> list[Edit]:
    if not present:
        return [Edit(kptfile.index, path, new)] if new else []
    return [
        Edit(kptfile.index, (*path, len(present) + number), item) for number, item in enumerate(new)
    ]
