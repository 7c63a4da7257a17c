"""Every noun in every format, in a company where much is wrong; selectors; names that are not."""

import json
from operator import itemgetter
from pathlib import Path

import pytest
import yaml
from fleet import POLICY, Fleet, two_stages

NOUNS = ("policies", "variants", "stages", "targets", "repositories", "drafts")
HAND_WRITTEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: lone, labels: {team: ops}}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {tag: v1}}
  downstream: {repository: core, package: lone}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """One variant is in force, one drafted, one cannot be rendered; targets and policies fail."""
    made = Fleet.build(tmp_path_factory.mktemp("company"))
    made.write("lone.yaml", HAND_WRITTEN)
    made.write("policy.yaml", POLICY.replace("monitoring}", "monitoring, labels: {team: edge}}", 1))
    made.sweep()
    made.sweep()
    made.report("dev", "v1")
    made.later(minutes=30).sweep()  # of the hour that dev soaks
    made.release("v2", {"deployment.yaml": "a: [\n"})
    made.site("dub", "nowhere", "edge")
    made.site("esp", "dev", "nosuch")
    made.repository("lost").path.rename(made.root / "away")
    made.repos.pop("lost")
    made.policy("away", ("repository: blueprints", "repository: lost"))
    return made


@pytest.mark.parametrize("noun", NOUNS)
def test_json_and_yaml_are_the_same_objects(fleet: Fleet, noun: str):
    as_json, as_yaml = (fleet.run("get", noun, "-o", form) for form in ("json", "yaml"))
    assert (as_json.code, as_yaml.code) == (0, 0)
    assert as_json.items
    assert yaml.safe_load(as_yaml.out) == as_json.json
    for item in as_json.items:
        assert item["apiVersion"] == "fanout.dev/v1alpha1"
        assert item["metadata"]["name"]


@pytest.mark.parametrize("noun", NOUNS)
def test_tables_and_names_have_a_line_for_each(fleet: Fleet, noun: str):
    number = len(fleet.run("get", noun, "-o", "json").items)
    table, wide, names = (fleet.run("get", noun, "-o", form) for form in ("table", "wide", "name"))
    assert len(names.out.splitlines()) == number
    for output in (table, wide):
        assert len(output.out.splitlines()) == number + 1
        assert not {line for line in output.out.splitlines() if line != line.rstrip()}
    assert len(wide.out.splitlines()[0]) >= len(table.out.splitlines()[0])


def test_a_policy_counts_its_failures(fleet: Fleet):
    [away, policy] = fleet.run("get", "policies", "-o", "json").items
    assert away["metadata"]["name"] == "away"
    assert (policy["status"]["failedTargets"], policy["status"]["failedVariants"]) == (1, 2)
    row = next(it for it in fleet.run("get", "policies").out.splitlines() if "monitoring" in it)
    assert row.split()[4] == "3"


