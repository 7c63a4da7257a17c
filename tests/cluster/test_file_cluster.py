"""A process that stays sees every change, and parses only what changed."""

import os

import pytest

from fanout.cluster.file_cluster import FileCluster

POLICY = """
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: edge, package: pkg, revision: {tag: ">=1.0.0"}}
  targets:
    - repositories: [{name: edge, packageNames: [agent]}]
"""
REPOSITORY = """
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: edge}
spec: {url: "https://git.example.com/edge.git"}
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: platform}
"""


def config_map(name):
    return CONFIG_MAP.replace("NAME", name)


def write(root, files):
    for name, text in files.items():
        (root / name).write_text(text)


def test_unchanged_files_yield_the_same_value(tmp_path):
    write(tmp_path, {"a.yaml": REPOSITORY, "b.yaml": config_map("one")})
    cluster = FileCluster([tmp_path])
    declared = cluster.read()
    assert cluster.read() is declared


def test_only_the_changed_file_is_parsed_again(tmp_path):
    write(tmp_path, {"a.yaml": REPOSITORY, "b.yaml": config_map("one")})
    cluster = FileCluster([tmp_path])
    before = cluster.read()
    write(tmp_path, {"b.yaml": config_map("two")})
    after = cluster.read()
    assert after.repositories[0] is before.repositories[0]
    assert list(after.objects.of_kind("", "ConfigMap")) == [("platform", "two")]


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec: {group: example.com, scope: SCOPE, names: {kind: Gadget}}
"""


def test_a_definition_that_is_corrected_changes_the_scope_of_its_kind(tmp_path):
    write(tmp_path, {"a.yaml": REPOSITORY, "b.yaml": DEFINITION.replace("SCOPE", "Cluster")})
    cluster = FileCluster([tmp_path])
    assert cluster.read().scopes == {("example.com", "Gadget"): False}
    write(tmp_path, {"b.yaml": DEFINITION.replace("SCOPE", "Namespaced")})
    assert cluster.read().scopes == {("example.com", "Gadget"): True}


def test_a_change_within_one_tick_of_the_clock_and_of_equal_size_is_seen(tmp_path):
    write(tmp_path, {"a.yaml": config_map("one")})
    cluster = FileCluster([tmp_path])
    cluster.read()
    status = (tmp_path / "a.yaml").stat()
    write(tmp_path, {"a.yaml": config_map("two")})
    os.utime(tmp_path / "a.yaml", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert list(cluster.read().objects.of_kind("", "ConfigMap")) == [("platform", "two")]


def test_files_that_come_go_and_break_are_seen(tmp_path):
    write(tmp_path, {"a.yaml": config_map("one")})
    cluster = FileCluster([tmp_path])
    assert len(cluster.read().objects) == 1
    write(tmp_path, {"b.yaml": config_map("two")})
    assert len(cluster.read().objects) == 2
    (tmp_path / "a.yaml").unlink()
    assert len(cluster.read().objects) == 1
    write(tmp_path, {"b.yaml": "{"})
    assert len(cluster.read().objects) == 0
    assert len(cluster.read().faults) == 1


def config(name, value, *, before=""):
    return f"{before}{config_map(name)}data: {{value: {value}}}\n---"


FILES = {
    "repository.yaml": REPOSITORY,
    "policy.yaml": POLICY,
    "a.yaml": config("one", "old") + config("two", "old"),
    "b.yaml": config("three", "old"),
}
CHANGES = {
    "content": {"a.yaml": config("one", "new") + config("two", "old")},
    "type of a value": {"a.yaml": config("one", "1") + config("two", "old")},
    "comment": {"b.yaml": "# a comment" + FILES["b.yaml"]},
    "order": {"a.yaml": config("two", "old") + config("one", "new")},
    "added object": {"a.yaml": FILES["a.yaml"] + config("four", "new")},
    "removed object": {"a.yaml": config("one", "new")},
    "renamed object": {"a.yaml": config("one", "new") + config("other", "old")},
    "other kind": {"b.yaml": FILES["b.yaml"].replace("ConfigMap", "Secret")},
    "emptied file": {"b.yaml": ""},
    "two files": {"a.yaml": config("one", "new") + config("two", "old"), "b.yaml": "[]"},
    "moved object": {"a.yaml": config("one", "new"), "b.yaml": config("two", "new")},
    "second declaration": {"b.yaml": config("three", "new") + config("one", "new")},
    "second declaration in the file": {"b.yaml": config("three", "new") + config("three", "old")},
    "own object": {"repository.yaml": REPOSITORY.replace("edge.git", "other.git")},
    "no own object": {"repository.yaml": config("three", "old")},
    "invalid own object": {"policy.yaml": POLICY.replace("upstream:", "downstream:")},
    "nameless object": {"b.yaml": FILES["b.yaml"].replace("name: three", "title: three")},
    "broken file": {"b.yaml": "{"},
    "new file": {"c.yaml": config("three", "new")},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("following", [{"b.yaml": config("three", "new")}, FILES], ids=["b", "all"])
def test_a_process_that_stays_reads_what_a_new_one_reads(tmp_path, changes, following):
    write(tmp_path, FILES)
    cluster = FileCluster([tmp_path])
    cluster.read()
    for files in (changes, following):
        write(tmp_path, files)
        staying, fresh = cluster.read(), FileCluster([tmp_path]).read()
        kinds = staying.objects.kinds()
        assert kinds == fresh.objects.kinds()
        for kind in kinds:
            present, expected = (it.objects.of_kind(*kind) for it in (staying, fresh))
            assert repr(present) == repr(expected)
        assert staying.own_count == fresh.own_count
        assert [staying.repositories, staying.policies] == [fresh.repositories, fresh.policies]
        assert (staying.faults, staying.left_out) == (fresh.faults, fresh.left_out)
        assert (staying.unread, staying.unusable) == (fresh.unread, fresh.unusable)
