"""A PackageVariant written by hand belongs to no policy and no stage, and nothing says it does."""

import pytest
from fleet import PROMOTION, Fleet

MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: mine}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""


@pytest.fixture
def alone(fleet: Fleet) -> Fleet:
    """One variant written by hand, which a PromotionPolicy publishes by name; no policy."""
    fleet.remove("policy.yaml")
    fleet.write("mine.yaml", MINE)
    fleet.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    return fleet


def test_no_step_of_it_is_printed_as_a_step_of_a_policy_or_a_stage(alone: Fleet):
    outputs = []
    for _ in range(4):
        plan = alone.plan("-o", "json").json["actions"]
        assert all(it.get("variant") == "mine" for it in plan)
        assert not any(it.get("policy") or it.get("stage") for it in plan)
        outputs.append(alone.plan().out)
        outputs.append(alone.sweep("-v").out)
    text = "".join(outputs)
    assert alone.published() == {"own/mine": "v1"}
    assert "Release   -        -       mine     v1\n" in text
    assert "record that variant mine has passed v1\n" in text
    assert "stage mine" not in text


def test_a_variant_of_no_policy_is_explained_as_a_variant(alone: Fleet):
    alone.settle()
    outputs = alone.run("explain", "mine").out
    assert outputs.startswith("Variant mine: ")


def test_errors_of_a_variant_of_no_policy_name_it_once(alone: Fleet):
    alone.release("v2", {"deployment.yaml": "a: [\n"})
    outputs = alone.sweep().err
    assert outputs.startswith("default/mine: ")
    assert "default/mine: mine" not in outputs


def test_draft_and_publication_of_a_variant_of_no_policy_have_the_same_owner(alone: Fleet):
    edge = alone.repos["edge"]
    alone.sweep("--drafts-only")
    own = "Fanout-Policy: default/"
    assert own in edge.git("log", "-1", "--format=%B", "drafts/default/own/mine/mine").split("\n")
    alone.settle()
    assert own in edge.git("log", "-1", "--format=%B", "main").split("\n")


def test_a_path_that_it_cannot_move_to_is_reported_without_a_policy(alone: Fleet):
    alone.settle()
    alone.write("mine.yaml", MINE.replace("own/mine", "own/mine/inner"))
    [item] = alone.run("get", "variants", "-o", "json").items
    [target] = alone.run("get", "targets", "-o", "json").views
    assert item["status"]["conditions"][0]["reason"] == "PathChanged"
    assert "policy" not in item["status"]["conditions"][0]["message"]
    assert target["holds"][0]["who"] == "the author of PackageVariant mine"