def test_a_policy_whose_variants_failed_says_so(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    fleet.release("v2", {"deployment.yaml": "a: [\n"})
    [policy] = fleet.run("get", "policies", "-o", "json").items
    condition = policy["status"]["conditions"][0]
    assert condition["reason"] == "InvalidManifest"
    assert "2 variants failed, monitoring-ams-047978a1d8 first: " in condition["message"]


def test_a_policy_without_targets_is_ready_and_says_so(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    fleet.write("policy.yaml", POLICY.replace("kind: Cluster}", "kind: Cluster, name: nobody}"))
    [policy] = fleet.run("get", "policies", "-o", "json").items
    condition = policy["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["reason"] == "NoTargets"


def test_a_publication_without_its_gates_shows_in_the_table(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.sweep("--drafts-only")
    edge = fleet.repos["edge"]
    draft = edge.refs()["refs/heads/drafts/default/sites/ams/monitoring"]
    edge.git("update-ref", "refs/heads/main", draft)
    assert "OutOfBand" in fleet.plan("-o", "json").reasons
    fleet.sweep()
    assert "OutOfBand" in fleet.run("get", "variants").out
    result = fleet.run("explain", "monitoring/dev/sites/ams")
    assert "  OutOfBand  " in result.out
    assert "  OutOfBand  " in fleet.run("explain", "monitoring/dev").out


SELECTED = [
    ("targets by the labels of their objects", "targets", "tier in (dev, prod)", 4),
    ("targets without a label", "targets", "!tier", 1),
    ("targets that failed have labels too", "targets", "tier=dev", 2),
    ("policies", "policies", "team=edge", 1),
    ("stages by their policy's labels", "stages", "team", 3),
    ("hand-written variants by their own", "variants", "team!=edge,team", 1),
    ("drafts by their variant's", "drafts", "team=ops", 1),
    ("repositories", "repositories", "role", 0),
    ("variants by their policy", "variants", "fanout.dev/policy=monitoring", 4),
    ("targets by their stage", "targets", "fanout.dev/stage=prod", 2),
    ("drafts by their repository", "drafts", "fanout.dev/repository=core", 2),
    ("stages by name", "stages", "fanout.dev/stage=dev,fanout.dev/policy=monitoring", 1),
]


@pytest.mark.parametrize(
    ("_", "noun", "selector", "number"), SELECTED, ids=map(itemgetter(0), SELECTED)
)
def test_selected(fleet: Fleet, _: str, noun: str, selector: str, number: int):
    views = fleet.run("get", noun, "-l", selector, "-n", "default", "-o", "json").views
    named = [it for it in views if it.get("policy") != "away"]
    assert len(named) == number


ASKED = [
    ("variants of a policy", ("variants", "--policy", "monitoring"), 4),
    ("variants of a stage of a policy", ("variants", "--policy", "away", "--stage", "dev"), 1),
    ("targets in a state", ("targets", "--policy", "monitoring", "--state", "failed"), 2),
    ("drafts of a stage", ("drafts", "--stage", "prod"), 2),
    ("stages of a policy", ("stages", "--policy", "monitoring"), 2),
    ("evidence about a stage", ("evidence", "--stage", "dev"), 1),
    ("decisions of a policy, of which there are none", ("decisions", "--policy", "away"), 0),
    ("a target by its short name", ("targets", "ber"), 2),
    ("a target by its place", ("targets", "edge:sites/ams"), 1),
    ("a draft by its path", ("drafts", "sites/ber"), 1),
    ("a stage by its name alone", ("stages", "dev"), 2),
    ("a variant by its cluster", ("variants", "Cluster/ams", "--policy", "monitoring"), 1),
]


@pytest.mark.parametrize(("_", "line", "number"), ASKED, ids=map(itemgetter(0), ASKED))
def test_asked_for_by_policy_stage_state_and_name(
    fleet: Fleet, _: str, line: tuple[str, ...], number: int
):
    assert len(fleet.run("get", *line, "-o", "json").items) == number


def test_a_table_without_rows_says_so_beside_the_data(fleet: Fleet):
    for form in ("table", "wide"):
        output = fleet.run("get", "decisions", "-o", form)
        assert (output.code, output.out, output.err) == (0, "", "no resources found\n")
    assert fleet.run("get", "decisions", "-o", "name").err == ""


REFUSED = [
    ("a policy that is not there", ("stages", "--policy", "nope"), "there is no policy nope"),
    ("a stage that is not there", ("drafts", "--stage", "nope"), "there is no stage nope"),
    ("a state of repositories", ("repositories", "--state", "Held"), "cannot be selected by state"),
    ("a policy of policies", ("policies", "--policy", "away"), "cannot be selected by policy"),
]


@pytest.mark.parametrize(("_", "line", "words"), REFUSED, ids=map(itemgetter(0), REFUSED))
def test_an_unusable_request_of_get_is_refused(
    fleet: Fleet, _: str, line: tuple[str, ...], words: str
):
    result = fleet.run("get", *line)
    assert (result.code, result.out) == (1, "")
    assert words in result.err


def test_a_selector_that_cannot_be_read_is_reported(fleet: Fleet):
    result = fleet.run("get", "targets", "-l", "tier dev")
    assert (result.code, result.out) == (1, "")
    assert "--selector: 'tier dev' is not a label selector: " in result.err


UNKNOWN = [
    ("plan of no policy", ["plan", "nope"], "there are: away, lone, monitoring"),
    ("sweep of no policy", ["sweep", "nope"], "there are: away, lone, monitoring"),
    ("one that is and one that is not", ["sweep", "monitoring", "nope"], "no policy nope; "),
    ("get of no policy", ["get", "policies", "nope"], "there are: away, monitoring"),
    ("get of no stage", ["get", "stages", "monitoring/nope"], "there are: away/dev, away/prod, "),
    ("get of no variant", ["get", "variants", "nope"], "there are: away-ams-"),
    ("get of nothing", ["get", "nope"], "unknown resource type nope; one of: policies, "),
    ("get without a word", ["get"], "missing resource type; one of: policies, variants"),
    ("get of a near word", ["get", "variantes"], "did you mean variants?"),
    ("explain of no policy", ["explain", "nope"], "there are: away, lone, monitoring"),
    ("explain of no stage", ["explain", "monitoring/nope"], "there are: dev, prod"),
    ("explain of no variant", ["explain", "monitoring/dev/nope"], "monitoring-ams-047978a1d8"),
    ("a variant of no stage", ["explain", "monitoring/nope/sites/ams"], "there are: dev, prod"),
    (
        "a variant of another stage",
        ["explain", "monitoring/prod/sites/ams"],
        "not in prod",
    ),
    ("plan of no namespace", ["plan", "-n", "nope"], "there are: default"),
    ("sweep of no namespace", ["sweep", "-n", "nope"], "there are: default"),
    ("get of no namespace", ["get", "policies", "-n", "nope"], "there are: default"),
    ("explain in no namespace", ["explain", "monitoring", "-n", "nope"], "there are: default"),
]


@pytest.mark.parametrize(("_", "line", "problem"), UNKNOWN, ids=map(itemgetter(0), UNKNOWN))
def test_an_unknown_name_is_an_error_that_lists_the_known_names(
    fleet: Fleet, _: str, line: list[str], problem: str
):
    before = fleet.refs()
    result = fleet.run(*line)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err
    assert fleet.refs() == before


@pytest.mark.parametrize("verb", ["plan", "sweep", "explain monitoring", "get policies"])
def test_a_directory_without_any_object_is_an_error(tmp_path: Path, verb: str):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "README.md").write_text("nothing here\n")
    state = ["--state-dir", str(tmp_path / "state")]
    line = [*verb.split(), "-f", str(tmp_path / "policies"), *state]
    result = Fleet(tmp_path).run(*line, files=False)
    assert result.code == 1
    assert f"{tmp_path / 'policies'}: no objects" in result.err


def test_a_policy_with_an_error_is_not_reported_missing(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.policy("faulty", ("semver:", "semvers:"))
    result = fleet.run("plan", "faulty")
    assert result.code == 2
    assert "UpstreamPolicy faulty has an error; run `fanout validate`" in result.err


def test_json_is_documented(fleet: Fleet):
    for kind in ("StageView", "TargetView", "DraftView", "ConflictView"):
        schema = json.loads(fleet.run("schema", kind, files=False).out)
        metadata = schema["properties"]["metadata"]["$ref"].rpartition("/")[2]
        assert "labels" in schema["$defs"][metadata]["properties"]
        assert {"spec", "status"} <= schema["properties"].keys()


def test_variants_of_a_missing_repository_are_not_ready(tmp_path: Path):
    """The gates go by what is on record; nobody can say that it is still so."""
    fleet = two_stages(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "core")})
    fleet.report("dev", "v1")
    fleet.settle()
    assert set(fleet.states().values()) == {"Ready"}
    fleet.repos["edge"].path.rename(fleet.root / "away")
    assert fleet.states() == {"sites/ams": "Held", "sites/ber": "Ready"}
    reason, sentence = fleet.condition("sites/ams")
    assert (reason, "edge.git" in sentence) == ("RepositoryUnavailable", True)
    [policy] = fleet.run("get", "policies", "-o", "json").items
    [ready] = policy["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "RepositoryUnavailable")
    assert fleet.targets()["ams"]["state"] == "Held"


def test_an_upstream_that_is_gone_is_shown(tmp_path: Path):
    fleet = two_stages(tmp_path, {"ams": ("dev", "edge")})
    repositories = {
        it["metadata"]["name"]: it for it in fleet.run("get", "repositories", "-o", "json").items
    }
    assert repositories["blueprints"]["status"]["conditions"][0]["status"] == "True"
    fleet.repos["blueprints"].path.rename(fleet.root / "away")
    repositories = {
        it["metadata"]["name"]: it for it in fleet.run("get", "repositories", "-o", "json").items
    }
    assert repositories["blueprints"]["status"]["conditions"][0]["reason"] == "RemoteNotFound"


@pytest.mark.parametrize("noun", ["variants", "targets", "stages"])
def test_rows_are_in_the_order_of_the_stages_in_the_policy(tmp_path: Path, noun: str):
    """The stages are dev and prod, and the targets by name the other way round."""
    fleet = Fleet.build(tmp_path, {"ams": ("prod", "edge"), "ber": ("dev", "core")})
    fleet.settle()
    rows = fleet.run("get", noun, "-o", "json").items
    assert [it["metadata"]["labels"]["fanout.dev/stage"] for it in rows] == ["dev", "prod"]


@pytest.mark.parametrize("noun", ["variants", "targets", "drafts"])
def test_a_target_is_found_by_its_policy_and_name(fleet: Fleet, noun: str):
    named = fleet.run("get", noun, "monitoring/ber", "-o", "name").out
    assert named in fleet.run("get", noun, "--policy", "monitoring", "-o", "name").out
    assert len(named.splitlines()) == 1


def test_ages_are_of_recorded_instants_alone(tmp_path: Path):
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    made.policy("logging")
    stored = "{name: monitoring, creationTimestamp: 2026-02-28T09:00:00Z}"
    made.write("policy.yaml", POLICY.replace("{name: monitoring}", stored, 1))
    made.settle()
    made.later(minutes=5)
    ages = {}
    for noun in ("policies", "targets", "repositories"):
        heads, *rows = [line.split() for line in made.run("get", noun).out.splitlines()]
        heads = " ".join(heads).replace("WAITS FOR", "WAITS-FOR").split()
        ages[noun] = [row[heads.index("AGE")] for row in rows]
    assert ages == {
        "policies": ["<unknown>", "2d"],
        "targets": ["5m", "<unknown>", "5m", "<unknown>"],
        "repositories": ["<unknown>"] * 2,
    }
