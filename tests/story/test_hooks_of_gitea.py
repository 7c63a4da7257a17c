"""A real Gitea tells `fanout run --hooks` of a push, hours before the interval ends."""

import pytest
from fleet import PACKAGE, PLAIN, PROMOTION, Fleet
from forge_fleet import GiteaRepo
from gitea_server import ADMIN, Gitea
from run_process import run_processes

from fanout.cli.process_exit import ExitCode

SECRET, WRONG = "canary-of-the-webhook", "canary-of-another"
OWNER = "hooks"
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- host: "{host}"
  type: gitea
  secretRef: {{name: token}}
  webhookSecretRef: {{name: hooks}}
"""
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
    gitea.post("/orgs", {"username": OWNER})
    on_disk = gitea.repository("blueprints", owner=OWNER)
    work = tmp_path / "clones" / "blueprints.git"
    fleet.repos["blueprints"] = GiteaRepo(on_disk.path, gitea=gitea, owner=OWNER, work=work)
    release(fleet, "v1")
    fleet.repository("edge")
    url = gitea.git_url("blueprints", owner=OWNER)
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


def add_hook(gitea: Gitea, address: str, secret: str) -> None:
    gitea.post(
        f"/repos/{OWNER}/blueprints/hooks",
        {
            "type": "gitea",
            "active": True,
            "events": ["create", "push"],
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
        (line,) = (it for it in running.log() if it["event"] == "Hooks are received")
        assert line["hosts"] == [gitea.host]
        add_hook(gitea, line["address"], WRONG)
        add_hook(gitea, line["address"], SECRET)
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
