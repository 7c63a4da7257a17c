"""Listing of a remote's refs (`git ls-remote`, or its files), and a fetch of missing commits.

Afterwards the mirror has the commits of the listed refs and remembers their ids.
"""

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.api.urls import GitProtocol
from fanout.errors import FanoutError, InvalidInput
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import FORMAT_REMEDY, FORMAT_UNSUPPORTED, DamagedMirrorError
from fanout.git.local_listing import list_local
from fanout.git.mirror import mirror_state
from fanout.git.mirror_reader import MirrorReader, open_mirror
from fanout.git.mirror_refs import (
    RefPatterns,
    listed_name,
    parse_refs,
    read_listed_refs,
    write_refs,
)
from fanout.git.remote_access import RemoteAccess
from fanout.git.remote_workers import waiting_for_remote
from fanout.git.repack import repack_if_due
from fanout.plan.observation.repository_state import PushedChange, RefListing
from fanout.telemetry.event_counters import SUCCESS, EventName
from fanout.values import Value, replace

# seconds; shorter than for a push, so that a silent host does not block a pass
LISTING_TIMEOUT = 60.0
_PEELED_SUFFIX = "^{}"
# Reasons of a failed fetch that may be due to single objects (RemoteFailed here: the server does
# not send what it lists).
_REASONS_OF_OBJECTS = frozenset(
    {Reason.REMOTE_OBJECTS_REFUSED, Reason.REMOTE_MOVED, Reason.REMOTE_FAILED}
)
_MAX_FETCHES_APART = 64
_HEAD_LINE = re.compile(r"^ref: refs/heads/(\S+)\tHEAD$", re.MULTILINE)


class RemoteRefs(Value):
    """Refs of a remote: the id of each ref, and the commit behind each annotated tag."""

    ids: Mapping[str, str]
    commits: Mapping[str, str]


class ListingMemo(Value):
    """Memo of one listing with all inputs it was computed from.

    Valid as long as the remote answers the same and nobody has changed the mirror.
    """

    listing: RefListing
    digest: bytes  # of the output of ls-remote
    keep: tuple[str, ...]
    state: tuple[int, ...]  # of the mirror after the listing
    at: float  # by the monotonic clock, before the remote was asked

    def after_push(self, mirror: Path, pushed: PushedChange, *, pushes_tags: bool) -> "ListingMemo":
        """Return the memo with the refs that were pushed and removed; it is as old as before."""
        written = {
            ref: oid
            for ref, oid in pushed.refs.items()
            if pushes_tags or not ref.startswith("refs/tags/")
        }
        refs = {**self.listing.refs, **written}
        for ref in pushed.removed_refs:
            refs.pop(ref, None)
        # No answer of the remote has this digest: the next one is read in full.
        listing = replace(self.listing, refs=refs)
        return replace(self, listing=listing, digest=b"", state=mirror_state(mirror))

    def serves(self, mirror: Path, keep: Sequence[str]) -> bool:
        """Return whether the mirror has what a listing would keep, as it was left."""
        return set(keep) <= set(self.keep) and self.state == mirror_state(mirror)


def list_remote(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    keep: Sequence[str],
    memo: ListingMemo | None = None,
    allowed: Collection[str] = (),
) -> ListingMemo:
    """List the remote, fetch missing commits of the refs in `keep`, and remember the refs.

    `refs/fanout/seen/` then has the refs in `keep` and those of the other refs that were
    there before and have not moved. `memo` is the result of this process's previous listing
    of the mirror. `allowed` are objects that are taken although git refuses them. A tag whose
    objects cannot be had prevents nothing. Raises Denied, Unavailable, InvalidInput; Conflict if
    the commit of a branch disappears before it is fetched.
    """
    git.counters.add("listings")
    at = time.monotonic()
    output = _list_all(git, mirror, access)
    digest = hashlib.sha256(output).digest()
    # The digest of the output stands for all refs: parsing a hundred thousand refs takes
    # longer than the listing itself. The mirror's state guards against other processes.
    # What could not be fetched is tried again: it may be repaired, or allowed, and no ref moves.
    if memo and not memo.listing.unfetched and memo.digest == digest and memo.serves(mirror, keep):
        return replace(memo, at=at)
    remote_refs = parse_ls_remote(output, access)
    kept_refs = RefPatterns(keep).select(remote_refs.ids)
    previous_refs = read_listed_refs(mirror)
    fetch = partial(_fetch, git, mirror, access, allowed)
    unfetched = _fetch_missing(mirror, kept_refs, fetch, partial(repack_if_due, git, mirror))
    listed_refs = {
        ref: oid
        for ref, oid in (previous_refs | kept_refs).items()
        if remote_refs.ids.get(ref) == oid and ref not in unfetched
    }
    # Loose refs are left by a process that was killed during a push.
    if listed_refs != previous_refs or (mirror / "refs" / "fanout").exists():
        write_refs(mirror, {listed_name(ref): oid for ref, oid in listed_refs.items()})
    return ListingMemo(
        RefListing(remote_refs.commits, unfetched), digest, tuple(keep), mirror_state(mirror), at
    )


