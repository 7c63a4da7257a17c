"""The life of pull requests of 60 variants in 6 repositories over 3 stages, on a real Gitea."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION, Result
from forge_fleet import REPOSITORY, SECRET, ForgeFleet
from forge_proxy import Fault, proxying
from gitea_server import PEOPLE, Gitea, running_gitea

pytestmark = pytest.mark.forge
REPOS = tuple(f"r{number}" for number in range(6))
SITES = {f"c{n:02}": (("dev", "test", "prod")[n % 3], REPOS[n // 3 % 6]) for n in range(60)}
PATHS = {f"sites/{site}": repo for site, (_, repo) in SITES.items()}
STAGES = """\
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: test, after: {stages: [dev]}}
  - name: prod
    after: {stages: [test], soak: 1h}
    requires:
    - {name: signed, approval: {from: [sre]}}
    - {name: ci, commitStatus: {context: ci, by: [bob]}}
"""
PROTECTED = {"enable_push": False, "enable_status_check": True, "status_check_contexts": ["fanout"]}
PEOPLE_MERGE = {"enable_merge_whitelist": True, "merge_whitelist_usernames": list(PEOPLE)}


def build(gitea: Gitea, root: Path, *, merge: str, api: str = "", **rules: object) -> ForgeFleet:
    """The company, with protected branches."""
    fleet = ForgeFleet.on(gitea, root, SITES, api=api)
    fleet.write("policy.yaml", POLICY[: POLICY.index("  stages:")] + STAGES)
    people = ", ".join(f"{it}@example.com {gitea.host}/{it}" for it in PEOPLE)
    promotion = PROMOTION.replace("ann@example.com, bob@example.com", people)
    fleet.write("promotion.yaml", f"{promotion}  merge: {merge}\n  requiresSeparation: true\n")
    for repo in REPOS:
        fleet.protect(repo, **PROTECTED, **rules)
    return fleet


def head(stage: str) -> str:
    return f"drafts/default/_stages/default.monitoring/{stage}"


def sweep(fleet: ForgeFleet, code: int = 0, repos: Collection[str] = REPOS) -> Result:
    """Sweep a minute later; there is never a second open request from a branch."""
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == code, swept.out + swept.err
    open_requests(fleet, repos)
    return swept


def rest(fleet: ForgeFleet, limit: int = 12) -> None:
    """Sweep each minute until there is nothing to do."""
    for _ in range(limit):
        if sweep(fleet).out == "nothing to do\n":
            return
    raise AssertionError("the sweeps do not come to an end")


def open_requests(fleet: ForgeFleet, repos: Collection[str] = REPOS) -> dict[tuple[str, str], int]:
    """The number of the open request by repository and head branch."""
    counts: dict[tuple[str, str], int] = {}
    for repo in repos:
        for answer in fleet.gitea.get(f"{fleet.path(repo)}/pulls?state=open&limit=50"):
            key = repo, answer["head"]["ref"]
            assert key not in counts, f"two requests are open from {key}"
            counts[key] = answer["number"]
    return counts


def published(fleet: ForgeFleet) -> dict[str, set[str]]:
    """The published revisions of each stage."""
    published_revisions = fleet.published()
    revisions: dict[str, set[str]] = {}
    for site, (stage, _) in SITES.items():
        revisions.setdefault(stage, set()).add(published_revisions[f"sites/{site}"])
    return revisions


def head_commit(fleet: ForgeFleet, repo: str) -> str:
    """The head of the branch of prod."""
    return fleet.repos[repo].refs()[f"refs/heads/{head('prod')}"]


def assert_at_rest(
    fleet: ForgeFleet,
    revision: str,
    states: Mapping[str, list[str]],
    twice: Collection[str] = (),
) -> None:
    """Everything is published once, Git has it, and the records say what Git says.

    `states`: those of the requests of each repository that has others than three merged ones;
    `twice`: the paths that were published at an earlier revision as well. Tags count publications.
    """
    assert fleet.published() == dict.fromkeys(PATHS, revision)
    for name in REPOS:
        repo = fleet.repos[name]
        repo.fsck()
        assert repo.drafts() == []
        own = [path for path, place in PATHS.items() if place == name]
        tags = {f"{path}/v1" for path in own} | {f"{path}/v2" for path in own if path in twice}
        assert set(repo.tags()) == tags
        branch = "main" if "refs/heads/main" in repo.refs() else "trunk"
        for path in own:
            text = repo.file(branch, f"{path}/deployment.yaml")
            assert f"replicas: {revision.removeprefix('v')}" in text
        expected = states.get(name, ["merged"] * 3)
        assert [it["state"] for it in fleet.requests(name)] == expected
    refs = fleet.refs()
    fleet.state = "lost"
    assert fleet.sweep("--new-records").code == 0
    assert fleet.published() == dict.fromkeys(PATHS, revision)
    assert fleet.refs() == refs


def test_three_stages_are_promoted_through_protected_branches(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path, merge="Direct")
    rest(fleet)
    assert published(fleet) == {"dev": {"v1"}, "test": {""}, "prod": {""}}
    assert fleet.report("dev", "v1").code == 0
    rest(fleet)
    assert published(fleet) == {"dev": {"v1"}, "test": {"v1"}, "prod": {""}}
    for repo in REPOS:
        fleet.protect(repo, required_approvals=1, status_check_contexts=["fanout", "ci"])
    fleet.later(hours=2)
    rest(fleet)
    numbers = open_requests(fleet)
    assert set(numbers) == {(repo, head("prod")) for repo in REPOS}
    # Ann is among the authors of what she changes, and does not approve it.
    r1, path = fleet.repos["r1"], "sites/c05/settings.yaml"
    edit = r1.commit(head("prod"), {path: r1.file(head("prod"), path) + "  mine: x\n"}, by="ann")
    for (repo, _), number in numbers.items():
        fleet.review(repo, number, "ann")
        # Somebody whom the check does not name says nothing.
        fleet.status(repo, head_commit(fleet, repo), "ci", by="bob" if repo != "r0" else "ann")
    rest(fleet)
    assert set(open_requests(fleet)) == {("r0", head("prod")), ("r1", head("prod"))}
    for repo in ("r0", "r1"):
        statuses = fleet.statuses(repo, head_commit(fleet, repo))
        assert statuses["fanout", fleet.bot] == "pending"
    fleet.status("r0", head_commit(fleet, "r0"), "ci", by="bob")
    fleet.review("r1", numbers["r1", head("prod")], "bob")
    rest(fleet)
    assert fleet.repos["r1"].git("merge-base", "--is-ancestor", edit, "main") == ""
    assert_at_rest(fleet, "v1", {})


def merge_all(fleet: ForgeFleet, style: str = "merge") -> None:
    """Ann merges whatever is open."""
    for (repo, _), number in open_requests(fleet).items():
        fleet.merge(repo, number, style=style)


def promote_by_people(fleet: ForgeFleet) -> None:
    """From dev to the end; Ann merges what is ready in each stage."""
    assert fleet.report("dev", "v2").code == 0
    rest(fleet)
    merge_all(fleet)
    rest(fleet)
    fleet.later(hours=2)
    rest(fleet)
    for (repo, _), number in open_requests(fleet).items():
        fleet.review(repo, number, "ann")
        fleet.status(repo, head_commit(fleet, repo), "ci", by="bob")
    rest(fleet)
    merge_all(fleet)
    rest(fleet)


def test_people_do_what_they_like_and_merge_what_fanout_may_not(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path, merge="Manual", **PEOPLE_MERGE)
    rest(fleet)
    numbers = {repo: number for (repo, _), number in open_requests(fleet).items()}
    assert set(numbers) == set(REPOS)
    dev = head("dev")
    r0 = fleet.repos["r0"]
    mine = r0.file(dev, "sites/c00/settings.yaml") + "  mine: x\n"
    commit = r0.commit(dev, {"sites/c00/settings.yaml": mine}, by="bob")
    fleet.merge("r1", numbers["r1"], style="squash")
    fleet.merge("r2", numbers["r2"], style="rebase")
    fleet.close("r3", numbers["r3"])
    fleet.delete_branch("r4", dev)
    fleet.rename_branch("r5", "main", "trunk")
    url = gitea.git_url("r5", owner=fleet.owner)
    fleet.write(
        "repository-r5.yaml",
        REPOSITORY.format(name="r5", url=url, secret=SECRET) + "  branch: trunk\n",
    )
    rest(fleet)
    # What was closed, or lost its branch, is not asked for again.
    assert set(open_requests(fleet)) == {("r0", dev), ("r5", dev)}
    assert r0.refs()[f"refs/heads/{dev}"] == commit
    assert fleet.requests("r5")[-1]["base"] == "trunk"
    fleet.release("v2")
    rest(fleet)
    # A newer revision asks again, where it can in the same request.
    now_open = open_requests(fleet)
    assert set(now_open) == {(repo, dev) for repo in REPOS}
    assert now_open["r0", dev] == numbers["r0"]
    assert r0.git("merge-base", "--is-ancestor", commit, dev) == ""
    fleet.close("r3", now_open["r3", dev])
    fleet.delete_branch("r4", dev)
    rest(fleet)
    fleet.reopen("r3", now_open["r3", dev])
    resumed = fleet.later(minutes=1).run(
        "resume", "monitoring", "--reason", "it is fine", "--by", "Ann <ann@example.com>"
    )
    assert resumed.code == 0, resumed.err
    rest(fleet)
    merge_all(fleet, style="fast-forward-only")
    rest(fleet)
    assert published(fleet) == {"dev": {"v2"}, "test": {""}, "prod": {""}}
    assert "mine: x" in r0.file("main", "sites/c00/settings.yaml")
    promote_by_people(fleet)
    merged = ["merged"] * 3
    states = {
        "r1": ["merged", *merged],
        "r2": ["merged", *merged],
        "r3": ["closed", *merged],
        "r4": ["closed", "closed", *merged],
    }
    twice = {
        f"sites/{it}" for it, place in SITES.items() if place in {("dev", "r1"), ("dev", "r2")}
    }
    assert_at_rest(fleet, "v2", states, twice)


def test_a_token_that_may_not_merge_leaves_it_to_people(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    fleet.protect("edge", **PROTECTED, **PEOPLE_MERGE)
    sweep(fleet, repos=["edge"])
    for _ in range(2):
        sweep(fleet, repos=["edge"])
        assert fleet.only_request("edge")["state"] == "open"
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "ForgeRefuses"
    assert "User not allowed to merge PR" in sentence
    # Time alone opens nothing: the forge refuses again whenever it is asked.
    output = " ".join(fleet.run("explain", "monitoring/dev").out.split())
    assert "User not allowed to merge PR" in output
    assert "unblocked by whoever can meet what the forge asks for" in output
    for view in (output, fleet.run("status").out):
        assert "automatically" not in view.lower()
        assert "by time alone" not in view
    fleet.merge("edge", 1, by="bob")
    sweep(fleet, repos=["edge"])
    assert set(fleet.published().values()) == {"v1"}
    assert sweep(fleet, repos=["edge"]).out == "nothing to do\n"
    assert "OutOfBand" not in fleet.run("explain", "monitoring").out


def test_a_refusal_is_reported_until_the_forge_takes_the_merge(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge")})
    fleet.protect("edge", **PROTECTED, **PEOPLE_MERGE)
    words = "User not allowed to merge PR"
    sweep(fleet, repos=["edge"])
    assert words in sweep(fleet, repos=["edge"]).err
    # A pass within the minute asks nothing, and is not the answer of later ones.
    soon = fleet.later(seconds=20).sweep()
    assert (soon.out, words in soon.err) == ("nothing to do\n", False)
    since = fleet.targets()["ams"]["holds"][0]["since"]
    for hours in (0, 5):
        fleet.later(hours=hours)
        reason, sentence = fleet.condition("sites/ams")
        assert (reason, words in sentence) == ("ForgeRefuses", True)
    assert words in sweep(fleet, repos=["edge"]).err
    sweep(fleet, repos=["edge"])
    assert fleet.targets()["ams"]["holds"][0]["since"] == since
    request = fleet.only_request("edge")
    assert words in request["body"]
    assert (request["state"], request["draft"]) == ("open", False)
    # The gates are open: whoever may merge is not kept from it.
    assert fleet.statuses("edge", request["commit"])["fanout", fleet.bot] == "success"
    path = f"{fleet.path('edge')}/commits/{request['commit']}/statuses"
    assert words in fleet.gitea.get(path)[0]["description"]
    text = request["body"]
    fleet.calls()
    sweep(fleet, repos=["edge"])
    assert [it.split()[0] for it in fleet.calls() if not it.startswith("GET ")] == ["POST"]
    assert fleet.only_request("edge")["body"] == text
    fleet.protect("edge", enable_merge_whitelist=False)
    sweep(fleet, repos=["edge"])
    assert fleet.only_request("edge")["state"] == "merged"
    assert set(fleet.published().values()) == {"v1"}
    assert "ForgeRefuses" not in fleet.run("explain", "monitoring").out


BURSTS = {
    "429": [Fault(status=429, headers={"Retry-After": "1"})] * 12,
    "5xx": [Fault(status=status) for status in (500, 502, 503, 504)] * 4,
    "lost answers": [Fault(method="POST", forwards=True, resets=True)] * 4,
}


def test_a_failing_server_makes_no_call_act_twice(tmp_path: Path):
    with running_gitea(tmp_path / "gitea") as gitea, proxying(gitea.url) as proxy:
        fleet = build(gitea, tmp_path, merge="Direct", api=proxy.api)
        # Longer than a connection may take to be made.
        proxy.fail(Fault(method="POST", delay=12, relays=True))
        sweep(fleet)
        assert len(open_requests(fleet)) == len(REPOS)
        rest(fleet)
        assert published(fleet)["dev"] == {"v1"}
        assert fleet.report("dev", "v1").code == 0
        proxy.fail(Fault(method="POST", event=gitea.stop, resets=True))
        stopped = fleet.later(minutes=1).sweep()
        assert "gave no usable answer to POST" in stopped.err
        assert fleet.later(minutes=1).sweep().code == 3
        gitea.start()
        for faults in BURSTS.values():
            proxy.fail(*faults)
            fleet.later(minutes=1).sweep()
            open_requests(fleet)
        proxy.faults.clear()
        rest(fleet)
        assert published(fleet) == {"dev": {"v1"}, "test": {"v1"}, "prod": {""}}
        for name in REPOS:
            fleet.repos[name].fsck()
            assert fleet.repos[name].drafts() == []
            assert [it["state"] for it in fleet.requests(name)] == ["merged"] * 2
