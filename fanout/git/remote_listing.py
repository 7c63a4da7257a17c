"""Listing of a remote's refs: `git ls-remote`, or its files.

Afterwards the mirror has the commits of the listed refs (`fanout.git.fetch`) and remembers their
ids.
"""

import hashlib
import re
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

from fanout.api.urls import GitProtocol
from fanout.errors import InvalidInput
from fanout.git.fetch import fetch_missing
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import FORMAT_REMEDY, FORMAT_UNSUPPORTED
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
from fanout.plan.observation.repository_state import PushedChange, RefListing
from fanout.telemetry.event_counters import SUCCESS, EventName
from fanout.values import Value, replace

# seconds; shorter than for a push, so that a silent host does not block a pass
LISTING_TIMEOUT = 60.0
_PEELED_SUFFIX = "^{}"
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
    unfetched = fetch_missing(git, mirror, access, kept_refs, allowed)
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
