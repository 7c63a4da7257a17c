"""What the remote has after drafts were written and published."""

import pytest

from fanout.errors import Bug, InvalidInput, Unavailable
from fanout.plan.observation.repository_state import (
    FileCommit,
    MergedDraft,
    PublicationMerge,
    StoredTree,
    VendorCommit,
)
from fanout.values import replace


def test_a_draft_is_the_branch_with_the_package_replaced(downstream):
    bare = downstream.bare
    head = bare.commit({"apps/web/old.yaml": "gone: true\n", "apps/api/keep.yaml": "kept: true\n"})
    written = downstream.write({"apps/web": downstream.package("web")})
    commit = written.refs[downstream.ref("apps/web")]
    assert bare.refs()[downstream.ref("apps/web")] == commit
    assert bare.parents(commit) == [head]
    assert set(bare.files(commit)) == {
        "README.md",
        "apps/api/keep.yaml",
        "apps/web/Kptfile",
        "apps/web/deep/er/file.yaml",
        "apps/web/manifest-0.yaml",
    }
    assert bare.git("log", "-1", "--format=%an <%ae> %cn %at %ct %ad", "--date=raw", commit) == (
        "fanout <fanout@localhost> fanout 1700000000 1700000000 1700000000 +0000"
    )
    assert set(bare.files(written.refs[downstream.vendor])) == {
        f"drafts/apps/web/{name}" for name in downstream.package("web")
    }
    bare.check()


def test_a_package_may_be_the_whole_repository(downstream):
    written = downstream.write({"": downstream.package("all")}, vendor=None)
    commit = next(oid for ref, oid in written.refs.items() if ref.startswith(downstream.under))
    assert set(downstream.bare.files(commit)) == set(downstream.package("all"))


@pytest.mark.parametrize(
    "layout", ["site-{0:02}/monitoring", "{0:02}", "a/b/c/d/{0:02}"], ids=["nested", "flat", "deep"]
)
def test_forty_drafts_are_published_by_a_chain_of_merges(downstream, layout):
    bare = downstream.bare
    head = bare.refs()[downstream.main]
    paths = [layout.format(number) for number in range(40)]
    drafts = downstream.write({path: downstream.package(path) for path in paths}).refs
    written = downstream.publish(paths)
    refs = bare.refs()
    assert set(refs) == {downstream.main, downstream.vendor} | {
        f"refs/tags/{path}/v1" for path in paths
    }
    chain = bare.git("rev-list", "--first-parent", f"{head}..main").split()
    assert [len(bare.parents(commit)) for commit in chain] == [9, 17, 17]
    assert bare.parents(chain[-1])[0] == head
    assert bare.parents(chain[-1])[1:] == [drafts[downstream.ref(path)] for path in paths[:16]]
    assert refs[f"refs/tags/{paths[0]}/v1"] == chain[-1]
    assert refs[f"refs/tags/{paths[39]}/v1"] == chain[0] == refs[downstream.main]
    assert written.refs[downstream.main] == chain[0]
    assert set(written.removed_refs) == {downstream.ref(path) for path in paths}
    expected = {f"{path}/{name}" for path in paths for name in downstream.package(path)}
    assert set(bare.files("main")) == {"README.md"} | expected
    assert set(bare.files(refs[downstream.vendor])) == {f"published/{name}" for name in expected}
    bare.check()


def test_the_same_input_gives_the_same_commits_everywhere(
    downstream_of, make_store, new_bare, monkeypatch
):
    refs = []
    for number, zone in enumerate(("Asia/Tokyo", "UTC")):
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("GIT_AUTHOR_NAME", f"somebody {number}")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2001-01-0{number + 1}")
        bare = new_bare(f"machine-{number}")
        monkeypatch.setenv("GIT_COMMITTER_DATE", "1699000000 +0000")
        bare.commit({"README.md": "hello\n"})
        machine = downstream_of(make_store(f"mirrors-{number}"), bare)
        machine.write({path: machine.package(path) for path in ("x/one", "x/two")})
        machine.publish(["x/one", "x/two"])
        refs.append(bare.refs())
    assert refs[0] == refs[1]


