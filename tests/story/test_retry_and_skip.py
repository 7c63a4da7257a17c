"""What has failed is tried again or skipped, by a person's word about one revision."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, Result

BER, CPH = "sites/ber", "sites/cph"
WHY = ("--reason", "the runner was broken", "--by", "Ann <ann@example.com>")
STAGES = POLICY[POLICY.index("  stages:") :]
ONE_STAGE = POLICY.replace(
    STAGES, "  stages:\n  - {name: prod, verification: [{name: e2e, report: {}}]}\n"
)
BY_ONE = ONE_STAGE.replace("e2e, report: {}}]", "e2e, report: {}}], rollout: {strategy: Linear}")


@company
def fleet(root: Path) -> Fleet:
    """Two sites in prod at v1, one of which has failed."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", ONE_STAGE)
    made.settle()
    made.later(minutes=5).report("prod", "v1", "failed", "--variant", BER)
    made.report("prod", "v1", "passed", "--variant", CPH)
    made.settle()
    assert made.states() == {BER: "Failed", CPH: "Ready"}
    return made


def say(fleet: Fleet, verb: str, *args: str) -> Result:
    return fleet.later(minutes=5).run(verb, "monitoring", "--stage", "prod", *args, *WHY)


def verdict(fleet: Fleet) -> str:
    return str(fleet.run("get", "stages", "-o", "json").views[0]["verdict"])


def decision_statuses(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "decisions", "-o", "json").items
    return [f"{item['spec']['action']} {item['status']['state']}" for item in items]


def test_a_retried_variant_is_checked_again_and_can_pass(fleet: Fleet):
    result = say(fleet, "retry")
    assert result.code == 0, result.err
    [consequence] = [it for it in result.out.splitlines() if it.startswith("monitoring-ber-")]
    assert consequence.startswith("monitoring-ber-928771694f: Verifying")
    assert "v1 in stage prod: pending" in consequence
    assert fleet.states() == {BER: "Verifying", CPH: "Ready"}
    fleet.later(minutes=5).report("prod", "v1", "passed", "--variant", BER)
    fleet.settle()
    assert fleet.states() == {BER: "Ready", CPH: "Ready"}
    assert verdict(fleet) == "Passed"


def test_a_retry_that_is_withdrawn_leaves_the_failure(fleet: Fleet):
    say(fleet, "retry")
    [decision] = fleet.run("get", "decisions", "-o", "json").items
    name = decision["metadata"]["name"]
    assert fleet.run("withdraw", "monitoring", name, *WHY).code == 0
    assert fleet.states() == {BER: "Failed", CPH: "Ready"}


def test_a_skipped_variant_is_not_counted_until_the_next_revision(fleet: Fleet):
    assert verdict(fleet) == "Failed"
    result = say(fleet, "skip", "--variant", BER)
    assert result.code == 0, result.err
    [consequence] = [it for it in result.out.splitlines() if it.startswith("monitoring-ber-")]
    assert consequence.startswith("monitoring-ber-928771694f: Skipped")
    assert "v1 in stage prod: passed" in consequence
    assert fleet.states() == {BER: "Skipped", CPH: "Ready"}
    assert verdict(fleet) == "Passed"
    assert decision_statuses(fleet) == ["Skip Active"]
    fleet.release("v2")
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    assert decision_statuses(fleet) == ["Skip Applied"]


def test_a_variant_skipped_before_publication_is_not_released(fleet: Fleet):
    fleet.write("policy.yaml", BY_ONE)
    say(fleet, "skip", "--variant", BER)
    fleet.release("v2")
    fleet.later(minutes=5).sweep()
    assert say(fleet, "skip", "--variant", BER).code == 0
    before = fleet.records().refs()
    again = say(fleet, "skip", "--variant", BER)
    assert (again.code, fleet.records().refs()) == (0, before)
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v1", CPH: "v2"}
    assert fleet.states()[BER] == "Skipped"


def test_a_skipped_variant_takes_part_again_when_retried(fleet: Fleet):
    say(fleet, "skip", "--variant", BER)
    assert say(fleet, "retry").code == 4
    assert say(fleet, "retry", "--variant", BER).code == 0
    assert fleet.states() == {BER: "Verifying", CPH: "Ready"}


def test_a_retry_beside_another_failure_says_so(fleet: Fleet):
    fleet.later(minutes=5).report("prod", "v1", "failed", "--variant", CPH)
    result = say(fleet, "retry", "--variant", BER)
    assert result.code == 3, (result.out, result.err)
    assert fleet.states() == {BER: "Verifying", CPH: "Failed"}
    assert say(fleet, "retry").code == 0
    assert fleet.states() == {BER: "Verifying", CPH: "Verifying"}


def test_a_ready_variant_is_left_out_of_a_skip_of_several(fleet: Fleet):
    result = say(fleet, "skip", "--variant", BER, "--variant", CPH)
    assert result.code == 0
    assert "monitoring-cph-" in result.err
    [decision] = fleet.run("get", "decisions", "-o", "json").items
    assert decision["spec"]["variants"] == ["monitoring-ber-928771694f"]
    assert fleet.states() == {BER: "Skipped", CPH: "Ready"}


#   case, verb, arguments, exit code, what the error names
REFUSED = [
    ("a retry in an unknown stage", "retry", ("--stage", "qa"), 1, ("stage qa",)),
    ("a retry without a stage", "retry", (), 1, ("stage", "default/monitoring")),
    ("a retry of an unknown variant", "retry", ("--stage", "prod", "--variant", "x"), 1,
     ("variant x",)),
    ("a retry of what is ready", "retry", ("--stage", "prod", "--variant", CPH), 4,
     ("v1", "`fanout explain`")),
    ("a retry of another revision", "retry", ("--stage", "prod", "--revision", "v7"), 1,
     ("v7", "default/monitoring", "v1")),
    ("a skip of another revision", "skip",
     ("--stage", "prod", "--variant", BER, "--revision", "v7"), 1, ("v7", "v1")),
    ("a skip of nobody", "skip", ("--stage", "prod"), 1, ("variants", "stage prod")),
    ("a skip of what is ready", "skip", ("--stage", "prod", "--variant", CPH), 4,
     ("monitoring-cph-",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "verb", "args", "code", "data"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_refused(
    fleet: Fleet, _: str, verb: str, args: tuple[str, ...], code: int, data: tuple[str, ...]
):
    before = fleet.records().refs()
    result = fleet.run(verb, "monitoring", *args, *WHY)
    assert result.code == code
    assert [word for word in data if word not in result.err] == [], result.err
    assert fleet.records().refs() == before
