"""Never two pull requests for one thing, and never a merge of another head than was judged.

On a real Gitea: passes that are killed, passes at once, two installations, and pushes by people
between what a pass sees and what it does. `make soak-forge` kills at many more points.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest
from fleet import PACKAGE, Repo
from forge_fleet import ForgeFleet
from forge_proxy import ForgeProxy, proxying
from gitea_server import Gitea
from github_fleet import GitHubFleet
from github_server import running_github
from killing import killer

from fanout.git.mirror_store import MirrorStore

KILLS, SEED = int(os.environ.get("KILLS", "6")), int(os.environ.get("SEED", "1"))
TRIES = 20
SITES = {
    "ams": ("dev", "edge"),
    "ber": ("dev", "edge"),
    "cph": ("prod", "edge"),
    "dub": ("dev", "core"),
}
# Without expressions, so that no process waits for a sandbox.
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: monitoring}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets: {targets}
  stages: {stages}
"""
TWO_STAGES = "[{name: dev}, {name: prod, after: {stages: [dev]}}]"
SIGNED = "[{name: dev, requires: [{name: signed, approval: {from: [sre]}}]}]"
PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {{name: everything}}
spec:
  policies: ["*"]
  autoPromotion: {{stages: ["*"]}}
  approvers: [{{group: sre, subjects: {approvers}}}]
"""
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


def build(
    gitea: Gitea,
    root: Path,
    sites: dict[str, tuple[str, str]] = SITES,
    stages: str = TWO_STAGES,
    **options: Any,
) -> ForgeFleet:
    return declare(ForgeFleet.on(gitea, root, sites, **options), sites, stages)


def declare(
    fleet: ForgeFleet,
    sites: dict[str, tuple[str, str]] = SITES,
    stages: str = TWO_STAGES,
) -> ForgeFleet:
    """Write the policy of a company with these sites."""
    targets = [
        f"{{repositories: [{{name: {repository}, packageNames: [sites/{name}]}}],"
        f" template: {{stage: {stage}}}}}"
        for name, (stage, repository) in sites.items()
    ]
    fleet.write("policy.yaml", POLICY.format(targets=f"[{', '.join(targets)}]", stages=stages))
    return fleet


def downstream(fleet: ForgeFleet) -> list[str]:
    return sorted(set(fleet.repos) - {"blueprints"})


def sites_of(fleet: ForgeFleet) -> list[str]:
    policy = (fleet.root / "policies" / "policy.yaml").read_text(encoding="utf-8")
    return re.findall(r"packageNames: \[(.*?)\]", policy)


def has_come_to(fleet: ForgeFleet, number: int) -> bool:
    """Everything is published so many times, and no draft is left."""
    repos = [fleet.repos[name] for name in downstream(fleet)]
    sites = sites_of(fleet)
    tags = [tag for repo in repos for tag in repo.tags() if tag.rpartition("/")[0] in sites]
    prefix = f"refs/heads/drafts/{fleet.install}/"
    drafts = [ref for repo in repos for ref in repo.refs(prefix)]
    return not drafts and len(tags) >= number * len(sites)


def live(fleet: ForgeFleet, sweep: Callable[[], object]) -> None:
    """Two revisions come to all sites, by as many sweeps as that takes."""
    for number in (1, 2):
        if f"monitoring/v{number}" not in fleet.repos["blueprints"].tags():
            fleet.release(f"v{number}")
        for _ in range(20):
            fleet.later(minutes=2)  # a merge that the forge refused is asked for again
            fleet.await_checks()
            sweep()
            if has_come_to(fleet, number):
                break
        else:
            raise AssertionError(f"v{number} is not published: {fleet.states()}")
    fleet.later(minutes=2)
    sweep()
    assert set(fleet.published().values()) == {"v2"}


def outcome(fleet: ForgeFleet) -> dict[str, object]:
    """What people see: requests, trees of branches and of published packages."""
    seen: dict[str, object] = {}
    for name in downstream(fleet):
        repo = fleet.repos[name]
        seen[name] = {
            "requests": sorted((it["head"], it["state"]) for it in fleet.requests(name)),
            "files": {ref: files(repo, ref) for ref in repo.refs() if "/pull/" not in ref},
        }
    return seen


def files(repo: Repo, ref: str) -> list[str]:
    """Modes, blobs and paths; without Kptfiles, which name the upstream repository's commit."""
    lines = repo.git("ls-tree", "-r", ref).splitlines()
    return [line for line in lines if not line.endswith("/Kptfile")]


