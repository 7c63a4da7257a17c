"""`fanout validate` and the expressions that decide who is released and who counts."""

import json
from operator import itemgetter

import pytest
from fleet import POLICY, Fleet

DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet.build(tmp_path_factory.mktemp("company"))


def list_findings(fleet: Fleet, condition: str, offline: str = "false") -> list[str]:
    """The faults of the policy with this condition, without those that it has anyhow."""
    stage = f"{DEV[:-1]}, propagateWhen: [{json.dumps(condition)}]}}"
    text = POLICY.replace(DEV, stage).replace(
        "    template:\n", f"    offlineWhen: {json.dumps(offline)}\n    template:\n"
    )
    fleet.write("policy.yaml", text)
    lines = fleet.run("validate").out.splitlines()
    findings = [line.partition("policy.yaml:")[2] for line in lines if "warning" not in line]
    return list(filter(None, findings))


WRONG = [
    (
        "a field that no stage has",
        "stage.healthy",
        "stage has no field healthy; there are failed, inFlight, ready, total and updated",
    ),
    (
        "a misspelt field of the stage",
        "has(stage.faild) && stage.total > 1",
        "stage has no field faild; did you mean failed?",
    ),
    ("a field that no variant has", "variant.tier == 'a'", "variant has no field tier; "),
    ("a field that upstream has not", "upstream.tag == 'v1'", "upstream has no field tag; "),
    (
        "a variable of templates",
        "repository.metadata.name == 'a'",
        "repository is not a variable here; there are stage",
    ),
    ("the clock", "now > timestamp('2026-01-01T00:00:00Z')", "now is not a variable here"),
    ("no expression", "stage.failed ==", "syntax error"),
]


@pytest.mark.parametrize(("_", "text", "sentence"), WRONG, ids=map(itemgetter(0), WRONG))
def test_a_condition_that_could_only_hold(company: Fleet, _, text: str, sentence: str):
    [line] = list_findings(company, text)
    field = "spec.stages[0].propagateWhen[0]"
    assert line.startswith(f"16: UpstreamPolicy/monitoring: {field}: {text}: ")
    assert sentence in line


@pytest.mark.parametrize("text", ["stage.ready + 1", "stage.failed == 0 ? 'yes' : 'no'"])
def test_a_condition_whose_value_is_no_boolean(company: Fleet, text: str):
    [line] = list_findings(company, text)
    assert line.startswith(
        "16: UpstreamPolicy/monitoring: spec.stages[0].propagateWhen[0]: target "
    )
    assert f": {text}: yields " in line
    assert line.endswith(", expected true or false")


RIGHT = [
    ("a share, without anybody yet", "stage.failed / stage.updated < 1"),
    ("aggregates", "stage.failed == 0 && stage.inFlight < 2 && stage.ready + stage.updated >= 0"),
    ("the variant", "variant.labels['a'] == 'b' || variant.priority > 0 || variant.name != ''"),
    ("the target", "has(target.stage.whatever) || target.metadata.name != 'stage.healthy'"),
    ("upstream", "upstream.revision != 'v1' && upstream.package != upstream.repository"),
    ("what is in a text", "target.metadata.name != \"stage.x\" + 'variant.y'"),
    ("a name of its own", "!has(target.spec.all) || target.spec.all.exists(one, one.stage.ok)"),
]


@pytest.mark.parametrize(("_", "text"), RIGHT, ids=map(itemgetter(0), RIGHT))
def test_a_condition_may_name_declared_variables(company: Fleet, _, text: str):
    assert list_findings(company, text) == []


def test_an_expression_for_offline_targets_is_compiled_too(company: Fleet):
    [line] = list_findings(company, "true", "stage.failed > 0")
    assert "spec.targets[0].offlineWhen: stage.failed > 0: stage is not a variable here; " in line
