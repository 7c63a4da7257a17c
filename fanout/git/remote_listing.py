"""Listing of a remote's refs: `git ls-remote`, or its files.

Afterwards the mirror has the commits of the listed refs and remembers their ids.
"""

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from urllib.parse import urlsplit

from fanout.api.reasons import Reason
from fanout.api.urls import GitProtocol
from fanout.errors import FanoutError, InvalidInput
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import FORMAT_REMEDY, FORMAT_UNSUPPORTED, DamagedMirrorError
from fanout.git.mirror import mirror_state, repack_if_due
from fanout.git.mirror_reader import open_mirror
from fanout.git.mirror_refs import (
    FORBIDDEN_IN_REF,
    listed_name,
    parse_refs,
    read_listed_refs,
    select_refs,
    write_refs,
)
from fanout.git.remote_access import RemoteAccess
from fanout.git.remote_workers import waiting_for_remote
from fanout.plan.observation.repository_state import PushedChange, RefListing
from fanout.telemetry.metrics import SUCCESS, EventName
from fanout.values import Value, replace

# seconds; shorter than for a push, so that a silent host does not block a pass
LISTING_TIMEOUT = 60.0
_PEELED_SUFFIX = "^{}"
_HEAD_LINE = re.compile(r"^ref: refs/heads/(\S+)\tHEAD$", re.MULTILINE)
# Reasons of a failed fetch that may be due to single objects (RemoteFailed here: the server does
# not send what it lists).
_REASONS_OF_OBJECTS = frozenset(
    {Reason.REMOTE_OBJECTS_REFUSED, Reason.REMOTE_MOVED, Reason.REMOTE_FAILED}
)
_MAX_FETCHES_APART = 64
_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}\n")
# Settings with which git lists less, or reads other files. Never split over lines, or quoted.
_UNUSUAL_SETTINGS = re.compile(rb"hiderefs|include|extensions", re.IGNORECASE)
_PACKED_REFS = re.compile(rb"(?:[0-9a-f]{40} refs/[^\n]+\n(?:\^[0-9a-f]{40}\n)?+)*+")
_OID = re.compile(rb"[0-9a-f]{40}\n?")
_LISTED = (b"refs/heads/", b"refs/tags/")
_READ_SIZE = 1 << 20  # bytes
_ID_SIZE = 64  # bytes; an id has 40, and a longer file is none


class ListingMemo(Value):
    """Memo of one listing: valid while the remote answers the same and the mirror is unchanged."""

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
    try:
        refs = parse_refs(output.decode(errors="backslashreplace"))
    except ValueError as error:
        raise InvalidInput(
            FORMAT_UNSUPPORTED,
            reason="ObjectFormatUnsupported",
            remedy=FORMAT_REMEDY,
            where=access.address.where,
        ) from error
    ids = commits = refs
    if peeled := {name: oid for name, oid in refs.items() if name.endswith(_PEELED_SUFFIX)}:
        ids = {name: oid for name, oid in refs.items() if name not in peeled}
        # An annotated tag stands for the commit behind it.
        commits = {name: peeled.get(f"{name}{_PEELED_SUFFIX}", oid) for name, oid in ids.items()}
    kept_refs = select_refs(ids, keep)
    previous_refs = read_listed_refs(mirror)
    unfetched = _fetch_missing(git, mirror, access, kept_refs, allowed)
    listed_refs = {
        ref: oid
        for ref, oid in (previous_refs | kept_refs).items()
        if ids.get(ref) == oid and ref not in unfetched
    }
    # Loose refs are left by a process that was killed during a push.
    if listed_refs != previous_refs or (mirror / "refs" / "fanout").exists():
        write_refs(mirror, {listed_name(ref): oid for ref, oid in listed_refs.items()})
    listing, state = RefListing(commits, unfetched), mirror_state(mirror)
    return ListingMemo(listing, digest, tuple(keep), state, at)


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

            def peel(oid: str) -> str:
                reader = open_reader()
                if not reader.has(oid):
                    raise KeyError(oid)
                try:
                    return reader.peel(oid)
                except InvalidInput as error:  # too large
                    raise KeyError(oid) from error

            output = list_local(access.address.url, peel)
        if output is not None:
            # Counted as runs of git are, because an alert compares failures with all listings.
            events, seconds = git.counters.events, time.perf_counter() - started
            events.add(EventName.GIT_OPERATION, "ls-remote", SUCCESS)
            events.add(EventName.GIT_SECONDS, "ls-remote", number=seconds)
            return output
    arguments = ["ls-remote", "--heads", "--tags", "--quiet", "origin"]
    return git.run(mirror, arguments, access, timeout=LISTING_TIMEOUT)


def read_head_branch(git: GitProgram, mirror: Path, access: RemoteAccess) -> str:
    """Return the short name of the branch that HEAD of the remote names; "" if it is not there."""
    arguments = ["ls-remote", "--symref", "--quiet", "origin", "HEAD"]
    output = git.run(mirror, arguments, access, timeout=LISTING_TIMEOUT)
    match = _HEAD_LINE.search(output.decode(errors="backslashreplace"))
    return match[1] if match else ""


# ---- fetch of what is missing -------------------------------------------------------------------


