"""One repository's change, in order: judge, write objects, push, remove, remember."""

from collections.abc import Mapping
from pathlib import Path

from fanout.errors import Bug, Conflict, FanoutError, InvalidInput
from fanout.git.command import GitProgram
from fanout.git.credentials import Access
from fanout.git.engine import Engine
from fanout.git.push import forget_pushes, prune_refs, push_refs
from fanout.git.reader import open_mirror
from fanout.git.refs import check_ref, seen_refs
from fanout.plan.repository import RepositoryChange, Written


def check_change(change: RepositoryChange, drafts_under: str) -> None:
    """Refuse what git would refuse, and what no plan may ask. Raises InvalidInput or Bug."""
    for ref in change.expected:
        check_ref(ref)
    for draft in change.drafts:
        if not draft.base:
            raise InvalidInput(
                f"draft {draft.ref.removeprefix('refs/heads/')} has nothing to stand on: "
                "the branch of the repository is not there",
                reason="BranchMissing",
                remedy="push a first commit to it, or correct spec.branch of the Repository",
            )
    written = [draft.ref for draft in change.drafts] + [commit.ref for commit in change.files]
    written += [change.vendor.ref] if change.vendor else []
    written += [change.branch] if change.merges else []
    written += [draft.tag for merge in change.merges for draft in merge.drafts]
    written += list(change.tags)
    if len(set(written)) < len(written):
        twice = sorted({ref for ref in written if written.count(ref) > 1})
        raise Bug(f"{twice[0]} would be written twice in one push", reason="RefWrittenTwice")
    for ref in (*written, *change.remove):
        if ref not in change.expected:
            raise Bug(f"{ref} is changed without an expected id", reason="RefWithoutLease")
    for ref in change.remove:
        if change.drafts_under != drafts_under or not ref.startswith(drafts_under):
            raise Bug(f"{ref} is no draft of this installation", reason="ForeignRef")


def apply_change(
    git: GitProgram, engine: Engine, mirror: Path, access: Access, change: RepositoryChange
) -> Written:
    """Do it, with the mirror's lock held. Raises Conflict when a ref is not as expected; then, as
    after every other error, nothing was done.

    One exception: where the push succeeded and the removal did not, the answer has no `removed`;
    the drafts that are left are found, and their removal is tried, by the next pass.
    """
    seen = seen_refs(mirror)
    _compare(mirror, change, seen, access)
    written = dict(change.tags)
    if change.trees or change.drafts or change.files or change.vendor or change.merges:
        objects = engine.write(mirror, change)
        git.counters.add("objects_written", objects.count)
        written |= _tagged_once(change, objects.refs)
    new = {ref: oid for ref, oid in written.items() if seen.get(ref) != oid}
    gone = tuple(ref for ref in change.remove if ref in seen)
    removed: tuple[str, ...] = ()
    try:
        if new:
            seen = push_refs(git, mirror, access, seen, new)
        if gone:
            try:
                seen = prune_refs(git, mirror, access, seen, gone, change.drafts_under)
                removed = gone
            except FanoutError:
                if not new:
                    raise
    finally:
        forget_pushes(mirror, seen)
    return Written(written, removed)


def _tagged_once(change: RepositoryChange, refs: Mapping[str, str]) -> dict[str, str]:
    """The refs that are written, without a second tag for a commit that has its tag already.

    A server that died in the middle of a push may have moved the tag and not the branch. The same
    publication again is the same commit.
    """
    found = dict(refs)
    for merge in change.merges:
        for draft in merge.drafts:
            if draft.last_tag and draft.last_commit == found[draft.tag]:
                del found[draft.tag]
    return found


def _compare(
    mirror: Path, change: RepositoryChange, seen: Mapping[str, str], access: Access
) -> None:
    differing = [ref for ref, oid in change.expected.items() if seen.get(ref, "") != oid]
    if not differing:
        return
    with open_mirror(mirror) as reader:
        for ref in differing:
            found = reader.peel(seen[ref]) if ref in seen else ""
            if found != change.expected[ref]:
                raise Conflict(
                    f"{ref} is at {found or 'nothing'}, "
                    f"expected was {change.expected[ref] or 'nothing'}",
                    reason="RemoteMoved",
                    remedy="nothing was changed; the next pass observes it again",
                    where=access.address.where,
                )
