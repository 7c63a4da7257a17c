"""Cluster objects are told apart by what they hold, from one reading to the next."""

from fanout.selection.cluster_objects import ClusterObjectIndex, group_by_kind

KEY = "/ConfigMap/platform/eu"


def config_map(value):
    meta = {"name": "eu", "namespace": "platform"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


def version(index):
    return index.content_hashes.hash_of(KEY, index.get("", "ConfigMap", "platform", "eu")["data"])


def test_the_version_is_that_of_what_the_object_holds_now():
    first = ClusterObjectIndex([config_map("a")])
    before = version(first)
    second = first.with_objects(group_by_kind([config_map("b")]))
    assert version(second) != before
    assert version(first) == before
    assert version(second.with_objects(group_by_kind([config_map("a")]))) == before


def test_hashes_of_deleted_objects_are_dropped():
    index = ClusterObjectIndex([config_map("a")])
    for number in range(100):
        index.content_hashes.hash_of(f"/ConfigMap/platform/{number}", {})
    after = index.with_objects(group_by_kind([config_map("a")]))
    assert version(after) == version(index)
    assert len(after.content_hashes) == 1
