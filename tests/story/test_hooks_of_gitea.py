"""A real Gitea tells `fanout run --hooks` of a push, hours before the interval ends."""

import base64
import re
import urllib.request
from itertools import count

import pytest
from fleet import PACKAGE, PLAIN, PROMOTION, Fleet
from forge_fleet import ForgeFleet, GiteaRepo
from gitea_server import ADMIN, Gitea
from run_process import run_processes

from fanout.cli.process_exit import ExitCode

SECRET, WRONG = "canary-of-the-webhook", "canary-of-another"
OWNERS = (f"hooks-{number}" for number in count())  # a test has an organization of its own
EVENTS = ["create", "delete", "push", "pull_request", "pull_request_review", "issue_comment"]
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- host: "{host}"
  type: gitea
  secretRef: {{name: token}}
  webhookSecretRef: {{name: hooks}}
"""
AT_REST = {"event", "level", "timestamp", "trigger", "sweep"}  # fields of a pass without counts
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: blueprints}}
spec: {{url: {url}}}
"""

pytestmark = pytest.mark.forge


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> Fleet:
    """A company whose upstream repository is on the server."""
    fleet = Fleet(tmp_path)
    owner = next(OWNERS)
    gitea.post("/orgs", {"username": owner})
    on_disk = gitea.repository("blueprints", owner=owner)
    work = tmp_path / "clones" / "blueprints.git"
    fleet.repos["blueprints"] = GiteaRepo(on_disk.path, gitea=gitea, owner=owner, work=work)
    release(fleet, "v1")
    fleet.repository("edge")
    url = gitea.git_url("blueprints", owner=owner)
    fleet.write("repository-blueprints.yaml", REPOSITORY.format(url=url))
    fleet.write("policy.yaml", PLAIN)
    fleet.write("promotion.yaml", PROMOTION)
    (tmp_path / "config.yaml").write_text(CONFIGURATION.format(host=gitea.host))
    return fleet


def release(fleet: Fleet, name: str) -> None:
    """Push a new revision and its tag."""
    upstream = fleet.repos["blueprints"]
    files = {f"monitoring/{path}": f"{text}# {name}\n" for path, text in PACKAGE.items()}
    commit = upstream.commit("main", files, f"monitoring {name}", by=ADMIN)
    upstream.push(f"{commit}:refs/tags/monitoring/{name}")


def add_hook(gitea: Gitea, repository: str, address: str, secret: str) -> None:
    gitea.post(
        f"/repos/{repository}/hooks",
        {
            "type": "gitea",
            "active": True,
            "events": EVENTS,
            "config": {
                "url": f"http://{address}/hooks/{gitea.host}",
                "content_type": "json",
                "secret": secret,
            },
        },
    )


def test_a_push_is_followed_by_a_pass_long_before_the_interval_ends(fleet, gitea):
    edge = fleet.repos["edge"]
    options = ("--interval", "24h", "--hooks", "127.0.0.1:0")
    with run_processes(FANOUT_SECRET_HOOKS=SECRET) as start:
        running = start(fleet, *options, "--config", str(fleet.root / "config.yaml"))
        running.until(lambda: edge.tags() == ["sites/ams/v1", "sites/ber/v1"])
        (line,) = (it for it in running.log() if it["event"] == "Receiving webhooks")
        assert line["hosts"] == [gitea.host]
        add_hook(gitea, f"{fleet.repos['blueprints'].owner}/blueprints", line["address"], WRONG)
        add_hook(gitea, f"{fleet.repos['blueprints'].owner}/blueprints", line["address"], SECRET)
        release(fleet, "v2")
        running.until(lambda: {"sites/ams/v2", "sites/ber/v2"} <= set(edge.tags()))
        running.until(lambda: "hook" in running.triggers())
        running.until(lambda: any("refused" in it["event"] for it in running.log()))
        assert running.end() == ExitCode.OK
        (refused,) = (it for it in running.log() if it["level"] == "warning")
        assert refused["host"] == gitea.host
        assert "another secret than the one in webhookSecretRef" in refused["problem"]
        assert "interval" not in running.triggers()
        text = running.path.read_text()
    assert SECRET not in text
    assert WRONG not in text


