"""Secrets come from the environment or a file, and go nowhere else."""

import re
from operator import itemgetter

import pytest

from fanout.cluster.file_secrets import FileSecrets, secret_variable
from fanout.errors import Denied
from fanout.ports import TOKEN_USER, Credentials
from fanout.telemetry.redaction import Redactor

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)


def test_the_variable_is_the_name_in_capitals():
    assert secret_variable("edge-eu.token1") == "FANOUT_SECRET_EDGE_EU_TOKEN1"


def test_a_token_from_the_environment_is_a_password():
    secrets = FileSecrets(Redactor(), environment={"FANOUT_SECRET_EDGE": " tok-123\n"})
    assert secrets.get("apps", "edge") == Credentials(TOKEN_USER, "tok-123")


def test_a_name_and_password_from_a_file(tmp_path):
    write(tmp_path / "edge", "bot:pass:word\n")
    secrets = FileSecrets(Redactor(), tmp_path, {})
    assert secrets.get("apps", "edge") == Credentials("bot", "pass:word")


@pytest.mark.parametrize("place", ["variable", "file"])
def test_an_ssh_key(place, tmp_path):
    write(tmp_path / "edge", KEY)
    environment = {"FANOUT_SECRET_EDGE": KEY} if place == "variable" else {}
    secret = FileSecrets(Redactor(), tmp_path, environment).get("apps", "edge")
    assert secret == Credentials(private_key=KEY.strip())


def test_a_directory_has_one_file_for_each_field(tmp_path):
    directory = tmp_path / "edge"
    directory.mkdir()
    for name, text in (("identity", KEY), ("known_hosts", "example.com ssh-ed25519 AAAA\n")):
        write(directory / name, text)
    assert FileSecrets(Redactor(), tmp_path, {}).get("apps", "edge") == Credentials(
        TOKEN_USER, private_key=KEY.strip(), known_hosts="example.com ssh-ed25519 AAAA"
    )


def test_a_directory_without_password_and_key_is_refused(tmp_path):
    (tmp_path / "edge").mkdir()
    write(tmp_path / "edge" / "username", "bot")
    problem = f"has neither a file password nor a file key in {tmp_path / 'edge'}"
    with pytest.raises(Denied, match=re.escape(problem)):
        FileSecrets(Redactor(), tmp_path, {}).get("apps", "edge")


def test_the_environment_wins_over_the_file(tmp_path):
    write(tmp_path / "edge", "from-file")
    secrets = FileSecrets(Redactor(), tmp_path, {"FANOUT_SECRET_EDGE": "from-environment"})
    assert secrets.get("apps", "edge").password == "from-environment"


def test_a_rotated_secret_is_seen(tmp_path):
    secrets = FileSecrets(Redactor(), tmp_path, {})
    write(tmp_path / "edge", "old-token")
    assert secrets.get("apps", "edge").password == "old-token"
    write(tmp_path / "edge", "new-token")
    assert secrets.get("apps", "edge").password == "new-token"


REFUSED = [
    ("a secret that is nowhere", "edge", None, "FANOUT_SECRET_EDGE"),
    ("an empty one", "edge", b"  \n", "is empty"),
    ("one with several lines", "edge", b"a\nb\n", "has several lines"),
    ("one that is no text", "edge", b"\xff\xfe\x00", "write a token or a key to it"),
    ("a name that leaves the directory", "../edge", b"x", "is not a valid name of a secret"),
    ("a name with a leading dash", "-edge", None, "is not a valid name of a secret"),
]


@pytest.mark.parametrize(
    ("sentence", "name", "data", "problem"), REFUSED, ids=map(itemgetter(0), REFUSED)
)
def test_refused(sentence, name, data, problem, tmp_path):
    directory = tmp_path / "secrets"
    directory.mkdir()
    if data is not None:
        (directory / name).write_bytes(data)
    with pytest.raises(Denied) as error:
        FileSecrets(Redactor(), directory, {}).get("apps", name)
    assert problem in str(error.value)


def test_a_file_that_others_can_read_is_warned_about_once(tmp_path, caplog, capsys):
    write(tmp_path / "edge", "token-1", mode=0o644)
    write(tmp_path / "mine", "token-2", mode=0o600)
    secrets = FileSecrets(Redactor(), tmp_path, {})
    for name in ("edge", "edge", "mine"):
        secrets.get("apps", name)
    (line,) = caplog.messages
    assert line.endswith(f" {tmp_path / 'edge'}")
    assert "token-1" not in line
    assert capsys.readouterr().out == ""  # that is for data


def test_a_secret_that_was_read_is_known_to_the_redactor():
    redactor = Redactor()
    FileSecrets(redactor, environment={"FANOUT_SECRET_EDGE": "bot:tok-123"}).get("apps", "edge")
    assert redactor.redact_text("it was tok-123") == "it was ***"


def test_a_secret_s_repr_shows_nothing():
    assert repr(Credentials("bot", "pass-1", "pass-2")) == "Credentials()"
