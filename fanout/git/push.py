"""Apply one change to a repository: check, write objects, push, prune, clean up.

A push is atomic and every ref has a lease: all refs move or none, and only from the ids that were
listed (docs/concepts/drafts-and-git.md). Wildcards and leases without ids are used because git
takes quadratic time for refs that are named one by one. Refspecs have no `+`, because a forced
refspec is pushed whatever its lease is.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fanout.errors import Bug, Conflict, FanoutError, InvalidInput
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import CHANGED_REMEDY
from fanout.git.mirror_reader import open_mirror
from fanout.git.mirror_refs import (
    KEEP_PREFIX,
    OUTGOING_PREFIX,
    check_ref,
    listed_name,
    read_listed_refs,
    write_refs,
)
from fanout.git.object_writer import BRANCH_REMEDY, ObjectWriter
from fanout.git.remote_access import RemoteAccess
from fanout.plan.observation.repository_state import PushedChange, RepositoryChange

_PUSH_COMMAND = ("push", "--porcelain", "--atomic", "--force-with-lease")
_UP_TO_DATE = re.compile(rb"^=\t[^:]*:(\S+)\t", re.MULTILINE)
_MAX_MAPPINGS = 16  # git tries each mapping for each ref
# The sparse search looks only into changed directories; the full search is faster if nearly all
# changed.
_FULL_SEARCH = ("pack.useSparse=false",)


def push_refs(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    listed_refs: Mapping[str, str],
    changed_refs: Mapping[str, str],
) -> dict[str, str]:
    """Push new ids of branches and tags; return the refs of the remote afterwards.

    `listed_refs` are the refs as last listed, `changed_refs` the ids to push, both by full
    ref name. A lease without a mapping means that the ref does not exist, so only refs that
    exist need one; git writes a file for each mapped ref, which takes as long as all else
    it does for it. Raises Conflict if a ref is not as in `listed_refs`, also if another process
    just moved it to the same id: of two that write the same at the same instant one has to lose, or
    both would go on as the one whose write counts. Raises Denied if the remote refuses.
    """
    outgoing = {
        OUTGOING_PREFIX + ref.removeprefix("refs/"): oid for ref, oid in changed_refs.items()
    }
    # Git compares each lease with refs/fanout/seen/, which the fetch mappings of the mirror
    # map the remote's refs to. Hence no ref can be pushed over a state that was not listed.
    write_refs(mirror, _with_listed_names(listed_refs) | outgoing)
    specs = [f"{OUTGOING_PREFIX}{kind}/*:refs/{kind}/*" for kind in ("heads", "tags")]
    existing = [ref for ref in changed_refs if ref in listed_refs]
    settings = _FULL_SEARCH if len(changed_refs) > len(listed_refs) + _MAX_MAPPINGS else ()
    # Git tries each mapping for each ref: a few are cheaper by name, many by wildcard.
    if len(existing) > _MAX_MAPPINGS:
        output = _push(git, mirror, access, ["origin", *specs], settings)
    else:
        mapped = [f"remote.unmapped.fetch={ref}:{listed_name(ref)}" for ref in existing]
        output = _push(git, mirror, access, ["unmapped", *specs], (*settings, *mapped))
    if moved := _UP_TO_DATE.search(output):
        raise Conflict(
            f"another process wrote the same to {moved[1].decode()} at the same time",
            reason="RemoteMoved",
            remedy="nothing is lost; the next pass reads the repository again",
            where=access.address.where,
        )
    git.counters.add("refs_pushed", len(changed_refs))
    return {**listed_refs, **changed_refs}


def prune_refs(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    listed_refs: Mapping[str, str],
    removable: Collection[str],
    under: str,
) -> dict[str, str]:
    """Remove drafts: push all that remain below `under` and let git prune the others.

    A draft that was created in between is in no listing, so its lease is stale and nothing
    is removed. Returns the refs of the remote afterwards. Raises Conflict, Denied.
    """
    removed = {ref: listed_refs[ref] for ref in removable}
    remaining = {ref: oid for ref, oid in listed_refs.items() if ref not in removed}
    remaining_drafts = {
        KEEP_PREFIX + ref.removeprefix(under): oid
        for ref, oid in remaining.items()
        if ref.startswith(under)
    }
    write_refs(
        mirror, _with_listed_names(remaining) | remaining_drafts, loose=_with_listed_names(removed)
    )
    _push(git, mirror, access, ["--prune", "origin", f"{KEEP_PREFIX}*:{under}*"])
    git.counters.add("refs_pushed", len(removable))
    return remaining


def _push(
    git: GitProgram,
    mirror: Path,
    access: RemoteAccess,
    arguments: Sequence[str],
    settings: Sequence[str] = (),
) -> bytes:
    git.counters.add("pushes")
    return git.run(mirror, [*_PUSH_COMMAND, *arguments], access, settings=settings)


def _with_listed_names(refs: Mapping[str, str]) -> dict[str, str]:
    return {listed_name(ref): oid for ref, oid in refs.items()}


def check_change(change: RepositoryChange, drafts_under: str) -> None:
    """Check a change before anything is written.

    `drafts_under` is the ref prefix of this installation's drafts. Raises InvalidInput for what git
    would refuse, and Bug for what no plan may contain: a ref written twice, a ref without lease,
    removal of another ref than a draft of this installation.
    """
    for ref in change.expected:
        check_ref(ref)
    for update in change.branches:
        if not update.parent:
            draft_name = update.ref.removeprefix("refs/heads/")
            raise InvalidInput(
                f"draft {draft_name} has no base: the branch of the repository does not exist",
                reason="BranchMissing",
                remedy=BRANCH_REMEDY,
            )
    written = [update.ref for update in change.branches]
    written += dict.fromkeys(commit.ref for commit in change.files)  # each may have a chain
    written += [change.vendor.ref] if change.vendor else []
    written += [change.branch] if change.merges else []
    written += [draft.tag for merge in change.merges for draft in merge.drafts]
    written += list(change.tags)
    if len(set(written)) < len(written):
        twice = sorted({ref for ref in written if written.count(ref) > 1})
        raise Bug(f"{twice[0]} would be written twice in one push", reason="RefWrittenTwice")
    for ref in (*written, *change.removed_drafts):
        if ref not in change.expected:
            raise Bug(f"{ref} is changed without an expected id", reason="RefWithoutLease")
    for ref in change.removed_drafts:
        # The last barrier against deleting branches of people or of another installation.
        if change.drafts_under != drafts_under or not ref.startswith(drafts_under):
            raise Bug(f"{ref} is not a draft of this installation", reason="ForeignRef")


def apply_change(
    git: GitProgram,
    writer: ObjectWriter,
    mirror: Path,
    access: RemoteAccess,
    change: RepositoryChange,
) -> PushedChange:
    """Write and push a change; the caller holds the mirror's lock.

    Returns the refs with their new ids and the refs removed. Raises Conflict if a ref is
    not at its expected id; after this and every other error nothing was changed. Two
    exceptions: if the push succeeds and the removal fails, `removed` is empty; if another process
    pushed one of the ids first, the others are pushed. The next pass finds what remains.
    """
    listed_refs = read_listed_refs(mirror)
    _check_expected(mirror, change, listed_refs, access)
    written = dict(change.tags)
    # A change of branches alone takes packages out of them, and has no trees.
    contents = (change.trees, change.branches, change.files, change.merges)
    if any(contents) or change.vendor:
        objects = writer.write(mirror, change)
        git.counters.add("objects_written", objects.count)
        written |= objects.refs
        # A server killed during a push may have moved the tag and not the branch. Publishing again
        # yields the same commit, which the existing tag names. If it moved only the vendor branch,
        # which states the publication, the commit gets the tag that is stated.
        for merge in change.merges:
            for draft in merge.drafts:
                if draft.last_tag and draft.last_commit == written[draft.tag]:
                    commit = written.pop(draft.tag)
                    if draft.last_tag not in listed_refs:
                        written[draft.last_tag] = commit
    changed_refs = {
        ref: oid
        for ref, oid in written.items()
        if listed_refs.get(ref) != oid and (change.pushes_tags or not ref.startswith("refs/tags/"))
    }
    removable = tuple(ref for ref in change.removed_drafts if ref in listed_refs)
    removed: tuple[str, ...] = ()
    removal_error: FanoutError | None = None
    try:
        # First the push, then the removal: a draft must not disappear before it is merged. They
        # are two pushes because pruning takes another set of mappings.
        if changed_refs:
            listed_refs = push_refs(git, mirror, access, listed_refs, changed_refs)
        if removable:
            under = change.drafts_under
            try:
                listed_refs = prune_refs(git, mirror, access, listed_refs, removable, under)
                removed = removable
            except FanoutError as error:
                if not changed_refs:
                    raise
                removal_error = error
    finally:
        # Without the outgoing refs, so that no later push repeats them.
        write_refs(mirror, _with_listed_names(listed_refs))
    return PushedChange(written, removed, removal_error)


def _check_expected(
    mirror: Path, change: RepositoryChange, listed_refs: Mapping[str, str], access: RemoteAccess
) -> None:
    differing = [ref for ref, oid in change.expected.items() if listed_refs.get(ref, "") != oid]
    if not differing:
        return
    with open_mirror(mirror) as reader:
        for ref in differing:
            # The plan expects commits; the listing of an annotated tag has the id of the tag
            # object.
            actual = reader.peel(listed_refs[ref]) if ref in listed_refs else ""
            expected = change.expected[ref]
            if actual != expected:
                raise Conflict(
                    f"{ref} is at {actual or 'nothing'}, expected {expected or 'nothing'}",
                    reason="RemoteMoved",
                    remedy=CHANGED_REMEDY,
                    where=access.address.where,
                )
