"""A process that stays sees every change, and parses only what changed."""

import os

from fanout.cluster.file_cluster import FileCluster

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


def test_what_did_not_change_is_the_same_value(tmp_path):
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