def check_requests(fleet: ForgeFleet, revisions: int = 2) -> None:
    """One merged request for each branch of a draft and each revision, and no other."""
    for name in downstream(fleet):
        requests = fleet.requests(name)
        assert {it["state"] for it in requests} == {"merged"}
        heads = [it["head"] for it in requests]
        assert {heads.count(head) for head in heads} == {revisions}, heads
        fleet.repos[name].fsck()


HOSTS = [pytest.param("gitea", marks=pytest.mark.forge), "github"]
Builder = Callable[[Path], ForgeFleet]


@pytest.fixture(scope="module", params=HOSTS)
def build_on(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Builder]:
    """A function that makes a company on one of the hosts, in a directory."""
    if request.param == "gitea":
        yield partial(build, request.getfixturevalue("gitea"))
    else:
        with running_github(tmp_path_factory.mktemp("github") / "server") as github:
            yield lambda root: declare(cast(ForgeFleet, GitHubFleet.on(github, root, SITES)))


@pytest.fixture(scope="module")
def undisturbed(build_on: Builder, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, object]:
    """How many effects the passes have that nobody disturbs, and what they come to."""
    fleet = build_on(tmp_path_factory.mktemp("undisturbed") / "fleet")
    effects: list[int] = []
    with mock.patch.dict(os.environ, fleet.environment()):
        killing = killer(fleet)
        fleet.configure(concurrency=1)
        live(fleet, lambda: effects.append(killing.run(0, "sweep")[1]))
    check_requests(fleet)
    return sum(effects), outcome(fleet)


def decline_for_a_while(fleet: ForgeFleet, sweep: Callable[[], object]) -> None:
    """People close all open requests, which passes without a cache respect, and reopen them."""
    declined = {
        (repo, it["head"]): it["number"]
        for repo in downstream(fleet)
        for it in fleet.requests(repo)
        if it["state"] == "open"
    }
    for (repo, _), number in declined.items():
        fleet.close(repo, number)
    forget(fleet)
    for _ in range(2):
        fleet.later(minutes=2)
        sweep()
    newest = {
        (repo, it["head"]): it["number"]
        for repo in downstream(fleet)
        for it in fleet.requests(repo)
    }
    assert {key: newest[key] for key in declined} == declined
    for (repo, _), number in declined.items():
        fleet.reopen(repo, number)


