"""Fetch of the listed commits that a mirror lacks (`git fetch`), by id.

Objects that the remote refuses to send, or that git refuses to take, are found by halves, so that
a tag that cannot be fetched prevents nothing else.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import DamagedMirrorError
from fanout.git.mirror_reader import open_mirror
from fanout.git.remote_access import RemoteAccess
from fanout.git.repack import repack_if_due

# Reasons of a failed fetch that may be due to single objects (RemoteFailed here: the server does
# not send what it lists).
_REASONS_OF_OBJECTS = frozenset(
    {Reason.REMOTE_OBJECTS_REFUSED, Reason.REMOTE_MOVED, Reason.REMOTE_FAILED}
)
_MAX_FETCHES_APART = 64


def fetch_missing(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    refs: Mapping[str, str],
    allowed: Collection[str],
) -> Mapping[str, FanoutError]:
    """Fetch the commits of the listed refs that the mirror lacks, after a repack if one is due.

    Return the tags that cannot be fetched, each with the reason. `allowed` are objects that are
    taken although git refuses them. Raises Denied, Unavailable, InvalidInput; Conflict if the
    commit of a branch disappears before it is fetched.
    """
    missing = _find_missing(mirror, refs)
    if not missing:
        return {}
    repack_if_due(git, mirror)
    fetch = partial(_fetch, git, mirror, access, allowed)
    try:
        fetch(missing)
        failures: dict[str, FanoutError] = {}
    except FanoutError as error:
        of_branches = {oid for ref, oid in refs.items() if not ref.startswith("refs/tags/")}
        tags = [oid for oid in missing if oid not in of_branches]
        if error.reason not in _REASONS_OF_OBJECTS or not tags:
            raise
        # Without its branches nothing of a repository can be used.
        if branches := [oid for oid in missing if oid in of_branches]:
            fetch(branches)
        failures = _fetch_apart(tags, error, fetch)
    if still_missing := [it for it in _find_missing(mirror, refs) if it not in failures]:
        raise DamagedMirrorError(
            f"the remote lists {still_missing[0]} but did not send it", reason="MirrorDamaged"
        )
    return {ref: failures[oid] for ref, oid in refs.items() if oid in failures}


def _fetch_apart(
    ids: Sequence[str], error: FanoutError, fetch: Callable[[Sequence[str]], None]
) -> dict[str, FanoutError]:
    """Fetch all of these objects that can be fetched, by halves; return the errors of the others.

    `error` is that of all together, and is raised if it would take too many fetches.
    """
    failures: dict[str, FanoutError] = {}
    pending = [(ids, error)]
    fetches = 0
    while pending:
        part, failure = pending.pop()
        if len(part) == 1:
            failures[part[0]] = failure
            continue
        middle = len(part) // 2
        for half in (part[:middle], part[middle:]):
            if (fetches := fetches + 1) > _MAX_FETCHES_APART:
                raise error
            try:
                fetch(half)
            except FanoutError as half_failure:
                if half_failure.reason not in _REASONS_OF_OBJECTS:
                    raise
                pending.append((half, half_failure))
    return failures


def _fetch(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    allowed: Collection[str],
    ids: Sequence[str],
) -> None:
    """Fetch objects.

    By id, not by name: so the remote is listed once, whatever moves meanwhile, and git writes no
    file per ref.
    """
    git.counters.add("fetches")
    options = ["--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--stdin"]
    with (
        tempfile.TemporaryFile(dir=mirror) as id_file,
        tempfile.NamedTemporaryFile(dir=mirror, prefix="tmp_") as skip_file,
    ):
        id_file.write("".join(f"{oid}\n" for oid in ids).encode())
        id_file.seek(0)
        skip_file.write("".join(f"{oid}\n" for oid in sorted(allowed)).encode())
        skip_file.flush()
        settings = [f"fetch.fsck.skipList={skip_file.name}"] if allowed else []
        git.run(mirror, ["fetch", *options, "origin"], access, id_file, settings=settings)


def _find_missing(mirror: Path, refs: Mapping[str, str]) -> list[str]:
    with open_mirror(mirror) as reader:
        return [oid for oid in dict.fromkeys(refs.values()) if not reader.has(oid)]
