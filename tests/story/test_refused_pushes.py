"""Servers that refuse pushes for good: it is told wherever one looks, and stops nothing else."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, PROMOTION, Fleet, Repo
from http_git import serving
from killing import killer

from fanout.present.conditions import summarize_repositories
from fanout.present.status_views import build_repository_status
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.selection.policy_resolution import repository_key

NAMES = ("ams", "ber", "cdg", "dus", "ewr", "fra")
PATHS = tuple(f"sites/{name}" for name in NAMES)
SIX = PLAIN.replace("sites/ams, sites/ber", ", ".join(PATHS))
TAG = "refs/tags/sites/ams/*"
DRAFT = "refs/heads/drafts/default/sites/ams/*"


def update_hook(pattern: str, words: str) -> str:
    """A hook that refuses single refs, as protections by Git itself do; git names the first."""
    return f'case "$1" in {pattern}) echo "{words}" >&2; exit 1;; esac'


def receive_hook(pattern: str, words: str) -> str:
    """A hook that refuses the whole push for one ref, as forges do; git names all refs."""
    refuse = f'case "$ref" in {pattern}) echo "{words}" >&2; exit 1;; esac'
    return f"while read old new ref; do {refuse}; done"


UNSIGNED = """while read old new ref; do
git cat-file commit $new | grep -q ^gpgsig || { echo "commits must be signed" >&2; exit 1; }
done"""


@company
def fleet(root: Path) -> Fleet:
    """Drafts of two packages in one repository, which the next sweep publishes."""
    return build(root, PLAIN)


@company
def large_fleet(root: Path) -> Fleet:
    return build(root, SIX)


def build(root: Path, policy: str) -> Fleet:
    made = Fleet(root)
    for name in ("blueprints", "edge"):
        made.repository(name)
    made.release("v1")
    made.write("policy.yaml", policy)
    made.write("promotion.yaml", PROMOTION)
    return made


def configure(*settings: str) -> Callable[[Repo], object]:
    def change(repo: Repo) -> None:
        for it in settings:
            repo.git("config", *it.split())

    return change


def hook(name: str, script: str) -> Callable[[Repo], object]:
    return lambda repo: repo.hook(name, script)


def put_branch_in_the_way(repo: Repo) -> None:
    repo.commit("drafts", {"README.md": "in the way\n"})


# Policy of the server, how it is set, what the server says of it.
SERVER_POLICIES = [
    (
        "a protected branch",
        hook("update", update_hook("refs/heads/main", "main is protected")),
        "main is protected",
    ),
    (
        "protected tags",
        hook("update", update_hook("refs/tags/*", "tags are for maintainers")),
        "tags are for maintainers",
    ),
    (
        "rules for names of branches",
        hook("pre-receive", receive_hook("refs/heads/drafts/*", "name it feature/NAME")),
        "name it feature/NAME",
    ),
    (
        "an archived repository",
        hook("pre-receive", "echo 'the repository is archived' >&2; exit 1"),
        "the repository is archived",
    ),
    ("a ref in the way", put_branch_in_the_way, "drafts"),
    ("a size limit", configure("receive.maxInputSize 1"), "unpack"),
    ("hidden refs", configure("receive.hideRefs refs/heads/fanout"), "hidden ref"),
    ("signed commits", hook("pre-receive", UNSIGNED), "commits must be signed"),
]


def mend(repo: Repo) -> None:
    for path in (repo.path / "hooks").glob("*"):
        path.unlink()
    for name in ("receive.maxInputSize", "receive.hideRefs", "receive.denyNonFastForwards"):
        repo.git("config", "--unset-all", name, check=False)
    repo.git("update-ref", "-d", "refs/heads/drafts", check=False)


def ready_of(item: dict) -> tuple[str, str, str]:
    [it] = [it for it in item["status"]["conditions"] if it["type"] in ("Ready", "Passed")]
    return it["status"], it["reason"], it["message"]


@pytest.mark.parametrize(
    ("_", "forbid", "words"), SERVER_POLICIES, ids=map(itemgetter(0), SERVER_POLICIES)
)
def test_a_lasting_refusal_of_a_push_is_shown_everywhere_until_it_ends(
    fleet: Fleet, _: str, forbid, words: str
):
    forbid(fleet.repos["edge"])
    since = fleet.now
    first = fleet.sweep()
    second = fleet.later(minutes=5).sweep()
    since = since if first.code == 3 else fleet.now  # or the drafts were taken
    assert second.code == 3
    assert words in second.err
    records = fleet.records().git("rev-list", "--all", "--count")
    assert fleet.later(minutes=5).sweep().code == 3
    assert fleet.records().git("rev-list", "--all", "--count") == records, "nothing new is told"

    instant = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    for path, status in fleet.targets().items():
        hold = status["holds"][0]
        assert (status["state"], hold["reason"]) == ("Held", "PushRefused"), path
        assert words in hold["message"]
        assert hold["since"] == instant
        assert hold["who"] == "the administrators of the Git server of edge"
    for kind, name in (("policies", "monitoring"), ("repositories", "edge"), ("stages", "dev")):
        [item] = [
            it for it in fleet.run("get", kind, "-o", "json").items
            if name in (it["metadata"]["name"], it.get("spec", {}).get("stage"))
        ]  # fmt: skip
        status, reason, message = ready_of(item)
        assert (status, reason) == ("Unknown" if kind == "stages" else "False", "PushRefused")
        assert words in message, kind
        assert f"refused since {instant}" in message, kind
    shown = fleet.run("status")
    assert shown.code == 3
    assert "PushRefused" in shown.out
    explained = fleet.run("explain", "monitoring")
    assert words in explained.out
    assert f"refused since {instant}" in explained.out
    assert "administrators of the Git server of edge" in explained.out
    assert "fanout sweep" not in explained.out

    mend(fleet.repos["edge"])
    fleet.later(minutes=5).settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}
    for command in (("status",), ("get", "repositories"), ("get", "policies"), ("get", "variants")):
        assert "PushRefused" not in fleet.run(*command, "-o", "json").out
    assert "refused/" not in fleet.records().git("grep", "-l", "refused", "--all", check=False)
    fleet.repos["edge"].fsck()


def test_an_account_that_may_only_read_is_reported(fleet: Fleet, monkeypatch):
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:http")
    repo = fleet.repos["edge"]
    with serving(repo.path.parent) as server:
        text = (fleet.root / "policies" / "repository-edge.yaml").read_text()
        fleet.write("repository-edge.yaml", text.replace(str(repo.path), server.url("edge.git")))
        server.is_read_only = True
        fleet.sweep()
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 3
        for status in fleet.targets().values():
            assert status["holds"][0]["reason"] == "PushRefused"
            assert "403" in status["holds"][0]["message"]
        assert "PushRefused" in fleet.run("get", "repositories", "-o", "json").out
        server.is_read_only = False
        fleet.later(minutes=1).settle()
    assert set(repo.tags()) == {"sites/ams/v1", "sites/ber/v1"}


HOOKS = [
    ("a hook that names the ref", "update", update_hook),
    ("a hook that names all refs", "pre-receive", receive_hook),
]


@pytest.mark.parametrize(("_", "kind", "make"), HOOKS, ids=map(itemgetter(0), HOOKS))
def test_a_tag_that_is_refused_keeps_no_other_publication(large_fleet: Fleet, _, kind, make):
    fleet = large_fleet
    fleet.sweep()
    repo = fleet.repos["edge"]
    repo.hook(kind, make(TAG, "this tag is reserved"))
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 3
    assert set(repo.tags()) == {f"{path}/v1" for path in PATHS[1:]}
    assert repo.drafts() == ["sites/ams/monitoring"]
    assert set(fleet.published().values()) == {"", "v1"}
    refused = [path for path, it in fleet.variants().items() if it["state"] == "Held"]
    assert refused == ["sites/ams"]
    assert "sites/ams/Kptfile" not in repo.files()
    [failed] = [it for it in swept.err.splitlines() if it.startswith("failed: ")]
    assert "this tag is reserved" in failed
    mend(repo)
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v1"}
    repo.fsck()


@pytest.mark.parametrize(("_", "kind", "make"), HOOKS, ids=map(itemgetter(0), HOOKS))
def test_a_draft_that_cannot_be_rewritten_keeps_no_other_set(large_fleet: Fleet, _, kind, make):
    fleet = large_fleet
    fleet.settle()
    repo = fleet.repos["edge"]
    repo.hook(kind, make(DRAFT, "frozen until monday"))
    fleet.release("v2")
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.published() == {it: "v1" if it == "sites/ams" else "v2" for it in PATHS}
    reason, message = fleet.condition("sites/ams")
    assert (reason, "frozen until monday" in message) == ("PushRefused", True)
    assert fleet.condition("sites/ber")[0] == "Ready"
    mend(repo)
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v2"}


@pytest.mark.parametrize(("_", "kind", "make"), HOOKS, ids=map(itemgetter(0), HOOKS))
def test_a_protected_branch_keeps_no_draft(fleet: Fleet, _, kind, make):
    """The stage of one package is refused, and the draft of the other one is written anew."""
    two = PLAIN.replace(", sites/ber]}]", "]}]").replace(
        "  stages:", "  - repositories: [{name: edge, packageNames: [sites/ber]}]\n"
        "    template: {stage: late}\n  stages:"
    )  # fmt: skip
    two = two.replace("[{name: dev}]", "[{name: dev}, {name: late}]")
    fleet.write("policy.yaml", two)
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [dev]"))
    fleet.sweep()
    fleet.repos["edge"].hook(kind, make("refs/heads/main", "main is protected"))
    fleet.site("unused", "dev", "edge")
    text = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", text.replace("[sites/ber]", "[sites/ber, sites/cdg]"))
    assert fleet.later(minutes=1).sweep().code == 3
    assert "sites/cdg/monitoring" in fleet.repos["edge"].drafts()
    states = fleet.states()
    assert (states["sites/ams"], states["sites/cdg"]) == ("Held", "Drafted")


FORCED = [
    ("by Git", configure("receive.denyNonFastForwards true")),
    (
        "by a hook",
        hook(
            "pre-receive",
            """z=0000000000000000000000000000000000000000