def forget(fleet: ForgeFleet) -> None:
    """Delete the state directory, but for the records."""
    for path in (fleet.root / "state").iterdir():
        if path.name == "records.git":
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.mark.parametrize("seed", range(SEED, SEED + KILLS // 2))
def test_passes_that_are_killed_leave_no_second_request(
    build_on: Builder, tmp_path: Path, undisturbed: tuple[int, object], seed: int
):
    """Two kills, each between two calls, pushes or other commands of git.

    After the second, people close what is open, and the next pass is another machine's.
    """
    total, wanted = undisturbed
    first, second = sorted(random.Random(seed).sample(range(1, total + 1), 2))
    fleet, waits = build_on(tmp_path / "fleet"), [first, second - first]

    def sweep() -> None:
        status, effects = killing.run(waits[0] if waits else 0, "sweep")
        if status == -signal.SIGKILL:
            del waits[0]
            if not waits:
                decline_for_a_while(fleet, lambda: killing.run(0, "sweep"))
        elif waits:
            waits[0] = max(1, waits[0] - effects)

    with mock.patch.dict(os.environ, fleet.environment()):
        killing = killer(fleet)
        fleet.configure(concurrency=1)
        live(fleet, sweep)
    check_requests(fleet)
    assert outcome(fleet) == wanted


def start(fleet: ForgeFleet, machine: str) -> subprocess.Popen[str]:
    """A sweep of another process, with a state directory of its own and the same records."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "fanout", "sweep", "-f", str(fleet.root / "policies")),
            *("--now", fleet.now.isoformat(), "--state-dir", str(fleet.root / machine)),
            *("--records", str(fleet.records().path), *fleet.options),
        ],
        env={**os.environ, **fleet.environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill_at(fleet: ForgeFleet, proxy: ForgeProxy, method: str, part: str, machine: str) -> None:
    """A sweep of a machine, which is killed when it makes a call of this method and path."""
    if not fleet.records().path.exists():
        subprocess.run(["git", "init", "-q", "--bare", str(fleet.records().path)], check=True)

    def kill(called: str, path: str) -> None:
        if called == method and part in path:
            process.kill()
            raise ConnectionAbortedError  # it is not forwarded

    proxy.before, unobserved = kill, proxy.before
    process = start(fleet.later(minutes=2), machine)
    printed = process.communicate()[0]
    proxy.before = unobserved
    assert process.returncode == -signal.SIGKILL, printed


def sweep_on(fleet: ForgeFleet, machine: str) -> None:
    process = start(fleet.later(minutes=2), machine)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed


@pytest.mark.forge
@pytest.mark.parametrize("act", ["close", "delete"])
def test_a_request_closed_by_a_person_after_a_kill_stays_closed(
    gitea: Gitea, tmp_path: Path, act: str
):
    """Each request was opened and is not on record; the next pass is another machine's."""
    sites = {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    with proxying(gitea.url) as proxy:
        fleet = build(gitea, tmp_path / "fleet", sites, api=proxy.api)
        for number in (1, 2):
            kill_at(fleet, proxy, "POST", "/statuses/", f"{number}a")
            opened = fleet.requests("edge")[-1]
            assert (opened["number"], opened["state"]) == (number, "open")
            if act == "close":
                fleet.close("edge", number)
            else:
                fleet.delete_branch("edge", opened["head"])
            for machine in (f"{number}b", f"{number}c", f"{number}c"):
                sweep_on(fleet, machine)
            assert [it["state"] for it in fleet.requests("edge")] == ["closed"] * number
            assert fleet.condition("sites/ams")[0] == "RequestClosed"
            fleet.release(f"v{number + 1}")
        # Who comes with the next revision was in no request that a person closed.
        policy = (fleet.root / "policies" / "policy.yaml").read_text(encoding="utf-8")
        fleet.write("policy.yaml", policy.replace("sites/ber]}]", "sites/ber, sites/cph]}]"))
        kill_at(fleet, proxy, "POST", "/pulls", "3a")
        for _ in range(3):
            fleet.await_checks()
            sweep_on(fleet, "3b")
    assert [it["state"] for it in fleet.requests("edge")] == ["closed", "closed", "merged"]
    assert set(fleet.published().values()) == {"v3"}


@pytest.mark.forge
def test_a_request_that_a_pass_may_be_opening_is_left_to_it_for_a_minute(
    gitea: Gitea, tmp_path: Path
):
    """A forge can take the same request from two passes at once, so the second waits."""
    with proxying(gitea.url) as proxy:
        fleet = build(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}, api=proxy.api)
        kill_at(fleet, proxy, "POST", "/pulls", "one")
        for seconds, opened in ((0, []), (59, []), (1, ["open"])):
            printed = start(fleet.later(seconds=seconds), "two").communicate()[0]
            assert [it["state"] for it in fleet.requests("edge")] == opened, printed


class Killed(BaseException):
    """Ends a command in process; nothing of fanout handles it."""


def merge_with_deletion(fleet: ForgeFleet) -> None:
    request = fleet.requests("edge")[-1]
    fleet.merge("edge", request["number"])
    fleet.delete_branch("edge", request["head"])


@pytest.mark.forge
@pytest.mark.parametrize("point", ["before the push", "after a push that failed", "after a push"])
def test_a_kill_between_release_and_record_changes_no_revision(
    gitea: Gitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
):
    """v3 is released on record; a person merges what the request has, and deletes its head."""
    fleet = build(gitea, tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    for _ in range(3):
        fleet.later(minutes=2).sweep()
    assert set(fleet.published().values()) == {"v1"}
    promotion = PROMOTION.format(approvers=f"[{gitea.host}/ann]") + "  merge: Manual\n"
    fleet.write("promotion.yaml", promotion)
    fleet.release("v2")
    fleet.later(minutes=2).sweep()
    assert "v2" in fleet.requests("edge")[-1]["title"]
    change = MirrorStore.change

    def push(self: MirrorStore, changes: Any) -> Any:
        if not any(it.remote.url.endswith("/edge.git") for it in changes):
            return change(self, changes)  # of the records
        if point != "after a push":
            merge_with_deletion(fleet)
        if point == "before the push":
            raise Killed
        change(self, changes)
        raise Killed

    fleet.release("v3")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(MirrorStore, "change", push)
        fleet.later(minutes=2).sweep()
    merged = "v2"
    if point == "after a push":
        merge_with_deletion(fleet)
        merged = "v3"
    fleet.later(minutes=2).sweep()
    assert set(fleet.published().values()) == {merged}
    fleet.write("promotion.yaml", PROMOTION.format(approvers=f"[{gitea.host}/ann]"))
    for _ in range(3):
        fleet.later(minutes=2).sweep()
    assert set(fleet.published().values()) == {"v3"}
    check_requests(fleet, revisions=2 if merged == "v3" else 3)


@pytest.mark.forge
def test_two_processes_at_once_open_one_request(
    gitea: Gitea, tmp_path: Path, undisturbed: tuple[int, object]
):
    fleet = build(gitea, tmp_path / "fleet")
    fleet.run("get", "policies")
    subprocess.run(["git", "init", "-q", "--bare", str(fleet.records().path)], check=True)

    def both() -> None:
        processes = [start(fleet, machine) for machine in ("one", "two")]
        printed = [process.communicate()[0] for process in processes]
        assert not [it for it in printed if "Traceback" in it or "InternalError" in it], printed

    live(fleet, both)
    check_requests(fleet)
    assert outcome(fleet) == undisturbed[1]


@pytest.mark.forge
def test_two_installations_have_a_request_each(gitea: Gitea, tmp_path: Path):
    """They share repositories and the account; the second has other paths."""
    one = build(gitea, tmp_path / "one", {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    two = one.beside(tmp_path / "two", "two")
    policy = (two.root / "policies" / "policy.yaml").read_text()
    two.write("policy.yaml", policy.replace("sites/", "others/"))
    for fleet in (one, two):
        fleet.sweep()
    opened = one.requests("edge")
    assert sorted(it["head"] for it in opened) == [
        f"drafts/{install}/_stages/default.monitoring/dev" for install in ("default", "two")
    ]
    assert [list(one.statuses("edge", it["commit"])) for it in opened] == [
        [("fanout", one.bot)],
        [("fanout/two", one.bot)],
    ]
    for _ in range(8):
        for fleet in (one, two):
            fleet.later(minutes=2).sweep()
    check_requests(one, revisions=1)
    assert set(one.published().values()) == set(two.published().values()) == {"v1"}


@pytest.mark.forge
def test_two_installations_never_ask_for_one_path(gitea: Gitea, tmp_path: Path):
    sites = {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    one = build(gitea, tmp_path / "one", sites, SIGNED)
    two = one.beside(tmp_path / "two", "two")
    policy = (two.root / "policies" / "policy.yaml").read_text(encoding="utf-8")
    two.write("policy.yaml", policy.replace("sites/ber", "others/ber"))
    for _ in range(2):
        for fleet in (one, two):
            fleet.later(minutes=2).sweep()
    requests = {it["head"]: it["title"] for it in one.requests("edge")}
    stage = "_stages/default.monitoring/dev"
    first, second = f"drafts/default/{stage}", f"drafts/two/{stage}"
    assert requests.keys() == {first, second}
    assert "2 packages" in requests[first]
    assert "others/ber" in requests[second]
    assert two.condition("sites/ams")[0] == "OtherInstallation"


@pytest.fixture
def many(gitea: Gitea, tmp_path: Path) -> Callable[..., ForgeFleet]:
    """A function that builds a company with many requests in one repository."""

    def make(stages: str, **options: Any) -> ForgeFleet:
        sites = {f"s{number}": ("dev", "edge") for number in range(TRIES)}
        fleet = build(gitea, tmp_path / "fleet", sites, stages, **options)
        policy = (fleet.root / "policies" / "policy.yaml").read_text(encoding="utf-8")
        fleet.write("policy.yaml", f"{policy}  draftPer: Variant\n")
        approvers = f"[ann@example.com {gitea.host}/ann]"
        fleet.write("promotion.yaml", PROMOTION.format(approvers=approvers))
        for _ in range(2):  # drafts are written, then released
            fleet.later(minutes=2).sweep()
        assert [it["state"] for it in fleet.requests("edge")] == ["open"] * TRIES
        return fleet

    return make


@pytest.mark.forge
def test_no_head_but_the_observed_one_is_merged(gitea: Gitea, many: Callable[..., ForgeFleet]):
    """A person pushes when fanout has judged the head, and is about to merge it."""
    with proxying(gitea.url) as proxy:
        fleet = many("[{name: dev}]", api=proxy.api)
        heads = {it["number"]: it["head"] for it in fleet.requests("edge")}
        pushed: dict[int, str] = {}
        pushing = threading.Lock()  # one clone of the person

        def push(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/merge"):
                number = int(path.split("/")[-2])
                with pushing:
                    pushed[number] = push_to(fleet, heads[number])

        fleet.await_checks()
        proxy.before = push
        main = fleet.repos["edge"].refs("refs/heads/main")
        fleet.later(minutes=2).sweep()
    assert pushed.keys() == heads.keys()
    assert {it["number"]: it["commit"] for it in fleet.requests("edge")} == pushed
    assert {it["state"] for it in fleet.requests("edge")} == {"open"}
    assert fleet.repos["edge"].refs("refs/heads/main") == main


@pytest.mark.forge
def test_a_push_after_the_approval_is_not_merged(many: Callable[..., ForgeFleet]):
    """Gitea alone would merge it: its approval goes stale only some seconds later."""
    fleet = many(SIGNED)
    opened = fleet.requests("edge")
    for request in opened:
        fleet.review("edge", request["number"], "ann")
        push_to(fleet, request["head"], by="bob")
    for _ in range(2):
        fleet.later(minutes=2).sweep()
    assert {it["state"] for it in fleet.requests("edge")} == {"open"}
    # Once approved it is merged, with the person's commit.
    fleet.review("edge", opened[0]["number"], "ann")
    for _ in range(3):
        fleet.later(minutes=2).sweep()
    requests = {it["number"]: it["state"] for it in fleet.requests("edge")}
    assert requests.pop(opened[0]["number"]) == "merged"
    assert set(requests.values()) == {"open"}
    site = site_of(opened[0]["head"])
    assert "replicas: 9" in fleet.repos["edge"].file("main", f"{site}/deployment.yaml")


def site_of(head: str) -> str:
    """Path of the package of a draft."""
    return head.removeprefix("drafts/default/").rpartition("/")[0]


def push_to(fleet: ForgeFleet, head: str, by: str = "ann") -> str:
    """A person changes the package in a draft."""
    files = {f"{site_of(head)}/deployment.yaml": EDITED}
    return fleet.repos["edge"].commit(head, files, by=by)
