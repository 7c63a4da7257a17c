"""Who is at the keyboard: what Git would take, from its variables and its configuration."""

import os
import subprocess
from operator import itemgetter
from pathlib import Path

import pytest

from fanout.git.git_identity import read_identity
from fanout.plan.observation.repository_state import CommitIdentity

USER = "[user]\n\tname = Ann\n\temail = ann@example.com\n"
AUTHOR = "[author]\n\tname = Ann the Author\n"
NAME, ADDRESS = {"GIT_AUTHOR_NAME": "Bob"}, {"GIT_AUTHOR_EMAIL": "bob@example.com"}

IDENTITIES = [
    ("the configuration alone", USER, {}, "Ann <ann@example.com>"),
    ("both variables before the configuration", USER, NAME | ADDRESS, "Bob <bob@example.com>"),
    ("both variables and no configuration", "", NAME | ADDRESS, "Bob <bob@example.com>"),
    ("one variable, the rest from the configuration", USER, ADDRESS, "Ann <bob@example.com>"),
    ("the author's name before the user's", USER + AUTHOR, {}, "Ann the Author <ann@example.com>"),
    ("an address that no program of Git's alone goes by", "[user]\n\tname = Ann\n",
     {"EMAIL": "ann@example.org"}, "Ann <ann@example.org>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "config", "variables", "expected"), IDENTITIES, ids=map(itemgetter(0), IDENTITIES)
)
def test_a_person_is_who_git_takes_them_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, _, config, variables, expected
):
    configured(monkeypatch, tmp_path, config, variables)
    asked = ["git", "var", "GIT_AUTHOR_IDENT"]
    output = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert output.startswith(f"{expected} ")
    name, _, rest = expected.partition(" <")
    assert read_identity(os.environ) == CommitIdentity(name, rest.removesuffix(">"))


@pytest.mark.parametrize("variables", [{}, NAME, ADDRESS], ids=["nothing", "a name", "an address"])
def test_half_an_identity_is_no_identity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
):
    """Git would make the other half up from the names of the account and the machine."""
    configured(monkeypatch, tmp_path, "", variables)
    assert read_identity(os.environ) is None


def configured(
    monkeypatch: pytest.MonkeyPatch, home: Path, config: str, variables: dict[str, str]
) -> None:
    file = home / ".gitconfig"
    file.write_text(config)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
