"""Records in a private repository of a real Gitea, over HTTP with the token of an account."""

import os
from pathlib import Path
from unittest import mock

import pytest
from forge_fleet import SECRET, ForgeFleet
from gitea_server import Gitea

RECORDS_BRANCH = "refs/heads/fanout/default/default/monitoring"
WHY = ("--reason", "why", "--by", "Ann <ann@example.com>")
SUSPEND = ("suspend", "monitoring", *WHY)

pytestmark = pytest.mark.forge


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """The repositories are on the server, and the records in one of their own."""
    made = ForgeFleet.on(gitea, tmp_path)
    made.repos["records"] = gitea.repository(
        "records", owner=made.owner, writers=(made.bot,), private=True
    )
    place_records(made, f"{{name: {SECRET}}}")
    return made


def place_records(fleet: ForgeFleet, secret: str = "") -> None:
    """Name the repository of the records in the configuration, with this secret."""
    fleet.configure()
    url = fleet.gitea.git_url("records", owner=fleet.owner)
    text = f"records:\n  url: {url}\n" + (f"  secretRef: {secret}\n" if secret else "")
    config = Path(fleet.options[1])
    config.write_text(config.read_text() + text)


def test_records_are_written_and_read_with_the_token(fleet: ForgeFleet):
    assert fleet.sweep().code == 0
    records = fleet.repos["records"]
    assert RECORDS_BRANCH in records.refs()
    assert not (fleet.root / "state" / "records.git").exists()
    assert fleet.run(*SUSPEND).code == 0
    assert any(it.startswith("records/") for it in records.files(RECORDS_BRANCH))
    assert "refs/heads/fanout/default/_records" in fleet.repos["edge"].refs()
    fleet.state = "another"
    assert fleet.sweep().code == 0
    assert set(fleet.states().values()) == {"Suspended"}
    mirrors = [it for it in (fleet.root / "another").rglob("config") if it.is_file()]
    token = fleet.gitea.tokens[fleet.bot]
    assert mirrors
    assert not any(token in it.read_text() for it in mirrors)


def test_the_secret_is_also_for_a_repository_that_an_option_names(fleet: ForgeFleet):
    fleet.configure()
    config = Path(fleet.options[1])
    config.write_text(f"{config.read_text()}records:\n  secretRef: {{name: {SECRET}}}\n")
    url = fleet.gitea.git_url("records", owner=fleet.owner)
    assert fleet.sweep("--records", url).code == 0
    assert RECORDS_BRANCH in fleet.repos["records"].refs()


def test_without_a_secret_the_message_is_about_http(fleet: ForgeFleet):
    place_records(fleet)
    swept = fleet.sweep()
    assert swept.code != 0
    assert "HTTP 401" in swept.err
    assert "name it in records.secretRef" in swept.err
    assert_silent(swept.err)


def test_a_token_that_was_revoked_is_reported_with_the_name_of_its_secret(fleet: ForgeFleet):
    assert fleet.sweep().code == 0
    fleet.gitea.revoke_tokens(fleet.bot)
    swept = fleet.sweep()
    assert swept.code != 0
    assert "HTTP 401" in swept.err
    assert f"secret '{SECRET}' of records.secretRef" in swept.err
    assert_silent(swept.err)


def test_a_token_that_may_only_read_is_reported(fleet: ForgeFleet):
    fleet.gitea.add_token(fleet.bot, "read:repository")
    recorded = fleet.run(*SUSPEND)
    assert recorded.code != 0
    assert f"secret '{SECRET}' of records.secretRef" in recorded.err
    assert_silent(recorded.err)


def test_a_repository_that_the_account_cannot_see_is_reported(fleet: ForgeFleet):
    path = f"/repos/{fleet.owner}/records/collaborators/{fleet.bot}"
    fleet.gitea.ask("DELETE", path)
    swept = fleet.sweep()
    assert swept.code != 0
    assert f"secret '{SECRET}' of records.secretRef" in swept.err
    assert_silent(swept.err)


def test_validate_warns_of_a_secret_that_is_missing(fleet: ForgeFleet):
    place_records(fleet, "{name: absent}")
    validated = fleet.run("validate")
    assert "records.secretRef.name" in validated.out + validated.err
    with mock.patch.dict(os.environ, {"FANOUT_SECRET_ABSENT": "x"}):
        assert "records.secretRef.name" not in fleet.run("validate").out
    swept = fleet.sweep()
    assert "secret 'absent' was not found" in swept.err
    assert "FANOUT_SECRET_ABSENT" in swept.err


def assert_silent(text: str) -> None:
    """Nothing is said of keys, hosts that are known, or Repository objects."""
    for word in ("SSH", "ssh", "key", "known_hosts", "spec.secretRef", "the Repository"):
        assert word not in text
