"""Ids of trees of which only some files vary."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.package.tree_ids import TreeEntry, TreeTemplate, blob_id, tree_id

NAMES = st.sampled_from(["a", "a.b", "a-b", "b", "z", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
MODES = st.sampled_from(["100644", "100755"])


def possible(paths):
    """Is no path a file and a directory?"""
    return not any(other.startswith(f"{path}/") for path in paths for other in paths)


@given(st.dictionaries(PATHS, MODES, min_size=1).filter(possible), st.data())
def test_the_id_is_that_of_the_whole_tree(modes, data):
    varying = data.draw(st.sets(st.sampled_from(sorted(modes))))
    entries = {path: TreeEntry(mode, blob_id(path.encode())) for path, mode in modes.items()}
    form = TreeTemplate(entries, varying)
    for path in varying:
        entries[path] = TreeEntry(modes[path], blob_id(data.draw(st.binary(max_size=3))))
    assert form.compute_id(entries) == tree_id(entries)