while read old new ref; do
[ $old = $z ] || [ $new = $z ] || git merge-base --is-ancestor $old $new ||
{ echo "you are not allowed to force push $ref" >&2; exit 1; }
done""",
        ),
    ),
]


@pytest.mark.parametrize(("_", "forbid"), FORCED, ids=map(itemgetter(0), FORCED))
@pytest.mark.parametrize("edited", [False, True], ids=["untouched", "with a commit of a person"])
def test_drafts_go_on_by_commits_on_top_where_forced_pushes_are_refused(
    fleet: Fleet, _, forbid, edited: bool
):
    fleet.remove("promotion.yaml")
    fleet.settle()
    repo = fleet.repos["edge"]
    forbid(repo)
    branch = "drafts/default/sites/ams/monitoring"
    if edited:
        repo.commit(branch, {"sites/ams/note.txt": "by hand\n"})
    for revision in ("v2", "v3"):
        before = repo.refs("refs/heads/drafts/")
        fleet.release(revision)
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
        after = repo.refs("refs/heads/drafts/")
        for ref, commit in before.items():
            assert after[ref] != commit
            repo.git("merge-base", "--is-ancestor", commit, after[ref])
    assert {it["draft"]["revision"] for it in fleet.variants().values()} == {"v3"}
    assert "PushRefused" not in fleet.run("status").out
    if edited:
        assert repo.file(branch, "sites/ams/note.txt") == "by hand\n"
    fleet.write("promotion.yaml", PROMOTION)
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v3"}
    assert ("sites/ams/note.txt" in repo.files()) is edited
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v4"}
    repo.fsck()


@pytest.mark.diagonal
def test_a_pass_that_is_killed_while_it_omits_refused_refs_is_continued(tmp_path: Path):
    root = tmp_path / "live"
    root.mkdir()
    fleet = build(root, PLAIN)
    fleet.sweep()
    repo = fleet.repos["edge"]
    repo.hook("pre-receive", receive_hook(TAG, "this tag is reserved"))
    fleet.later(minutes=5)

    def outcome() -> object:
        assert fleet.sweep().code == 3
        conditions = [fleet.condition(path)[0] for path in ("sites/ams", "sites/ber")]
        return sorted(repo.refs()), repo.files("main"), conditions

    driver = killer(fleet)
    assert driver.everywhere(["sweep"], outcome, expected=3) > 10
    assert outcome()[2] == ["PushRefused", "Ready"]
    mend(repo)
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v1"}
    repo.fsck()


SHARED = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  draftPer: Stage
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge, packageNames: [sites/ams, sites/ber]}]
    template: {stage: dev}
  stages:
  - name: dev
    requires: [{name: ok, approval: {from: [sre], atLeast: 1}}]
"""


