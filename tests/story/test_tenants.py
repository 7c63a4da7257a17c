"""Two namespaces name one repository, and only one of them has a secret for it, or both have."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet import PLAIN, PROMOTION, Fleet, Repo, Result
from http_git import GitServer, serving

SECRET = "ada:of-ada"
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{url: {url}{more}}}
"""


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Policies of namespaces a and b, each with a repository of its own to publish to."""
    fleet = Fleet(tmp_path)
    fleet.repository("blueprints", declare=False)
    fleet.release("v1")
    monkeypatch.setenv("FANOUT_SECRET_TOKEN", SECRET)
    with serving(tmp_path / "git") as server:
        server.authorization = f"Basic {base64.b64encode(SECRET.encode()).decode()}"
        for namespace, more in (("a", ", secretRef: {name: token}"), ("b", "")):
            edge = fleet.repository(f"edge-{namespace}", declare=False)
            documents = [
                REPOSITORY.format(
                    name="blueprints",
                    namespace=namespace,
                    url=server.url("blueprints.git"),
                    more=more,
                ),
                REPOSITORY.format(name="edge", namespace=namespace, url=edge.path, more=""),
                PLAIN.replace(
                    "{name: monitoring}", f"{{name: monitoring, namespace: {namespace}}}"
                ),
            ]
            fleet.write(f"{namespace}.yaml", "---\n".join(documents))
        yield fleet


def test_a_namespace_without_a_secret_has_anonymous_access(fleet):
    for _ in range(2):  # the second time the mirror of the other namespace has it all
        result = fleet.later(minutes=1).sweep("-o", "json")
        assert result.code == 3, result
        drafts = {name: len(repo.drafts()) for name, repo in fleet.repos.items()}
        assert drafts == {"blueprints": 0, "edge-a": 2, "edge-b": 0}
    assert "RemoteDenied" in fleet.run("get", "policies", "-n", "b", "-o", "json").out


def test_two_secrets_for_one_url_are_not_refused(fleet):
    """Whoever declares its own secret gets what that secret shows, whatever the others have."""
    text = (fleet.root / "policies" / "b.yaml").read_text()
    url, _, rest = text.partition("blueprints.git")
    fleet.write("b.yaml", f"{url}blueprints.git, secretRef: {{name: token}}{rest}")
    fleet.sweep()
    drafts = {name: len(repo.drafts()) for name, repo in fleet.repos.items()}
    assert drafts == {"blueprints": 0, "edge-a": 2, "edge-b": 2}


# ---- one repository to publish to ----------------------------------------------------------------

SITES = "[sites/ams, sites/ber]"
HAND_WRITTEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  downstream: {{repository: edge, package: sites/ams}}
"""


@dataclass
class SharedFleet:
    """Namespaces that name one repository at one URL; a secret is needed to write it."""

    fleet: Fleet
    server: GitServer

    @property
    def edge(self) -> Repo:
        return self.fleet.repos["edge"]

    def declare(
        self,
        namespace: str,
        *,
        secret: str = "token",
        repository: str = "",
        packages: str = SITES,
        policy: str = "monitoring",
        publishes: bool = True,
    ) -> None:
        """A namespace with the repository, a policy and automation; `repository`: more fields."""
        secret_ref = f", secretRef: {{name: {secret}}}" if secret else ""
        urls = {"blueprints": (self.fleet.repos["blueprints"].path, "")}
        urls["edge"] = self.server.url("edge.git"), secret_ref + repository
        documents = [
            REPOSITORY.format(name=name, namespace=namespace, url=url, more=more)
            for name, (url, more) in urls.items()
        ]
        meta = f"{{name: {policy}, namespace: {namespace}}}"
        documents.append(PLAIN.replace("{name: monitoring}", meta).replace(SITES, packages))
        if publishes:
            meta = f"{{name: all, namespace: {namespace}}}"
            documents.append(PROMOTION.replace("{name: everything}", meta))
        self.fleet.write(f"{namespace}.yaml", "---\n".join(documents))

    def sweep(self, *args: str) -> Result:
        return self.fleet.later(minutes=1).sweep("-o", "json", *args)

    def sweeps(self, count: int = 4) -> None:
        for _ in range(count):
            self.sweep()

    def holds(self, namespace: str) -> dict[str, tuple[str, str]]:
        """Reason and message of the first hold of each target of a namespace, by its path."""
        views = self.fleet.run("get", "targets", "-n", namespace, "-o", "json").views
        return {
            view["path"]: (view["holds"][0]["reason"], view["holds"][0]["message"])
            for view in views
            if view["holds"]
        }

    def packages(self, branch: str = "main") -> set[str]:
        files = self.edge.files(branch)
        return {it.rpartition("/")[0] for it in files if it.endswith("/Kptfile")}

    def policies_of_tags(self) -> dict[str, str]:
        """The policy that the commit of each tag was published for."""
        form = "--format=%(trailers:key=Fanout-Policy,valueonly)"
        return {
            tag: self.edge.git("log", "-1", form, f"refs/tags/{tag}^2").strip()
            for tag in self.edge.tags()
        }


