"""Makes publications and the vendor branch in process, from trees that are there."""

from fanout.git.commits import commit_bytes
from fanout.git.engine import batches
from fanout.git.pack import COMMIT, PackWriter
from fanout.git.reader import MirrorReader
from fanout.git.rows import ReadTree
from fanout.git.trees import TreeEditor
from fanout.plan.repository import RepositoryChange


def write_vendor(
    change: RepositoryChange, reader: MirrorReader, read: ReadTree, pack: PackWriter
) -> str:
    """Write the vendor commit; answers its id. Raises InvalidInput when a file is in the way."""
    vendor = change.vendor
    assert vendor is not None, "asked for only where there is one"
    editor = TreeEditor(reader.commit(vendor.parent).tree if vendor.parent else "", read)
    for path in vendor.drop:
        editor.drop(path)
    for path, tree in vendor.put.items():
        editor.put(path, tree)
    parents = (vendor.parent,) if vendor.parent else ()
    tree = editor.write(pack).hex()
    data = commit_bytes(tree, parents, change.identity, vendor.when, vendor.message)
    return pack.add(COMMIT, data).hex()


def write_merges(
    change: RepositoryChange, reader: MirrorReader, read: ReadTree, pack: PackWriter
) -> dict[str, str]:
    """Write the chain of merge commits; answers the ids of the branch and of all tags.

    Raises InvalidInput when a file is in a package's way.
    """
    head = change.expected[change.branch]
    refs: dict[str, str] = {}
    editor = TreeEditor(reader.commit(head).tree, read)
    for batch in batches(change.merges):
        for path in batch.drop:
            editor.drop(path)
        for draft in batch.drafts:
            editor.put(draft.path, draft.tree)
        parents = (head, *(draft.commit for draft in batch.drafts))
        tree = editor.write(pack).hex()
        data = commit_bytes(tree, parents, change.identity, batch.when, batch.message)
        head = pack.add(COMMIT, data).hex()
        refs |= {draft.tag: head for draft in batch.drafts}
    return {**refs, change.branch: head}