@pytest.mark.parametrize(("_", "forbid"), FORCED, ids=map(itemgetter(0), FORCED))
def test_drafts_of_stages_go_on_by_commits_on_top(fleet: Fleet, _, forbid):
    fleet.write("policy.yaml", SHARED)
    repo = fleet.repos["edge"]
    forbid(repo)
    fleet.settle()
    [ref] = repo.refs("refs/heads/drafts/")
    for revision in ("v2", "v3"):
        before = repo.refs()[ref]
        fleet.release(revision)
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
        assert repo.refs()[ref] != before
        repo.git("merge-base", "--is-ancestor", before, repo.refs()[ref])
    ann = ("--by", "Ann <ann@example.com>")
    approved = fleet.run("approve", "monitoring", "--stage", "dev", "--revision", "v3", *ann)
    assert approved.code == 0, approved.err
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v3"}
    repo.fsck()


def test_a_removal_that_is_refused_is_reported_and_keeps_no_other_publication(fleet: Fleet):
    fleet.settle()
    repo = fleet.repos["edge"]
    script = """while read old new ref; do
[ "$ref" = refs/heads/main ] && [ -z "$(git ls-tree $new sites/ber)" ] &&
{ echo "sites/ber stays" >&2; exit 1; }
done
exit 0"""
    repo.hook("pre-receive", script)
    fleet.write("policy.yaml", PLAIN.replace(", sites/ber", ""))
    fleet.release("v2")
    for _ in range(3):
        swept = fleet.later(minutes=1).sweep()
    assert (swept.code, "sites/ber stays" in swept.err) == (3, True)
    assert fleet.published() == {"sites/ams": "v2"}
    assert "sites/ber/Kptfile" in repo.files()
    explained = fleet.run("explain", "monitoring").out
    assert "PushRefused" in explained
    assert "sites/ber stays" in explained
    items = fleet.run("get", "policies", "-o", "json").items
    assert "PushRefused" in str(items)
    items = fleet.run("get", "repositories", "-o", "json").items
    assert "sites/ber stays" in str(items)
    mend(repo)
    fleet.later(minutes=1).settle()
    assert "sites/ber/Kptfile" not in repo.files()
    assert "PushRefused" not in fleet.run("explain", "monitoring").out


