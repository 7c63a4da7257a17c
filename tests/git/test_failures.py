"""What git and remotes say, as families of errors; real remotes are in test_races_and_refusals."""

import pytest

from fanout.errors import Conflict, Denied, InvalidInput, Unavailable
from fanout.git.address import address
from fanout.git.credentials import Access
from fanout.git.failures import DamagedMirrorError, translate
from fanout.ports import Secret

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


@pytest.mark.parametrize(("stderr", "family", "reason"), SAID, ids=[row[0][:60] for row in SAID])
def test_what_git_says_becomes_a_family(stderr, family, reason):
    access = Access(address("https://x/", {"https"}), Secret("robot", PASSWORD))
    error = translate("", f"{stderr}\nhint: {PASSWORD}", access)
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
def test_what_became_of_a_ref_becomes_a_family(summary, family):
    other = f"!\trefs/x:refs/heads/x\t{summary.partition(']')[0]}] (atomic push failure)"
    stdout = f"To x\n{other}\n!\trefs/y:refs/heads/y\t{summary}\nDone\n"
    error = translate(stdout, "error: failed to push", Access(address("https://x/", {"https"})))
    assert type(error) is family


def test_a_hook_is_quoted_whatever_it_says():
    stdout = "!\trefs/x:refs/heads/x\t[remote rejected] (pre-receive hook declined)\n"
    stderr = "remote: no space left in this sprint, fetch first\nerror: failed to push"
    error = translate(stdout, stderr, Access(address("https://x/", {"https"})))
    assert type(error) is Denied
    assert "no space left in this sprint" in str(error)


@pytest.mark.parametrize("before", range(560, 620, 7))
def test_a_secret_is_never_cut_into_what_nobody_recognises(before):
    access = Access(address("https://x/", {"https"}), Secret("robot", PASSWORD))
    error = translate("", f"fatal: {'x' * before} {PASSWORD}", access)
    assert PASSWORD[:6] not in str(error)
