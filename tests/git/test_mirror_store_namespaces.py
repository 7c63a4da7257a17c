"""One URL with the secrets of two namespaces: neither sees or does what only the other may."""

import base64

import pytest
from http_git import serving

from fanout.errors import Denied, FanoutError
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    PushedChange,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
)
from fanout.ports import Credentials
from fanout.reconcile.observation.repository_access import PackageContentCache

FANOUT = CommitIdentity("fanout", "fanout@localhost")
PATTERNS = ("refs/heads/*",)
SECRETS = {
    ("a", "token"): Credentials("ada", "of-ada"),
    ("b", "token"): Credentials("bob", "of-bob"),
}


def header(secret: Credentials) -> str:
    pair = f"{secret.username}:{secret.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


@pytest.fixture
def tenants(bare, tmp_path):
    """Remotes of one repository: Ada sees her branch, Bob does not, and nobody else is let in."""
    with serving(tmp_path) as server:
        hidden = {("a", "token"): "refs/heads/bob", ("b", "token"): "refs/heads/ada"}
        server.users = {header(SECRETS[it]): refs for it, refs in hidden.items()}
        url = f"{server.url()}/remote.git"
        yield Remote(url, "token", "a"), Remote(url, "token", "b"), Remote(url)


@pytest.fixture
def store(make_store):
    return make_store(secrets=lambda *name: SECRETS[name])


def test_each_secret_shows_its_own_refs_and_objects(store, tenants, bare):
    private = {it: bare.commit({"private": it}, branch=it) for it in ("ada", "bob")}
    ada, bob, nobody = tenants
    listings = store.list_refs([RefListingRequest(it, PATTERNS) for it in tenants])
    assert isinstance(listings[nobody.key], Denied)
    branches = {}
    for remote, name in ((ada, "ada"), (bob, "bob")):
        listing = listings[remote.key]
        assert isinstance(listing, RefListing), listing
        branches[name] = {*listing.refs} - {"refs/heads/main"}
        with store.reader(remote) as reader:
            assert {it for it, commit in private.items() if reader.has(commit)} == {name}
    assert branches == {"ada": {"refs/heads/ada"}, "bob": {"refs/heads/bob"}}
    # What others have fetched is not there for whoever comes without a secret.
    with store.reader(nobody) as reader:
        assert not any(map(reader.has, private.values()))


def test_files_that_one_namespace_has_read_are_not_in_the_cache_for_another(store, tenants, bare):
    """A message on a draft of Bob may name the tree that only Ada sees."""
    commit = bare.commit({"private": "ada"}, branch="ada")
    tree = bare.git("rev-parse", f"{commit}^{{tree}}")
    ada, bob, _ = tenants
    store.list_refs([RefListingRequest(it, PATTERNS) for it in (ada, bob)])
    cache = PackageContentCache()
    with store.reader(ada) as reader:
        files = cache.read_files(reader, ada.namespace, tree)
    assert files["private"][1] == b"ada"
    assert cache.get_cached(ada.namespace, tree) is files
    assert cache.get_cached(bob.namespace, tree) is None
    with store.reader(bob) as reader, pytest.raises(FanoutError):
        cache.read_files(reader, bob.namespace, tree)


def test_each_pushes_with_its_own_secret(store, tenants, bare):
    store.list_refs([RefListingRequest(it, PATTERNS) for it in tenants])

    def write(remote: Remote, ref: str) -> RepositoryChange:
        commit = FileCommit(
            ref=ref,
            parent="",
            content_by_path={"file": b"text"},
            dropped_paths=(),
            message="Write\n",
            timestamp=1_700_000_000,
        )
        return RepositoryChange(remote=remote, identity=FANOUT, expected={ref: ""}, files=(commit,))

    # Git refuses a push to a ref that is hidden from the pusher.
    ada, bob, nobody = tenants
    written = store.change(
        [
            write(ada, "refs/heads/ada"),
            write(bob, "refs/heads/ada"),
            write(nobody, "refs/heads/free"),
        ]
    )
    assert isinstance(written[ada.key], PushedChange)
    assert not isinstance(written[bob.key], PushedChange)
    assert isinstance(written[nobody.key], Denied)
    assert bare.refs().keys() == {"refs/heads/main", "refs/heads/ada"}


def test_without_secrets_all_namespaces_are_one(store, bare):
    listings = store.list_refs([RefListingRequest(bare.remote, PATTERNS)] * 2)
    assert listings.keys() == {bare.url}
