"""What expressions and templates of strangers come to: an error of their own targets.

One company, one policy per expression beside a sound one, and tight limits for the children.
"""

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from fleet import PROMOTION, WHERE, Fleet, Result

from fanout.reconcile.pass_scope import PassMode

LIMITS = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
sandbox: {cpuSeconds: 1, memoryMiB: 192}
"""
PATH = "packageExpr"

# Policy, its packageExpr, reason, words; of the path only, since every expression is alike.
EXPRESSIONS = [
    ("does not compile", "syntax", "target.metadata.", "ExpressionError", "ends too early"),
    ("is not text", "number", "1 + 2", "ExpressionError", "a number where a string is needed"),
    ("reads what is not there", "absent", "target.spec.nothing", "ExpressionError", "no field"),
    ("loops", "loops", "string(target.spec.many.all(a, target.spec.many.all(b, a + b >= 0)))",
     "LimitExceeded", "it takes more than 500,000 steps"),
    ("explodes", "explodes", "string(target.spec.many.map(a, target.spec.long + string(a)).size())",
     "LimitExceeded", "memory"),
    ("leads out of the repository", "dots", "'a/../b'", "InvalidPath", "the segment '..'"),
    ("begins with a dash", "dash", "'a/-b'", "InvalidPath", "begins with '-'"),
    ("is no name of a branch", "refname", "'a b~1'", "InvalidPath", "Git refuses"),
]  # fmt: skip
# Both targets want one path, or one inside the other's.
COLLISIONS = [
    ("two variants on one path", "same", "'same/x'", "is that of variant"),
    ("one variant inside the other", "nested",
     "target.metadata.name == 'ams' ? 'nested' : 'nested/' + target.metadata.name",
     "overlaps that of variant"),
]  # fmt: skip


@dataclass(frozen=True)
class Story:
    """What happened in the company."""

    fleet: Fleet
    swept: Result
    targets: dict[str, list[dict]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("company")
    sites = {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    fleet = Fleet.build(root, sites)
    fleet.site("ams", "dev", "edge", many=list(range(3000)), long="x" * 100_000)
    for name, expression in chain(
        ((row[1], row[2]) for row in EXPRESSIONS), ((row[1], row[2]) for row in COLLISIONS)
    ):
        fleet.policy(name, (WHERE.replace("sites/", f"{name}/"), json.dumps(expression)))
    config = root / "config.yaml"
    config.write_text(LIMITS)
    swept = fleet.sweep("--config", str(config))
    targets: dict[str, list[dict]] = {}
    for item in fleet.run("get", "targets", "-o", "json", "--config", str(config)).views:
        targets.setdefault(item["policy"], []).append(item)
    return Story(fleet, swept, targets)


def test_all_other_targets_are_served(story: Story):
    assert story.swept.code == 3
    assert story.fleet.repos["edge"].drafts() == ["sites/ams/monitoring", "sites/ber/monitoring"]
    assert {item["state"] for item in story.targets["monitoring"]} == {"Proposed"}


@pytest.mark.parametrize(
    ("_", "name", "text", "reason", "words"),
    EXPRESSIONS,
    ids=[f"an expression that {row[0]}" for row in EXPRESSIONS],
)
def test_a_bad_expression_is_reported_with_its_field_and_line(
    story: Story, _, name, text, reason, words
):
    target = story.targets[name][0]
    assert (target["state"], target["holds"][0]["reason"]) == ("Failed", reason)
    sentence = target["holds"][0]["message"]
    field = "spec.targets[0].template.downstream.packageExpr"
    assert f"policy-{name}.yaml:12: UpstreamPolicy/{name}: {field}: " in sentence
    assert words in sentence
    assert "; " in sentence.rpartition(words)[2]
    assert sentence in story.swept.err


@pytest.mark.parametrize(
    ("_", "name", "text", "words"), COLLISIONS, ids=[row[0] for row in COLLISIONS]
)
def test_targets_that_want_the_same_path_all_fail(story: Story, _, name, text, words):
    for target, other in zip(story.targets[name], reversed(story.targets[name]), strict=True):
        assert target["holds"][0]["reason"] == "PathCollision"
        sentence = target["holds"][0]["message"]
        assert words in sentence
        assert f"{other['variant']} (default/{name}, target {other['target']})" in sentence


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("edgee", "did you mean edge?"),
        ("nowhere", "create it, or add the namespace to its spec.allowedNamespaces"),
    ],
    ids=["misspelt", "not there"],
)
def test_a_repository_that_an_expression_yields_is_reported_by_name(
    tmp_path: Path, name: str, remedy: str
):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    fleet.site("ber", "dev", name)
    swept = fleet.sweep()
    assert swept.code == 3
    problem = f"there is no Repository {name} that namespace default may use"
    assert f"{problem}; {remedy}" in swept.err
    assert fleet.repos["edge"].drafts() == ["sites/ams/monitoring"]


def policy_status(fleet: Fleet, name: str = "monitoring") -> dict[str, Any]:
    [item] = fleet.run("get", "policies", name, "-o", "json").items
    return item["status"]


def test_a_stage_that_an_expression_yields_is_reported_beside_those_there_are(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("canary", "edge")})
    assert fleet.plan().code == 3
    swept = fleet.sweep()
    assert swept.code == 3
    undeclared = "default/ber is in stage canary, which the policy does not declare"
    assert f"{undeclared}; choose one of: dev, prod" in swept.err
    assert fleet.targets()["ber"]["holds"][0]["reason"] == "NotInStage"
    status = policy_status(fleet)
    assert (status["failedVariants"], status["conditions"][0]["reason"]) == (1, "NotInStage")


def test_a_policy_without_stage_expression_has_drafts_and_no_failure(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.policy("drafts", ("      stageExpr: target.metadata.labels.tier\n", ""))
    assert fleet.plan().code == 0
    swept = fleet.sweep()
    assert swept.code == 0
    assert "default/ams is in no stage; choose one of: dev, prod" in swept.err
    assert policy_status(fleet, "drafts")["failedVariants"] == 0


SPINS = "string(target.spec.many.all(a, target.spec.many.all(b, a + b >= {})))"
FIRST, SECOND = SPINS.format(0), SPINS.format(-1)
COSTLY = f"""\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: costly}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets:
  - objectSelector:
      apiVersion: infra.example.com/v1
      kind: Cluster
      matchLabels: {{tier: dev}}
    template:
      stage: dev
      downstream: {{repository: edge, package: costly/ams}}
      labelExprs: [{{key: a, valueExpr: {json.dumps(FIRST)}}}]
  - objectSelector:
      apiVersion: infra.example.com/v1
      kind: Cluster
      matchLabels: {{tier: prod}}
    template:
      stage: dev
      downstream: {{repository: edge, packageExpr: "['costly'].map(c, c + '/ber')[0]"}}
      labelExprs: [{{key: a, valueExpr: {json.dumps(SECOND)}}}]
  stages: [{{name: dev}}]
