"""The four update strategies of a Kptfile, and what the blunt ones drop (porch.md §3.3)."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.package.edits import MISSING, REMOVE, Edit, applied, get, same
from fanout.package.invalid import InvalidManifest
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.merge.bookkeeping import same_file
from fanout.package.merge.conflicts import NO_CHOICES, Choices
from fanout.package.merge.packages import Files, MergeResult, merge_packages

_SHOWN: Final = 5  # names in a message
# What every clone has of its own; a package with no other change is as it was.
_OWN: Final = (
    ("metadata", "name"),
    ("upstream",),
    ("upstreamLock",),
    ("status", "renderStatus"),
)


class Strategy(StrEnum):
    """`upstream.updateStrategy`; the first one is the default."""

    RESOURCE_MERGE = "resource-merge"
    FAST_FORWARD = "fast-forward"
    FORCE_DELETE_REPLACE = "force-delete-replace"
    COPY_MERGE = "copy-merge"


def update_package(
    strategy: Strategy,
    origin: Files,
    upstream: Files,
    local: Files,
    choices: Choices = NO_CHOICES,
) -> MergeResult:
    """The local package after an update by a strategy.

    The package's own Kptfile is always merged, so that its name, where it comes from and foreign
    functions stay. `dropped` names the files whose local content is lost. Raises InvalidInput where
    fast-forward finds local changes, and as `merge_packages` does.
    """
    if strategy is Strategy.RESOURCE_MERGE:
        return merge_packages(origin, upstream, local, choices)
    if strategy is Strategy.FAST_FORWARD:
        _refuse_changes(origin, local)
    kptfile = merge_packages(_kptfile(origin), _kptfile(upstream), _kptfile(local), choices)
    files = dict(upstream)
    if strategy is Strategy.COPY_MERGE:
        kept = {path: content for path, content in local.items() if path not in origin}
        files = {**kept, **files}
    files.pop(KPTFILE, None)
    files |= kptfile.files
    dropped = [
        path
        for path, content in sorted(local.items())
        if path != KPTFILE
        and files.get(path) != content
        and not same_file(path, content, origin.get(path))
    ]
    ordered = dict(sorted(files.items()))
    return MergeResult(ordered, kptfile.conflicts, kptfile.notes, tuple(dropped))


def _kptfile(files: Files) -> Files:
    return {KPTFILE: files[KPTFILE]} if KPTFILE in files else {}


def _refuse_changes(origin: Files, local: Files) -> None:
    changed = [
        path
        for path in sorted({*origin, *local})
        if not same_file(path, origin.get(path), local.get(path))
        and not (path == KPTFILE and _same_but_own(origin, local))
    ]
    if changed:
        raise InvalidInput(
            f"the package cannot be fast-forwarded: {_listed(changed)} changed here",
            reason=Reason.INVALID_PACKAGE,
            remedy=f"take the changes back, or update by {Strategy.RESOURCE_MERGE}",
        )


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _same_but_own(origin: Files, local: Files) -> bool:
    try:
        one, other = (list(_without_own(files)) for files in (origin, local))
    except (KeyError, InvalidManifest):
        return False
    return same(one, other)


def _without_own(files: Files) -> Iterator[Any]:
    """The Kptfile's data without what every clone has of its own."""
    for document in Manifest.parse(files[KPTFILE][1], KPTFILE).documents:
        value = document.value
        for path in _OWN:
            if get(value, path) is not MISSING:
                value = applied(value, [Edit(0, path, REMOVE)])
        if get(value, ("status",)) == {}:
            value = applied(value, [Edit(0, ("status",), REMOVE)])
        yield value
