"""A variant written by hand waits for others to be ready at what they are themselves to have."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, PROMOTION, Fleet

BASE = "Cluster.infra.example.com/default/ams"


@company
def fleet(root: Path) -> Fleet:
    """One site of a verified policy, and a PromotionPolicy that publishes three variants."""
    fleet = Fleet.build(root, {"ams": ("dev", "edge")})
    written = "  variants: [web, db, log]\n  policies"
    fleet.write("promotion.yaml", PROMOTION.replace("  policies", written))
    for name in ("web", "db", "log"):
        fleet.write(f"variant-{name}.yaml", variant(name))
    return fleet


def variant(name: str, *depends_on: str) -> str:
    return (
        "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\n"
        f"metadata: {{name: {name}}}\nspec:\n"
        "  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}\n"
        f"  downstream: {{repository: edge, package: {name}}}\n"
        f"  dependsOn: [{', '.join(depends_on)}]\n"
    )


def depend(fleet: Fleet, name: str, *depends_on: str) -> None:
    fleet.write(f"variant-{name}.yaml", variant(name, *depends_on))


def on_target(target: str = BASE) -> str:
    return f"{{policy: monitoring, target: {target}}}"


def test_a_variant_waits_until_the_target_of_a_policy_is_ready(fleet: Fleet):
    depend(fleet, "web", on_target())
    fleet.settle()
    assert fleet.published() == {"db": "v1", "log": "v1", "sites/ams": "v1", "web": ""}
    reason, sentence = fleet.condition("web")
    assert reason == "DependencyPending"
    assert all(word in sentence for word in ("monitoring-ams-", "Verifying", "v1", "e2e"))
    fleet.report("dev", "v1")
    fleet.settle()
    assert fleet.published()["web"] == "v1"


def test_a_newer_revision_is_waited_for_again(fleet: Fleet):
    depend(fleet, "web", "{variant: db}", on_target())
    fleet.settle()
    fleet.report("dev", "v1")
    fleet.settle()
    fleet.release("v2")
    fleet.settle()
    assert fleet.published() == {"db": "v2", "log": "v2", "sites/ams": "v2", "web": "v1"}
    fleet.report("dev", "v2")
    fleet.settle()
    assert fleet.published()["web"] == "v2"


def test_a_chain_goes_from_its_end_whatever_the_names(fleet: Fleet):
    depend(fleet, "db", "{variant: web}")
    depend(fleet, "web", "{variant: log}")
    fleet.sweep()
    assert fleet.sweep().code == 0
    assert fleet.published() == {"db": "", "log": "v1", "sites/ams": "v1", "web": ""}
    fleet.sweep()
    assert fleet.published()["web"] == "v1"
    fleet.sweep()
    assert fleet.published()["db"] == "v1"


def test_a_pass_about_it_alone_knows_how_the_other_stands_and_leaves_it_alone(fleet: Fleet):
    depend(fleet, "web", "{variant: db}")
    for _ in range(3):
        assert fleet.run("sweep", "web").code == 0
    assert fleet.repos["edge"].drafts() == ["web/web"]
    assert fleet.condition("web")[0] == "DependencyPending"
    fleet.settle()
    assert fleet.published()["web"] == "v1"


def test_a_pass_about_one_alone_knows_the_whole_chain(fleet: Fleet):
    depend(fleet, "log", on_target())
    depend(fleet, "db", "{variant: log}")
    depend(fleet, "web", "{variant: db}")
    fleet.settle()
    output = fleet.run("explain", "web").out
    assert "waits for variant log, which was not evaluated" not in output
    assert "variant log" in output


MISSING = [
    (
        "a target that the policy has not",
        on_target("Cluster.infra.example.com/default/asm"),
        (
            "waits for target Cluster.infra.example.com/default/asm, which UpstreamPolicy"
            f" monitoring does not have; did you mean {BASE}?"
        ),
    ),
    (
        "a policy that is not there",
        "{policy: monitor, target: x}",
        "waits for UpstreamPolicy monitor, which does not exist",
    ),
    (
        "a variant that is not there",
        "{variant: dbs}",
        "waits for variant dbs, which does not exist",
    ),
    (
        "a variant that waits for it",
        "{variant: db}",
        "variants form a cycle: db → web → db",
    ),
]


@pytest.mark.parametrize(("_", "entry", "sentence"), MISSING, ids=[row[0] for row in MISSING])
def test_a_dependency_that_cannot_become_ready_holds_by_name(
    fleet: Fleet, _, entry: str, sentence: str
):
    depend(fleet, "web", entry)
    depend(fleet, "db", "{variant: web}")
    fleet.sweep()
    fleet.sweep()
    assert fleet.published() == {"db": "", "log": "v1", "sites/ams": "v1", "web": ""}
    assert fleet.condition("web") == ("DependencyPending", sentence)


def test_a_target_that_is_not_there_is_reported_before_anything_waits(fleet: Fleet):
    depend(fleet, "web", on_target(), on_target(BASE.replace("ams", "asm")), "{variant: db}")
    result = fleet.run("validate")
    [line] = [it for it in result.out.splitlines() if "dependsOn" in it]
    assert result.code == 0
    assert line.endswith(
        "variant-web.yaml:7: PackageVariant/web: spec.dependsOn[1].target: UpstreamPolicy"
        f" monitoring has no target {BASE.replace('ams', 'asm')}, so the variant waits;"
        f" did you mean {BASE}?"
    )


def test_a_target_without_a_variant_says_why(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace("'sites/' + target.metadata.name", "'../out'"))
    depend(fleet, "web", on_target())
    fleet.sweep()
    fleet.sweep()
    reason, sentence = fleet.condition("web")
    assert reason == "DependencyPending"
    assert f"waits for target {BASE} of monitoring, which has no variant: " in sentence
    assert "packageExpr: " in sentence
