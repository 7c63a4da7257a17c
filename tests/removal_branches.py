"""Branches that remove packages: what the stories about them share.

A branch waits for a person: in a repository without a forge for an approval on record, in one with
a forge for the merge of its pull request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet import PACKAGE, POLICY, PROMOTION, Fleet
from http_git import serving

AMS, BER, CPH = "sites/ams", "sites/ber", "sites/cph"
REMOVAL = "drafts/default/_removals/default.monitoring/dev"
RENDERED = "fanout/default/rendered"
ANN = ("--by", "Ann <ann@example.com>")
WHY = ("--reason", "the site is closed", *ANN)
APPROVE = ("approve", "monitoring", "--stage", "dev", "--removals")
SIGNED = "{name: signed, approval: {from: [sre]}}"
MINE = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")
MERGED = {
    "by a merge": ("merge", "-q", "--no-ff", "-m", "Merge it", REMOVAL),
    "by a squash": ("cherry-pick", f"main..{REMOVAL}"),
}
CLOSED = '  windows: [{deny: {schedule: "* * * * *", duration: 1h}}]\n'
CONFIG = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
concurrency: 1
forges:
- {{host: "{host}", type: gitea, api: "{url}/api/v1", secretRef: {{name: none}}}}
"""


class Hosts:
    """The server of a module: all repositories of the machine, and no pull requests."""

    url = ""


@contextmanager
def serve_repositories() -> Iterator[None]:
    """Serve all repositories of the machine over HTTP, as a forge that does not answer."""
    with serving(Path("/")) as server:
        Hosts.url = server.url()
        yield


def configure(fleet: Fleet) -> None:
    """Name the server as a forge in the configuration."""
    path = fleet.root / "config.yaml"
    path.write_text(CONFIG.format(host=Hosts.url.partition("//")[2], url=Hosts.url))
    fleet.options = ("--config", str(path))


def host_repository(fleet: Fleet, *, has_forge: bool) -> None:
    """Declare the repository at its address on the server."""
    forge = ", forge: {type: gitea}" if has_forge else ""
    spec = f"spec: {{url: '{Hosts.url}{fleet.repos['edge'].path}'{forge}}}\n"
    head = "apiVersion: fanout.dev/v1alpha1\nkind: Repository\nmetadata: {name: edge}\n"
    fleet.write("repository-edge.yaml", head + spec)


def settle(fleet: Fleet) -> Fleet:
    """Publish all packages, and give the repository a forge then."""
    host_repository(fleet, has_forge=False)
    fleet.settle()
    configure(fleet)
    host_repository(fleet, has_forge=True)
    return fleet.later(minutes=1)


def build_with_forge(root: Path) -> Fleet:
    """Three sites of one stage in one repository, whose forge does not answer."""
    made = settle(Fleet.build(root, dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge"))))
    assert set(made.published().values()) == {"v1"}
    return made


def require(fleet: Fleet, *checks: str) -> None:
    """Have the stage require approvals of a change, and so of a removal."""
    requires = f"requires: [{', '.join(checks)}]"
    fleet.write("policy.yaml", POLICY.replace("verification: [{name: e2e, report: {}}]", requires))


def build_with_approval(root: Path, sites: dict[str, tuple[str, str]] | None = None) -> Fleet:
    """Sites of one stage whose packages are published, and which requires an approval now."""
    made = Fleet.build(root, sites or dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge")))
    made.settle()
    assert set(made.published().values()) == {"v1"}
    require(made, SIGNED)
    return made.later(minutes=1)


def head(fleet: Fleet, branch: str, repository: str = "edge") -> str:
    """Return the commit of a branch, or nothing if there is none."""
    return fleet.repos[repository].refs().get(f"refs/heads/{branch}", "")


def packages(fleet: Fleet, branch: str = "main", repository: str = "edge") -> set[str]:
    """Return the directories of packages on a branch."""
    return {it.rpartition("/")[0] for it in fleet.repos[repository].files(branch)} - {""}


def name_of(fleet: Fleet, path: str) -> str:
    """Return the name of the variant at a path."""
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [it["metadata"]["name"] for it in items if it["spec"]["downstream"]["package"] == path]
    return name


def approve(fleet: Fleet, by: tuple[str, ...] = ANN, code: int = 0) -> str:
    """Approve the branches that wait; return the name of the record."""
    done = fleet.later(minutes=1).run(*APPROVE, *by)
    assert done.code == code, done.err
    return done.out.split()[0].rpartition("/")[2] if done.out else ""


def merge(fleet: Fleet, how: str = "by a merge") -> None:
    """Merge the branch into `main`, in a clone of somebody who has read it."""
    repo, clone = fleet.repos["edge"], fleet.root / "clone"
    repo.commit("main", {"notes.txt": "n\n"})  # so that it is no fast-forward
    repo.git("worktree", "add", "-q", str(clone), "main")
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    repo.git("-C", str(clone), *person, *MERGED[how])
    repo.git("worktree", "remove", str(clone))


def target_comes_back(fleet: Fleet) -> None:
    fleet.site("ams", "dev", "edge")


def policy_is_suspended(fleet: Fleet) -> None:
    assert fleet.run("suspend", "monitoring", *WHY).code == 0


def package_is_edited(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {f"{AMS}/deployment.yaml": MINE})


def automation_is_off(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', ""))
