"""Plain objects of many files: put together step by step as if they were read all at once."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fanout.cluster.file_cluster import merge_objects
from fanout.cluster.manifest_documents import read_content
from fanout.declared.declared_objects import ObjectKey
from fanout.selection.cluster_objects import ClusterObjectIndex

KINDS = ("ConfigMap", "Site")
ROW = "apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\ndata: {{value: {value}}}\n"
objects = st.tuples(st.sampled_from(KINDS), st.sampled_from("abc"), st.sampled_from("xy"))
files = st.dictionaries(st.sampled_from("123"), st.lists(objects, max_size=3).map(tuple))


def contents(objects_by_file, previous):
    """Each file's content, the same value for the same text."""
    read = {}
    for name, rows in sorted(objects_by_file.items()):
        text = "---\n".join(ROW.format(kind=kind, name=at, value=v) for kind, at, v in rows)
        if (name, text) not in previous:
            previous[name, text] = read_content(text.encode(), name)
        read[name] = previous[name, text]
    return read


def summarize(stock):
    kinds = {kind: list(stock.index.of_kind("", kind).items()) for kind in KINDS}
    return kinds, dict(stock.duplicates)


@given(st.lists(files, min_size=1, max_size=6))
@example([{"1": [("Site", "a", "x")], "2": [("Site", "a", "y")]}, {"2": [("Site", "a", "y")]}])
@example([{"1": [("Site", "a", "x"), ("Site", "a", "y")]}, {"1": [("Site", "a", "x")]}])
@example([{"1": [("Site", "b", "x")]}, {"1": [("Site", "b", "x")], "2": [("Site", "a", "x")]}])
@example([{"1": [("Site", "a", "x")]}, {}])
def test_every_step_is_what_reading_at_once_yields(steps):
    previous: dict[str, Any] = {}
    index = ClusterObjectIndex()
    for objects_by_file in steps:
        now = contents(objects_by_file, previous)
        stock = merge_objects(now, index)
        assert summarize(stock) == summarize(merge_objects(now, ClusterObjectIndex()))
        index = stock.index


def test_duplicate_objects_are_unused_and_their_files_are_named():
    file_contents = contents({"1": [("Site", "a", "x")], "2": [("Site", "a", "x")]}, {})
    stock = merge_objects(file_contents, ClusterObjectIndex())
    assert len(stock.index) == 0
    assert stock.duplicates == {ObjectKey("", "Site", "default", "a"): ("1", "2")}
