"""Which files are read, and which are refused."""

import os
from pathlib import Path

from fanout.cluster.manifest_discovery import ManifestDiscovery


def tree(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    return root


def names(discovered, root):
    return [str(path.relative_to(root)) for path in discovered.files]


def test_manifests_at_any_depth_in_sorted_order(tmp_path):
    tree(tmp_path, "b.yaml", "a/z.yml", "a/b/c.json", "a.yaml", "README.md", "a/kustomization.yaml")
    manifests = ManifestDiscovery([tmp_path])
    assert names(manifests, tmp_path) == ["a/b/c.json", "a/z.yml", "a.yaml", "b.yaml"]
    assert manifests.findings == []


def test_hidden_files_and_directories_are_skipped(tmp_path):
    tree(tmp_path, ".git/config.yaml", ".hidden.yaml", "a/.fanout/x.yaml", "a/b.yaml")
    assert names(ManifestDiscovery([tmp_path]), tmp_path) == ["a/b.yaml"]


def test_a_file_that_is_named_is_read_whatever_it_is_called(tmp_path):
    tree(tmp_path, "policy")
    assert names(ManifestDiscovery([tmp_path / "policy"]), tmp_path) == ["policy"]


def test_a_file_reached_twice_is_read_once(tmp_path):
    tree(tmp_path, "a/x.yaml", "b.yaml")
    (tmp_path / "c.yaml").symlink_to("b.yaml")
    (tmp_path / "d").symlink_to("a")
    manifests = ManifestDiscovery([tmp_path, tmp_path / "a", tmp_path / "b.yaml"])
    assert names(manifests, tmp_path) == ["a/x.yaml", "b.yaml"]
    assert manifests.findings == []


def test_files_of_a_mounted_config_map_are_read(tmp_path):
    tree(tmp_path, "..2024_01/policy.yaml")
    (tmp_path / "..data").symlink_to("..2024_01")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    manifests = ManifestDiscovery([tmp_path])
    assert names(manifests, tmp_path) == ["policy.yaml"]
    assert manifests.findings == []


def test_a_directory_that_is_a_link_itself_may_be_named(tmp_path):
    tree(tmp_path, "real/a.yaml")
    (tmp_path / "link").symlink_to("real")
    assert names(ManifestDiscovery([tmp_path / "link"]), tmp_path) == ["link/a.yaml"]


def test_a_link_out_of_the_directory_is_refused(tmp_path):
    tree(tmp_path, "outside/secret.yaml", "in/a.yaml")
    (tmp_path / "in/file.yaml").symlink_to("../outside/secret.yaml")
    (tmp_path / "in/more").symlink_to("../outside")
    (tmp_path / "in/notes").symlink_to("../outside/secret.yaml")  # nobody would read it
    manifests = ManifestDiscovery([tmp_path / "in"])
    assert names(manifests, tmp_path) == ["in/a.yaml"]
    assert [(finding.where.file, finding.problem) for finding in manifests.findings] == [
        (str(tmp_path / "in/file.yaml"), "is a symlink to a path outside the directory"),
        (str(tmp_path / "in/more"), "is a symlink to a path outside the directory"),
    ]


def test_a_neighbour_whose_name_begins_alike_is_outside(tmp_path):
    tree(tmp_path, "in-side/secret.yaml", "in/a.yaml")
    (tmp_path / "in/b.yaml").symlink_to("../in-side/secret.yaml")
    manifests = ManifestDiscovery([tmp_path / "in"])
    assert names(manifests, tmp_path) == ["in/a.yaml"]
    assert len(manifests.findings) == 1


def test_a_circle_of_links_ends(tmp_path):
    tree(tmp_path, "a/b/x.yaml")
    (tmp_path / "a/b/up").symlink_to("..")
    assert names(ManifestDiscovery([tmp_path]), tmp_path) == ["a/b/x.yaml"]


def test_a_link_to_nothing_a_pipe_and_a_missing_root_are_reported(tmp_path):
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    manifests = ManifestDiscovery([tmp_path, tmp_path / "missing"])
    assert not manifests.files
    missing = "cannot be read: No such file or directory"
    assert [(Path(it.where.file).name, it.problem) for it in manifests.findings] == [
        ("gone.yaml", missing),
        ("pipe.yaml", "is not a regular file"),
        ("missing", "does not exist"),
    ]
