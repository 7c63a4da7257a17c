"""What the fields of stages may say together, each mistake with what a person gets to read."""

from fractions import Fraction
from operator import itemgetter

import pytest
import yaml
from api.written import EXAMPLES, faults_of, list_errors, made

from fanout.api.stages import Rollout
from fanout.api.validators.object_validation import validate_object
from fanout.api.validators.stage_references import check_stage_graph

CHECKED = [{"name": "e2e", "report": {}}]
JOIN = {"name": "join", "after": {"stages": ["dev"]}, "controlFlow": True}


def policy(*stages, **template):
    """The example policy with these stages after its dev."""
    data = yaml.safe_load(EXAMPLES["upstream-policy"])
    data["spec"]["stages"] = [data["spec"]["stages"][0], *stages]
    if template:
        data["spec"]["targets"][0]["template"] = template
    return data


def after(**fields):
    return policy({"name": "prod", "after": {"stages": ["dev"], **fields}})


def rollout(**fields):
    return policy({"name": "prod", "verification": CHECKED, "rollout": fields})


AT_LEAST, ROLLOUT = "spec.stages[1].after.atLeast", "spec.stages[1].rollout"
NO_AMOUNT = 'is not a number or a whole percentage; write 3 or "25%"'
JOINS = "has no effect in a controlFlow stage, which has no targets; remove it, or remove"
MISTAKES = [
    (
        "no stage before is none to wait for",
        after(stages=[]),
        ["spec.stages[1].after.stages: is empty; add at least one entry"],
    ),
    (
        "no stage before is none to wait for, whatever is required of it",
        after(stages=[], atLeast=1),
        ["spec.stages[1].after.stages: is empty; add at least one entry"],
    ),
    (
        "a stage that is listed twice counts once",
        after(stages=["dev", "dev"], require="Majority"),
        ["spec.stages[1].after.stages: dev is listed twice; remove one of them"],
    ),
    (
        "a stage that was renamed is known by no other name",
        after(stages=["development"]),
        [
            "spec.stages[1].after.stages[0]: there is no stage development; use one of dev, prod",
        ],
    ),
    (
        "a stage that was renamed a little is suggested",
        after(stages=["devv"]),
        ["spec.stages[1].after.stages[0]: there is no stage devv; did you mean dev?"],
    ),
    (
        "an expression that is a text alone names a stage too",
        policy(stageExpr="'prodd'"),
        ["spec.targets[0].template.stageExpr: there is no stage prodd; use one of dev"],
    ),
    (
        "how many must have passed is said once",
        after(require="Majority", atLeast=1),
        ["spec.stages[1].after: require and atLeast exclude each other; keep one of them"],
    ),
    *(
        (f"atLeast {shown} is refused", after(atLeast=value), [f"{AT_LEAST}: {sentence}"])
        for shown, value, sentence in [
            ("0", 0, "must require at least one stage; write 1 or more, or 1% or more"),
            ("0%", "0%", "must require at least one stage; write 1 or more, or 1% or more"),
            ("101%", "101%", "101% is more than 100%; write at most 100%"),
            ("-1", -1, "must require at least one stage; write 1 or more, or 1% or more"),
            ("p%", "p%", f"'p%' {NO_AMOUNT}"),
            ("1.5", 1.5, f"1.5 {NO_AMOUNT}"),
            ("1.5%", "1.5%", f"'1.5%' {NO_AMOUNT}"),
            ("true", True, f"True {NO_AMOUNT}"),
        ]
    ),
    (
        "a step is Linear's",
        rollout(step=2),
        [
            (
                f"{ROLLOUT}.step: step has no effect with strategy AllAtOnce; remove it, or write"
                " strategy: Linear"
            )
        ],
    ),
    (
        "a factor is Exponential's",
        rollout(strategy="Linear", step=2, factor=3),
        [
            (
                f"{ROLLOUT}.factor: factor has no effect with strategy Linear; remove it, or write"
                " strategy: Exponential"
            )
        ],
    ),
    (
        "a misspelt strategy is told and no more",
        rollout(strategy="linear", step=2),
        [f"{ROLLOUT}.strategy: unsupported value linear; use AllAtOnce, Linear or Exponential"],
    ),
    (
        "a step of 0 would release nothing for ever",
        rollout(strategy="Linear", step=0),
        [f"{ROLLOUT}.step: 0 is out of range; write at least 1"],
    ),
    *(
        (
            f"a factor of {value} is refused",
            rollout(strategy="Exponential", factor=value),
            [f"{ROLLOUT}.factor: {sentence}"],
        )
        for value, sentence in [
            (1, "factor 1 is out of range; write more than 1, at most 1000000"),
            (0.5, "factor 0.5 is out of range; write more than 1, at most 1000000"),
            (float("inf"), "factor inf is out of range; write more than 1, at most 1000000"),
            (float("nan"), "factor nan is out of range; write more than 1, at most 1000000"),
            ("2x", "2x is not a number; write one above 1, like 1.5"),
            (True, "true is not a number; write one above 1, like 1.5"),
        ]
    ),
    (
        "a deadline is for what is verified",
        policy({"name": "prod", "rollout": {"progressDeadline": "2h"}}),
        [
            (
                f"{ROLLOUT}.progressDeadline: progressDeadline has no effect in a stage"
                " without verification; add verification, or remove it"
            )
        ],
    ),
    (
        "a group that asks for nothing takes all",
        rollout(groups=[{"matchLabels": {"canary": "yes"}}, {}]),
        [
            (
                f"{ROLLOUT}.groups[1]: the selector is empty and matches all remaining variants;"
                " remove it: variants without a group are last"
            )
        ],
    ),
    (
        "a group that is there twice is empty the second time",
        rollout(groups=[{"matchLabels": {"canary": "yes"}}, {"matchLabels": {"canary": "yes"}}]),
        [
            (
                f"{ROLLOUT}.groups[1]: groups[0] has the same selector, so this group is always"
                " empty; remove one of them"
            )
        ],
    ),
    (
        "In without values is in no group",
        rollout(groups=[{"matchExpressions": [{"key": "canary", "operator": "In"}]}]),
        [f"{ROLLOUT}.groups[0].matchExpressions[0].values: In needs values; add at least one"],
    ),
    (
        "a controlFlow stage joins something",
        policy({"name": "join", "controlFlow": True}),
        [
            (
                "spec.stages[1].after: a controlFlow stage needs stages to join;"
                " add after, or remove controlFlow"
            )
        ],
    ),
    (
        "a controlFlow stage has nothing to check or to release",
        policy(
            {
                **JOIN,
                "verification": CHECKED,
                "requires": [{"name": "yes", "approval": {"from": ["sre"]}}],
                "rollout": {"maxInFlight": 1},
                "propagateWhen": ["true"],
                "suspend": True,
            }
        ),
        [
            f"spec.stages[1].{field}: {field} {JOINS} controlFlow"
            for field in ("propagateWhen", "requires", "rollout", "suspend", "verification")
        ],
    ),
    (
        "no target can be in a controlFlow stage",
        policy(JOIN, stage="join"),
        [
            (
                "spec.targets[0].template.stage: stage join is a controlFlow stage, which has no"
                " targets; choose another stage, or remove its controlFlow"
            )
        ],
    ),
    (
        "no target can be put into a controlFlow stage by an expression",
        policy(JOIN, stageExpr='"join"'),
        [
            (
                "spec.targets[0].template.stageExpr: stage join is a controlFlow stage, which has"
                " no targets; choose another stage, or remove its controlFlow"
            )
        ],
    ),
]


