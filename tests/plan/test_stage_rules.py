"""What a stage's file says, as the gates are told it: nothing is lost on the way."""

from datetime import timedelta
from fractions import Fraction
from operator import itemgetter
from typing import Any

import pytest

from fanout.api.gate_vocabulary import CheckMethod, Require, RolloutStrategy
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.stages import After, Check, Rollout
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.gates.gate_rules import ApprovalRule, CheckRule, PropagationCondition, StageRule
from fanout.plan.gates.stage_rules import build_calendars, build_stage_rules


def condition(text: str) -> PropagationCondition:
    return PropagationCondition(text, len)


def promotion(**spec: Any) -> PromotionPolicy:
    meta = {"name": spec.pop("name", "production")}
    return PromotionPolicy.model_validate(
        {"kind": "PromotionPolicy", "metadata": meta, "spec": {"policies": ["*"], **spec}}
    )


def ruled(stage: dict[str, Any], *promotions: PromotionPolicy) -> StageRule:
    """The rule of one stage, which is called `prod` if nothing else is said."""
    policy = UpstreamPolicy.model_validate(
        {
            "kind": "UpstreamPolicy",
            "metadata": {"name": "web"},
            "spec": {
                "upstream": {
                    "repository": "up",
                    "package": "web",
                    "revision": {"latest": True},
                },
                "targets": [{"repositories": [{"name": "edge"}]}],
                "stages": [{"name": "prod", **stage}],
            },
        }
    )  # fmt: skip
    [rule] = build_stage_rules(policy, promotions, condition)
    return rule


def minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "cel": "true"}
NAMING = {**OBJECT, "observedRevision": "object.x"}


def checked(name, method, *, names_revision=False, **spec):
    """The rule of a check that is written so."""
    return CheckRule(name, method, Check.model_validate({"name": name, **spec}), names_revision)


REPORT = checked("e2e", CheckMethod.REPORT, report={}, timeout="1h", freshFor="2h")
NAMES_REVISION = checked("up", CheckMethod.OBJECT, names_revision=True, object=NAMING)
COMMIT_STATUS = checked(
    "ci", CheckMethod.COMMIT_STATUS, names_revision=True, commitStatus={"context": "ci"}
)
STAGES = [
    ("a name alone", {}, {}),
    (
        "the stages before",
        {"after": {"stages": ["dev", "qa"], "require": "Majority", "soak": "10m"}},
        {"after": After(stages=("dev", "qa"), require=Require.MAJORITY, soak=minutes(10))},
    ),
    (
        "so many of the stages before",
        {"after": {"stages": ["dev"], "atLeast": 2}},
        {"after": After(stages=("dev",), at_least=2)},
    ),
    (
        "a share of the stages before, exactly",
        {"after": {"stages": ["dev"], "atLeast": "29%"}},
        {"after": After(stages=("dev",), at_least=Fraction(29, 100))},
    ),
    ("a joining stage", {"controlFlow": True}, {"control_flow": True}),
    ("a stage that goes back", {"pin": "v3"}, {"pin": "v3"}),
    ("a suspended stage", {"suspend": True}, {"suspended": True}),
    (
        "one after the other",
        {"rollout": {"strategy": "Linear", "step": 3}},
        {"rollout": Rollout(strategy=RolloutStrategy.LINEAR, step=3)},
    ),
    (
        "by a factor, exactly",
        {"rollout": {"strategy": "Exponential", "factor": 1.1, "maxInFlight": "25%"}},
        {
            "rollout": Rollout(
                strategy=RolloutStrategy.EXPONENTIAL,
                factor=Fraction(11, 10),
                max_in_flight=Fraction(1, 4),
            )
        },
    ),
    (
        "failures and times",
        {"rollout": {"maxFailures": 2, "minReady": "5m", "progressDeadline": "2h"}},
        {"rollout": Rollout(max_failures=2, min_ready=minutes(5), progress_deadline=minutes(120))},
    ),
    (
        "a budget of nothing",
        {"rollout": {"maxInFlight": 0}},
        {"rollout": Rollout(max_in_flight=0)},
    ),
    (
        "conditions",
        {"propagateWhen": ["a", "b"]},
        {"propagate_when": (condition("a"), condition("b"))},
    ),
    (
        "a report",
        {"verification": [{"name": "e2e", "report": {}, "timeout": "1h", "freshFor": "2h"}]},
        {
            "verification": (
                checked("e2e", CheckMethod.REPORT, report={}, timeout="1h", freshFor="2h"),
            )
        },
    ),
    (
        "an object that is asked later",
        {"verification": [{"name": "up", "object": OBJECT, "settle": "5m"}]},
        {"verification": (checked("up", CheckMethod.OBJECT, object=OBJECT, settle="5m"),)},
    ),
    (
        "an object that says what it has seen, before publication",
        {"requires": [{"name": "up", "object": NAMING}]},
        {"requires": (NAMES_REVISION,)},
    ),
    (
        "a status, which is of one commit",
        {"verification": [{"name": "ci", "commitStatus": {"context": "ci"}}]},
        {"verification": (COMMIT_STATUS,)},
    ),
]


