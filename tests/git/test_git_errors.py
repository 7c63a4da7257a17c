"""What git and remotes say, as families of errors; real remotes are in test_push_races."""

import pytest

from fanout.errors import Conflict, Denied, InvalidInput, Unavailable
from fanout.git.git_errors import DamagedMirrorError, translate_failure
from fanout.git.remote_access import RemoteAccess, parse_address
from fanout.ports import Credentials

PASSWORD = "s3cret/with+signs%25"

SAID = [
    ("fatal: write error: No space left on device", Unavailable, "DiskFull"),
    ("fatal: Authentication failed for 'https://x/'", Denied, "RemoteDenied"),
    ("git@x: Permission denied (publickey).\nfatal: Could not read", Denied, "RemoteDenied"),
    ("fatal: detected dubious ownership in repository at 'x'", Denied, "RemoteDenied"),
    ("fatal: unable to access 'https://x/': The requested URL returned error: 403", Denied, ""),
    ("fatal: unable to access 'https://x/': Could not resolve host: x", Unavailable, ""),
    ("fatal: unable to access 'https://x/': SSL certificate problem", Unavailable, ""),
    ("fatal: the remote end hung up unexpectedly", Unavailable, "RemoteUnavailable"),
    ("remote: Repository not found.\nfatal: repository 'https://x/' not found", Unavailable, ""),
    ("error: object 0123: missingSpaceBeforeEmail\nfatal: fsck error in packed object",
     InvalidInput, "RemoteObjectsRefused"),
    ("fatal: the receiving end does not support --atomic push", InvalidInput, ""),
    ("fatal: bad object refs/fanout/seen/heads/x", DamagedMirrorError, "MirrorDamaged"),
    ("", Unavailable, "RemoteUnavailable"),
]  # fmt: skip


_SSH_END = (
    "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access"
    " rights\nand the repository exists."
)
_PROMPT = (
    "error: unable to read askpass response from '/state/mirrors/askpass'\n"
    "fatal: could not read Username for 'https://x': terminal prompts disabled"
)
_NOT_LET_IN = "fatal: Authentication failed for 'https://x/'"
_FORBIDDEN = "fatal: unable to access 'https://x/': The requested URL returned error: 403"
_KEY_REFUSED = f"git@x: Permission denied (publickey,password).\n{_SSH_END}"
_NO_HOST_KEY = (
    "No ED25519 host key is known for x and you have requested strict checking.\n"
    f"Host key verification failed.\n{_SSH_END}"
)
_OTHER_HOST_KEY = (
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
    f"Host key verification failed.\n{_SSH_END}"
)
_BAD_KEY = (
    'Load key "/state/mirrors/secret-x/key": error in libcrypto\n'
    f"git@x: Permission denied (publickey).\n{_SSH_END}"
)
_BAD_TLS = (
    "fatal: unable to access 'https://x/': SSL certificate problem: unable to get local issuer"
    " certificate"
)
_GNUTLS = (
    "fatal: unable to access 'https://x/': server certificate verification failed. CAfile: none"
)
_NO_NAME = "fatal: unable to access 'https://x/': Could not resolve host: x"
_SSH_NO_NAME = f"ssh: Could not resolve hostname x: Name or service not known\n{_SSH_END}"
_REFUSED = f"ssh: connect to host x port 22: Connection refused\n{_SSH_END}"
_TOKEN, _KEY = Credentials("robot", PASSWORD), Credentials(private_key="-----BEGIN")
NOBODY = None