@pytest.mark.parametrize(("_", "data", "sentences"), MISTAKES, ids=map(itemgetter(0), MISTAKES))
def test_a_stage_refuses_contradictory_fields(_, data, sentences):
    assert faults_of(data) == sentences


RIGHT = [
    ("most of the stages before", after(require="Majority")),
    ("so many of the stages before", after(atLeast=1)),
    ("a share of the stages before", after(atLeast="60%")),
    ("more than there are means all", after(atLeast=3)),
    ("a stage that only joins", policy(JOIN, {"name": "prod", "after": {"stages": ["join"]}})),
    ("a default that is written out in a joining stage", policy({**JOIN, "verification": []})),
    ("one after the other", rollout(strategy="Linear")),
    ("twice as many each time", rollout(strategy="Exponential", factor=2)),
    ("zero durations", rollout(minReady="0s", progressDeadline="0h")),
    ("a budget of nothing", rollout(maxInFlight="0%")),
    ("canaries first", rollout(groups=[{"matchLabels": {"canary": "yes"}}])),
]


@pytest.mark.parametrize(("_", "data"), RIGHT, ids=map(itemgetter(0), RIGHT))
def test_a_stage_accepts_valid_fields(_, data):
    assert faults_of(data) == []


def test_zero_durations_are_as_if_absent():
    model, _ = validate_object(rollout(minReady="0s", progressDeadline="0h"))
    assert (model.spec.stages[1].rollout.min_ready, model.spec.stages[1].rollout.step) == (None, 1)
    assert model.spec.stages[1].rollout.progress_deadline is None


