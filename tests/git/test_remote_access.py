"""Who is let in, and that no secret is ever seen: not in arguments, URLs, files or sentences."""

import base64
import json
import os
import re
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from http_git import serving

from fanout.api.urls import GitProtocol
from fanout.cluster.records_repository import RECORDS_ACCESS_REMEDY, RecordsRepository
from fanout.errors import Denied, InvalidInput, Unavailable
from fanout.git.git_command import build_fixed_environment, select_inherited
from fanout.git.remote_access import RemoteAccess, parse_address, provide_credentials, write_askpass
from fanout.plan.observation.repository_state import RefListingRequest, Remote
from fanout.ports import Credentials
from fanout.telemetry.metrics import Counters

PASSWORD = "s3cret/with+signs%25"
GIVEN = "Basic " + base64.b64encode(f"robot:{PASSWORD}".encode()).decode()

SSH_URL = "ssh://git@git.example.com/team/edge.git"


@pytest.fixture
def serve(tmp_path):
    """Starts servers that let in who knows the password."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            serving(tmp_path, **{"authorization": GIVEN} | options)
        )


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """What every git process was started with."""
    path = tmp_path / "trace"
    path.mkdir()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(path))

    def started():
        lines = [line for file in path.iterdir() for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    return started


def everything_below(directory):
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def test_a_password_opens_an_http_remote_and_is_seen_nowhere(
    downstream_of, make_store, bare, serve, trace, tmp_path
):
    secrets = {"token": Credentials("robot", PASSWORD)}
    machine = downstream_of(make_store(secrets=lambda _, name: secrets.get(name)), bare)
    bare.url = f"{serve().url()}/remote.git"
    bare.remote = Remote(bare.url, "token")
    machine.write({"one": machine.package("one")})
    machine.publish(["one"])
    assert "refs/tags/one/v1" in bare.refs()
    events = trace()
    assert {event["argv"][1] for event in events if event["event"] == "start"} >= {
        "ls-remote",
        "fetch",
        "push",
    }
    seen = json.dumps(events).encode() + everything_below(tmp_path / "mirrors")
    for form in (PASSWORD, GIVEN.split()[1], "s3cret"):
        assert form.encode() not in seen


WRONG = [
    ("no secret is named", "", {}, "spec.secretRef"),
    (
        "the secret is wrong",
        "token",
        {"token": Credentials("robot", "wr0ng-secret")},
        "token may have expired",
    ),
    ("the secret is not there", "token", {}, "secret 'token'"),
    ("the secret is empty", "token", {"token": Credentials()}, "token or user:password"),
]


@pytest.mark.parametrize(
    ("name", "secrets", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_a_remote_without_usable_credentials_is_denied(
    make_store, bare, serve, name, secrets, words
):
    remote = Remote(f"{serve().url()}/remote.git", name)
    store = make_store(secrets=lambda _, name: secrets.get(name))
    answer = store.list_refs([RefListingRequest(remote, ())])[remote.key]
    assert isinstance(answer, Denied), answer
    assert words in str(answer)
    assert "wr0ng-secret" not in str(answer)
    assert_plain(str(answer))


def assert_plain(sentence: str) -> None:
    """It does not tell how fanout and git talk to each other."""
    for word in ("askpass", "terminal prompts", "fatal:", "could not read"):
        assert word not in sentence


def test_a_redirect_to_another_host_gets_no_secret(make_store, bare, serve):
    thief = serve(authorization="Basic none")
    remote = Remote(serve(redirect=thief.url()).url("remote.git"), "token")
    secrets = {"token": Credentials("robot", PASSWORD)}
    store = make_store(secrets=lambda _, name: secrets.get(name))
    answer = store.list_refs([RefListingRequest(remote, ())])[remote.key]
    assert isinstance(answer, Denied)
    assert thief.authorizations
    assert set(thief.authorizations) == {None}


def test_a_netrc_of_the_user_answers_for_nobody(make_store, bare, serve, tmp_path, monkeypatch):
    url = f"{serve().url()}/remote.git"
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login robot password {PASSWORD}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert isinstance(make_store().list_refs([RefListingRequest(Remote(url), ())])[url], Denied)


def test_a_server_that_is_not_there_is_unavailable(make_store):
    url = "http://127.0.0.1:1/remote.git"
    answer = make_store().list_refs([RefListingRequest(Remote(url), ())])[url]
    assert isinstance(answer, Unavailable)
    assert (answer.reason, "spec.url" in answer.remedy) == ("RemoteUnavailable", True)


def test_ssh_gets_the_key_in_a_file_of_its_own_that_goes_away(tmp_path, make_store, monkeypatch):
    """A program in ssh's place notes what it was given."""
    programs = tmp_path / "bin"
    programs.mkdir()
    note = tmp_path / "note"
    ssh = programs / "ssh"
    ssh.write_text(
        f"""#!/bin/sh
        echo "$@" > {note}
        while [ "$1" != "-i" ]; do shift; done
        stat -c %a "$2" >> {note}; cat "$2" >> {note}
        echo 'Permission denied (publickey).' >&2
        exit 255
        """
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"
    store = make_store(secrets=lambda *_: Credentials(private_key=key, known_hosts="host ssh-x A"))
    url = "git@git.example.com:team/edge.git"
    remote = Remote(url, "key")
    answer = store.list_refs([RefListingRequest(remote, ())])[remote.key]
    assert isinstance(answer, Denied)
    assert (answer.reason, "public key" in answer.remedy) == ("RemoteDenied", True)
    assert "could not read" not in str(answer).lower()
    arguments, mode, *content = note.read_text().splitlines()
    assert "BatchMode=yes" in arguments
    assert "StrictHostKeyChecking=yes" in arguments
    assert "IdentitiesOnly=yes" in arguments
    assert "AAAA" not in arguments
    assert mode == "600"
    assert content == key.splitlines()
    assert not Path(arguments.split("-i ")[1].split()[0]).exists()


@pytest.mark.parametrize(
    ("lends", "remote", "is_anonymous"),
    [
        (True, Remote(SSH_URL), False),  # of a person, who runs a command
        (False, Remote(SSH_URL), True),
        (False, Remote(SSH_URL, "hosts", "shop"), True),  # a Secret without a key
        (False, Remote(SSH_URL, is_own=True), False),  # the records
    ],
)
def test_keys_of_the_user_are_for_the_own_repository_of_a_controller(
    tmp_path, make_store, monkeypatch, lends: bool, remote: Remote, is_anonymous: bool
):
    """Whoever creates a Repository would else read and write what the controller may."""
    note = place_ssh(tmp_path, monkeypatch)
    store = make_store(
        lends_credentials=lends, secrets=lambda *_: Credentials(known_hosts="host ssh-x A")
    )
    answer = store.list_refs([RefListingRequest(remote, ())])[remote.key]
    assert isinstance(answer, Denied)
    assert ("PreferredAuthentications=none" in note.read_text()) == is_anonymous


def test_the_own_key_and_a_named_url_are_different_remotes():
    own, other = Remote(SSH_URL, is_own=True), Remote(SSH_URL)
    assert own.key != other.key
    assert own.credentials != other.credentials


def test_a_refusal_of_the_records_names_no_repository_object(tmp_path, make_store, monkeypatch):
    place_ssh(tmp_path, monkeypatch)
    records = RecordsRepository(make_store(), Remote(SSH_URL), Counters())
    with pytest.raises(Denied) as refused:
        records.heads(["refs/heads/fanout/default/shop/web"])
    assert refused.value.remedy == RECORDS_ACCESS_REMEDY


def place_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Place a program in ssh's place that is refused; return the file of its arguments."""
    programs, note = tmp_path / "bin", tmp_path / "note"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text(
        f"""#!/bin/sh
        echo "$@" > {note}
        echo 'Permission denied (publickey).' >&2
        exit 255
        """
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return note


def test_the_askpass_program_is_private_and_answers_its_host_alone(tmp_path):
    askpass = write_askpass(tmp_path)
    assert stat.S_IMODE(askpass.stat().st_mode) == 0o700
    place = parse_address("https://git.example.com:8443/x.git", {"https"})
    access = RemoteAccess(place, Credentials("robot", PASSWORD))
    with provide_credentials(access, tmp_path, askpass) as variables:

        def answer(prompt):
            done = subprocess.run(
                [askpass, prompt],
                env=variables | {"PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                check=False,
            )
            return done.stdout.rstrip("\n") if done.returncode == 0 else None

        assert answer("Username for 'https://git.example.com:8443': ") == "robot"
        assert answer("Password for 'https://robot@git.example.com:8443': ") == PASSWORD
        assert answer("Password for 'https://evil.example.com': ") is None
        assert answer("Password for 'https://git.example.com:8443.evil.example': ") is None
        assert answer("Are you sure (yes/no)? ") is None


REFUSED = [
    "",
    "ext::sh -c touch% /tmp/x",
    "fd::7",
    "-uevil",
    "--upload-pack=evil",
    "https://user:pass@git.example.com/x",
    "https://token-abc@git.example.com/x",
    "ssh://-oProxyCommand=evil/x",
    "ssh://git@-evil/x",
    "-evil:x",
    "git@-evil:x",
    "host:-evil",
    "ftp://git.example.com/x",
    "git://git.example.com/x",
    "HTTP://git.example.com/x",
    "https:///x",
    "file://host/x",
    "https://git.example.com/x\nevil",
    "https://git.example.com/x y",
    "https://[bad/x",
    "\x1b[31m",
]


@pytest.mark.parametrize("url", REFUSED, ids=repr)
def test_a_url_that_could_be_a_command_or_carry_a_secret_is_refused(make_store, url):
    answer = make_store().list_refs([RefListingRequest(Remote(url), ())])[url]
    assert isinstance(answer, InvalidInput)
    assert answer.remedy
    assert "pass@" not in str(answer)
    assert "token-abc" not in str(answer)


def test_a_protocol_the_administrator_did_not_allow_is_refused(make_store, bare):
    store = make_store(allowed=("https",))
    for url in (bare.url, f"file://{bare.url}", "http://git.example.com/x", "git@host:x"):
        answer = store.list_refs([RefListingRequest(Remote(url), ())])[url]
        assert isinstance(answer, InvalidInput)
        assert "not allowed" in str(answer)


def test_paths_and_file_urls_reach_the_same_repository(make_store, bare, monkeypatch):
    monkeypatch.chdir(bare.path.parent)
    store = make_store()
    urls = [bare.url, f"file://{bare.url}", "remote.git", "./remote.git"]
    answers = store.list_refs(
        [RefListingRequest(Remote(url), ("refs/heads/main",)) for url in urls]
    )
    assert [answers[url].refs for url in urls] == [bare.refs()] * 4


POISON = {
    "GIT_DIR": "nowhere",
    "GIT_WORK_TREE": "nowhere",
    "GIT_INDEX_FILE": "nowhere",
    "GIT_OBJECT_DIRECTORY": "nowhere",
    "GIT_NAMESPACE": "elsewhere",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.sshCommand",
    "GIT_CONFIG_VALUE_0": "evil",
    "GIT_CONFIG_PARAMETERS": "'core.bare'='false'",
    "GIT_SSH_COMMAND": "evil",
    "GIT_PROXY_COMMAND": "evil",
    "GIT_EXEC_PATH": "nowhere",
    "GIT_TRACE": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CEILING_DIRECTORIES": "/",
    "GIT_PUSH_OPTION_COUNT": "1",
    "GIT_PUSH_OPTION_0": "ci.skip",
    "GIT_DEFAULT_HASH": "sha256",
}


def test_the_callers_git_settings_change_nothing(downstream, monkeypatch):
    downstream.write({"one": downstream.package("one")})
    real = downstream.bare.refs
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)
    downstream.publish(["one"])
    monkeypatch.undo()
    assert "refs/tags/one/v1" in real()


AMBIENT = {
    **POISON,
    "GIT_TRACE2_EVENT": "x",
    "PATH": "/usr/bin:/bin",
    "TMPDIR": "/tmp",
    "SSH_AUTH_SOCK": "/agent",
    "https_proxy": "http://proxy",
    "HTTP_PROXY": "http://proxy",  # which a web server sets from a header
    "NO_PROXY": "internal",
    "SSL_CERT_FILE": "/ca.pem",
    "GITHUB_TOKEN": "t",
    "FANOUT_SECRET_EDGE": "s",
    "XDG_CONFIG_HOME": "/config",
    "LD_PRELOAD": "evil.so",
    "BASH_ENV": "evil",
    "USER": "ann",
}
ALWAYS = {"PATH", "TMPDIR", "GIT_TRACE2_EVENT"}
WEB = ALWAYS | {"https_proxy", "NO_PROXY", "SSL_CERT_FILE"}
INHERITED = [
    (None, ALWAYS),
    (GitProtocol.FILE, ALWAYS),
    (GitProtocol.HTTP, WEB),
    (GitProtocol.HTTPS, WEB),
    (GitProtocol.SSH, ALWAYS | {"SSH_AUTH_SOCK"}),
]


@pytest.mark.parametrize(("protocol", "names"), INHERITED)
def test_git_inherits_selected_environment_variables(protocol, names):
    assert set(select_inherited(AMBIENT, protocol)) == names


def test_without_a_path_git_is_looked_for_where_the_system_looks():
    assert select_inherited({}, None) == {"PATH": os.defpath}


def test_the_fixed_environment_of_git_has_the_given_values():
    given = build_fixed_environment(("https", "ssh"), Path("home"))
    assert given["GIT_ALLOW_PROTOCOL"] == "https:ssh"
    assert given["GIT_TERMINAL_PROMPT"] == "0"
    assert given["HOME"] == "home"


def listed_in_the_documentation():
    page = Path(__file__).parents[2] / "docs" / "concepts" / "security.md"
    section = page.read_text().partition("## Environments of processes")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| git ")]
    return {name for row in rows for name in re.findall(r"`([A-Za-z0-9_]+)`", row)}


# What git sets for its own helpers, and the shell for itself.
OWN = {"GIT_EXEC_PATH", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "PWD",
       "OLDPWD", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PUSH_OPTION_COUNT", "SHLVL", "_",
       "GIT_PROTOCOL"}  # fmt: skip


def test_a_hook_of_a_repository_on_this_machine_sees_what_is_listed(
    downstream, tmp_path, monkeypatch
):
    note = tmp_path / "note"
    downstream.write({"one": downstream.package("one")})
    downstream.bare.hook("pre-receive", f"env -0 > {note}")
    for name, value in AMBIENT.items():
        if name not in {"PATH", "TMPDIR", "LD_PRELOAD", "GIT_TRACE2_EVENT", "GIT_EXEC_PATH"}:
            monkeypatch.setenv(name, value)
    downstream.publish(["one"])
    monkeypatch.undo()
    seen = dict(row.split("=", 1) for row in note.read_text().split("\0") if row)
    assert set(seen) - OWN <= listed_in_the_documentation()
    assert seen["HOME"] != os.environ["HOME"]
    assert not {"t", "s", "/agent", "http://proxy"} & set(seen.values())


def test_git_itself_sees_what_is_listed(make_store, bare, tmp_path, monkeypatch):
    note = tmp_path / "note"
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\nenv -0 > {note}\nexit 1\n")
    (programs / "git").chmod(0o700)
    for name, value in AMBIENT.items():
        if name not in {"LD_PRELOAD", "GIT_TRACE2_EVENT"}:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{programs}:{os.defpath}")
    make_store().list_refs([RefListingRequest(Remote("https://git.example.com/x.git"), ())])
    monkeypatch.undo()
    seen = dict(row.split("=", 1) for row in note.read_text().split("\0") if row)
    assert set(seen) - {"PWD", "SHLVL", "_", "OLDPWD"} <= listed_in_the_documentation()
    assert seen["https_proxy"] == "http://proxy"
    assert not {"t", "s", "/agent"} & set(seen.values())


def test_git_never_starts_without_an_allowed_protocol(make_store, bare):
    """Whatever the configuration of the mirror says, git itself refuses too."""
    store = make_store()
    store.list_refs([RefListingRequest(bare.remote, ())])
    store._git._environment["GIT_ALLOW_PROTOCOL"] = "https"
    answer = store.list_refs([RefListingRequest(bare.remote, ("refs/heads/*",))])[bare.url]
    assert isinstance(answer, InvalidInput)
    assert "protocol" in str(answer)


def test_a_process_that_takes_too_long_is_ended(make_store, bare):
    bare.hook("pre-receive", "sleep 20")
    store = make_store(timeout=0.3)
    store._git.counters.reset()
    pack = bare.path / "slow"
    pack.write_text("#!/bin/sh\nsleep 20\n")
    pack.chmod(0o755)
    mirror = store._mirrors
    with (
        mirror.open_locked(parse_address(bare.url, {"file"})) as opened,
        pytest.raises(Unavailable) as caught,
    ):
        store._git.run(
            opened.path,
            ["ls-remote", f"--upload-pack={pack}", "origin"],
            RemoteAccess(parse_address(bare.url, {"file"})),
        )
    assert caught.value.reason == "GitTimeout"
