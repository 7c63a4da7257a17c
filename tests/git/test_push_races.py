"""A remote that moved, that refuses, that others write to: all or nothing, and plain words."""

import pytest

from fanout.errors import Bug, Conflict, Denied, FanoutError, InvalidInput, Unavailable
from fanout.plan.observation.repository_state import (
    FileCommit,
    RefListingRequest,
    Remote,
    RepositoryChange,
)


def move_before_push(downstream, do):
    """Let somebody else act between the comparison and the push: when objects are written."""
    store = downstream.store
    push = store._git.run

    def run(mirror, arguments, *rest, **more):
        if arguments[0] == "push":
            store._git.run = push
            do()
        return push(mirror, arguments, *rest, **more)

    store._git.run = run


def test_a_branch_that_moved_before_the_pass_writes_is_a_conflict(downstream):
    packages = {"one": downstream.package("one")}
    downstream.write(packages)
    before = downstream.look().refs
    downstream.bare.commit({"one/extra.yaml": "by: hand\n"}, branch="drafts/default/one/policy")
    downstream.look()
    after = downstream.bare.refs()
    draft = downstream.draft("one", downstream.package("uno"), before[downstream.main])
    with pytest.raises(Conflict, match=before[draft.ref]):
        downstream.change(
            expected={draft.ref: before[draft.ref]},
            blobs=downstream.blobs(downstream.package("uno")),
            drafts=(draft,),
        )
    assert downstream.bare.refs() == after


RACES = [
    ("a commit on the draft that is rewritten", "drafts/default/one/policy"),
    ("a draft that was not there", "drafts/default/two/policy"),
    ("a commit on the vendor branch", "fanout/default/rendered"),
]


@pytest.mark.parametrize("branch", [row[1] for row in RACES], ids=[row[0] for row in RACES])
def test_a_lost_lease_changes_nothing(downstream, branch):
    downstream.write({"one": downstream.package("one")})
    packages = {name: downstream.package(f"new {name}") for name in ("one", "two", "three")}
    raced = []

    def race():
        downstream.bare.commit({"hand.yaml": "made: by hand\n"}, branch=branch)
        raced.append(downstream.bare.refs())

    move_before_push(downstream, race)
    with pytest.raises(Conflict) as caught:
        downstream.write(packages)
    assert caught.value.reason == "RemoteMoved"
    assert str(downstream.bare.path) in str(caught.value)
    assert downstream.bare.refs() == raced[0]


@pytest.mark.parametrize("many", [1, 20], ids=["a draft", "more drafts than are mapped by name"])
@pytest.mark.parametrize("is_written", [False, True], ids=["written first", "rewritten"])
def test_a_lost_lease_changes_nothing_however_many_were_there(downstream, many, is_written):
    paths = [f"p{number:02}" for number in range(many)]
    if is_written:
        downstream.write({path: downstream.package(path) for path in paths})
    branch = downstream.ref(paths[-1]).removeprefix("refs/heads/")
    raced = []

    def race():
        downstream.bare.commit({"hand.yaml": "made: by hand\n"}, branch=branch)
        raced.append(downstream.bare.refs())

    move_before_push(downstream, race)
    with pytest.raises(Conflict) as caught:
        downstream.write({path: downstream.package(f"new {path}") for path in paths})
    assert caught.value.reason == "RemoteMoved"
    assert downstream.bare.refs() == raced[0]
    downstream.look()
    downstream.write({path: downstream.package(f"newer {path}") for path in paths})
    assert set(map(downstream.ref, paths)) < set(downstream.look().refs)


@pytest.mark.parametrize("many", [1, 20], ids=["a draft", "more drafts than are mapped by name"])
def test_of_two_that_write_the_same_at_once_one_loses(downstream, downstream_of, make_store, many):
    """Both derive the same commits; the one whose push finds them there has not written them."""
    packages = {f"p{number:02}": downstream.package("new") for number in range(many)}
    other = downstream_of(make_store("other"), downstream.bare)
    move_before_push(downstream, lambda: other.write(packages))
    with pytest.raises(Conflict) as caught:
        downstream.write(packages)
    assert caught.value.reason == "RemoteMoved"
    refs = downstream.bare.refs()
    downstream.look()
    downstream.write({"more": downstream.package("more")})
    after = downstream.bare.refs()
    assert {ref for ref in after if after[ref] != refs.get(ref)} == {
        downstream.ref("more"),
        "refs/heads/fanout/default/rendered",
    }


