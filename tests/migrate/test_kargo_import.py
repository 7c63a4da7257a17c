"""Kargo's objects as fanout's: gates mean the same, and what would open one is left out."""

from operator import itemgetter

import pytest
from migrate.kargo_objects import (
    WAREHOUSE,
    imported,
    judge,
    kargo,
    policy,
    stage,
    subscribed,
)

from fanout.migrate.kargo_fields import KARGO_GROUP
from fanout.migrate.kargo_import import import_kargo_objects

# ---- when a stage may take a revision ------------------------------------------------------------

ANY, ALL = {"require": "Any"}, {"require": "All"}
SOURCES = [
    ("straight from the Warehouse", {"direct": True}, None),
    ("one stage before", {"stages": ["a"]}, {"stages": ["a"]}),
    ("two, and nothing said: one is enough", {"stages": ["a", "b"]}, {"stages": ["a", "b"], **ANY}),
    (
        "two, one is enough",
        {"stages": ["a", "b"], "availabilityStrategy": "OneOf"},
        {"stages": ["a", "b"], **ANY},
    ),
    (
        "two, said to be nothing",
        {"stages": ["a", "b"], "availabilityStrategy": ""},
        {"stages": ["a", "b"], **ANY},
    ),
    (
        "two, all are needed",
        {"stages": ["a", "b"], "availabilityStrategy": "All"},
        {"stages": ["a", "b"], **ALL},
    ),
    ("the same twice is one", {"stages": ["a", "a"]}, {"stages": ["a"]}),
    ("a soak", {"stages": ["a"], "requiredSoakTime": "90m"}, {"stages": ["a"], "soak": "1h30m"}),
    ("a fraction", {"stages": ["a"], "requiredSoakTime": "0.5h"}, {"stages": ["a"], "soak": "30m"}),
    ("any order", {"stages": ["a"], "requiredSoakTime": "5m1h"}, {"stages": ["a"], "soak": "1h5m"}),
    (
        "half a second",
        {"stages": ["a"], "requiredSoakTime": "0.5s"},
        {"stages": ["a"], "soak": "1s"},
    ),
    ("no time", {"stages": ["a"], "requiredSoakTime": "0s"}, {"stages": ["a"]}),
    ("direct wins", {"direct": True, "stages": ["a"], "requiredSoakTime": "1h"}, None),
]


@pytest.mark.parametrize(("_", "sources", "after"), SOURCES, ids=map(itemgetter(0), SOURCES))
def test_sources_become_what_must_come_before(_, sources, after):
    item = stage("prod")
    item["spec"]["requestedFreight"][0]["sources"] = sources
    spec, lost = policy(stage("a"), stage("b"), item)
    stage_spec = next(it for it in spec["stages"] if it["name"] == "prod")
    assert stage_spec == ({"name": "prod", "after": after} if after else {"name": "prod"})
    assert lost == []


LEFT_OUT = [
    ("no source at all", {}, "sources"),
    ("no stage in the list", {"stages": []}, "sources"),
    ("a stage that is not there", {"stages": ["nowhere"]}, "sources.stages[0]"),
    ("itself", {"stages": ["prod"]}, "sources.stages[0]"),
    ("one of two is not there", {"stages": ["a", "nowhere"]}, "sources.stages[1]"),
    ("no list", {"stages": "a"}, "sources.stages"),
    (
        "no strategy",
        {"stages": ["a"], "availabilityStrategy": "Most"},
        "sources.availabilityStrategy",
    ),
    ("no duration", {"stages": ["a"], "requiredSoakTime": "1d"}, "sources.requiredSoakTime"),
    ("a number", {"stages": ["a"], "requiredSoakTime": 60}, "sources.requiredSoakTime"),
    ("eleven years", {"stages": ["a"], "requiredSoakTime": "96360h"}, "sources.requiredSoakTime"),
]


@pytest.mark.parametrize(("_", "sources", "field"), LEFT_OUT, ids=map(itemgetter(0), LEFT_OUT))
def test_a_stage_whose_gate_is_not_understood_is_left_out(_, sources, field):
    item = stage("prod")
    item["spec"]["requestedFreight"][0]["sources"] = sources
    spec, lost = policy(stage("a"), item)
    assert [it["name"] for it in spec["stages"]] == ["a"]
    assert [it["template"]["stage"] for it in spec["targets"]] == ["a"]
    assert ("prod", f"spec.requestedFreight[0].{field}") in lost


def test_a_stage_after_an_omitted_stage_is_omitted_too():
    spec, _ = policy(stage("a"), stage("b", "nowhere"), stage("c", "b"), stage("d", "a", "c"))
    assert [it["name"] for it in spec["stages"]] == ["a"]


@pytest.mark.parametrize("entry", [{"name": "dev"}, ["dev"]], ids=["object", "list"])
def test_a_stage_after_something_that_is_no_name_is_left_out(entry):
    spec, lost = policy(stage("dev"), stage("prod", entry))
    assert [it["name"] for it in spec["stages"]] == ["dev"]
    assert ("prod", "spec.requestedFreight[0].sources") in lost


