"""What a merge notes about files that mean something else than they look like."""

import pytest

from fanout.package.merge.package_update import merge_packages

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n  namespace: {}\ndata:\n  a: b\n"
BASE = {"keep.yaml": ("100644", CONFIG.format("keep", "shop").encode())}
NEWER = {"keep.yaml": ("100644", CONFIG.format("keep", "shop").replace("a: b", "a: c").encode())}


def noted(path: str, text: str) -> list[str]:
    """The notes of a merge in which the file was added here, and something changed upstream."""
    local = {**BASE, path: ("100644", text.encode())}
    result = merge_packages(BASE, NEWER, local)
    assert result.files == {**NEWER, path: local[path]}
    assert result.conflicts == ()
    return list(result.notes)


@pytest.mark.parametrize("word", ["n", "y", "on", "off", "yes", "No", "true"])
@pytest.mark.parametrize("field", ["name", "namespace"])
def test_an_object_whose_name_is_a_boolean_is_noted(word: str, field: str):
    names = [word, "shop"] if field == "name" else ["web", word]
    [note] = noted("odd.yaml", CONFIG.format(*names))
    assert note.startswith(f"odd.yaml:1: metadata.{field} of this ConfigMap is a boolean (")
    assert noted("odd.yaml", CONFIG.format(*(f'"{it}"' for it in names))) == []


def test_a_name_of_digits_is_noted():
    [note] = noted("odd.yaml", CONFIG.format("123", "shop"))
    assert "is a number in Kubernetes" in note


def test_an_odd_name_from_upstream_is_noted():
    odd = {"odd.yaml": ("100644", CONFIG.format("on", "shop").encode())}
    local = {**BASE, "more.yaml": ("100644", CONFIG.format("more", "shop").encode())}
    [note] = merge_packages(BASE, {**BASE, **odd}, local).notes
    assert note.startswith("odd.yaml:1: metadata.name")


NO_KRM = [
    ("a mapping", "values.yaml", "a: 1\n", "contains no KRM object"),
    ("a list", "values.yml", "- 1\n", "contains no KRM object"),
    ("nothing", "values.yaml", "# later\n", "contains no KRM object"),
    ("a template", "web.yaml", "kind: {{ .Kind }}: x\n", "not readable as YAML"),
]


@pytest.mark.parametrize(("_", "path", "text", "note"), NO_KRM, ids=[row[0] for row in NO_KRM])
def test_a_local_file_that_is_no_krm_is_kept_and_noted(_, path, text, note):
    assert noted(path, text) == [f"{path}: {note}; kept unchanged"]


OBJECTS = [
    ("an object", "web.yaml", CONFIG.format("web", "shop")),
    ("plain text", "notes.txt", "a: 1\n"),
    ("JSON", "dashboard.json", '{"a": 1}\n'),
]


@pytest.mark.parametrize(("_", "path", "text"), OBJECTS, ids=[row[0] for row in OBJECTS])
def test_an_object_or_a_file_of_another_kind_is_not_noted(_, path, text):
    assert noted(path, text) == []


def test_an_unchanged_doubtful_file_is_not_noted_again():
    values = {"values.yaml": ("100644", b"a: 1\n")}
    more = {"more.yaml": ("100644", CONFIG.format("more", "shop").encode())}
    result = merge_packages({**BASE, **values}, {**NEWER, **values}, {**BASE, **values, **more})
    assert result.notes == ()


def test_a_mark_of_kpt_that_went_with_its_object_is_not_noted():
    marked = CONFIG.format("web", "shop").replace("metadata:", "metadata: # kpt-merge: shop/web")
    plain = {"web.yaml": ("100644", CONFIG.format("web", "shop").encode())}
    local = {**BASE, "web.yaml": ("100644", marked.encode())}
    assert merge_packages({**BASE, **plain}, BASE, local).notes == ()
