"""Stages that go back, for whole-command tests: two sites at v2 after v1, one of them edited."""

from pathlib import Path

from fleet import PLAIN, POLICY, PROMOTION, Fleet, Result

BER, CPH = "sites/ber", "sites/cph"
FILE = f"{BER}/deployment.yaml"
VENDOR = "refs/heads/fanout/default/rendered"
WHY = ("--reason", "it does not work", "--by", "Ann <ann@example.com>")
STAGES = POLICY[POLICY.index("  stages:") :]
ONE_STAGE = POLICY.replace(STAGES, "  stages:\n  - {name: prod}\n")
# Without expressions, so that no process waits for a sandbox.
WITHOUT_EXPRESSIONS = PLAIN.replace(": dev}", ": prod}").replace(
    "[sites/ams, sites/ber]}]", "[sites/ber]}, {name: core, packageNames: [sites/cph]}]"
)
OFF = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")
OURS = "# ours: keep\n"


def two_sites(root: Path, policy: str = ONE_STAGE) -> Fleet:
    """Two sites in prod, at v2 after v1; while it had v1, somebody edited one of them."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", policy)
    made.settle()
    edit(made, FILE, OURS)
    made.release("v2")
    made.later(minutes=5).settle()
    assert made.published() == {BER: "v2", CPH: "v2"}
    return made


def edit(fleet: Fleet, path: str, text: str, repository: str = "edge") -> None:
    repo = fleet.repos[repository]
    repo.commit("main", {path: repo.file("main", path) + text})


def rollback(fleet: Fleet, *args: str) -> Result:
    fleet.later(minutes=5)
    return fleet.run("rollback", "--yes", "monitoring", "--stage", "prod", *args, *WHY)


def withdrawn(fleet: Fleet) -> None:
    name = next(
        item["metadata"]["name"]
        for item in fleet.run("get", "decisions", "-o", "json").items
        if item["spec"]["action"] == "Rollback" and item["status"]["state"] == "Active"
    )
    assert fleet.later(minutes=5).run("withdraw", "monitoring", name, *WHY).code == 0


def tree(fleet: Fleet, revision: str, repository: str = "edge") -> str:
    return fleet.repos[repository].git("rev-parse", revision)


def decision_statuses(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "decisions", "-o", "json").items
    return [f"{item['spec']['action']} {item['status']['state']}" for item in items]
