"""tools/try_forge.py, which is for real hosts, on the tests' GitHub and on a real Gitea."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from gitea_server import ADMIN, Gitea
from github_server import running_github
from github_site import Site

TRY = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "try_forge.py"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running_github(tmp_path / "github") as github:
        yield Site(github)


@pytest.fixture(autouse=True)
def plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "http:file")


def run(monkeypatch: pytest.MonkeyPatch, token: str, *arguments: str) -> int:
    monkeypatch.setenv("TOKEN", token)
    status: int = TRY["main"]([*arguments, "--scheme", "http"])
    return status


def test_a_trial_of_github_differs_in_nothing(site: Site, monkeypatch, capsys):
    github = site.github
    status = run(monkeypatch, site.token, "github", github.host, "acme/site", "--api", github.api)
    output = capsys.readouterr().out
    assert status == 0, output
    assert "a poll shows what a read shows: ok" in output
    assert site.token not in output
    [pull] = site.repository.pulls.values()
    assert pull.merged_at is not None
    assert site.repository.branch_commit(pull.head) is None


def test_a_trial_that_fails_leaves_no_branch(site: Site, monkeypatch):
    github = site.github
    site.repository.allows_drafts = False
    with pytest.raises(Exception, match="drafts"):
        run(monkeypatch, site.token, "github", github.host, "acme/site", "--api", github.api)
    assert [it for it in site.repository.on_disk.refs() if "trial" in it] == []


@pytest.mark.forge
def test_a_trial_of_gitea_differs_in_nothing(gitea: Gitea, monkeypatch, capsys):
    gitea.add_person("trial")
    repository = gitea.repository("scratch", writers=("trial",))
    repository.commit("main", {"README.md": "# Scratch\n"})
    arguments = ("gitea", gitea.host, f"{ADMIN}/scratch", "--api", gitea.api)
    status = run(monkeypatch, gitea.tokens["trial"], *arguments)
    output = capsys.readouterr().out
    assert "merged:" in output
    assert status == 0 or "not <class" in output, output