def test_a_publication_loses_the_race_for_the_branch_as_a_whole(downstream):
    paths = ["one", "two"]
    downstream.write({path: downstream.package(path) for path in paths})
    raced = []

    def race():
        downstream.bare.commit({"README.md": "faster\n"})
        raced.append(downstream.bare.refs())

    move_before_push(downstream, race)
    with pytest.raises(Conflict):
        downstream.publish(paths)
    assert downstream.bare.refs() == raced[0]
    assert downstream.publish(paths).removed_refs == tuple(map(downstream.ref, paths))
    assert downstream.bare.files("main")["README.md"] == "faster"


def test_a_tag_that_somebody_made_first_is_a_conflict(downstream):
    downstream.write({"one": downstream.package("one")})
    move_before_push(downstream, lambda: downstream.bare.git("tag", "one/v1", "main"))
    with pytest.raises(Conflict):
        downstream.publish(["one"])


def test_a_commit_on_a_draft_that_is_being_removed_is_never_lost(downstream):
    paths = ["one", "two"]
    downstream.write({path: downstream.package(path) for path in paths})
    refs = downstream.look().refs
    branch = downstream.ref("one").removeprefix("refs/heads/")
    move_before_push(downstream, lambda: downstream.bare.commit({"x": "y\n"}, branch=branch))
    removed = tuple(map(downstream.ref, paths))
    with pytest.raises(Conflict):
        downstream.change(
            expected={ref: refs[ref] for ref in removed},
            removed_drafts=removed,
            drafts_under=downstream.under,
        )
    assert set(removed) < set(downstream.bare.refs())


def test_a_draft_that_appears_while_others_are_removed_stays(downstream):
    downstream.write({"one": downstream.package("one")})
    refs = downstream.look().refs
    branch = downstream.ref("new").removeprefix("refs/heads/")
    move_before_push(downstream, lambda: downstream.bare.commit({"x": "y\n"}, branch=branch))
    removed = (downstream.ref("one"),)
    removal = {"removed_drafts": removed, "drafts_under": downstream.under}
    with pytest.raises(Conflict):
        downstream.change(expected={ref: refs[ref] for ref in removed}, **removal)
    downstream.look()
    assert (
        downstream.change(expected={ref: refs[ref] for ref in removed}, **removal).removed_refs
        == removed
    )
    assert downstream.ref("new") in downstream.bare.refs()


def test_a_publication_stays_when_the_removal_of_its_draft_fails(downstream):
    downstream.write({"one": downstream.package("one")})
    downstream.bare.git("config", "receive.denyDeletes", "true")
    written = downstream.publish(["one"])
    assert written.removed_refs == ()
    refs = downstream.bare.refs()
    assert written.refs == {ref: refs[ref] for ref in written.refs}
    assert downstream.ref("one") in refs
    removed = (downstream.ref("one"),)
    expected = {ref: downstream.look().refs[ref] for ref in removed}
    removal = {"expected": expected, "removed_drafts": removed, "drafts_under": downstream.under}
    with pytest.raises(Denied, match="denyDeletes") as refused:
        downstream.change(**removal)
    assert refused.value.reason == "DeletionRefused"
    downstream.bare.git("config", "receive.denyDeletes", "false")
    assert downstream.change(**removal).removed_refs == removed


def test_foreign_refs_and_other_installations_survive_every_removal(downstream):
    foreign = ["drafts/other/one/policy", "drafts/default2/x", "feature", "fanout/other/rendered"]
    for branch in foreign:
        downstream.bare.commit({"theirs": "x\n"}, branch=branch)
    downstream.bare.git("tag", "-a", "-m", "theirs", "theirs/v1", "main")
    downstream.bare.git("update-ref", "refs/notes/x", "main")
    before = downstream.bare.refs()
    downstream.write({path: downstream.package(path) for path in ("one", "two", "deep/three")})
    downstream.publish(["one", "deep/three"])
    after = downstream.bare.refs()
    assert {ref: oid for ref, oid in after.items() if ref in before} == before | {
        downstream.main: after[downstream.main]
    }
    assert [ref for ref in after if ref.startswith(downstream.under)] == [downstream.ref("two")]


REMOVALS = [
    ("a branch that is no draft", "refs/heads/main", "refs/heads/drafts/default/"),
    ("another installation's draft", "refs/heads/drafts/other/x", "refs/heads/drafts/other/"),
    ("with another installation's prefix", "refs/heads/drafts/default/x", "refs/heads/drafts/"),
]