def test_stages_in_a_circle_are_left_out():
    spec, lost = policy(stage("a"), stage("b", "c"), stage("c", "b"))
    assert [it["name"] for it in spec["stages"]] == ["a"]
    assert ("b", "spec.requestedFreight[0].sources.stages[0]") in lost


def test_stages_stand_in_the_order_of_promotion():
    spec, _ = policy(stage("c", "b"), stage("b", "a"), stage("a"))
    assert [it["name"] for it in spec["stages"]] == ["a", "b", "c"]


# ---- control-flow stages -------------------------------------------------------------------------


def test_a_stage_without_steps_joins_and_has_no_target():
    joining = stage("join", "a", "b", steps=[], availabilityStrategy="All")
    spec, lost = policy(stage("a"), stage("b"), joining, stage("c", "join"))
    after = {"stages": ["a", "b"], "require": "All"}
    assert spec["stages"][2] == {"name": "join", "after": after, "controlFlow": True}
    assert [it["template"]["stage"] for it in spec["targets"]] == ["a", "b", "c"]
    assert lost == []


def test_a_join_without_upstream_stages_is_omitted_with_the_references_to_it():
    passing, further = stage("all", steps=[]), stage("more", "all", steps=[])
    spec, lost = policy(passing, further, stage("a", "more"), stage("b", "a", "all"))
    assert spec["stages"] == [{"name": "a"}, {"name": "b", "after": {"stages": ["a"]}}]
    assert lost == [("all", "spec"), ("more", "spec")]


def test_a_soak_after_what_joins_nothing_shuts_the_stage():
    spec, _ = policy(stage("all", steps=[]), stage("a"), stage("b", "all", requiredSoakTime="1h"))
    assert [it["name"] for it in spec["stages"]] == ["a"]


# ---- checks --------------------------------------------------------------------------------------


def verified(*templates, **more):
    verification = {"analysisTemplates": [{"name": name} for name in templates], **more}
    return {"verification": verification}


def test_analysis_templates_become_checks_that_are_reported():
    made, _, noted = imported(stage("a", spec=verified("smoke", "load.test", "smoke")))
    [stage_spec] = made["UpstreamPolicy"][0]["spec"]["stages"]
    assert stage_spec["verification"] == [
        {"name": "smoke", "report": {}},
        {"name": "load-test", "report": {}},
    ]
    assert [field for _, field in noted] == [
        f"spec.verification.analysisTemplates[{index}].name" for index in (0, 1)
    ]


def test_a_stage_goes_with_a_check_that_cannot_be_named():
    spec, lost = policy(stage("a"), stage("b", "a", spec=verified("Smoke Test")))
    assert [it["name"] for it in spec["stages"]] == ["a"]
    assert ("b", "spec.verification.analysisTemplates[0].name") in lost


# ---- upstream ------------------------------------------------------------------------------------

REVISIONS = [
    ("a range", {"semverConstraint": "^1.2"}, {"semver": "^1.2"}),
    ("a comma is AND", {"semverConstraint": ">=1.2, <2"}, {"semver": ">=1.2 <2"}),
    ("from and to", {"semverConstraint": "1.2 - 1.4 || 3.x"}, {"semver": ">=1.2 <=1.4 || 3.x"}),
    ("any version", {}, {"latest": True}),
    ("the branch", {"commitSelectionStrategy": "NewestFromBranch"}, {"latest": True}),
    ("by age", {"commitSelectionStrategy": "NewestTag"}, {"latest": True}),
    (
        "a constraint that Kargo does not read",
        {"commitSelectionStrategy": "Lexical", "semverConstraint": "^1"},
        {"latest": True},
    ),
]


@pytest.mark.parametrize(("_", "git", "rule"), REVISIONS, ids=map(itemgetter(0), REVISIONS))
def test_a_subscription_becomes_a_rule_for_tags(_, git, rule):
    answer = import_kargo_objects([subscribed(**git), stage("a")], lambda _: ())
    [made] = [it for it in answer.objects if it["kind"] == "UpstreamPolicy"]
    assert made["spec"]["upstream"] == {"repository": "in", "package": "app", "revision": rule}
    assert not answer.is_complete  # somebody has to tag the package


PACKAGES = [
    ("one path", ["apps/web"], "apps/web"),
    ("one directory", ["/apps/web/"], "apps/web"),
    ("none", [], "fill-in-app"),
    ("two", ["a", "b"], "fill-in-app"),
    ("a pattern", ["glob:apps/*"], "fill-in-app"),
    ("outside", ["../a"], "fill-in-app"),
    ("all", ["/"], "fill-in-app"),
]


@pytest.mark.parametrize(("_", "paths", "package"), PACKAGES, ids=map(itemgetter(0), PACKAGES))
def test_a_single_plain_include_path_becomes_the_package(_, paths, package):
    answer = import_kargo_objects([subscribed(includePaths=paths), stage("a")], lambda _: ())
    [made] = [it for it in answer.objects if it["kind"] == "UpstreamPolicy"]
    assert made["spec"]["upstream"]["package"] == package