def _fetch_missing(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    refs: Mapping[str, str],
    allowed: Collection[str],
) -> Mapping[str, FanoutError]:
    """Fetch the commits of the listed refs that the mirror lacks, after a repack if one is due.

    Return the tags that cannot be fetched, each with the reason: objects that the remote refuses to
    send, or that git refuses to take, are found by halves, and prevent nothing else. Raises Denied,
    Unavailable, InvalidInput; Conflict if the commit of a branch disappears before it is fetched.
    """
    if not (missing := _find_missing(mirror, refs)):
        return {}
    repack_if_due(git, mirror)

    def fetch(ids: Sequence[str]) -> None:
        # By id, not by name: so the remote is listed once, whatever moves meanwhile, and git writes
        # no file per ref.
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


def _find_missing(mirror: Path, refs: Mapping[str, str]) -> list[str]:
    with open_mirror(mirror) as reader:
        return [oid for oid in dict.fromkeys(refs.values()) if not reader.has(oid)]


# ---- listing of a repository on this machine ---------------------------------------------------


def list_local(url: str, peel: Callable[[str], str]) -> bytes | None:
    """Return branches and tags as `git ls-remote --heads --tags` prints them; None: ask git.

    The files of refs are read, and no process is started. Whatever is unusual is left to git, which
    has the checks and the words for it. `peel` returns the id of the object behind a tag, and the
    id of any other object itself. It raises KeyError for an object that it does not know.

    Files are read by calls that let other threads go on: a disk may be that of another machine,
    and hang. A ref is listed although its object is lost, which git does not.
    """
    try:
        directory = _find_git_directory(url)
        # Before the packed ones: git packs a ref first, and removes its file afterwards.
        loose = _read_loose(directory)
        refs, peeled = _read_packed(directory)
        for ref, oid in loose.items():
            refs[ref] = oid
            peeled.pop(ref, None)
            if ref.startswith(b"refs/tags/") and (behind := peel(oid.decode()).encode()) != oid:
                peeled[ref] = behind
    except (OSError, ValueError, KeyError):
        return None
    lines = []
    for ref in sorted(it for it in refs if it.startswith(_LISTED)):
        lines.append(b"%s\t%s\n" % (refs[ref], ref))
        if ref in peeled:
            lines.append(b"%s\t%s^{}\n" % (peeled[ref], ref))
    return b"".join(lines)


def _find_git_directory(url: str) -> bytes:
    """Return the directory with the refs. Raises OSError or ValueError where git has to look."""
    path = os.fsencode(url)
    if "://" in url:
        parts = urlsplit(url)
        if parts.netloc or "%" in url or parts.query or parts.fragment:
            raise ValueError(url)
        path = os.fsencode(parts.path)
    inner = os.path.join(path, b".git")  # noqa: PTH118 bytes
    directory = inner if os.path.lexists(inner) else path
    # Git refuses the repositories of other users.
    if any(os.stat(it).st_uid != os.geteuid() for it in {path, directory}):  # noqa: PTH116 bytes
        raise ValueError(path)
    settings = _read(directory + b"/config")
    is_plain = _HEAD.match(_read(directory + b"/HEAD")) and not (
        _UNUSUAL_SETTINGS.search(settings) or os.path.lexists(directory + b"/commondir")
    )
    folders = (directory + b"/objects", directory + b"/refs")
    if not is_plain or not all(map(os.path.isdir, folders)):
        raise ValueError(path)
    return directory


def _read_loose(directory: bytes) -> dict[bytes, bytes]:
    """Return the ids of the refs that have a file. Raises OSError, ValueError."""
    refs: dict[bytes, bytes] = {}
    pending = [(it, b"%s/%s" % (directory, it)) for it in (b"refs/heads", b"refs/tags")]
    while pending:
        folder, path = pending.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:  # its last ref was packed or removed
            continue
        for entry in entries:
            name = b"%s/%s" % (folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                pending.append((name, entry.path))
            elif not name.endswith(b".lock"):
                try:
                    oid = _read(entry.path, is_id=True)
                except FileNotFoundError:
                    continue
                if name.endswith(b".") or not _OID.fullmatch(oid):
                    raise ValueError(name)
                refs[name] = oid[:40]
    # One search for all: a search for each name takes as long as reading its file.
    if FORBIDDEN_IN_REF.search(os.fsdecode(b"/".join(refs))):
        raise ValueError(directory)
    return refs


def _read_packed(directory: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Return the ids of packed refs, and what annotated tags name. Raises OSError, ValueError."""
    try:
        header, _, text = _read(directory + b"/packed-refs").partition(b"\n")
    except FileNotFoundError:
        return {}, {}
    if b" fully-peeled " not in header or not _PACKED_REFS.fullmatch(text):
        raise ValueError(header)
    refs: dict[bytes, bytes] = {}
    peeled: dict[bytes, bytes] = {}
    name = b""
    for line in text.split(b"\n")[:-1]:
        if line.startswith(b"^"):
            peeled[name] = line[1:]
        else:
            oid, _, name = line.partition(b" ")
            refs[name] = oid
    return refs, peeled


def _read(path: bytes, *, is_id: bool = False) -> bytes:
    """Return the content of a file; `is_id`: what one call returns, because it is checked."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not block
    try:
        if is_id:
            return os.read(file, _ID_SIZE)
        content = b""
        while part := os.read(file, _READ_SIZE):
            content += part
        return content
    finally:
        os.close(file)
