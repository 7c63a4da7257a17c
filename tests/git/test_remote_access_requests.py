"""How often an HTTP host is asked: each request costs what the host is away, and counts there."""

import random

import pytest
from http_git import serving

from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    RefListingRequest,
    Remote,
    RepositoryChange,
)

KEEP = ("refs/heads/*",)


@pytest.fixture
def asked(tmp_path, bare, make_store):
    """A store, the repository's URL on a server, and what the server was asked since."""
    with serving(tmp_path) as server:
        store, url = make_store(), server.url("remote.git")

        def since():
            requests, server.requests[:] = list(server.requests), []
            return [line.replace("/remote.git/", "") for line in requests]

        yield store, Remote(url), since


LISTING = ["GET info/refs?service=git-upload-pack", "POST git-upload-pack"]
PUSH = ["GET info/refs?service=git-receive-pack", "POST git-receive-pack"]


def test_a_listing_is_two_requests_and_a_fetch_two_more(asked, bare):
    store, remote, since = asked
    looks = [RefListingRequest(remote, KEEP)]
    store.list_refs(looks)
    assert since() == LISTING * 2
    store.list_refs(looks)
    assert since() == LISTING
    bare.commit({"README.md": "new\n"})
    store.list_refs(looks)
    assert since()[:3] == [*LISTING, LISTING[0]]  # then as many as the two have to agree upon


def test_a_change_is_two_requests_and_so_is_a_large_one(asked, bare):
    """Without a probe whether the host would take so much."""
    store, remote, since = asked
    store.list_refs([RefListingRequest(remote, KEEP)])
    since()
    who = CommitIdentity("fanout", "fanout@localhost")
    for size in (10, 5_000_000):
        ref = f"refs/heads/size-{size}"
        data = random.Random(size).randbytes(size)
        commit = FileCommit(
            ref=ref,
            parent="",
            content_by_path={"file": data},
            dropped_paths=(),
            message="m",
            timestamp=1_700_000_000,
        )
        written = store.change(
            [RepositoryChange(remote=remote, identity=who, expected={ref: ""}, files=(commit,))]
        )
        assert bare.refs()[ref] == written[remote.url].refs[ref]
        assert since() == PUSH