AT_THE_DOOR = [  # what git says, the secret, what happened, what to set
    (_PROMPT, NOBODY, "requires a user name and password (HTTP 401)", "a secret with a token"),
    (_PROMPT, _TOKEN, "got none from the secret", "other hosts get no secret"),
    (_NOT_LET_IN, _TOKEN, "does not accept the user name", "token may have expired"),
    (_FORBIDDEN, NOBODY, "refuses access (HTTP 403)", "a secret with a token"),
    (_FORBIDDEN, _TOKEN, "refuses access (HTTP 403)", "permission to read and push"),
    (_KEY_REFUSED, NOBODY, "accepts none of the available keys", "a secret with a private key"),
    (_KEY_REFUSED, _KEY, "does not accept the private key of the secret", "add its public key"),
    (_BAD_KEY, _KEY, "cannot read the private key of the secret", "without a passphrase"),
    (_NO_HOST_KEY, _KEY, "host key of the SSH server is unknown", "`known_hosts`"),
    (_NO_HOST_KEY, NOBODY, "host key of the SSH server is unknown", "~/.ssh/known_hosts"),
    (_OTHER_HOST_KEY, _KEY, "differs from the known one", "`known_hosts`"),
    (_BAD_TLS, _TOKEN, "TLS certificate of the server cannot be verified", "`ca.crt`"),
    (_GNUTLS, NOBODY, "TLS certificate of the server cannot be verified", "`ca.crt`"),
    (_NO_NAME, NOBODY, "name cannot be resolved (DNS)", "spec.url"),
    (_SSH_NO_NAME, _KEY, "name cannot be resolved (DNS)", "spec.url"),
    (_REFUSED, _KEY, "no server responds", "spec.url"),
]


@pytest.mark.parametrize(("stderr", "secret", "problem", "remedy"), AT_THE_DOOR)
def test_a_denied_remote_names_the_credentials_to_set(stderr, secret, problem, remedy):
    error = translate_failure(
        "", stderr, RemoteAccess(parse_address("https://x/", {"https"}), secret)
    )
    assert problem in error.problem
    assert remedy in error.remedy
    for word in ("askpass", "terminal prompts", "Could not read", "could not read"):
        assert word not in str(error)


@pytest.mark.parametrize(("stderr", "family", "reason"), SAID, ids=[row[0][:60] for row in SAID])
def test_a_message_of_git_becomes_an_error_family(stderr, family, reason):
    access = RemoteAccess(parse_address("https://x/", {"https"}), Credentials("robot", PASSWORD))
    error = translate_failure("", f"{stderr}\nhint: {PASSWORD}", access)
    assert type(error) is family
    assert error.reason == reason or not reason
    assert PASSWORD not in str(error)
    assert str(error).startswith("https://x/: ")


PUSHED = [
    ("[remote rejected] (pre-receive hook declined)", Denied),
    ("[remote rejected] (protected branch hook declined)", Denied),
    ("[remote rejected] (branch is currently checked out)", Denied),
    ("[remote rejected] (cannot lock ref 'x': is at 1 but expected 2)", Conflict),
    ("[remote rejected] (failed to update ref)", Conflict),
    ("[remote rejected] (atomic transaction failed)", Conflict),
    ("[remote rejected] (unpacker error)", Unavailable),
    ("[rejected] (stale info)", Conflict),
    ("[rejected] (fetch first)", Conflict),
    ("[rejected] (already exists)", Conflict),
]


@pytest.mark.parametrize(("summary", "family"), PUSHED, ids=[row[0] for row in PUSHED])
def test_the_status_of_a_pushed_ref_becomes_an_error_family(summary, family):
    other = f"!\trefs/x:refs/heads/x\t{summary.partition(']')[0]}] (atomic push failure)"
    stdout = f"To x\n{other}\n!\trefs/y:refs/heads/y\t{summary}\nDone\n"
    error = translate_failure(
        stdout, "error: failed to push", RemoteAccess(parse_address("https://x/", {"https"}))
    )
    assert type(error) is family


def test_a_hook_is_quoted_whatever_it_says():
    stdout = "!\trefs/x:refs/heads/x\t[remote rejected] (pre-receive hook declined)\n"
    lines = ["no space left in this sprint, fetch first", "", "ask\x07us"]
    stderr = "".join(f"remote: {it}\n" for it in lines) + "error: failed to push"
    error = translate_failure(stdout, stderr, RemoteAccess(parse_address("https://x/", {"https"})))
    assert type(error) is Denied
    assert "no space left in this sprint" in str(error)
    assert error.words == ("(pre-receive hook declined)", lines[0], "ask us")


@pytest.mark.parametrize("before", range(560, 620, 7))
def test_a_secret_is_never_cut_into_what_nobody_recognises(before):
    access = RemoteAccess(parse_address("https://x/", {"https"}), Credentials("robot", PASSWORD))
    error = translate_failure("", f"fatal: {'x' * before} {PASSWORD}", access)
    assert PASSWORD[:6] not in str(error)
