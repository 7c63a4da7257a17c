"""Sends what was written: all of it or nothing, and only onto what was seen (design §5).

Wildcards and bare leases, because git takes quadratic time for refs that are named one by one; no
`+`, because a forced refspec is pushed whatever the lease says.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fanout.git.command import GitProgram
from fanout.git.credentials import Access
from fanout.git.refs import KEEP, OUT, seen_name, write_refs

_PUSH = ("push", "--porcelain", "--atomic", "--force-with-lease")
_FEW = 16  # git tries each mapping for each ref
# Git looks only where something is new; where much and nearly all is, it is quicker everywhere.
_ALL_NEW = ("pack.useSparse=false",)


def push_refs(
    git: GitProgram,
    mirror: Path,
    access: Access,
    seen: Mapping[str, str],
    new: Mapping[str, str],
) -> dict[str, str]:
    """Push new branch and tag ids; answers what is to be seen of the remote afterwards.

    A lease without a mapping says that the ref is not there, so only those need one that are; git
    writes a file for each ref that has one, which takes it as long as all else it does for the ref.
    Raises Conflict when a ref is not as in `seen`, Denied when the remote refuses.
    """
    out = {OUT + ref.removeprefix("refs/"): oid for ref, oid in new.items()}
    write_refs(mirror, _as_seen(seen) | out)
    specs = [f"{OUT}{kind}/*:refs/{kind}/*" for kind in ("heads", "tags")]
    known = [ref for ref in new if ref in seen]
    settings = _ALL_NEW if len(new) > len(seen) + _FEW else ()
    if len(known) > _FEW:
        _push(git, mirror, access, ["origin", *specs], settings)
    else:
        mapped = [f"remote.unmapped.fetch={ref}:{seen_name(ref)}" for ref in known]
        _push(git, mirror, access, ["unmapped", *specs], (*settings, *mapped))
    git.counters.add("refs_pushed", len(new))
    return {**seen, **new}


def prune_refs(
    git: GitProgram,
    mirror: Path,
    access: Access,
    seen: Mapping[str, str],
    gone: Collection[str],
    under: str,
) -> dict[str, str]:
    """Remove drafts: push all that stay below `under` and let git prune the others.

    A draft that came in between is in nobody's listing, so its lease is stale and nothing happens.
    """
    leaving = {ref: seen[ref] for ref in gone}
    staying = {ref: oid for ref, oid in seen.items() if ref not in leaving}
    kept = {
        KEEP + ref.removeprefix(under): oid for ref, oid in staying.items() if ref.startswith(under)
    }
    write_refs(mirror, _as_seen(staying) | kept, loose=_as_seen(leaving))
    _push(git, mirror, access, ["--prune", "origin", f"{KEEP}*:{under}*"])
    git.counters.add("refs_pushed", len(gone))
    return staying


def forget_pushes(mirror: Path, seen: Mapping[str, str]) -> None:
    """Leave nothing behind that a later push could take up."""
    write_refs(mirror, _as_seen(seen))


def _push(
    git: GitProgram,
    mirror: Path,
    access: Access,
    words: Sequence[str],
    settings: Sequence[str] = (),
) -> None:
    git.counters.add("pushes")
    git.run(mirror, [*_PUSH, *words], access, settings=settings)


def _as_seen(refs: Mapping[str, str]) -> dict[str, str]:
    return {seen_name(ref): oid for ref, oid in refs.items()}