def test_hooks_that_are_not_for_fanout_are_counted(fleet, gitea):
    edge = fleet.repos["edge"]
    gitea.repository("strange", owner=fleet.repos["blueprints"].owner)
    options = ("--interval", "24h", "--hooks", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    with run_processes(FANOUT_SECRET_HOOKS=SECRET) as start:
        running = start(fleet, *options, "--config", str(fleet.root / "config.yaml"))
        running.until(lambda: edge.tags() == ["sites/ams/v1", "sites/ber/v1"])
        addresses = {it["event"]: it["address"] for it in running.log() if "address" in it}
        hooks, metrics = (
            addresses[it] for it in ("Receiving webhooks", "Serving metrics and health")
        )
        add_hook(gitea, f"{fleet.repos['blueprints'].owner}/strange", hooks, SECRET)
        add_hook(gitea, f"{fleet.repos['blueprints'].owner}/strange", hooks, WRONG)
        add_hook(gitea, f"{fleet.repos['blueprints'].owner}/strange", hooks, "")
        content = {"content": base64.b64encode(b"x").decode(), "message": "Add x"}
        gitea.post(f"/repos/{fleet.repos['blueprints'].owner}/strange/contents/x", content)
        # Gitea signs without a secret too, and tells of the branch and of the push.
        running.until(lambda: count_hooks(metrics) == {"unused": 2, "wrongly-signed": 4})
        assert running.end() == ExitCode.OK
        assert "hook" not in running.triggers()


def count_hooks(address: str) -> dict[str, int]:
    """The number of webhooks by outcome, as the page of metrics shows it."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
        lines = page.read().decode()
    samples = re.findall(r'^fanout_hooks_total\{outcome="(.+?)"\} (\d+)', lines, re.MULTILINE)
    return {outcome: int(number) for outcome, number in samples if int(number)}


def is_ready(fleet: ForgeFleet) -> bool:
    """Is there one request, which people may merge?"""
    requests = fleet.requests("edge")
    return [
        state
        for request in requests
        if not request["draft"]
        for state in fleet.statuses("edge", request["commit"]).values()
    ] == ["success"]


def test_a_merge_by_a_person_is_found_by_its_hook(gitea, tmp_path):
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet")
    fleet.write("policy.yaml", PLAIN)
    fleet.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    config = tmp_path / "fleet" / "config.yaml"
    text = config.read_text().replace("secretRef:", "webhookSecretRef: {name: hooks}, secretRef:")
    config.write_text(text)
    edge = fleet.repos["edge"]
    options = ("--interval", "24h", "--hooks", "127.0.0.1:0", *fleet.options)
    with run_processes(FANOUT_SECRET_HOOKS=SECRET, **fleet.environment()) as start:
        running = start(fleet, *options)
        running.until(lambda: any(it["event"] == "Receiving webhooks" for it in running.log()))
        (line,) = (it for it in running.log() if it["event"] == "Receiving webhooks")
        add_hook(gitea, f"{fleet.owner}/edge", line["address"], SECRET)
        running.until(lambda: is_ready(fleet))
        fleet.merge("edge", fleet.only_request("edge")["number"], "ann")
        running.until(lambda: edge.tags() == ["sites/ams/v1", "sites/ber/v1"])
        running.until(lambda: any("drafts_removed" in it for it in running.passes()))
        # What fanout did itself is told by hooks as well; the passes come to rest all the same.
        running.until(lambda: running.passes()[-1].keys() == AT_REST)
        assert running.end() == ExitCode.OK
        assert {"hook"} < running.triggers()
        assert "interval" not in running.triggers()
    assert edge.drafts() == []
