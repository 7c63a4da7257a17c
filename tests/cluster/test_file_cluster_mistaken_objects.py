"""Objects that are nearly right: what is told, and that they are not lost in silence."""

from pathlib import Path

import pytest

from fanout.cluster.file_cluster import FileCluster
from fanout.declared.declared_objects import DeclaredObjects


def read(root: Path, text: str) -> tuple[DeclaredObjects, list[str]]:
    """What one file declares, and what is told of it."""
    (root / "a.yaml").write_text(text, encoding="utf-8")
    declared = FileCluster([root]).read()
    return declared, [str(fault).removeprefix(f"{root}/a.yaml:") for fault in declared.faults]


def test_labels_that_are_no_text_are_reported_and_the_object_is_there(tmp_path: Path):
    """An API server takes none of them; the object is not taken away for it."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  labels:\n    tier: 1\n"
        "    on: 'yes'\n    \"false\": x\n    ready: true\n    none:\n  annotations: [a]\n"
    )
    declared, problems = read(tmp_path, text)
    assert [line.replace("ConfigMap/one: metadata.", "") for line in problems] == [
        "6: labels.tier: expected a string, got number `1`; quote it",
        "7: labels.on: expected a string as key, got boolean `on`; quote it",
        "9: labels.ready: expected a string, got boolean `true`; quote it",
        "10: labels.none: has no value; set a value, or remove the key",
        "11: annotations: expected an object; write keys and values",
    ]
    assert len(declared.objects) == 1
    assert declared.unread == ()


def test_a_key_of_an_object_of_ours_that_yaml_takes_for_another_is_reported(tmp_path: Path):
    text = (
        "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
        "metadata: {name: edge, labels: {on: x, 'true-ish': z}}\nspec: {url: /x}\n"
    )
    declared, problems = read(tmp_path, text)
    at = "3: Repository/edge: metadata.labels.on: "
    assert problems == [f"{at}expected a string as key, got boolean `on`; quote it"]
    assert [key.name for key in declared.left_out] == ["edge"]


GROUPS = [
    ("a misspelt group", "fanout.io/v1alpha1", True),
    ("a version alone", "v1alpha1", True),
    ("another version", "fanout.dev/v2", True),
    ("the group alone", "fanout.dev", True),
    ("a group of others", "config.porch.kpt.dev/v1alpha1", False),
]


@pytest.mark.parametrize(("_", "version", "ours"), GROUPS, ids=[row[0] for row in GROUPS])
def test_an_object_of_ours_under_another_version_is_not_taken_for_a_cluster_s(
    tmp_path: Path, _, version: str, ours: bool
):
    """A PromotionPolicy that nobody reads would have restricted somebody."""
    text = f"apiVersion: {version}\nkind: PromotionPolicy\nmetadata: {{name: p}}\nspec: {{}}\n"
    declared, problems = read(tmp_path, text)
    fault = f"1: PromotionPolicy/p: apiVersion: unsupported apiVersion {version}; write fanout.dev/"
    assert [line.startswith(fault) for line in problems] == [True] * ours
    assert [key.kind for key in declared.left_out] == ["PromotionPolicy"] * ours
    assert len(declared.objects) == (not ours)


def test_a_missing_version_of_our_kind_is_reported_with_our_version(tmp_path: Path):
    _, problems = read(tmp_path, "kind: Repository\nmetadata: {name: edge}\nspec: {url: /x}\n")
    version = "apiVersion: is missing or not a string; write fanout.dev/v1alpha1"
    assert problems == [f"1: Repository/edge: {version}"]