UNUSABLE = [
    ("no URL", {"repoURL": 3}),
    ("a URL without a host", {"repoURL": "https:///a.git"}),
    ("no branch", {"branch": 3}),
    ("a branch that Git refuses", {"branch": "a..b"}),
    ("a branch without end", {"branch": "b" * 256}),
]


@pytest.mark.parametrize(("_", "git"), UNUSABLE, ids=map(itemgetter(0), UNUSABLE))
def test_a_repository_that_nobody_could_read_is_to_be_filled_in(_, git):
    made = import_kargo_objects([subscribed(**git), stage("a")], judge).objects
    assert [it["metadata"]["name"] for it in made] == ["out", "fill-in", "app"]
    assert made[2]["spec"]["upstream"]["repository"] == "fill-in"


def test_a_url_with_a_token_comes_nowhere():
    answer = import_kargo_objects(
        [subscribed(repoURL="https://secret@git.example.com/a.git"), stage("a")], lambda _: ()
    )
    assert "secret@" not in str(answer.objects)
    assert not answer.is_complete


def test_without_its_warehouse_a_policy_has_its_stages():
    answer = import_kargo_objects([stage("a")], lambda _: ())
    [made] = [it for it in answer.objects if it["kind"] == "UpstreamPolicy"]
    assert made["metadata"] == {"name": "app"}
    assert made["spec"]["upstream"]["repository"] == "fill-in"
    assert made["spec"]["stages"] == [{"name": "a"}]


def test_a_stage_of_two_warehouses_is_in_two_policies():
    both = stage("a")
    second = {"origin": {"kind": "Warehouse", "name": "other"}, "sources": {"stages": ["z"]}}
    both["spec"]["requestedFreight"].append(second)
    made, lost, _ = imported(both, stage("z", origin="other"))
    stages = {it["metadata"]["name"]: it["spec"]["stages"] for it in made["UpstreamPolicy"]}
    assert stages["app"] == [{"name": "a"}]
    assert stages["other"] == [{"name": "z"}, {"name": "a", "after": {"stages": ["z"]}}]
    assert ("a", "spec.requestedFreight") in lost


def test_a_remark_on_a_second_request_names_the_second():
    both = stage("a")
    second = {"origin": {"name": "other"}, "sources": {"stages": ["x"], "requiredSoakTime": "?"}}
    both["spec"]["requestedFreight"].append(second)
    _, lost, _ = imported(both)
    assert ("a", "spec.requestedFreight[1].sources.requiredSoakTime") in lost


# ---- other objects -------------------------------------------------------------------------------

OTHERS = [
    ("freight", kargo("Freight", {}), "kind", True),
    ("a promotion", kargo("Promotion", {}), "kind", True),
    (
        "an approval",
        kargo("Freight", {}) | {"status": {"approvedFor": {"a": {}}}},
        "status.approvedFor",
        True,
    ),
    ("a task", kargo("PromotionTask", {}), "kind", True),
    ("a Project", kargo("Project", {}), "kind", False),
    (
        "an old Project",
        kargo("Project", {"promotionPolicies": [{"stage": "a"}]}),
        "spec.promotionPolicies",
        True,
    ),
    ("a Stage of another version", {**stage("a"), "apiVersion": f"{KARGO_GROUP}/v2"}, "kind", True),
    ("what goes", kargo("Stage", {}, deletionTimestamp="x"), "metadata.deletionTimestamp", True),
    ("a Stage without requests", kargo("Stage", {}), "spec.requestedFreight", True),
    ("a Warehouse that nobody asks", kargo("Warehouse", {}), "", True),
    (
        "fanout's own",
        {**kargo("Stage", {}), "apiVersion": "fanout.dev/v1alpha1"},
        "apiVersion",
        True,
    ),
]


@pytest.mark.parametrize(("_", "item", "field", "is_lost"), OTHERS, ids=map(itemgetter(0), OTHERS))
def test_an_object_without_a_counterpart_is_named(_, item, field, is_lost):
    made, lost, noted = imported(stage("x"), item)
    assert [it["metadata"]["name"] for it in made["UpstreamPolicy"]] == ["app"]
    assert (item["metadata"]["name"], field) in (lost if is_lost else noted)


def test_projects_do_not_see_each_other():
    far = stage("b", "a") | {"metadata": {"name": "b", "namespace": "far"}}
    spec, _ = policy(stage("a"), far)
    assert [it["name"] for it in spec["stages"]] == ["a"]


@pytest.mark.parametrize(
    "junk", [None, 1, "x", [], {}, {"kind": []}, {"apiVersion": {}, "kind": 3}]
)
def test_an_item_that_is_no_object_gets_a_remark(junk):
    answer = import_kargo_objects([junk, WAREHOUSE], lambda _: ())
    assert answer.objects == ()
    assert {index for index, _ in answer.remarks} == {0, 1}
