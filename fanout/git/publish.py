"""Makes publications and the vendor branch from trees that are in the mirror already."""

from pathlib import Path

from fanout.errors import InvalidInput, Where
from fanout.git.commits import commit_bytes
from fanout.git.failures import DamagedMirrorError
from fanout.git.pack import COMMIT, PackWriter
from fanout.git.reader import MirrorReader, open_mirror
from fanout.git.trees import TreeEditor
from fanout.plan.repository import Identity, Merge, RepositoryChange, VendorCommit
from fanout.values import frozen

DRAFTS_PER_MERGE = 16  # design §5: parents are the branch and at most so many drafts


@frozen
class Packed:
    """The commits that were written, by the ref that is to get them, and how many objects."""

    refs: dict[str, str]
    objects: int


def write_publications(mirror: Path, change: RepositoryChange) -> Packed:
    """Write the vendor commit and the chain of merge commits of a change; no ref moves.

    Raises InvalidInput when the branch is not there or a file is in a package's way, and
    DamagedMirrorError when what is to be merged is not in the mirror.
    """
    refs: dict[str, str] = {}
    with open_mirror(mirror) as reader:
        pack = PackWriter(mirror)
        if change.vendor is not None:
            refs[change.vendor.ref] = _vendor(change.vendor, change.identity, reader, pack)
        if change.merges:
            refs |= _merges(change, reader, pack)
    return Packed(refs, pack.finish())


def _vendor(
    vendor: VendorCommit, identity: Identity, reader: MirrorReader, pack: PackWriter
) -> str:
    root = reader.commit(vendor.parent).tree if vendor.parent else ""
    editor = TreeEditor(root, reader.raw_tree, pack)
    for path in vendor.drop:
        editor.drop(path)
    for path, tree in vendor.put.items():
        _require(reader, tree)
        editor.put(path, tree)
    parents = (vendor.parent,) if vendor.parent else ()
    data = commit_bytes(editor.write(), parents, identity, vendor.when, vendor.message)
    return pack.add(COMMIT, data).hex()


def _merges(change: RepositoryChange, reader: MirrorReader, pack: PackWriter) -> dict[str, str]:
    head = change.expected.get(change.branch, "")
    if not head:
        raise InvalidInput(
            f"branch {change.branch.removeprefix('refs/heads/')} is not there",
            reason="BranchMissing",
            remedy="push a first commit to it, or correct spec.branch of the Repository",
            where=Where(object=change.remote.url),
        )
    refs: dict[str, str] = {}
    editor = TreeEditor(reader.commit(head).tree, reader.raw_tree, pack)
    for merge in change.merges:
        head = _merge(merge, head, change.identity, editor, reader, pack, refs)
    return {**refs, change.branch: head}


def _merge(
    merge: Merge,
    head: str,
    identity: Identity,
    editor: TreeEditor,
    reader: MirrorReader,
    pack: PackWriter,
    tags: dict[str, str],
) -> str:
    """One commit for each 16 drafts, each on top of the one before; answers the last."""
    for start in range(0, len(merge.drafts) or 1, DRAFTS_PER_MERGE):
        drafts = merge.drafts[start : start + DRAFTS_PER_MERGE]
        if start + DRAFTS_PER_MERGE >= len(merge.drafts):
            for path in merge.drop:
                editor.drop(path)
        for draft in drafts:
            _require(reader, draft.commit)
            _require(reader, draft.tree)
            editor.put(draft.path, draft.tree)
        parents = (head, *(draft.commit for draft in drafts))
        data = commit_bytes(editor.write(), parents, identity, merge.when, merge.message)
        head = pack.add(COMMIT, data).hex()
        tags |= {draft.tag: head for draft in drafts}
    return head


def _require(reader: MirrorReader, oid: str) -> None:
    if not reader.has(oid):
        raise DamagedMirrorError(
            f"object {oid} is not in the mirror",
            reason="ObjectMissing",
            remedy="the next pass observes the repository again",
        )
