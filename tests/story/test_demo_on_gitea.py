"""The demo on repositories of a real Gitea, reached over HTTP with a secret.

fanout merges by itself here (`forge: none`): the server is only a Git host. The expected results of
the demo are checked in the server's own repositories.
"""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from gitea_server import PEOPLE, Gitea

ROOT = Path(__file__).parents[2]
OWNER, BOT = "demo", "bot"
REPOSITORY = """\
---
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: platform}}
spec: {{url: {url}, secretRef: {{name: gitea}}}}
"""

CHAPTERS = (
    "prepare",
    "fan_out",
    "publish_first_stages",
    "fail_one_variant",
    "release_fix",
    "promote_to_production",
)

pytestmark = pytest.mark.forge


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The main module of the demo, which imports its own modules by their file names."""
    monkeypatch.syspath_prepend(str(ROOT / "demo"))
    import run

    yield run
    for name in ("run", "command_runner", "demo_fleet"):
        del sys.modules[name]


def test_the_demo_is_played_on_gitea(
    demo, gitea: Gitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    for login in (OWNER, BOT):
        gitea.add_person(login)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:http")  # for what the author pushes
    fleet = fleet_on(gitea, tmp_path / "demo")
    runner = demo.CommandRunner(tmp_path / "demo", demo.MONDAY)
    monkeypatch.setattr(runner, "_environment", with_secret(runner._environment, gitea.tokens[BOT]))
    for chapter in CHAPTERS:
        getattr(demo, chapter)(fleet, runner)
    assert fleet.published() == {"v2": 24}
    printed = capsys.readouterr().out
    assert gitea.tokens[BOT] not in printed
    # What a person sees on the host: no draft is left, and each publication has its tag.
    branches = gitea.get(f"/repos/{OWNER}/eu-north/branches", by=OWNER)
    tags = gitea.get(f"/repos/{OWNER}/eu-north/tags", by=OWNER)
    assert {it["name"] for it in branches} == {"main", "fanout/default/rendered"}
    assert {"clusters/osl/v1", "clusters/arn/v2"} <= {it["name"] for it in tags}
    assert anonymous_and_other_people_see_nothing(gitea)


def anonymous_and_other_people_see_nothing(gitea: Gitea) -> bool:
    status, _ = gitea.ask("GET", f"/repos/{OWNER}/eu-north", by=PEOPLE[0], check=False)
    return status == 404


def with_secret(environment, token: str):
    return lambda: {**environment(), "FANOUT_SECRET_GITEA": f"{BOT}:{token}"}


def fleet_on(gitea: Gitea, root: Path):
    """The demo's fleet with its repositories on the server, private, and `bot` to write them."""
    from demo_fleet import DemoFleet

    class DemoFleetOnGitea(DemoFleet):
        def bare(self, name: str) -> Path:
            return gitea.on_disk(name, owner=OWNER).path

        def _create_repository(self, name: str, now: datetime) -> None:
            gitea.repository(name, owner=OWNER, private=True, writers=(BOT,))
            url = gitea.push_url(name, owner=OWNER, by=OWNER)
            self.git("clone", "--quiet", url, name)
            (self.root / name / "README.md").write_text(f"# {name}\n", encoding="utf-8")
            self.git("-C", name, "add", "README.md")
            self.git("-C", name, "commit", "--quiet", "-m", "First commit", now=now)
            self.git("-C", name, "push", "--quiet", "origin", "HEAD", now=now)

        def _write_objects(self, name: str, documents: list[str]) -> None:
            if name == "repositories.yaml":
                names = [text.partition("{name: ")[2].partition(",")[0] for text in documents]
                documents = [
                    REPOSITORY.format(name=it, url=gitea.git_url(it, owner=OWNER)) for it in names
                ]
            super()._write_objects(name, documents)

    return DemoFleetOnGitea(root)
