"""The life of pull requests by a GitHub App, from its key alone, on the tests' GitHub."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from github_fleet import GitHubFleet
from github_server import running_github

SITES = {"a": ("dev", "edge"), "b": ("prod", "core")}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A private key, and the file of its public one."""
    private = tmp_path_factory.mktemp("key") / "private"
    public = private.with_suffix(".pub")
    for command in (
        ["openssl", "genrsa", "-out", str(private), "2048"],
        ["openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public)],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return private.read_text(encoding="utf-8"), public


@pytest.fixture
def fleet(tmp_path: Path, key: tuple[str, Path]) -> Iterator[GitHubFleet]:
    pytest.importorskip("jwt")
    with running_github(tmp_path / "github") as github:
        yield GitHubFleet.on(github, tmp_path / "fleet", SITES, key)


def sweep(fleet: GitHubFleet, passes: int = 1) -> str:
    """Sweep each minute; return what the last sweep printed."""
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
    return swept.out


def tokens(fleet: GitHubFleet) -> set[str]:
    """Tokens that the App has been given."""
    return {
        token
        for token, held in fleet.github.state.credentials.items()
        if held.installation is fleet.installation
    }


def test_two_stages_are_published_with_tokens_that_end_meanwhile(fleet: GitHubFleet, key):
    ahead = timedelta()
    fleet.github.state.clock = lambda: datetime.now(UTC) + ahead
    sweep(fleet, 2)
    assert fleet.published() == {"sites/a": "v1", "sites/b": ""}
    fleet.run(
        *("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed"),
        *("--revision", "v1", "--by", "ci <ci@example.com>"),
    )
    given = tokens(fleet)
    # The token has ended by the clock of the host, which is not that of this machine.
    ahead = timedelta(hours=2)
    fleet.later(hours=2)
    sweep(fleet, 4)
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert tokens(fleet) - given
    for name in ("edge", "core"):
        [request] = fleet.requests(name)
        assert (request["state"], request["author"]) == ("merged", fleet.bot)
    # No token and no line of the key is anywhere but in the secret.
    secrets = {*tokens(fleet), *key[0].split("\n")[1:-2]}
    for path in fleet.root.rglob("*"):
        if path.is_file() and "secrets" not in path.parts:
            content = path.read_bytes()
            assert not [it for it in secrets if it.encode() in content], path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fleet: setattr(fleet.installation, "is_suspended", True), "suspended"),
        (lambda fleet: fleet.github.uninstall(fleet.installation), "installed"),
        (
            lambda fleet: fleet.installation.permissions.update(pull_requests="read"),
            "pull_requests=write",
        ),
    ],
    ids=["suspended", "removed", "a permission less"],
)
def test_an_installation_that_lacks_something_is_named_and_nothing_is_lost(
    fleet: GitHubFleet, change, words: str
):
    sweep(fleet, 2)
    fleet.release("v2")
    kept = dict(fleet.installation.permissions)
    change(fleet)
    swept = fleet.later(minutes=1).sweep()
    assert words in swept.err + swept.out
    assert fleet.published()["sites/a"] == "v1"
    fleet.installation.is_suspended = False
    fleet.installation.permissions.update(kept)
    fleet.github.state.installations[fleet.installation.id] = fleet.installation
    sweep(fleet, 3)
    assert fleet.published()["sites/a"] == "v2"


def test_a_pass_without_changes_asks_one_query(fleet: GitHubFleet):
    sweep(fleet, 3)
    fleet.calls()
    assert sweep(fleet) == "nothing to do\n"
    made = [it for it in fleet.calls() if "/installation" not in it and "access_tokens" not in it]
    assert made == ["POST /graphql 200"]
