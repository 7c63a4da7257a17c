"""One listing of a remote, and at most one fetch: afterwards the mirror knows what it saw."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fanout.errors import InvalidInput
from fanout.git.command import GitProgram
from fanout.git.credentials import Access
from fanout.git.failures import DamagedMirrorError
from fanout.git.reader import open_mirror
from fanout.git.refs import Patterns, seen_name, seen_refs, write_refs
from fanout.plan.repository import Listing
from fanout.values import frozen

_PEELED = "^{}"


@frozen
class RawListing:
    """What ls-remote says: each ref's own id, and the commits behind annotated tags."""

    own: Mapping[str, str]
    commits: Mapping[str, str]


def look(git: GitProgram, mirror: Path, access: Access, keep: Sequence[str]) -> Listing:
    """List the remote; fetch what `keep` names if any of it is missing; remember what was seen.

    `refs/fanout/seen/` then has the kept refs, and of the others those that were there before and
    have not moved. Raises Denied, Unavailable, InvalidInput; Conflict when the remote moved between
    listing and fetch in a way that leaves no consistent answer.
    """
    patterns = Patterns(keep)
    listed = parse_listing(_ls_remote(git, mirror, access), access)
    kept = {ref: oid for ref, oid in listed.own.items() if ref in patterns}
    before = seen_refs(mirror)
    unmoved = {ref: oid for ref, oid in before.items() if listed.own.get(ref) == oid}
    others = {ref: oid for ref, oid in unmoved.items() if ref not in patterns}
    commits = {ref: listed.commits.get(ref, oid) for ref, oid in listed.own.items()}
    with open_mirror(mirror) as reader:
        complete = all(map(reader.has, set(kept.values())))
    if not complete:
        _remember(mirror, unmoved, before)
        _fetch(git, mirror, access, patterns.found_in(kept))
        before = seen_refs(mirror)
        kept = {ref: oid for ref, oid in before.items() if ref in patterns}
        commits = _after_fetch(mirror, commits, listed, kept, patterns)
    _remember(mirror, {**others, **kept}, before)
    return Listing(commits)


def parse_listing(text: bytes, access: Access) -> RawListing:
    """Read ls-remote's lines. Raises InvalidInput for a repository of the SHA-256 format."""
    own: dict[str, str] = {}
    commits: dict[str, str] = {}
    for line in text.splitlines():
        oid, _, name = line.decode(errors="backslashreplace").partition("\t")
        if len(oid) != 40:
            raise InvalidInput(
                "the repository uses SHA-256 object names, which fanout cannot write",
                reason="ObjectFormatUnsupported",
                remedy="use a repository in Git's SHA-1 format",
                where=access.address.where,
            )
        if name.endswith(_PEELED):
            commits[name.removesuffix(_PEELED)] = oid
        else:
            own[name] = oid
    return RawListing(own, commits)


def _ls_remote(git: GitProgram, mirror: Path, access: Access) -> bytes:
    git.counters.add("listings")
    return git.run(mirror, ["ls-remote", "--heads", "--tags", "--quiet", "origin"], access).stdout


def _fetch(git: GitProgram, mirror: Path, access: Access, patterns: Sequence[str]) -> None:
    """Bring the objects of the kept refs, and note the refs as they are at this very moment."""
    git.counters.add("fetches")
    specs = [f"{pattern}:{seen_name(pattern)}" for pattern in patterns]
    options = ["--quiet", "--force", "--no-tags", "--prune", "--refmap=", "--no-write-fetch-head"]
    git.run(mirror, ["fetch", *options, "origin", *specs], access)


def _after_fetch(
    mirror: Path,
    commits: Mapping[str, str],
    listed: RawListing,
    kept: Mapping[str, str],
    patterns: Patterns,
) -> dict[str, str]:
    """The listing again, with the kept refs as the fetch found them."""
    with open_mirror(mirror) as reader:
        peeled = {
            ref: commits[ref] if listed.own.get(ref) == oid else reader.peel(oid)
            for ref, oid in kept.items()
        }
        missing = [ref for ref, oid in kept.items() if not reader.has(oid)]
    if missing:
        raise DamagedMirrorError(
            f"a fetch did not bring the objects of {missing[0]}", reason="MirrorDamaged"
        )
    others = {ref: oid for ref, oid in commits.items() if ref not in patterns}
    return {**others, **peeled}


def _remember(mirror: Path, seen: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Write the seen refs; nothing is touched when they are as they were."""
    if dict(seen) != dict(before) or (mirror / "refs" / "fanout").exists():
        write_refs(mirror, {seen_name(ref): oid for ref, oid in seen.items()})
