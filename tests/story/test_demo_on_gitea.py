"""The story of the demo, played on repositories of a real Gitea, reached over HTTP with a secret.

fanout merges by itself here (`forge: none`): the server is a Git host and nothing else. What the
story expects is checked on the server's own repositories.
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

pytestmark = pytest.mark.forge


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The module of the demo's story, which is a program beside its own modules."""
    monkeypatch.syspath_prepend(str(ROOT / "demo"))
    import run

    yield run
    for name in ("run", "storyteller", "world"):
        del sys.modules[name]


def test_the_demo_is_played_on_gitea(
    demo, gitea: Gitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    for login in (OWNER, BOT):
        gitea.add_person(login)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:http")  # for what the author pushes
    demo_world = world_on(gitea, tmp_path / "demo")
    story = demo.Storyteller(tmp_path / "demo", demo.MONDAY)
    monkeypatch.setattr(story, "_environment", with_secret(story._environment, gitea.tokens[BOT]))
    for chapter in ("prepare", "fan_out", "first_stages", "one_fails", "the_fix", "production"):
        getattr(demo, chapter)(demo_world, story)
    assert demo_world.published() == {"v2": 24}
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


def world_on(gitea: Gitea, root: Path):
    """The demo's world with its repositories on the server, private, and `bot` to write them."""
    from world import World

    class WorldOnGitea(World):
        def bare(self, name: str) -> Path:
            return gitea.on_disk(name, owner=OWNER).path

        def _repository(self, name: str, now: datetime) -> None:
            gitea.repository(name, owner=OWNER, private=True, writers=(BOT,))
            url = gitea.push_url(name, owner=OWNER, by=OWNER)
            self.git("clone", "--quiet", url, name)
            (self.root / name / "README.md").write_text(f"# {name}\n", encoding="utf-8")
            self.git("-C", name, "add", "README.md")
            self.git("-C", name, "commit", "--quiet", "-m", "First commit", now=now)
            self.git("-C", name, "push", "--quiet", "origin", "HEAD", now=now)

        def _objects(self, name: str, documents: list[str]) -> None:
            if name == "repositories.yaml":
                names = [text.partition("{name: ")[2].partition(",")[0] for text in documents]
                documents = [
                    REPOSITORY.format(name=it, url=gitea.git_url(it, owner=OWNER)) for it in names
                ]
            super()._objects(name, documents)

    return WorldOnGitea(root)