@pytest.mark.parametrize(("_", "ref", "under"), REMOVALS, ids=[row[0] for row in REMOVALS])
def test_only_drafts_of_this_installation_can_be_removed(downstream, _, ref, under):
    with pytest.raises(Bug, match=ref) as refused:
        downstream.change(expected={ref: "1" * 40}, removed_drafts=(ref,), drafts_under=under)
    assert refused.value.reason == "ForeignRef"


HOOKS = [
    ("pre-receive", "echo 'change freeze until monday' >&2; exit 1", "change freeze until monday"),
    (
        "update",
        'case "$1" in *two*) echo "GL-HOOK-ERR: branch is protected" >&2; exit 1;; esac',
        "branch is protected",
    ),
]


@pytest.mark.parametrize(("hook", "script", "words"), HOOKS, ids=[row[0] for row in HOOKS])
def test_a_hook_that_refuses_is_quoted_and_nothing_was_done(downstream, hook, script, words):
    downstream.bare.hook(hook, script)
    before = downstream.bare.refs()
    with pytest.raises(Denied, match=words) as caught:
        downstream.write({path: downstream.package(path) for path in ("one", "two")})
    assert caught.value.reason == "PushRefused"
    assert downstream.bare.refs() == before


def test_the_control_characters_of_a_remote_reach_nobody(downstream):
    downstream.bare.hook("pre-receive", "printf '\\033[31mred\\007 alert\\n' >&2; exit 1")
    with pytest.raises(Denied) as caught:
        downstream.write({"one": downstream.package("one")})
    assert str(caught.value).isprintable()


def test_a_remote_that_takes_no_rewritten_branches_is_quoted(downstream):
    downstream.write({"one": downstream.package("one")})
    downstream.bare.git("config", "receive.denyNonFastForwards", "true")
    with pytest.raises(Denied, match="non-fast-forward"):
        downstream.write({"one": downstream.package("uno")})


def test_a_ref_in_the_way_is_named(downstream):
    downstream.bare.commit({"x": "y\n"}, branch="drafts/default/one")
    with pytest.raises(InvalidInput, match="drafts/default/one") as refused:
        downstream.write({"one": downstream.package("one")})
    assert refused.value.reason == "RefNameClash"


def test_a_missing_remote_does_not_stop_the_others(downstream, tmp_path):
    nowhere = Remote(str(tmp_path / "nowhere.git"))
    answers = downstream.store.list_refs(
        [
            RefListingRequest(nowhere, ()),
            RefListingRequest(downstream.bare.remote, (downstream.main,)),
        ]
    )
    assert list(answers) == [nowhere.url, downstream.bare.url]
    assert isinstance(answers[nowhere.url], Unavailable)
    assert answers[nowhere.url].reason == "RemoteNotFound"
    assert not isinstance(answers[downstream.bare.url], FanoutError)


def test_a_sha256_repository_is_refused_with_its_name(downstream_of, store, new_bare):
    bare = new_bare("modern", "--object-format=sha256")
    empty = downstream_of(store, bare)
    assert empty.look().refs == {}
    bare.commit({"README.md": "x\n"})
    with pytest.raises(InvalidInput, match="SHA-256") as caught:
        empty.look()
    assert bare.url in str(caught.value)


def test_an_empty_sha256_repository_is_refused_when_it_is_written_to(store, new_bare, downstream):
    bare = new_bare("modern", "--object-format=sha256")
    ref = "refs/heads/fanout/x"
    store.list_refs([RefListingRequest(bare.remote, (ref,))])
    commit = FileCommit(
        ref=ref,
        parent="",
        content_by_path={"a": b"b"},
        dropped_paths=(),
        message="Begin\n",
        timestamp=downstream.when,
    )
    change = RepositoryChange(
        remote=bare.remote, identity=downstream.identity, expected={ref: ""}, files=(commit,)
    )
    answer = store.change([change])[bare.url]
    assert isinstance(answer, InvalidInput)
    assert "SHA-256" in str(answer)


def test_the_error_names_the_refs_that_are_refused_for_reasons_of_their_own(downstream):
    downstream.bare.hook("update", 'case "$1" in */two/*) echo "not two" >&2; exit 1;; esac')
    packages = {name: downstream.package(name) for name in ("one", "two", "three")}
    with pytest.raises(Denied, match="not two") as caught:
        downstream.write(packages)
    assert caught.value.refs == (downstream.ref("two"),)
    downstream.bare.hook("update", "exit 0")
    downstream.bare.hook("pre-receive", "exit 1")
    downstream.look()
    with pytest.raises(Denied) as caught:
        downstream.write(packages)
    assert set(map(downstream.ref, packages)) < set(caught.value.refs)
