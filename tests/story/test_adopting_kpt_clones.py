"""A package that kpt cloned, with its marks in every object, is adopted without a conflict."""

from pathlib import Path

from companies import company
from fleet import PACKAGE, POLICY, Fleet

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
ADOPTING = POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  type: ClusterIP\n"


def marked(text: str, kind: str, name: str) -> str:
    """The object as `kpt pkg get` leaves it."""
    note = f"internal.kpt.dev/upstream-identifier: '{kind}|default|{name}'"
    marked_text = text.replace("metadata:\n", f"metadata: # kpt-merge: /{name}\n", 1)
    return marked_text.replace("spec:\n", f"  annotations:\n    {note}\nspec:\n", 1)


@company
def fleet(root: Path) -> Fleet:
    """One site, cloned at v1; v2 has another value, and an object less."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.release("v1.1.0", {"service.yaml": SERVICE})
    made.write("policy.yaml", ADOPTING)
    upstream = made.repos["blueprints"]
    commit = upstream.refs()["refs/tags/monitoring/v1.1.0"]
    git = f"  git: {{repo: {upstream.path}, directory: /monitoring, ref: monitoring/v1.1.0"
    kptfile = PACKAGE["Kptfile"].replace("name: monitoring", "name: ams")
    kptfile += f"upstream:\n  type: git\n{git}}}\n  updateStrategy: resource-merge\n"
    kptfile += f"upstreamLock:\n  type: git\n{git}, commit: {commit}}}\n"
    upstream_files = {
        path: upstream.file(commit, f"monitoring/{path}")
        for path in ("deployment.yaml", "service.yaml")
    }
    package = {
        **PACKAGE,
        "deployment.yaml": marked(
            upstream_files["deployment.yaml"], "apps|Deployment", "prometheus"
        ),
        "service.yaml": marked(upstream_files["service.yaml"], "|Service", "web"),
        "Kptfile": kptfile,
    }
    inside = {f"{AMS}/{path}": text for path, text in package.items()}
    made.repos["edge"].commit("main", inside, "kpt pkg get")
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 2")
    made.release("v2", {"service.yaml": None, "deployment.yaml": text})
    made.settle()
    return made


def test_an_adopted_clone_has_no_conflict_and_keeps_its_marks(fleet: Fleet):
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    draft = "drafts/default/sites/ams/monitoring"
    edge = fleet.repos["edge"]
    assert f"{AMS}/service.yaml" not in edge.files(draft)
    text = edge.file(draft, DEPLOYMENT)
    assert ("replicas: 2" in text, "# kpt-merge: /prometheus" in text) == (True, True)
    assert "internal.kpt.dev/upstream-identifier" in text
    by = ("--reason", "ours", "--by", "Ann <ann@example.com>")
    done = fleet.run("promote", "monitoring", "--stage", "dev", *by)
    assert (done.code, fleet.published()[AMS]) == (0, "v2"), done.err
    assert "Merge conflicts" not in edge.git("log", "-1", "--format=%B", "main")
