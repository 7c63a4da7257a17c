"""Porch's objects as fanout's: what each becomes, and what goes with a field that cannot stay."""

from operator import itemgetter

import pytest
from migrate.porch_objects import REPOSITORIES, judge, lost, one, policy, porch, variant

from fanout.api.field_errors import FieldError, find_fields, format_path
from fanout.migrate.porch_import import PORCH_GROUP, find_expressions, import_porch_objects

UNKNOWN = [
    ("at the top", lambda item: item | {"spek": 1}, "spek"),
    ("in the spec", lambda item: item | {"spec": item["spec"] | {"a": 1}}, "spec.a"),
    ("in metadata", lambda item: item | {"metadata": {"name": "x", "a": 1}}, "metadata.a"),
]


@pytest.mark.parametrize(("_", "change", "field"), UNKNOWN, ids=map(itemgetter(0), UNKNOWN))
def test_a_field_that_porch_does_not_have_is_named(_, change, field):
    made, remarks = one(change(variant()))
    assert made is not None
    assert (field, True) in remarks


# ---- revisions -----------------------------------------------------------------------------------

W = {"workspaceName": "w"}
REVISIONS = [
    ("a number is a tag", {"revision": 3}, {"tag": "v3"}, []),
    ("written as Porch once did", {"revision": "v3"}, {"tag": "v3"}, []),
    (
        "a workspace beside it",
        {"revision": 3, "workspaceName": "w"},
        {"tag": "v3"},
        ["workspaceName"],
    ),
    ("a workspace alone", {"workspaceName": "w"}, None, ["workspaceName"]),
    ("a workspace like a tag", {"workspaceName": "v2"}, {"tag": "v2"}, ["workspaceName"]),
    ("zero is none", {"revision": 0, "workspaceName": "w"}, None, ["workspaceName"]),
    ("a version", {"revision": "v2.0.0"}, {"tag": "v2.0.0"}, []),
    ("a prerelease", {"revision": "v2.0.0-rc.1"}, {"tag": "v2.0.0-rc.1"}, []),
    ("no version", {"revision": "v1.2"}, None, ["revision"]),
    ("leading zeros", {"revision": "v03"}, None, ["revision"]),
    ("digits of another script", {"revision": "v\u0663"}, None, ["revision"]),
    ("a number that no version has", {"revision": 10**18}, None, ["revision"]),
    ("the branch's state by number", {"revision": -1}, {"latest": True}, ["revision"]),
    (
        "the branch's state by workspace",
        {"workspaceName": "main"},
        {"latest": True},
        ["workspaceName"],
    ),
    ("the branch's state in text", {"revision": "main"}, {"latest": True}, ["revision"]),
    (
        "the branch's state twice",
        {"revision": -1, "workspaceName": "main"},
        {"latest": True},
        ["revision"],
    ),
    (
        "a workspace beside the branch's number",
        {"revision": -1, "workspaceName": "v2"},
        {"tag": "v2"},
        ["workspaceName"],
    ),
    ("true is no number", {"revision": True}, None, ["revision"]),
    ("nothing", {}, None, [""]),
]


@pytest.mark.parametrize(
    ("_", "fields", "rule", "named"), REVISIONS, ids=map(itemgetter(0), REVISIONS)
)
def test_a_revision_is_a_tag(_, fields, rule, named):
    item = variant(upstream={"repo": "blueprints", "package": "base", **fields})
    made, _ = one(item)
    assert (made and made["spec"]["upstream"]["revision"]) == rule
    assert lost(item) == [f"spec.upstream.{field}".rstrip(".") for field in named]


# ---- sets ----------------------------------------------------------------------------------------


def test_all_targets_of_a_set_are_in_one_stage_and_that_is_noted():
    made, remarks = one(policy(REPOSITORIES, {"repositorySelector": {}}))
    assert made["spec"]["stages"] == [{"name": "all"}]
    assert [entry["template"]["stage"] for entry in made["spec"]["targets"]] == ["all", "all"]
    assert ("spec", False) in remarks


def template(**entry):
    return {**REPOSITORIES, "template": entry}


ADOPT, ADOPT_NOT = {"adoptionPolicy": "adoptExisting"}, {"adoptionPolicy": "adoptNone"}
DELETE, ORPHAN = {"deletionPolicy": "delete"}, {"deletionPolicy": "orphan"}
SHARED = [
    ("all the same", [ADOPT, ADOPT], "AdoptExisting", 0),
    ("one of them", [ADOPT, {}], "AdoptNone", 1),
    ("all differ", [ADOPT, ADOPT_NOT], "AdoptNone", 2),
    ("the default, once", [DELETE, {}], "Delete", 0),
    ("the careful one wins", [DELETE, ORPHAN], "Orphan", 2),
    ("one is no word", [DELETE, {"deletionPolicy": "burn"}], "Delete", 1),
]


@pytest.mark.parametrize(
    ("_", "templates", "value", "named"), SHARED, ids=map(itemgetter(0), SHARED)
)
def test_equal_fields_of_targets_become_a_field_of_the_policy(_, templates, value, named):
    item = policy(*(template(**each) for each in templates))
    made, _ = one(item, lambda _: ())
    field = next(iter(templates[0]))
    assert made["spec"][field] == value
    assert len(lost(item, lambda _: ())) == named