@pytest.fixture
def shared(tmp_path: Path, monkeypatch) -> Iterator[SharedFleet]:
    fleet = Fleet(tmp_path)
    fleet.repository("blueprints", declare=False)
    fleet.release("v1")
    fleet.repository("edge", declare=False)
    fleet.repos["edge"].git("branch", "other", "main")
    with serving(tmp_path / "git") as server:
        users = {"token": "ada:of-ada", "key": "bob:of-bob"}
        for name, words in users.items():
            monkeypatch.setenv(f"FANOUT_SECRET_{name.upper()}", words)
        headers = [f"Basic {base64.b64encode(it.encode()).decode()}" for it in users.values()]
        server.users = dict.fromkeys(headers, "refs/none")
        yield SharedFleet(fleet, server)


WITHOUT_SECRET = [
    ("without tags", {"repository": ", tags: None", "packages": "[sites/cph]"}),
    ("another branch", {"repository": ", branch: other", "packages": "[sites/cph]"}),
    ("a forge", {"repository": ", forge: {type: gitea}", "packages": "[sites/cph]"}),
    ("the same paths", {}),
    ("a path inside one", {"packages": "[sites/ams/inner]"}),
    ("the same paths on another branch", {"repository": ", branch: other"}),
    ("secret of no use", {"secret": "nothing"}),
]


@pytest.mark.parametrize("is_public", [False, True], ids=["private", "public"])
@pytest.mark.parametrize(
    ("_", "wish"), WITHOUT_SECRET, ids=[sentence for sentence, _ in WITHOUT_SECRET]
)
def test_a_namespace_without_write_access_takes_no_package_of_another(shared, _, wish, is_public):
    shared.server.is_public = is_public
    shared.declare("abe", **{"secret": "", **wish})
    shared.declare("zed")
    shared.sweeps()
    assert shared.holds("zed") == {}
    assert shared.edge.tags() == ["sites/ams/v1", "sites/ber/v1"]
    assert shared.packages() == {"sites/ams", "sites/ber"}
    assert shared.packages("other") == set()
    held = shared.holds("abe")
    if not is_public:
        assert {reason for reason, _ in held.values()} == {"RepositoryUnavailable"}
        assert "zed" not in str(held)


def test_a_variant_by_hand_is_not_that_of_the_same_name_in_another_namespace(shared):
    shared.server.is_public = True
    for namespace in ("abe", "zed"):
        shared.declare(namespace, secret="token" if namespace == "zed" else "", packages="[other]")
        file = shared.fleet.root / "policies" / f"{namespace}.yaml"
        variant = HAND_WRITTEN.format(name="ams", namespace=namespace)
        promotion = file.read_text().rpartition("---\n")[2]
        variants = promotion.replace('policies: ["*"]', "variants: [ams]")
        repositories = "---\n".join(file.read_text().split("---\n")[:2])
        file.write_text("---\n".join([repositories, variant, variants]))
    shared.sweeps()
    assert shared.policies_of_tags() == {"sites/ams/v1": "zed/"}
    records = shared.fleet.run("get", "variants", "-n", "abe", "-o", "json").out
    assert "sites/ams/v1" not in records


