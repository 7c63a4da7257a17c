"""`fanout validate` evaluates templates and selectors against the objects that are there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import Fleet

FIELD = "UpstreamPolicy/monitoring: spec."
TEMPLATE = f"{FIELD}targets[0].template."
CLUSTER = "Cluster.infra.example.com/default"
GROUPS = "{name: dev, rollout: {groups: [{matchLabels: {canary: 'yes'}}]}, "
REPOSITORIES = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositorySelector: {matchLabels: {role: edge}}
    template: {stage: dev}
  stages: [{name: dev}]
"""
VARIANT = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: web}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: web}
  injectors: [{kind: ConfigMap, name: web}]
"""

PATH = "\"'sites/' + target.metadata.name\""
REPOSITORY = "target.spec.repository"
OFFLINE = "    offlineWhen: target.status.gone\n    template:"

Change = Callable[[Fleet], object]


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet.build(tmp_path)


def rewrite(fleet: Fleet, file: str, *edits: tuple[str, str]) -> None:
    path = fleet.root / "policies" / file
    text = path.read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def without_label(fleet: Fleet, *names: str) -> None:
    for name in names:
        fleet.site(name, "dev", "edge")
        rewrite(fleet, f"site-{name}.yaml", ("labels: {tier: dev}", "labels: {}"))


def without_source(fleet: Fleet) -> None:
    text = (fleet.root / "policies" / "site-ber.yaml").read_text()
    fleet.write("site-ber.yaml", text.partition("---")[0])


def policy(*edits: tuple[str, str]) -> Change:
    return lambda fleet: rewrite(fleet, "policy.yaml", *edits)


# What happens; the finding's field; the target that is named with its place; what is said.
ERRORS: list[tuple[str, Change, str, str, str]] = [
    ("a label that a target does not have", lambda it: without_label(it, "dub"),
     f":9: {TEMPLATE}stageExpr: ", "dub", "target.metadata.labels has no field 'tier'"),
    ("a stage that the policy does not have", lambda it: it.site("dub", "staging", "edge"),
     f":9: {TEMPLATE}stageExpr: ", "dub", "the policy has no stage staging; there are: dev, prod"),
    ("a misspelt stage", lambda it: it.site("dub", "prd", "edge"),
     f":9: {TEMPLATE}stageExpr: ", "dub", "the policy has no stage prd; did you mean prod?"),
    ("a repository that there is not", lambda it: it.site("dub", "dev", "nosuch"),
     f":11: {TEMPLATE}downstream.repositoryExpr: ", "dub", "there is no Repository nosuch that"),
    ("a path that is none", policy((PATH, "\"'/a'\"")),
     f":12: {TEMPLATE}downstream.packageExpr: ", "ams", "write a relative path"),
    ("a type that does not fit", policy(("stageExpr: target.metadata.labels.tier",
                                         "stageExpr: target.metadata.labels")),
     f":9: {TEMPLATE}stageExpr: ", "ams", "yields a map where a string is needed"),
    ("offlineWhen that fails", policy(("    template:", OFFLINE)),
     f":8: {FIELD}targets[0].offlineWhen: ", "ams", "target.status.gone: "),
    ("one path for all", policy((PATH, "\"'sites'\""), (REPOSITORY, "\"'edge'\"")),
     f":12: {TEMPLATE}downstream.packageExpr: ", "ams", "path sites in repository edge is that of"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field", "site", "problem"),
    [row[1:] for row in ERRORS],
    ids=[row[0] for row in ERRORS],
)
def test_a_template_that_fails_for_a_target_is_an_error(
    fleet: Fleet, change: Change, field: str, site: str, problem: str
):
    change(fleet)
    result = fleet.run("validate")
    assert result.code == 2
    about = f"{CLUSTER}/{site} ({fleet.root}/policies/site-{site}.yaml:3)"
    [line] = [line for line in result.out.splitlines() if problem in line and about in line]
    assert line.startswith(f"{fleet.root}/policies/policy.yaml{field}")


WARNINGS: list[tuple[str, Change, str, str]] = [
    ("a source that is not there", without_source, f":13: {TEMPLATE}injectors[0].nameExpr: ",
     "there is no ConfigMap ber in namespace default; "),
    ("a target in no stage", lambda it: it.site("dub", '""', "edge"),
     f":9: {TEMPLATE}stageExpr: ", "it is in no stage, so its variant is held"),
    ("one path for several", policy((PATH, "\"'sites'\"")),
     f":12: {TEMPLATE}downstream.packageExpr: ", "path sites in repository edge is that of"),
    ("a group that nobody is in", policy(("{name: dev, ", GROUPS)),
     f":15: {FIELD}stages[0].rollout.groups[0]: ",
     ("none of 1 variant of stage dev has these labels; compare them with the labels of the"
      " targets")),
    ("a selector that chooses no repository", lambda it: it.write("policy.yaml", REPOSITORIES),
     f":7: {FIELD}targets[0].repositorySelector: ", "0 of 3 Repository objects match"),
    ("a selector that chooses no object", policy(("kind: Cluster}",
                                                  "kind: Cluster, matchLabels: {role: such}}")),
     f":7: {FIELD}targets[0].objectSelector: ", "0 of 3 Cluster objects match"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field", "problem"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS]
)
def test_a_selector_that_may_be_meant_is_a_warning(
    fleet: Fleet, change: Change, field: str, problem: str
):
    change(fleet)
    result = fleet.run("validate")
    assert result.code == 0, result.out
    line = next(line for line in result.out.splitlines() if problem in line)
    assert line.startswith(f"warning: {fleet.root}/policies/policy.yaml{field}")


def test_a_source_of_a_hand_written_variant(fleet: Fleet):
    path = fleet.write("web.yaml", VARIANT)
    result = fleet.run("validate")
    assert result.code == 0
    line = (
        f"warning: {path}:7: PackageVariant/web: spec.injectors[0].name: there is no ConfigMap web"
    )
    assert line in result.out


def test_equal_errors_of_many_targets_are_one_line(fleet: Fleet):
    without_label(fleet, *(f"site{number:02}" for number in range(20)))
    result = fleet.run("validate")
    errors = [line for line in result.out.splitlines() if not line.startswith("warning")]
    [line] = errors
    assert f"20 targets: {CLUSTER}/site00 (" in line
    assert "site02.yaml:3) and 17 more: " in line


def test_an_expression_that_cannot_be_compiled_is_reported_once(fleet: Fleet):
    rewrite(fleet, "policy.yaml", ("target.metadata.labels.tier", "targt.metadata.labels.tier"))
    result = fleet.run("validate")
    assert result.out.count("stageExpr") == 1


MAY_BE_UNREAD = {
    "a repository that there is not",
    "a source that is not there",
    "a group that nobody is in",
    "a selector that chooses no repository",
    "a selector that chooses no object",
}
FINDINGS = [(row[0], row[1], row[-1]) for row in (*ERRORS, *WARNINGS)]


@pytest.mark.parametrize(("name", "change", "problem"), FINDINGS, ids=[row[0] for row in FINDINGS])
def test_an_unread_file_hides_only_what_it_may_hold(
    fleet: Fleet, name: str, change: Change, problem: str
):
    change(fleet)
    fleet.write("broken.yaml", "a: [\n")
    output = fleet.run("validate").out
    assert "broken.yaml" in output
    assert (problem not in output) == (name in MAY_BE_UNREAD)


def test_a_sound_fleet_has_no_finding(fleet: Fleet):
    result = fleet.run("validate", "-o", "json")
    assert [it["field"] for it in result.json] == ["spec.stages[1].verification"], "as before"


def test_a_broken_repository_is_one_error_and_not_missing(fleet: Fleet):
    rewrite(fleet, "repository-edge.yaml", ("spec: {url:", "spec: {brnch: x, url:"))
    result = fleet.run("validate")
    assert result.code == 2
    errors = [line for line in result.out.splitlines() if not line.startswith("warning: ")]
    assert (
        len([line for line in errors if "Repository/edge: spec.brnch: unknown field" in line]) == 1
    )
    assert not [line for line in errors if "UpstreamPolicy" in line]
    swept = fleet.sweep()
    assert "Repository edge has errors and cannot be used" in swept.err
    assert "there is no Repository" not in swept.err


def test_a_repository_that_an_unread_file_may_declare_is_not_missing(fleet: Fleet):
    fleet.site("dub", "dev", "nosuch")
    fleet.write("broken.yaml", "a: [\n")
    swept = fleet.sweep().err
    assert f"Repository nosuch may be declared in {fleet.root}/policies/broken.yaml" in swept
    assert "there is no Repository" not in swept


def test_a_sweep_reports_the_errors_that_validate_reports(fleet: Fleet):
    """The same code names variants in both, so the sentences are the same."""
    without_label(fleet, "dub")
    fleet.site("eir", "dev", "nosuch")
    validated, swept = fleet.run("validate").out, fleet.sweep()
    assert swept.code == 3
    for sentence in ("has no field 'tier'", "there is no Repository nosuch that"):
        assert sentence in validated
        assert sentence in swept.err