def test_a_second_run_pushes_nothing(downstream, counters):
    packages = {"one": downstream.package("one")}
    first = downstream.write(packages, vendor=None)
    counters.reset()
    again = downstream.write(packages, vendor=None)
    assert again.refs == first.refs
    assert counters.read()["pushes"] == 0


def test_a_draft_may_be_rewritten_on_another_base(downstream):
    downstream.write({"one": downstream.package("one")})
    head = downstream.bare.commit({"README.md": "moved on\n"})
    written = downstream.write({"one": downstream.package("uno")})
    draft = written.refs[downstream.ref("one")]
    assert downstream.bare.parents(draft) == [head]
    assert downstream.bare.refs()[downstream.ref("one")] == draft


def test_executables_and_symlinks_keep_their_mode(downstream):
    bare = downstream.bare
    bare.git(
        "fast-import",
        "--quiet",
        "--force",
        stdin=b"commit refs/heads/main\ncommitter A <a@b> 1699000000 +0000\ndata 0\n"
        b"M 100755 inline p/run.sh\ndata 1\nx\nM 120000 inline p/link\ndata 6\nrun.sh\n",
    )
    head = downstream.look().refs[downstream.main]
    with downstream.store.reader(bare.remote) as reader:
        tree = reader.paths(head, ["p"])["p"].tree
        entries = reader.entries(tree)
    assert {path: entry.mode for path, entry in entries.items()} == {
        "link": "120000",
        "run.sh": "100755",
    }
    draft = downstream.draft("q", {}, head)
    draft = replace(draft, entries=entries, tree=tree, message="Copy\n")
    downstream.change(expected={draft.ref: ""}, drafts=(draft,))
    assert bare.git("ls-tree", draft.ref, "q").split()[2] == tree


AWKWARD = ["with space", 'quote".yaml', "back\\slash", "new\nline", "ümläut", "-dash", "tab\t"]


@pytest.mark.parametrize("name", AWKWARD, ids=repr)
def test_any_file_name_arrives_as_it_is(downstream, name):
    downstream.write({"p": {name: "content\n", f"d/{name}/f": "x\n"}})
    names = downstream.bare.git("ls-tree", "-r", "-z", "--name-only", downstream.ref("p"))
    assert set(names.split("\0")) == {"README.md", f"p/{name}", f"p/d/{name}/f", ""}


def files_commit(downstream, ref, parent, put, drop=()):
    commit = FileCommit(
        ref=ref,
        parent=parent,
        content_by_path=put,
        dropped_paths=drop,
        message="Record\n",
        timestamp=downstream.when,
    )
    return downstream.change(expected={ref: parent}, files=(commit,)).refs[ref]


def test_file_commits_begin_a_branch_and_go_on(downstream_of, store, new_bare):
    records = downstream_of(store, new_bare("records"))
    assert records.look().refs == {}
    ref = "refs/heads/fanout/default/ns/policy"
    first = files_commit(records, ref, "", {"records/a.json": b"{}", "status/00.jsonl": b"1"})
    assert records.look(ref).refs == {ref: first}
    second = files_commit(records, ref, first, {"records/b.json": b"\0\n"}, ("status/00.jsonl",))
    assert records.bare.parents(first) == []
    assert records.bare.parents(second) == [first]
    assert set(records.bare.files(second)) == {"records/a.json", "records/b.json"}
    records.bare.check()


def test_packages_that_move_on_the_vendor_branch_leave_no_empty_directories(downstream):
    downstream.write({"a/one": downstream.package("one"), "b": downstream.package("b")})
    downstream.publish(["a/one"])
    assert downstream.bare.git("ls-tree", "--name-only", "-d", downstream.vendor).split() == [
        "drafts",
        "published",
    ]
    downstream.publish(["b"])
    assert downstream.bare.git("ls-tree", "--name-only", "-d", downstream.vendor).split() == [
        "published"
    ]


def test_a_draft_without_a_branch_to_stand_on_is_refused(downstream):
    draft = downstream.draft("p", downstream.package("p"), "")
    with pytest.raises(InvalidInput, match="drafts/default/p") as refused:
        downstream.change(expected={draft.ref: ""}, drafts=(draft,))
    assert refused.value.reason == "BranchMissing"