@pytest.mark.parametrize(("written", "exact"), [(1.1, Fraction(11, 10)), (3, 3), (1e5, 100_000)])
def test_a_factor_is_what_is_written_and_no_approximation(written, exact):
    rollout_model = Rollout.model_validate({"strategy": "Exponential", "factor": written})
    assert rollout_model.factor == exact
    assert rollout_model.model_dump(mode="json", by_alias=True)["factor"] == written


def test_numbers_that_mean_less_than_they_seem_to_are_doubtful():
    stages = [
        {"name": "dev", "verification": CHECKED, "rollout": {"maxInFlight": "0%"}},
        {"name": "prod", "verification": CHECKED, "after": {"stages": ["dev"], "atLeast": 3}},
    ]
    policy = made("upstream-policy", stages=stages)
    assert list_errors(policy, severity="warning") == [
        (
            "UpstreamPolicy/monitoring: spec.stages[0].rollout.maxInFlight: maxInFlight 0"
            " releases nothing in stage dev; raise it to release variants"
        ),
        (
            "UpstreamPolicy/monitoring: spec.stages[1].after.atLeast: 3 of 1 listed stages means"
            " all of them; lower it, or list more stages"
        ),
    ]


def test_a_stage_that_only_joins_gets_no_warning_about_verification():
    stages = [{"name": "dev", "verification": CHECKED}, JOIN]
    policy = made("upstream-policy", stages=stages)
    assert list_errors(policy, severity="warning") == []


# ---- ten thousand stages -------------------------------------------------------------------------


def chain(number, before):
    """So many stages; `before` gives what the one of a number waits for."""
    stages = [
        {"name": f"s{index}", "after": {"stages": before(index)}} if before(index) else
        {"name": f"s{index}"}
        for index in range(number)
    ]  # fmt: skip
    return {"spec": {"stages": stages}}


MANY = [
    ("one after the other", lambda index: [f"s{index - 1}"] if index else [], 0),
    ("each in a circle of two", lambda index: [f"s{index ^ 1}"], 20),
    ("each after one that is not there", lambda index: [f"t{index}"], 10_000),
]


@pytest.mark.parametrize(("_", "before", "count"), MANY, ids=map(itemgetter(0), MANY))
def test_ten_thousand_stages(_, before, count):
    faults = list(check_stage_graph(chain(10_000, before)))
    assert len(faults) == count
    assert all(len(fault.problem) < 200 and len(fault.remedy) < 200 for fault in faults)
