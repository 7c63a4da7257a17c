"""Two variants never share a path; whoever had it keeps it."""

import pytest

from fanout.selection.path_collisions import find_collisions, find_intrusions
from fanout.selection.variant_spec import VariantSpec


def variant(
    name: str, path: str, repository: str = "edge", namespace: str = "default"
) -> tuple[str, VariantSpec]:
    spec = VariantSpec(
        name, namespace, "p", "dev", f"Cluster//{name}", "up", "pkg", repository, path
    )
    return f"{repository}.git#refs/heads/main", spec


ROWS = [
    ("different paths are free", [("a", "x"), ("b", "y")], {}, set()),
    ("names that begin alike are not nested", [("a", "x"), ("b", "x-y")], {}, set()),
    ("one path for two is refused for both", [("a", "x"), ("b", "x")], {}, {"a", "b"}),
    ("the one that had the path keeps it", [("a", "x"), ("b", "x")], {"x": "b"}, {"a"}),
    ("one inside the other is refused for both", [("a", "x"), ("b", "x/y")], {}, {"a", "b"}),
    ("who is inside may have been there first", [("a", "x"), ("b", "x/y")], {"x/y": "b"}, {"a"}),
    ("three at one path are refused", [("a", "x"), ("b", "x"), ("c", "x")], {}, {"a", "b", "c"}),
    ("the whole repository is around everything", [("a", ""), ("b", "x/y")], {}, {"a", "b"}),
    ("upper and lower case are one path to some", [("a", "x"), ("b", "X")], {}, {"a", "b"}),
    ("case matters in no segment", [("a", "Team/x"), ("b", "team/X")], {"team/X": "b"}, {"a"}),
    ("inside but for case", [("a", "x"), ("b", "X/y")], {}, {"a", "b"}),
    ("two forms of one letter", [("a", "\u00e4"), ("b", "a\u0308")], {}, {"a", "b"}),
    ("both at once", [("a", "\u00c4"), ("b", "a\u0308")], {}, {"a", "b"}),
    ("letters that fold to several", [("a", "stra\u00dfe"), ("b", "STRASSE")], {}, {"a", "b"}),
    ("directories may differ in case", [("a", "Team/x"), ("b", "team/y")], {}, set()),
    ("others are not affected", [("a", "x"), ("b", "x"), ("c", "z")], {}, {"a", "b"}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "wanted", "had", "refused"), ROWS, ids=[r[0] for r in ROWS])
def test_collision(sentence, wanted, had, refused):
    holders = {("edge.git#refs/heads/main", path): ("default", had[path]) for path in had}
    collisions = find_collisions([variant(*one) for one in wanted], holders)
    assert {name for _, name in collisions} == refused


def test_variants_of_one_name_in_two_namespaces_are_two_variants():
    holders = {("edge.git#refs/heads/main", "x"): ("blue", "a")}
    wanted = [variant("a", "x", namespace="blue"), variant("a", "x", namespace="green")]
    assert set(find_collisions(wanted, holders)) == {("green", "a")}


def test_the_same_path_on_two_branches_is_one_path():
    wanted = [(f"edge.git#refs/heads/{it}", variant(it, "x")[1]) for it in ("main", "other")]
    assert {name for _, name in find_collisions(wanted, {})} == {"main", "other"}
    holders = {("edge.git#refs/heads/other", "x"): ("default", "other")}
    assert {name for _, name in find_collisions(wanted, holders)} == {"main"}


INTRUSIONS = [
    ("a free path", ["x"], ["y", "x-y", "z/x"], set()),
    ("the same path", ["x"], ["x", "y"], {"x"}),
    ("a path inside", ["x"], ["x/y/z"], {"x/y/z"}),
    ("a path around", ["x/y/z"], ["x"], {"x"}),
    ("the whole repository around", ["x/y"], [""], {""}),
    ("inside the whole repository", [""], ["x"], {"x"}),
    ("but for case", ["X/y"], ["x/Y"], {"x/Y"}),
    ("nobody is present", [], ["x", "x"], set()),
]


@pytest.mark.parametrize(
    ("sentence", "present", "wanted", "refused"), INTRUSIONS, ids=[r[0] for r in INTRUSIONS]
)
def test_intrusion(sentence, present, wanted, refused):
    intrusions = find_intrusions(
        [variant(path, path) for path in wanted], [variant(f"p-{it}", it) for it in present]
    )
    assert {name for _, name in intrusions} == refused


def test_the_sentence_says_why_two_spellings_are_one_path():
    sentence = find_collisions([variant("a", "x"), variant("b", "X")], {})["default", "a"]
    assert (
        "path x in repository edge differs only in case or Unicode form from that of variant b"
    ) in sentence


def test_the_sentence_names_the_other_variant_its_target_and_the_remedy():
    sentence = find_collisions([variant("a", "x"), variant("b", "x/y")], {})["default", "a"]
    assert "path x in repository edge overlaps that of variant b" in sentence
    assert "target Cluster//b" in sentence
    assert "downstream.package" in sentence


def test_the_sentence_names_nothing_of_another_namespace():
    claims = [variant("a", "x"), variant("secret", "x/y", namespace="hidden")]
    sentence = find_collisions(claims, {})["default", "a"]
    assert "overlaps that of a variant in another namespace, x/y;" in sentence
    assert "hidden" not in sentence
    assert "secret" not in sentence
