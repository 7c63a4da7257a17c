"""One listing of a remote, and at most one fetch: afterwards the mirror knows what it saw."""

import hashlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fanout.errors import InvalidInput
from fanout.git.command import GitProgram
from fanout.git.credentials import Access
from fanout.git.failures import DamagedMirrorError
from fanout.git.mirror import state_of
from fanout.git.reader import open_mirror
from fanout.git.refs import Patterns, parse_refs, seen_name, seen_refs, write_refs
from fanout.git.repack import repack_if_due
from fanout.plan.repository import Listing
from fanout.values import frozen

TIMEOUT = 60.0  # seconds; a host that says nothing must not hold a pass for as long as a push may
_PEELED = "^{}"


@frozen
class RawListing:
    """What ls-remote says: each ref's own id, and the commits behind annotated tags."""

    own: Mapping[str, str]
    commits: Mapping[str, str]


@frozen
class Looked:
    """What a look found, and all that the answer was made of.

    Where the remote says the same again and nobody has touched the mirror, the answer stands.
    """

    listing: Listing
    said: bytes  # digest of the remote's words
    keep: tuple[str, ...]
    mirror: tuple[int, ...]  # as it was left


def look(
    git: GitProgram, mirror: Path, access: Access, keep: Sequence[str], last: Looked | None = None
) -> Looked:
    """List the remote; fetch what `keep` names if any of it is missing; remember what was seen.

    `refs/fanout/seen/` then has the kept refs, and of the others those that were there before and
    have not moved. `last` is what this process found when it last looked. Raises Denied,
    Unavailable, InvalidInput; Conflict when what was listed is gone before it was fetched.
    """
    answer = _ls_remote(git, mirror, access)
    said = hashlib.sha256(answer).digest()
    if last and (last.said, last.keep, last.mirror) == (said, tuple(keep), state_of(mirror)):
        return last
    listed = parse_listing(answer, access)
    kept = Patterns(keep).of(listed.own)
    before = seen_refs(mirror)
    _complete(git, mirror, access, kept)
    others = {
        ref: oid for ref, oid in before.items() if ref not in kept and listed.own.get(ref) == oid
    }
    _remember(mirror, {**others, **kept}, before)
    return Looked(Listing(listed.commits), said, tuple(keep), state_of(mirror))


def parse_listing(text: bytes, access: Access) -> RawListing:
    """Read ls-remote's lines. Raises InvalidInput for a repository of the SHA-256 format."""
    try:
        refs = parse_refs(text.decode(errors="backslashreplace"))
    except ValueError as error:
        raise InvalidInput(
            "the repository uses SHA-256 object names, which fanout cannot write",
            reason="ObjectFormatUnsupported",
            remedy="use a repository in Git's SHA-1 format",
            where=access.address.where,
        ) from error
    # Listings of one repository have most names in common, and so has what is kept by name.
    refs = {sys.intern(name): oid for name, oid in refs.items()}
    peeled = {name: oid for name, oid in refs.items() if name.endswith(_PEELED)}
    if not peeled:
        return RawListing(refs, refs)
    own = {name: oid for name, oid in refs.items() if name not in peeled}
    commits = {name: peeled.get(f"{name}{_PEELED}", oid) for name, oid in own.items()}
    return RawListing(own, commits)


def _ls_remote(git: GitProgram, mirror: Path, access: Access) -> bytes:
    git.counters.add("listings")
    words = ["ls-remote", "--heads", "--tags", "--quiet", "origin"]
    return git.run(mirror, words, access, timeout=TIMEOUT).stdout


def _complete(git: GitProgram, mirror: Path, access: Access, kept: Mapping[str, str]) -> None:
    """Fetch what is missing of what the kept refs were listed with.

    Ids are asked for, not names: so the remote is listed once, whatever moves meanwhile, and git
    writes no file for each ref.
    """
    missing = _missing(mirror, kept)
    if not missing:
        return
    repack_if_due(git, mirror)
    git.counters.add("fetches")
    options = ["--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--stdin"]
    with tempfile.TemporaryFile(dir=mirror) as wanted:
        wanted.write("".join(f"{oid}\n" for oid in missing).encode())
        wanted.seek(0)
        git.run(mirror, ["fetch", *options, "origin"], access, wanted)
    if left := _missing(mirror, kept):
        raise DamagedMirrorError(
            f"a fetch did not bring {left[0]}, which the remote lists", reason="MirrorDamaged"
        )


def _missing(mirror: Path, kept: Mapping[str, str]) -> list[str]:
    with open_mirror(mirror) as reader:
        return [oid for oid in dict.fromkeys(kept.values()) if not reader.has(oid)]


def _remember(mirror: Path, seen: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Write the seen refs; nothing is touched when they are as they were."""
    if dict(seen) != dict(before) or (mirror / "refs" / "fanout").exists():
        write_refs(mirror, {seen_name(ref): oid for ref, oid in seen.items()})