def test_a_tree_that_is_not_as_planned_is_never_pushed(downstream):
    head = downstream.look().refs[downstream.main]
    right = downstream.draft("p", downstream.package("p"), head)
    wrong = replace(right, tree="1" * 40)
    with pytest.raises(Bug, match="planned: 1111"):
        downstream.change(
            expected={right.ref: ""},
            blobs=downstream.blobs(downstream.package("p")),
            drafts=(wrong,),
        )
    assert set(downstream.bare.refs()) == {downstream.main}


@pytest.mark.parametrize("name", ["a b", "a..b", "a:b", "x.lock", ".hidden", "-x", "a~1", "é\x7f"])
def test_a_ref_that_git_refuses_is_the_users_error(downstream, name):
    head = downstream.look().refs[downstream.main]
    draft = downstream.draft(name, downstream.package("p"), head)
    with pytest.raises(InvalidInput) as refused:
        downstream.change(expected={draft.ref: ""}, drafts=(draft,))
    assert refused.value.reason == "InvalidRefName"


def test_a_file_where_a_package_is_to_be_merged_is_named(downstream):
    downstream.write({"apps/web": downstream.package("web")})
    downstream.bare.commit({"apps": "a file\n"})
    with pytest.raises(InvalidInput, match="apps/web cannot be a directory: apps is a file"):
        downstream.publish(["apps/web"])


@pytest.mark.parametrize("files", [{"apps": "x\n"}, {"apps/web": "x\n"}], ids=["way", "place"])
def test_a_file_where_a_draft_is_to_be_written_is_named(downstream, files):
    downstream.bare.commit(files)
    before = downstream.bare.refs()
    with pytest.raises(InvalidInput, match=r"apps/web cannot be a directory: .* is a file"):
        downstream.write({"apps/web": downstream.package("web")})
    assert downstream.bare.refs() == before


BAD_PATHS = ["a//b", "../a", "a/./b", ".git/a", "a/.GIT/b", "nul\0"]


@pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
def test_a_file_that_git_does_not_store_is_refused(downstream, path):
    with pytest.raises(InvalidInput) as caught:
        downstream.write({"p": {path: "x\n", "ok": "y\n"}})
    assert caught.value.reason == "InvalidPath"
    assert set(downstream.bare.refs()) == {downstream.main}


def test_a_file_and_a_directory_of_one_name_are_no_package(downstream):
    head = downstream.look().refs[downstream.main]
    draft = downstream.draft("p", {"a": "x\n"}, head)
    both = replace(draft, entries=draft.entries | {"a/b": draft.entries["a"]})
    with pytest.raises(Bug) as caught:
        downstream.change(
            expected={draft.ref: ""}, blobs=downstream.blobs({"a": "x\n"}), drafts=(both,)
        )
    assert caught.value.reason == "TreeMismatch"


def test_content_of_another_id_is_never_written(downstream):
    head = downstream.look().refs[downstream.main]
    draft = downstream.draft("p", {"a": "x\n"}, head)
    (oid,) = downstream.blobs({"a": "x\n"})
    with pytest.raises(Bug) as caught:
        downstream.change(expected={draft.ref: ""}, blobs={oid: b"y\n"}, drafts=(draft,))
    assert caught.value.reason == "TreeMismatch"


def test_a_draft_of_what_is_nowhere_is_refused(downstream):
    head = downstream.look().refs[downstream.main]
    draft = downstream.draft("p", {"a": "x\n"}, head)
    with pytest.raises(Unavailable) as caught:
        downstream.change(expected={draft.ref: ""}, drafts=(draft,))
    # The mirror is made again and asked again: then it is the remote that has not got it.
    assert caught.value.reason == "RemoteFailed"


