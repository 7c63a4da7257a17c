"""What a rollout knows of a variant before Git is looked at: group, variables, offline or not."""

from operator import itemgetter
from typing import Any

import pytest

from fanout.api.git_repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.target_selection import (
    VariantTarget,
    build_rollout_variables,
    find_rollout_group,
)
from fanout.selection.variant_builder import VariantBuilder
from fanout.selection.variant_spec import ExpressionFailure, VariantSpec

CANARY = {"matchLabels": {"ring": "canary"}}
EARLY = {"matchExpressions": [{"key": "ring", "operator": "In", "values": ["canary", "early"]}]}
TARGET = VariantTarget(
    0,
    "Cluster.infra.example.com/default/ams",
    {"kind": "Cluster", "metadata": {"name": "ams", "labels": {"ring": "early"}}},
    "edge",
    "web",
)


def policy(**entry: Any) -> UpstreamPolicy:
    selector = {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}
    upstream = {"repository": "up", "package": "web", "revision": {"latest": True}}
    stage = {"name": "dev", "rollout": {"groups": [CANARY, EARLY]}}
    return UpstreamPolicy.model_validate(
        {
            "kind": "UpstreamPolicy",
            "metadata": {"name": "web"},
            "spec": {
                "upstream": upstream,
                "targets": [{"objectSelector": selector, **entry}],
                "stages": [stage, {"name": "prod"}],
            },
        }
    )


def made(answers: dict[str, Any] | None = None, **entry: Any) -> VariantSpec:
    """The variant of the target; `answers` are those to the entry's expressions."""
    repository = Repository.model_validate(
        {"kind": "Repository", "metadata": {"name": "edge"}, "spec": {"url": "/srv/edge.git"}}
    )
    by_target = {(0, text): {TARGET.key: value} for text, value in (answers or {}).items()}
    built = VariantBuilder(policy(**entry), by_target).build_variant(TARGET, repository)
    assert isinstance(built, VariantSpec)
    return built


GROUPS = [
    ("the first group that chooses it", {"ring": "canary"}, {}, 0),
    ("a later group", {"ring": "early"}, {}, 1),
    ("in none, after all of them", {"ring": "late"}, {}, 2),
    ("without labels, after all of them", {}, {}, 2),
    ("its own label wins over the target's", {"ring": "late"}, {"ring": "canary"}, 0),
]


@pytest.mark.parametrize(("_", "labels", "own", "place"), GROUPS, ids=map(itemgetter(0), GROUPS))
def test_the_group_of_a_variant(_, labels, own, place):
    spec = made(template={"labels": own})
    assert find_rollout_group(policy().spec.stages[0], spec, labels) == place


def test_a_stage_without_groups_is_one_group():
    assert find_rollout_group(policy().spec.stages[1], made(), {"ring": "late"}) == 0


def test_conditions_read_the_variables_of_a_variant():
    spec = made(template={"stage": "dev", "priority": 3, "labels": {"team": "edge"}})
    assert build_rollout_variables(policy(), spec, TARGET) == {
        "target": TARGET.object,
        "upstream": {"repository": "up", "package": "web"},
        "variant": {
            "name": spec.name,
            "labels": {"team": "edge"},
            "stage": "dev",
            "priority": 3,
            "target": "Cluster.infra.example.com/default/ams",
        },
    }


OFFLINE = [
    ("without an expression it is there", None, None, (False, "")),
    ("it says so", "x", True, (True, "")),
    ("it says that it is there", "x", False, (False, "")),
    (
        "an expression that fails says neither",
        "x",
        ExpressionFailure("ExpressionError", "target has no field 'status'"),
        (False, "x: target has no field 'status'; correct the expression, or the target"),
    ),
    (
        "a text is neither",
        "x",
        "false",
        (False, "x: yields text where true or false is needed; compare it with a value"),
    ),
    (
        "nothing is neither",
        "x",
        None,
        (False, "x: yields nothing where true or false is needed; compare it with a value"),
    ),
]


@pytest.mark.parametrize(
    ("_", "expression", "answer", "expected"), OFFLINE, ids=map(itemgetter(0), OFFLINE)
)
def test_a_target_is_offline_by_its_expression(_, expression, answer, expected):
    entry = {"offlineWhen": expression} if expression else {}
    spec = made({"x": answer}, **entry)
    assert (spec.offline, spec.offline_error) == expected