def assert_hidden(shared: SharedFleet, namespace: str, other: str) -> None:
    """Assert that nothing that a namespace reads of its own names another one."""
    for line in (
        ("get", "policies"), ("get", "targets"), ("get", "variants"), ("explain", "monitoring")
    ):  # fmt: skip
        read = shared.fleet.run(*line, "-n", namespace, "-o", "json")
        assert not re.search(rf"\b{other}\b", read.out + read.err), read


def test_the_owner_of_a_package_of_another_namespace_is_not_shown(shared):
    """Its records are lost, so its repository alone shows it."""
    shared.declare("abe", secret="key", packages="[other]")
    shared.declare("zed")
    shared.sweeps()
    shared.fleet.remove("zed.yaml")
    shared.fleet.records().git("update-ref", "-d", "refs/heads/fanout/default/zed/monitoring")
    shared.declare("abe", secret="key")
    shared.sweep()
    held = shared.holds("abe")
    reason, message = held["sites/ams"]
    assert reason == "PathTaken"
    assert "published for a policy in another namespace; choose another path for" in message
    assert_hidden(shared, "abe", "zed")


def test_the_owner_of_a_branch_of_another_namespace_is_not_shown(shared):
    shared.server.is_public = True
    shared.declare("abe", secret="")
    shared.declare("zed", secret="", repository=", branch: other")
    shared.sweep()
    [(reason, message)] = set(shared.holds("zed").values())
    assert reason == "RepositoryUnavailable"
    assert "a Repository in another namespace has the same URL" in message
    assert_hidden(shared, "zed", "abe")