"""


@pytest.fixture
def costly(tmp_path: Path) -> Fleet:
    """A company with a sound policy, and one with two costly expressions before a cheap one."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    for name, tier in (("ams", "dev"), ("ber", "prod")):
        fleet.site(name, tier, "edge", many=list(range(1000)))
    fleet.write("policy-costly.yaml", COSTLY)
    return fleet


def costly_sweep(fleet: Fleet) -> tuple[int, list[str]]:
    """Sweep in a fresh program; answers the number of evaluations, and the two messages."""
    with fleet.opened() as program:
        sandbox: Any = program.world.sandbox  # shared, with counters of its own
        before = sandbox._expressions._counters.read().get("evaluations", 0)
        report = program.sweep(PassMode())
        [result] = [it for it in report.pass_plan.policies if it.resolved_policy.name == "costly"]
        failures = sorted(result.resolved_policy.failures, key=lambda it: it.target)
        count = sandbox._expressions._counters.read()["evaluations"] - before
    assert [it.reason for it in failures] == ["LimitExceeded", "LimitExceeded"]
    # What is left has its turn without a change. Verdicts by steps are final.
    has_final_verdicts = count == 0
    assert (result.retry_at is None) is has_final_verdicts
    return count, [it.problem for it in failures]


def test_costly_expressions_of_one_policy_do_not_add_up(costly: Fleet):
    """In each pass, also of a new process, one of them costs its limit."""
    field = "spec.targets[{}].template.labelExprs[0].valueExpr: "
    count, [ams, ber] = costly_sweep(costly)
    assert costly.repos["edge"].drafts() == ["sites/ams/monitoring", "sites/ber/monitoring"]
    assert count == 1
    assert f"{field.format(0)}{FIRST}: it takes more than 500,000 steps" in ams
    assert "['costly'].map(c, c + '/ber')[0]: it is left for the next pass, because" in ber
    assert f"because {FIRST} exceeded a limit: it takes more than 500,000 steps" in ber
    count, [ams, ber] = costly_sweep(costly)
    assert count == 2  # the cheap one, and the second
    assert f"{field.format(1)}{SECOND}: it takes more than 500,000 steps" in ber
    count, messages = costly_sweep(costly)
    assert count == 0
    assert all("it takes more than 500,000 steps" in it for it in messages)
    assert "left for the next pass" not in "".join(messages)


def test_validate_has_the_same_budget_and_promises_no_instant(costly: Fleet):
    # Other texts than in other tests: the verdicts by steps are kept with the shared sandbox.
    other = SPINS.format(-2)
    costly.write("policy-costly.yaml", COSTLY.replace(FIRST, other).replace("'costly'", "'c'"))
    result = costly.run("validate")
    assert result.code == 2
    assert f"{other}: it takes more than 500,000 steps; " in result.out
    assert "it is left for the next pass, because" in result.out
    assert "tried again" not in result.out


def test_validate_names_what_does_not_compile(story: Story):
    result = story.fleet.run("validate")
    assert result.code == 2
    assert "policy-syntax.yaml:12: UpstreamPolicy/syntax: spec.targets[0].template." in result.out


ENDLESS = "{% for a in range(9**5) %}{% for b in range(9**5) %}{% endfor %}{% endfor %}"
TEMPLATES = [
    ("reaches for __class__", "{{ ''.__class__.__mro__ }}", "__class__"),
    ("does not end", ENDLESS, "more than 1 s"),
    ("is not a template", "{{ stage", "syntax error"),
    ("gives nothing", "{% if stage == 'x' %}x{% endif %}", "no text"),
]


@pytest.mark.parametrize(
    ("_", "template", "words"), TEMPLATES, ids=[f"one that {row[0]}" for row in TEMPLATES]
)
def test_a_commit_template_that_fails_is_reported_and_holds_no_promotion(
    tmp_path: Path, _, template: str, words: str
):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.write("promotion.yaml", PROMOTION + f"  commitTemplate: {json.dumps(template)}\n")
    config = tmp_path / "config.yaml"
    config.write_text(LIMITS)
    fleet.sweep("--drafts-only")
    swept = fleet.sweep("--config", str(config))
    assert swept.code == 0
    assert "promotion.yaml:8: PromotionPolicy/everything: spec.commitTemplate: " in swept.err
    assert words in swept.err
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", "main")
    assert message.startswith("Publish sites/ams of stage dev at v1\n")
