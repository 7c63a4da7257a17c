"""Sites that move: what the stories about moves share."""

from pathlib import Path

from fleet import PACKAGE, Fleet

RENDERED = "fanout/default/rendered"
AMS, NEW = "sites/ams", "eu/ams"
TEXT = PACKAGE["deployment.yaml"]
ANN = ("--reason", "ok", "--by", "Ann <ann@example.com>")
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster}
    template:
      stage: dev
      downstream: {repositoryExpr: target.spec.repository, packageExpr: target.spec.path}
  stages: [{name: dev}]
"""


def two_sites(root: Path) -> Fleet:
    """Two sites in one repository, published, and a second repository with nothing in it."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.repository("core")
    made.write("policy.yaml", POLICY)
    place(made, "ams", AMS)
    place(made, "ber", "sites/ber")
    made.settle()
    assert made.published() == {AMS: "v1", "sites/ber": "v1"}
    return made


def place(fleet: Fleet, site: str, path: str, repository: str = "edge") -> None:
    """Say where a site's variant is to be."""
    fleet.site(site, "dev", repository, path=path)


def verified(fleet: Fleet) -> None:
    """Make readiness of variants depend on a check from now on."""
    text = POLICY.replace("[{name: dev}]", "[{name: dev, verification: [{name: e2e, report: {}}]}]")
    fleet.write("policy.yaml", text)


def edit(fleet: Fleet, path: str = AMS, repository: str = "edge") -> None:
    """A person changes a published package."""
    text = TEXT + "  paused: true # by hand\n"
    fleet.repos[repository].commit(
        "main", {f"{path}/deployment.yaml": text, f"{path}/notes.txt": "ours\n"}
    )


def is_edited(fleet: Fleet, path: str, repository: str = "edge", branch: str = "main") -> bool:
    repo = fleet.repos[repository]
    text = repo.file(branch, f"{path}/deployment.yaml")
    return "paused: true # by hand" in text and repo.file(branch, f"{path}/notes.txt") == "ours\n"


def packages(fleet: Fleet, repository: str = "edge", branch: str = "main") -> set[str]:
    """The directories with a Kptfile."""
    files = fleet.repos[repository].files(branch)
    return {path.removesuffix("/Kptfile") for path in files if path.endswith("/Kptfile")}


def reasons(fleet: Fleet, path: str) -> list[str]:
    """Return the holds of the variant that is to be at a path."""
    items = fleet.run("get", "targets", "-o", "json").views
    [view] = [item for item in items if item.get("path") == path]
    return [hold["reason"] for hold in view["holds"]]
