"""`fanout test`, with and without `--show`: whole commands on files, and no repository anywhere."""

import contextlib
import io
import json
import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.crd_schemas import build_json_schemas
from fanout.api.gate_vocabulary import VariantState
from fanout.api.scenario import VariantStateName
from fanout.cli.main import run_arguments

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "fixtures/scenarios").glob("*.yaml"))
PLAYED = sorted((ROOT / "fixtures/simulations").glob("*.json"))

POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: blueprints, namespace: platform}
spec: {url: git/blueprints.git}
---
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring, namespace: platform}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  targets: [{repositories: [{name: blueprints}]}]
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: prod, after: {stages: [dev]}}
---
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: production, namespace: platform}
spec: {policies: [monitoring], autoPromotion: {stages: [dev]}}
"""
SCENARIO = """\
apiVersion: fanout.dev/v1alpha1
kind: Scenario
metadata: {name: prod-waits-for-a-person, namespace: platform}
spec:
  policy: monitoring
  revisions: [v1]
  now: 2030-01-07T12:00:00Z
  variants:
  - {name: ams, stage: dev, revision: v1, ready: -1h}
  - {name: ber, stage: prod}
  expect:
  - stages: [{stage: prod, gate: passed, releases: 0, held: [automation]}]
"""


@pytest.fixture
def fanout(tmp_path, monkeypatch, capfd):
    """Run a command line in an empty directory; the answer is status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*line):
        status = run_arguments([str(word) for word in line])
        return status, *capfd.readouterr()

    return run


@pytest.fixture
def beside(tmp_path):
    """A policy with a scenario beside it."""

    def make(scenario=SCENARIO, policy=POLICY):
        folder = tmp_path / "policies"
        folder.mkdir(exist_ok=True)
        (folder / "policy.yaml").write_text(policy, encoding="utf-8")
        (folder / "story.yaml").write_text(scenario, encoding="utf-8")
        return folder

    return make


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_scenarios_of_the_fixtures_come_out_as_expected(fanout, path):
    status, out, err = fanout("test", path)
    assert (status, err) == (0, ""), out
    assert not list(Path().iterdir())


@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.stem)
def test_the_printed_simulation_is_stable(fanout, path, update_golden):
    scenario = ROOT / "fixtures/scenarios" / f"{path.stem}.yaml"
    status, out, err = fanout("test", "--show", scenario, "-o", "json")
    assert (status, err) == (0, "")
    if update_golden:
        path.write_text(out, encoding="utf-8")
    assert out == path.read_text(encoding="utf-8")


def test_a_directory_of_policies_is_tested_by_the_scenarios_in_it(fanout, beside):
    folder = beside()
    assert fanout("test", folder) == (
        0,
        (
            f"ok      {folder}/story.yaml:1: prod-waits-for-a-person (3 expectations)\n"
            "1 scenario, 0 failed\n"
        ),
        "",
    )
    assert fanout("test", folder / "story.yaml", "-f", folder)[0] == 0
    assert fanout("test", folder / "story.yaml", "-f", folder.name)[0] == 0
    assert fanout("validate", "-f", folder)[0] == 0


BROKEN = "apiVersion: fanout.dev/v1alpha1\nkind: Scenario\nmetadata: {name: broken\n"
TWICE = "apiVersion: fanout.dev/v1alpha1\nkind: Scenario\nkind: Scenario\n"
UNREADABLE = [
    # description, text of the broken document, words of its error
    ("a syntax error", BROKEN, "YAML syntax"),
    ("a tab", BROKEN.replace("metadata: {name: broken", "\tmetadata: x"), "a tab"),
    ("a key that is given twice", TWICE, "the key kind is already on line"),
    ("an unknown tag", "a: !ruby x\n", "the tag !ruby is not allowed"),
]


