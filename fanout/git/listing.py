"""One listing of a remote, and at most one fetch: afterwards the mirror knows what it saw."""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fanout.errors import InvalidInput
from fanout.git.command import GitProgram
from fanout.git.credentials import Access
from fanout.git.failures import DamagedMirrorError
from fanout.git.mirror import state_of
from fanout.git.reader import open_mirror
from fanout.git.refs import Patterns, parse_refs, seen_name, seen_refs, write_refs
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
    Unavailable, InvalidInput; Conflict when the remote moved between listing and fetch in a way
    that leaves no consistent answer.
    """
    patterns = Patterns(keep)
    answer = _ls_remote(git, mirror, access)
    said = hashlib.sha256(answer).digest()
    if last and (last.said, last.keep, last.mirror) == (said, tuple(keep), state_of(mirror)):
        return last
    listed = parse_listing(answer, access)
    kept = patterns.of(listed.own)
    before = seen_refs(mirror)
    unmoved = {ref: oid for ref, oid in before.items() if listed.own.get(ref) == oid}
    others = {ref: oid for ref, oid in unmoved.items() if ref not in patterns}
    commits = listed.commits
    with open_mirror(mirror) as reader:
        complete = all(map(reader.has, set(kept.values())))
    if not complete:
        _remember(mirror, unmoved, before)
        _fetch(git, mirror, access, patterns.found_in(kept))
        before = seen_refs(mirror)
        kept = patterns.of(before)
        commits = _after_fetch(mirror, listed, kept, patterns)
    _remember(mirror, {**others, **kept}, before)
    return Looked(Listing(commits), said, tuple(keep), state_of(mirror))


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


def _fetch(git: GitProgram, mirror: Path, access: Access, patterns: Sequence[str]) -> None:
    """Bring the objects of the kept refs, and note the refs as they are at this very moment."""
    git.counters.add("fetches")
    specs = [f"{pattern}:{seen_name(pattern)}" for pattern in patterns]
    options = ["--quiet", "--force", "--no-tags", "--prune", "--refmap=", "--no-write-fetch-head"]
    git.run(mirror, ["fetch", *options, "origin", *specs], access)


def _after_fetch(
    mirror: Path, listed: RawListing, kept: Mapping[str, str], patterns: Patterns
) -> dict[str, str]:
    """The listing again, with the kept refs as the fetch found them."""
    with open_mirror(mirror) as reader:
        peeled = {
            ref: listed.commits[ref] if listed.own.get(ref) == oid else reader.peel(oid)
            for ref, oid in kept.items()
        }
        missing = [ref for ref, oid in kept.items() if not reader.has(oid)]
    if missing:
        raise DamagedMirrorError(
            f"a fetch did not bring the objects of {missing[0]}", reason="MirrorDamaged"
        )
    others = {ref: oid for ref, oid in listed.commits.items() if ref not in patterns}
    return {**others, **peeled}


def _remember(mirror: Path, seen: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Write the seen refs; nothing is touched when they are as they were."""
    if dict(seen) != dict(before) or (mirror / "refs" / "fanout").exists():
        write_refs(mirror, {seen_name(ref): oid for ref, oid in seen.items()})