def test_a_publication_may_replace_the_whole_repository_and_leave_it_empty(downstream):
    written = downstream.write({"": downstream.package("all")}, vendor=None)
    refs = downstream.look().refs
    ref = downstream.ref("")
    tree = downstream.bare.git("rev-parse", f"{written.refs[ref]}^{{tree}}")
    tag = "refs/tags/v1"
    whole = PublicationMerge(
        (MergedDraft(commit=refs[ref], path="", tree=tree, tag=tag),), "Publish\n", downstream.when
    )
    nothing = PublicationMerge((), "Remove\n", downstream.when, dropped_paths=("",))
    downstream.change(
        expected={downstream.main: refs[downstream.main], tag: ""},
        branch=downstream.main,
        merges=(whole, nothing),
    )
    assert set(downstream.bare.files(tag)) == set(downstream.package("all"))
    assert downstream.bare.files(downstream.main) == {}
    downstream.bare.check()


def test_a_package_inside_one_that_is_new_itself(downstream):
    refs = downstream.look().refs
    outer, inner = downstream.package("outer"), downstream.package("inner")
    drafts = [
        downstream.draft(p, f, refs[downstream.main]) for p, f in (("a", outer), ("b", inner))
    ]
    put = {"drafts/a": drafts[0].tree, "drafts/a/deep/b": drafts[1].tree}
    vendor = VendorCommit(
        ref=downstream.vendor,
        parent="",
        trees_by_path=put,
        dropped_paths=(),
        message="Render\n",
        timestamp=downstream.when,
    )
    downstream.change(
        expected=dict.fromkeys((drafts[0].ref, drafts[1].ref, downstream.vendor), ""),
        blobs=downstream.blobs(outer, inner),
        drafts=tuple(drafts),
        vendor=vendor,
    )
    assert set(downstream.bare.files(downstream.vendor)) == {
        *(f"drafts/a/{name}" for name in outer),
        *(f"drafts/a/deep/b/{name}" for name in inner),
    }
    downstream.bare.check()


def test_records_replace_what_is_in_their_way(downstream_of, store, new_bare):
    records = downstream_of(store, new_bare("records"))
    records.look()
    ref = "refs/heads/fanout/default/ns/policy"
    first = files_commit(records, ref, "", {"a": b"1", "b/c": b"2", "d/e/f": b"3", "g": b"4"})
    put = {"a/x": b"5", "b": b"6", "h": b"7", "h/i": b"8"}
    second = files_commit(records, ref, first, put, ("d/e", "g", "none", "a/none"))
    assert records.bare.files(second) == {"a/x": "5", "b": "6", "h/i": "8"}
    third = files_commit(records, ref, second, {}, ("a", "b", "h/i"))
    assert records.bare.files(third) == {}
    records.bare.check()


def test_a_draft_takes_in_a_person_s_commits_and_keeps_its_pristine_rendering(downstream):
    bare = downstream.bare
    head = bare.refs()[downstream.main]
    first = downstream.write({"web": downstream.package("web")}).refs[downstream.ref("web")]
    branch = downstream.ref("web").removeprefix("refs/heads/")
    tip = bare.commit({"web/Kptfile": "name: web # a person's\n"}, branch=branch)
    refs = downstream.look().refs
    merged = downstream.package("web") | {"Kptfile": "name: web # both\n"}
    pristine = downstream.package("web") | {"Kptfile": "name: web # newer\n"}
    draft = downstream.draft("web", merged, head)
    stored = downstream.draft("web", pristine, head)
    written = downstream.change(
        expected={ref: refs[ref] for ref in (draft.ref, downstream.vendor)},
        blobs=downstream.blobs(merged, pristine),
        drafts=(replace(draft, more_parents=(tip,)),),
        trees=(StoredTree(stored.entries, stored.tree),),
        vendor=VendorCommit(
            ref=downstream.vendor,
            parent=refs[downstream.vendor],
            trees_by_path={"drafts/web": stored.tree},
            dropped_paths=(),
            message="Up\n",
            timestamp=1,
        ),
    )
    assert bare.parents(written.refs[draft.ref]) == [head, tip]
    assert bare.parents(tip) == [first]
    assert bare.files(written.refs[draft.ref])["web/Kptfile"] == "name: web # both"
    vendored = bare.files(written.refs[downstream.vendor])
    assert vendored["drafts/web/Kptfile"] == "name: web # newer"
    bare.check()