def _list_all(git: GitProgram, mirror: Path, access: RemoteAccess) -> bytes:
    """Return branches and tags of the remote as `git ls-remote` prints them."""
    if access.address.protocol is GitProtocol.FILE:
        started = time.perf_counter()
        with (
            git.counters.times.work("ref files"),
            waiting_for_remote(mirror),
            ExitStack() as opened,
        ):
            # Loose tags alone are looked up, and most repositories have none.
            open_reader = cache(partial(opened.enter_context, open_mirror(mirror)))
            output = list_local(access.address.url, lambda oid: _peel_known(open_reader(), oid))
        if output is not None:
            # Counted as runs of git are, because an alert compares failures with all listings.
            events, seconds = git.counters.events, time.perf_counter() - started
            events.add(EventName.GIT_OPERATION, "ls-remote", SUCCESS)
            events.add(EventName.GIT_SECONDS, "ls-remote", number=seconds)
            return output
    arguments = ["ls-remote", "--heads", "--tags", "--quiet", "origin"]
    return git.run(mirror, arguments, access, timeout=LISTING_TIMEOUT).stdout


def _peel_known(reader: MirrorReader, oid: str) -> str:
    """Return the object behind a tag. Raises KeyError where the mirror cannot say it."""
    if not reader.has(oid):
        raise KeyError(oid)
    try:
        return reader.peel(oid)
    except InvalidInput as error:  # too large
        raise KeyError(oid) from error


def read_head_branch(git: GitProgram, mirror: Path, access: RemoteAccess) -> str:
    """Return the short name of the branch that HEAD of the remote names; "" if it is not there.

    Raises Denied, Unavailable.
    """
    arguments = ["ls-remote", "--symref", "--quiet", "origin", "HEAD"]
    output = git.run(mirror, arguments, access, timeout=LISTING_TIMEOUT).stdout
    match = _HEAD_LINE.search(output.decode(errors="backslashreplace"))
    return match[1] if match else ""


def parse_ls_remote(text: bytes, access: RemoteAccess) -> RemoteRefs:
    """Parse the output of ls-remote. Raises InvalidInput for a repository in SHA-256 format."""
    try:
        refs = parse_refs(text.decode(errors="backslashreplace"))
    except ValueError as error:
        raise InvalidInput(
            FORMAT_UNSUPPORTED,
            reason="ObjectFormatUnsupported",
            remedy=FORMAT_REMEDY,
            where=access.address.where,
        ) from error
    peeled = {name: oid for name, oid in refs.items() if name.endswith(_PEELED_SUFFIX)}
    if not peeled:
        return RemoteRefs(refs, refs)
    ids = {name: oid for name, oid in refs.items() if name not in peeled}
    commits = {name: peeled.get(f"{name}{_PEELED_SUFFIX}", oid) for name, oid in ids.items()}
    return RemoteRefs(ids, commits)


def _fetch_missing(
    mirror: Path,
    refs: Mapping[str, str],
    fetch: Callable[[Sequence[str]], None],
    prepare: Callable[[], None],
) -> Mapping[str, FanoutError]:
    """Fetch the listed commits that the mirror lacks.

    Return the tags that cannot be fetched, each with the reason. `prepare` is called before the
    first fetch.
    """
    missing = _find_missing(mirror, refs)
    if not missing:
        return {}
    prepare()
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