def test_an_expression_without_a_translation_takes_with_it_what_hangs_on_it():
    bad = "upstream.name"
    function = {"image": "set-labels", "configMapExprs": [{"key": "a", "valueExpr": bad}]}
    item = policy(
        {"repositorySelector": {}, "template": {"downstream": {"packageExpr": bad}}},
        {
            "repositorySelector": {},
            "template": {
                "labelExprs": [{"key": "a", "valueExpr": bad}, {"key": "b", "value": "c"}],
                "injectors": [{"kind": "A", "nameExpr": bad}],
                "pipeline": {"mutators": [function]},
            },
        },
    )
    made, _ = one(item)
    assert made["spec"]["targets"] == [
        {
            "repositorySelector": {},
            "template": {"stage": "all", "labelExprs": [{"key": "b", "value": "c"}]},
        }
    ]
    assert len(lost(item)) == 4


def test_the_expressions_of_an_object_are_found_and_nothing_else():
    item = policy(
        template(labels={"packageExpr": "no expression"}, downstream={"packageExpr": "'x'"})
    )
    expressions = list(find_expressions(one(item)[0]))
    assert [text for _, text in expressions] == ["'x'"]


# ---- what the judge finds ------------------------------------------------------------------------


def refusing(*patterns):
    """A judge that finds every value at these patterns at fault."""

    def by(data):
        return [
            FieldError(path, "is bad", "remove it")
            for p in patterns
            for path, _ in find_fields(data, p)
        ]

    return by


SELECTING, TAGGED = {"image": "a", "selectors": [{"kind": "A"}]}, {"image": "b", "tag": "t"}
TAKEN = [
    ("a function goes with its selectors", "mutators[*].selectors", [TAGGED]),
    ("a tag goes alone", "mutators[*].tag", [SELECTING, {"image": "b"}]),
    ("all functions", "mutators[*].image", None),
]


@pytest.mark.parametrize(("_", "pattern", "kept"), TAKEN, ids=map(itemgetter(0), TAKEN))
def test_a_function_that_loses_its_selector_is_omitted_too(_, pattern, kept):
    item = variant(pipeline={"mutators": [SELECTING, TAGGED]})
    made, _ = one(item, refusing(f"spec.pipeline.{pattern}"))
    assert made["spec"].get("pipeline", {}).get("mutators") == kept


def test_a_remark_names_porch_s_field_after_others_were_taken_out():
    item = policy(
        template(), template(injectors=[{"kind": "A", "name": "x"}]), template(labels={"a": "b"})
    )
    item["spec"]["targets"][0] = {"repositories": [{"name": "Bad Name"}]}
    assert lost(item, refusing("spec.targets[*].template.injectors[*].kind")) == [
        "spec.targets[1].template.injectors[0].kind"
    ]
    made, _ = one(item)
    assert len(made["spec"]["targets"]) == 2
    assert lost(item) == ["spec.targets[0].repositories[0].name", "spec.targets[0]"]


def test_an_object_goes_when_what_it_needs_is_bad():
    assert one(variant(downstream={"repo": "edge", "package": "../x"}))[0] is None
    assert one(porch("PackageVariant", {}, name="with.dots"))[0] is None
    assert one({"apiVersion": f"{PORCH_GROUP}/v1alpha1", "kind": "PackageVariant"})[0] is None


# ---- several objects -----------------------------------------------------------------------------


def test_a_repository_that_is_not_in_the_input_is_noted_once():
    second = variant() | {"metadata": {"name": "two"}}
    answer = import_porch_objects([variant(), second], judge)
    missing = [remark for _, remark in answer.remarks if "there is no Repository" in remark.problem]
    assert [format_path(remark.path) for remark in missing] == [
        "spec.upstream.repo",
        "spec.downstream.repo",
    ]
    assert answer.is_complete


def test_variants_of_a_set_come_with_it_or_as_if_written_by_hand():
    owners = [{"kind": "PackageVariantSet", "name": "one"}]
    made = variant() | {"metadata": {"name": "one-edge-base", "ownerReferences": owners}}
    both = import_porch_objects([made, policy(REPOSITORIES)], judge)
    assert [item["kind"] for item in both.objects] == ["UpstreamPolicy"]
    broken = import_porch_objects([made, policy()], judge)
    assert [item["kind"] for item in broken.objects] == ["PackageVariant"]


def test_of_two_objects_of_one_name_the_first_is_taken():
    other = variant(labels={"a": "b"})
    answer = import_porch_objects([variant(), other], judge)
    assert len(answer.objects) == 1
    assert "labels" not in answer.objects[0]["spec"]
    assert [(index, remark.is_lost) for index, remark in answer.remarks if remark.is_lost] == [
        (1, True)
    ]
    elsewhere = other | {"metadata": {"name": "one", "namespace": "else"}}
    assert len(import_porch_objects([variant(), elsewhere], judge).objects) == 2


@pytest.mark.parametrize(
    "junk", [None, 1, "x", [], {}, {"kind": []}, {"apiVersion": {}, "kind": 3}]
)
def test_an_item_that_is_no_object_gets_a_remark(junk):
    answer = import_porch_objects([junk], judge)
    assert answer.objects == ()
    assert not answer.is_complete
    [(_, remark)] = answer.remarks
    assert "is not an object" in remark.problem or "is not translated" in remark.problem
    assert "nothing" not in remark.problem


# ---- repetition ----------------------------------------------------------------------------------


def test_a_key_to_be_removed_twice_is_removed_once():
    made, remarks = one(variant(packageContext={"removeKeys": ["x", "a", "x", "x"]}))
    assert made["spec"]["packageContext"]["removeKeys"] == ["x", "a"]
    assert not [field for field, is_lost in remarks if is_lost]


def test_a_fault_behind_a_repeated_key_is_at_its_own_place():
    item = variant(packageContext={"removeKeys": ["x", "x", True, "a b"]})
    made, _ = one(item)
    assert made["spec"]["packageContext"]["removeKeys"] == ["x"]
    field = "spec.packageContext.removeKeys"
    assert lost(item) == [f"{field}[2]", f"{field}[3]"]