@pytest.mark.parametrize(("_", "stage", "rule_fields"), STAGES, ids=map(itemgetter(0), STAGES))
def test_a_stage_rule_has_the_fields_of_the_stage(_, stage, rule_fields):
    assert ruled(stage) == StageRule("prod", **rule_fields)


ASKED = {"requires": [{"name": "yes", "approval": {"from": ["sre"]}, "timeout": "1h"}]}
SRE = {"approvers": [{"group": "sre", "subjects": ["Ann <ann@example.com>"]}]}


@pytest.mark.parametrize("apart", [(), (False,), (True,), (False, True)], ids=str)
def test_a_single_promotion_policy_separates_authors_and_approvers(apart):
    promotions = [promotion(requiresSeparation=one, **SRE) for one in apart]
    [rule] = ruled(ASKED, *promotions).requires
    assert rule == ApprovalRule(
        "yes",
        1,
        frozenset({"ann@example.com"} if apart else ()),
        ("sre",),
        timeout=minutes(60),
        separation=any(apart),
    )


def test_a_name_of_another_group_is_joined_to_the_person():
    groups = [
        {"group": "sre", "subjects": ["git.example.com/ann", "bob@example.com"]},
        {"group": "all", "subjects": ["Ann <ann@example.com> git.example.com/Ann", "h/eve"]},
    ]
    [rule] = ruled(ASKED, promotion(approvers=groups)).requires
    assert isinstance(rule, ApprovalRule)
    assert rule.subjects == {"ann@example.com", "bob@example.com"}
    assert rule.aliases == {"git.example.com/ann": "ann@example.com"}


AUTOMATIC = [
    ("nobody says so", [], False),
    ("no stage is named", [None], False),
    ("by its name", [["prod"]], True),
    ("by a pattern", [["qa", "pr*"]], True),
    ("two do not agree", [["prod"], ["dev"]], False),
    ("two agree", [["prod"], ["*"]], True),
    ("one that says nothing switches nothing off", [["prod"], None], True),
    ("nor does it switch anything on", [["dev"], None], False),
    ("two that say nothing", [None, None], False),
]


@pytest.mark.parametrize(("_", "stages", "expected"), AUTOMATIC, ids=map(itemgetter(0), AUTOMATIC))
def test_a_stage_is_automatic_when_all_who_name_the_policy_say_so(_, stages, expected):
    promotions = [promotion(**({"autoPromotion": {"stages": it}} if it else {})) for it in stages]
    assert ruled({}, *promotions).automatic is expected


def test_a_policy_that_opposes_automatic_promotion_is_named():
    second = promotion(name="second", autoPromotion={"stages": ["dev"]})
    promotions = [promotion(autoPromotion={"stages": ["prod"]}), second, promotion(name="freeze")]
    assert ruled({}, *promotions).opposing_policies == ("second",)
    assert ruled({}, second).opposing_policies == ()


def test_windows_are_those_of_all_and_only_some_let_a_rollout_finish():
    night = {"deny": {"schedule": "0 20 * * *", "duration": "10h"}}
    promotions = [
        promotion(name="open"),
        promotion(name="strict", windows=[night]),
        promotion(name="patient", windows=[night], atClose="Finish"),
    ]
    calendars = [(it.name, it.lets_finish) for it in build_calendars(promotions)]
    assert calendars == [("strict", False), ("patient", True)]


def test_the_largest_allowed_number_of_stages_is_resolved():
    stages = [{"name": f"s{number}"} for number in range(64)]
    policy = UpstreamPolicy.model_validate(
        {
            "kind": "UpstreamPolicy",
            "metadata": {"name": "web"},
            "spec": {
                "upstream": {"repository": "u", "package": "w", "revision": {"latest": True}},
                "targets": [{"repositories": [{"name": "edge"}]}],
                "stages": stages,
            },
        }
    )
    named = promotion(autoPromotion={"stages": [f"s{number}" for number in range(0, 2_000, 2)]})
    rules = build_stage_rules(policy, [named], condition)
    assert sum(rule.automatic for rule in rules) == 32