@pytest.mark.parametrize(
    ("broken", "words"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_in_one_document_leaves_the_other_scenarios(fanout, beside, broken, words, place):
    other = SCENARIO.replace("prod-waits-for-a-person", "another")
    documents = [SCENARIO, other]
    documents.insert(place, broken)
    folder = beside(scenario="---\n".join(documents))
    status, out, err = fanout("test", folder)
    assert status == 2
    assert words in err
    assert f"{folder}/story.yaml:" in err
    lines = [text.count("\n") for text in documents]
    starts = [sum(lines[:n]) + n + 1 for n in range(3) if n != place]
    assert out == (
        f"ok      {folder}/story.yaml:{starts[0]}: prod-waits-for-a-person (3 expectations)\n"
        f"ok      {folder}/story.yaml:{starts[1]}: another (3 expectations)\n"
        "2 scenarios, 0 failed, 1 error in others\n"
    )


def test_an_error_in_one_document_leaves_the_policy_beside_it(fanout, tmp_path):
    (tmp_path / "all.yaml").write_text("---\n".join([POLICY, BROKEN, SCENARIO]), encoding="utf-8")
    status, out, err = fanout("test", "all.yaml")
    assert (status, "YAML syntax" in err) == (2, True)
    assert out.startswith("ok ")


def test_only_scenarios_of_the_namespace_are_played(fanout, beside):
    folder = beside()
    assert fanout("test", folder, "-n", "platform")[0] == 0
    status, _, err = fanout("test", folder, "-n", "edge")
    assert (status, "no Scenario with expectations" in err) == (1, True)


def test_a_difference_is_printed_with_its_line_and_reason(fanout, beside):
    folder = beside(SCENARIO.replace("releases: 0, held: [automation]", "releases: 1, held: []"))
    status, out, _ = fanout("test", folder)
    assert status == 3
    why = "    ber: automatic promotion is off for stage prod"
    assert out.splitlines() == [
        f"FAILED  {folder}/story.yaml:1: prod-waits-for-a-person (3 expectations)",
        (
            f"  {folder}/story.yaml:12: stage prod at 2030-01-07T12:00:00Z: releases is 0, expected"
            " 1"
        ),
        why,
        (
            f"  {folder}/story.yaml:12: stage prod at 2030-01-07T12:00:00Z: held is [automation],"
            " expected []"
        ),
        why,
        "1 scenario, 1 failed",
    ]


def test_results_for_machines(fanout, beside, tmp_path):
    folder = beside(f"{SCENARIO}---\n{SCENARIO}".replace("held: [automation]", "held: []", 1))
    text = (folder / "story.yaml").read_text()
    (folder / "story.yaml").write_text(text.replace("prod-waits", "other-waits", 1))
    status, out, _ = fanout("test", folder, "-o", "json", "--junit", tmp_path / "results.xml")
    items = json.loads(out)["items"]
    assert status == 3
    assert [(it["metadata"]["name"], it["result"]) for it in items] == [
        ("other-waits-for-a-person", "Failed"),
        ("prod-waits-for-a-person", "Passed"),
    ]
    [difference] = items[0]["differences"]
    assert difference["field"] == "spec.expect[0].stages[0].held"
    assert (difference["found"], difference["expected"]) == ("[automation]", "[]")
    suite = ET.parse(tmp_path / "results.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.find("failure") is not None for case in suite] == [True, False]


UNPLAYABLE = [
    ("a scenario with a fault", ("ber, stage: prod", "ber, stage: prd"), (),
     "spec.variants[1].stage: there is no stage prd; did you mean prod?"),
    ("what may have been meant as one", ("kind: Scenario", "kind: Szenario"), (),
     "unknown kind Szenario; did you mean Scenario?"),
    ("an expression that names what there is not", ("policy: monitoring",
     "stages: [{name: dev}, {name: prod, propagateWhen: [stage.inflight < 3]}]"), (),
     "spec.stages[1].propagateWhen[0]: stage.inflight < 3: "),
    ("a policy with a fault", (), ("latest: true", "newest: true"),
     "spec.policy: UpstreamPolicy monitoring has an error"),
    ("an administrator's policy with a fault", (), ("autoPromotion: {stages: [dev]}", "any: 1"),
     "PromotionPolicy production has an error; run `fanout validate`"),
    ("a policy that is not there", ("policy: monitoring", "policy: monitor"), (),
     "there is no UpstreamPolicy monitor in this namespace; did you mean monitoring?"),
    ("expectations that are none", ("- stages: [{stage", "# - stages: [{stage"), (),
     "spec.expect: has no value; set a value, or remove the key"),
    ("nothing expected", (("expect:\n  - stages: [{stage: prod, gate: passed, releases: 0, held:"
     " [automation]}]"), "moments: []"), (), "no Scenario with expectations"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "scenario", "policy", "problem"), UNPLAYABLE, ids=[row[0] for row in UNPLAYABLE]
)
def test_a_scenario_that_cannot_be_played_fails(fanout, beside, _, scenario, policy, problem):
    changed = [
        text.replace(*edit) if edit else text
        for text, edit in ((SCENARIO, scenario), (POLICY, policy))
    ]
    assert changed != [SCENARIO, POLICY]
    status, _, err = fanout("test", beside(*changed))
    assert status in (1, 2)
    assert problem in err


def test_a_simulation_for_people(fanout, beside):
    folder = beside()
    status, out, _ = fanout("test", "--show", "-f", folder, folder / "story.yaml")
    assert status == 0
    assert out.splitlines()[0] == "prod-waits-for-a-person (policy monitoring)"
    rows = [line.split() for line in out.splitlines() if line.startswith(("dev", "prod "))]
    assert rows == [
        ["dev", "v1", "Passed", "Passed", "-", "-", "-", "-"],
        ["prod", "v1", "Passed", "Pending", "-", "-", "automation=1", "-"],
    ]


def test_a_verb_of_earlier_versions_names_the_command_in_its_place(fanout, beside):
    status, out, err = fanout("simulate", "--scenario", beside() / "story.yaml")
    assert (status, out) == (1, "")
    assert "there is no command simulate; run `fanout test --show`" in err


def test_results_in_a_file_are_of_expectations(fanout, beside):
    status, _, err = fanout("test", "--show", beside(), "--junit", "results.xml")
    assert (status, "--junit and --show exclude" in err) == (1, True)
    assert not Path("results.xml").exists()


def test_a_simulation_of_no_scenario(fanout, beside):
    folder = beside()
    status, _, err = fanout("test", "--show", folder / "policy.yaml")
    assert (status, "no Scenario is in" in err) == (1, True)


@pytest.mark.parametrize("options", [(), ("--show",)])
def test_files_without_a_scenario_are_named_but_for_most(fanout, beside, options):
    files = [beside() / "policy.yaml"] * 57
    status, _, err = fanout("test", *options, *files)
    assert (status, err.count("policy.yaml"), "and 54 more" in err) == (1, 3, True)


def test_a_scenario_that_never_comes_to_rest_is_ended(fanout, tmp_path):
    text = SCENARIO.replace("policy: monitoring", "stages: [{name: dev}, {name: prod}]")
    text = text.replace("  expect:", "  promotion:\n    windows: [{allow: {schedule:"
                        ' "*/2 * * * *", duration: 1m}}]\n  advance: {}\n  expect:')  # fmt: skip
    (tmp_path / "endless.yaml").write_text(text, encoding="utf-8")
    status, _, err = fanout("test", tmp_path / "endless.yaml")
    assert status == 2
    assert "passes are needed up to 2030-01-" in err
    assert "set spec.advance.until" in err


def test_a_rollout_is_printed_pass_by_pass_until_it_ends(fanout, tmp_path):
    lines = ["  - {name: a, stage: dev}\n", "  - {name: b, stage: prod}\n"]
    (tmp_path / "rollout.yaml").write_text(ANY + "".join(lines), encoding="utf-8")
    out = fanout("test", "--show", tmp_path / "rollout.yaml", "-o", "json")[1]
    moments = json.loads(out)["moments"]
    assert [
        (it["at"][11:16], [(one["stage"], *one["published"]) for one in it["stages"]])
        for it in moments
    ] == [
        ("12:00", [("dev", "a"), ("prod",)]),
        ("12:30", [("dev",), ("prod", "b")]),
        ("12:40", [("dev",), ("prod",)]),
    ]
    assert [one["verdict"] for one in moments[-1]["stages"]] == ["Passed", "Passed"]


def test_every_state_can_be_expected():
    assert set(VariantStateName.__args__) == {state.value for state in VariantState}


def test_the_printed_simulation_matches_its_schema(fanout):
    """Every field that is printed is described, and all that is described is printed."""
    path = ROOT / "fixtures/scenarios/order.yaml"
    out = fanout("test", "--show", path, "-o", "json")[1]
    schema = build_json_schemas()["Simulation"]
    [first, *_] = json.loads(out)["items"]
    assert set(first) == set(schema["properties"])
    assert set(first["moments"][0]) == set(schema["$defs"]["MomentView"]["properties"])
    stage = first["moments"][0]["stages"][0]
    assert set(stage) == set(schema["$defs"]["StageMoment"]["properties"])
    held = stage["held"][0]
    assert set(held["reasons"][0]) == set(schema["$defs"]["ReasonView"]["properties"])


ANY = """\
apiVersion: fanout.dev/v1alpha1
kind: Scenario
metadata: {name: any}
spec:
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - name: prod
    after: {stages: [dev], soak: 20m}
    verification: [{name: e2e, report: {}}]
    rollout: {strategy: Exponential, maxFailures: 1}
  revisions: [v1, v2]
  now: 2030-01-07T12:00:00Z
  advance: {readyAfter: 10m}
  variants:
"""
STATES = [
    "",
    ", revision: v1, ready: -1h",
    ", revision: v2, published: -5m",
    ", revision: v2, ready: -5m",
    ", revision: v1, failed: -30m",
    ", suspended: true",
]


@given(
    states=st.lists(st.tuples(st.sampled_from(["dev", "prod"]), st.sampled_from(STATES)),
                    min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_the_order_in_which_variants_are_stated_means_nothing(states, seed, tmp_path_factory):
    lines = [f"  - {{name: v{n}, stage: {stage}{state}}}\n" for n, (stage, state) in
             enumerate(states)]  # fmt: skip
    other = random.Random(seed).sample(lines, len(lines))
    assert played(tmp_path_factory, lines) == played(tmp_path_factory, other)


def played(factory, lines):
    folder = factory.mktemp("any")
    (folder / "any.yaml").write_text(ANY + "".join(lines), encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run_arguments(["test", "--show", str(folder / "any.yaml"), "-o", "json"]) == 0
    return json.loads(out.getvalue())


def test_a_scenario_with_an_error_does_not_keep_the_others_from_being_played(fanout, beside):
    faulty = SCENARIO.replace("prod-waits", "broken").replace("ready: -1h", "redy: -1h")
    unplayable = SCENARIO.replace("prod-waits", "lost").replace("monitoring", "nosuch")
    folder = beside(f"{faulty}---\n{SCENARIO}---\n{unplayable}")
    (folder / "no-yaml.yaml").write_text("a: [\n", encoding="utf-8")
    status, out, err = fanout("test", "--show", "-f", folder, folder)
    assert status == 2
    assert "prod-waits-for-a-person (policy monitoring)" in out
    for place in (
        "no-yaml.yaml:2: ",
        "Scenario/broken-for-a-person: ",
        "Scenario/lost-for-a-person",
    ):
        assert place in err
    status, out, _ = fanout("test", folder)
    assert status == 2
    assert "story.yaml:" in out
    assert "prod-waits-for-a-person (3 expectations)" in out


def test_the_reason_of_a_queued_revision_is_printed_and_can_be_expected(fanout, beside):
    queued = SCENARIO.replace("revisions: [v1]", "revisions: [v1, v2]").replace(
        "{name: ber, stage: prod}", "{name: ber, stage: prod, revision: v1, published: -1h}"
    )
    expected = "{revision: v2, newer: true, held: [stage], reasons: [AfterFailed]}"
    story = queued.replace("gate: passed, releases: 0, held: [automation]", f"others: [{expected}]")
    folder = beside(story)
    _, out, _ = fanout("test", "--show", "-f", folder, folder)
    assert "revision: stage prod does not take v2: " in out
    status, out, _ = fanout("test", folder)
    assert status == 3
    assert "reasons is [AfterPending], expected [AfterFailed]" in out
    assert "stage prod, revision v2" in out