SHARED = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: platform}}
spec: {{url: {url}, allowedNamespaces: [abe, zed]}}
"""
REFUSING = """bad=0
while read old new ref; do
case "$ref" in refs/heads/drafts/*) echo "$ref is forbidden" >&2; bad=1;; esac
done
exit $bad"""


def test_words_of_a_server_about_others_are_not_shown(tmp_path: Path):
    """One push has the drafts of both, and they are too many to try each by itself."""
    fleet = Fleet(tmp_path)
    for name in ("blueprints", "edge"):
        fleet.repository(name, declare=False)
        fleet.write(f"{name}.yaml", SHARED.format(name=name, url=fleet.repos[name].path))
    fleet.release("v1")
    for namespace, policy in (("abe", "monitoring"), ("zed", "metrics")):
        packages = ", ".join(f"{namespace}-sites/s{number}" for number in range(12))
        text = PLAIN.replace(SITES, f"[{packages}]")
        meta = f"{{name: {policy}, namespace: {namespace}}}"
        fleet.write(f"{namespace}.yaml", text.replace("{name: monitoring}", meta))
    fleet.repos["edge"].hook("pre-receive", REFUSING)
    for _ in range(4):
        assert "is forbidden" in fleet.later(minutes=1).sweep().err
        for namespace, other in (("abe", "zed"), ("zed", "abe")):
            for kind in ("policies", "targets", "variants", "repositories"):
                read = fleet.run("get", kind, "-n", namespace, "-o", "json").out
                assert "PushRefused" in read or kind == "repositories"
                assert f"{other}-sites" not in read, kind


BOTH = [
    ("the same paths", {}, {}),
    ("the same paths for another policy", {"policy": "another"}, {}),
    ("the same paths on another branch", {"repository": ", branch: other"}, {}),
    ("paths inside", {"packages": "[sites/ams/inner, sites/ber/inner]"}, {}),
    ("paths around", {"packages": "[sites]"}, {}),
]


@pytest.mark.parametrize(("_", "first", "second"), BOTH, ids=[row[0] for row in BOTH])
def test_of_two_who_can_write_one_has_the_path_and_the_other_is_reported(shared, _, first, second):
    shared.declare("abe", **first)
    shared.declare("zed", secret="key", **second)
    shared.sweeps(6)
    owners = set(shared.policies_of_tags().values())
    assert len(owners) == 1, owners
    [loser] = {"abe", "zed"} - {owner.partition("/")[0] for owner in owners}
    winner = next(iter(owners)).partition("/")[0]
    assert shared.holds(winner) == {}
    held = shared.holds(loser)
    assert held
    assert {reason for reason, _ in held.values()} <= {"PathCollision", "PathTaken"}
    assert_hidden(shared, loser, winner)
    before = shared.edge.refs()
    shared.sweeps(2)
    assert shared.edge.refs() == before


def test_of_two_who_only_draft_the_first_to_write_has_the_path(shared):
    shared.declare("abe", packages="[sites/ams]", publishes=False)
    shared.declare("zed", secret="key", packages="[sites/ams/inner]", publishes=False)
    shared.sweeps()
    [path] = {it.rpartition("/")[0] for it in shared.edge.drafts()}
    winner, loser = ("abe", "zed") if path == "sites/ams" else ("zed", "abe")
    assert "PathCollision" in {reason for reason, _ in shared.holds(loser).values()}
    assert "PathCollision" not in {reason for reason, _ in shared.holds(winner).values()}


def test_of_two_who_have_written_both_wait_for_a_path_that_nobody_has(shared):
    """As it is within one namespace: the order of names must not decide."""
    shared.declare("abe", packages="[abe]")
    shared.declare("zed", packages="[zed]", secret="key")
    shared.sweeps()
    assert shared.packages() == {"abe", "zed"}
    shared.declare("abe", packages="[abe, new]")
    shared.declare("zed", packages="[zed, new]", secret="key")
    for args in ((), ("-n", "zed"), ("-n", "abe"), ()):
        shared.sweep(*args)
    assert shared.packages() == {"abe", "zed"}
    for namespace, other in (("abe", "zed"), ("zed", "abe")):
        reason, message = shared.holds(namespace)["new"]
        assert reason == "PathCollision"
        assert "that of a variant in another namespace, new" in message
        assert_hidden(shared, namespace, other)


def test_a_path_on_record_stays_with_its_owner(shared):
    shared.declare("zed")
    shared.sweeps()
    before = shared.edge.refs()
    for branch in ("main", "other"):
        shared.declare("abe", secret="key", repository=f", branch: {branch}", packages=SITES)
        shared.sweeps(2)
        assert shared.edge.refs() == before
        assert shared.holds("zed") == {}
        assert {reason for reason, _ in shared.holds("abe").values()} == {"PathCollision"}


def test_a_repository_that_is_left_is_cleared_whatever_branch_others_name(shared):
    shared.declare("zed")
    shared.sweeps()
    shared.fleet.repository("core", declare=False)
    shared.declare("zed")
    file = shared.fleet.root / "policies" / "zed.yaml"
    core = REPOSITORY.format(
        name="core", namespace="zed", url=shared.fleet.repos["core"].path, more=""
    )
    moved = file.read_text().replace("{name: edge, packageNames", "{name: core, packageNames")
    file.write_text(f"{moved}---\n{core}")
    shared.declare("abe", secret="", repository=", branch: other", packages="[sites/cph]")
    by = ("--reason", "moved", "--by", "Ann <ann@example.com>")
    for variant in shared.fleet.run("get", "variants", "-n", "zed", "-o", "json").items:
        shared.fleet.run("remove", "monitoring", variant["metadata"]["name"], "-n", "zed", *by)
    shared.sweeps(6)
    assert shared.packages() == set()


def test_tags_are_those_that_the_repository_has_for_all_policies(shared):
    """Whichever policies a sweep covers."""
    shared.declare("zed")
    more = REPOSITORY.format(
        name="twin",
        namespace="zed",
        url=shared.server.url("edge.git"),
        more=", secretRef: {name: token}, tags: None",
    )
    policy = PLAIN.replace("{name: monitoring}", "{name: twin, namespace: zed}")
    policy = policy.replace(f"edge, packageNames: {SITES}", "twin, packageNames: [sites/cph]")
    shared.fleet.write("twin.yaml", f"{more}---\n{policy}")
    for _ in range(3):
        shared.sweep("monitoring")
    assert shared.packages() == {"sites/ams", "sites/ber"}
    assert shared.edge.tags() == []
    shared.sweeps(2)
    assert shared.packages() == {"sites/ams", "sites/ber", "sites/cph"}
    assert shared.edge.tags() == []