BY_HAND = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: web}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  downstream: {repository: edge, package: web}
"""


def test_a_variant_written_by_hand_has_its_refusal(fleet: Fleet):
    fleet.remove("policy.yaml")
    fleet.write("web.yaml", BY_HAND)
    fleet.repos["edge"].hook("update", update_hook("refs/heads/drafts/*", "no drafts here"))
    assert fleet.sweep().code == 3
    reason, message = fleet.condition("web")
    assert (reason, "no drafts here" in message) == ("PushRefused", True)
    shown = fleet.run("status")
    assert (shown.code, "PushRefused" in shown.out) == (3, True)
    assert "no drafts here" in fleet.run("explain", "web").out
    mend(fleet.repos["edge"])
    fleet.later(minutes=1).sweep()
    assert "PushRefused" not in fleet.run("status").out


def test_rounds_come_to_all_that_the_server_takes(large_fleet: Fleet):
    fleet = large_fleet
    fleet.sweep()
    repo = fleet.repos["edge"]
    repo.hook("pre-receive", receive_hook(TAG, "this tag is reserved"))
    others = {f"{path}/v1" for path in PATHS[1:]}
    for _ in range(len(PATHS)):
        with fleet.later(seconds=1).opened(long_running=True) as program:
            program.sweep(PassMode())
        if set(repo.tags()) == others:
            break
    assert set(repo.tags()) == others


def test_the_status_of_a_repository_in_a_cluster_is_stalled(fleet: Fleet):
    fleet.repos["edge"].hook("pre-receive", "echo 'the repository is archived' >&2; exit 1")
    fleet.sweep()
    with fleet.opened() as program:
        [result] = program.observe(PassMode()).policies
        reports = summarize_repositories(result)
        [edge] = [it for it in program.read_declared().repositories if it.metadata.name == "edge"]
        status = build_repository_status(edge, [reports[repository_key(edge)]]).status
    conditions = {it["type"]: (it["status"], it["reason"]) for it in status["conditions"]}
    assert conditions["Ready"] == ("False", "PushRefused")
    assert conditions["Stalled"] == ("True", "PushRefused")
