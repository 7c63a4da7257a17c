"""`fanout package merge` on real directories."""

import json
import os
from pathlib import Path

import pytest
from cli.packages import KPTFILE, deployment, put, state
from hypothesis import given, settings
from hypothesis import strategies as st

from fanout.cli.main import run_arguments
from fanout.cli.verbs.package import KptUpdateStrategy


@pytest.fixture
def merge(tmp_path, capsys):
    """Merge three packages and answer exit status, what was printed, and the new directory."""

    def run(origin, upstream, local, *options):
        sides = {"origin": origin, "upstream": upstream, "local": local}
        arguments = [
            word
            for name, files in sides.items()
            for word in (f"--{name}", str(put(tmp_path / name, files)))
        ]
        if "--in-place" not in options:
            arguments += ["--to", str(tmp_path / "to")]
        status = run_arguments(["package", "merge", *arguments, *options])
        return status, capsys.readouterr(), tmp_path / "to"

    return run


BASE = {"Kptfile": KPTFILE, "web.yaml": deployment(2)}
ROWS = [
    (
        "upstream's edit and ours in one object both stand in the result",
        BASE,
        {**BASE, "web.yaml": deployment(3)},
        {**BASE, "web.yaml": deployment(2, more="  paused: true\n")},
        {**BASE, "web.yaml": deployment(3, more="  paused: true\n")},
    ),
    (
        "a new file of upstream arrives as an executable",
        BASE,
        {**BASE, "bin/run*": "#!/bin/sh\n"},
        BASE,
        {**BASE, "bin/run*": "#!/bin/sh\n"},
    ),
    (
        "a file that upstream made executable becomes so where it was edited",
        {**BASE, "run": "a\nb\nc\n"},
        {**BASE, "run*": "a\nb\nc\n"},
        {**BASE, "run": "a\nb\nC\n"},
        {**BASE, "run*": "a\nb\nC\n"},
    ),
    (
        "a file that upstream removed goes",
        {**BASE, "a.txt": "a"},
        BASE,
        {**BASE, "a.txt": "a"},
        BASE,
    ),
    (
        "binary files of ours stay",
        BASE,
        BASE,
        {**BASE, "logo": b"\0\xff"},
        {**BASE, "logo": b"\0\xff"},
    ),
]


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "result"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_changes_of_both_sides_are_in_the_new_directory(merge, origin, upstream, local, result):
    status, out, to = merge(origin, upstream, local)
    assert state(to) == state(put(to.parent / "wanted", result))
    assert (status, out.out, out.err) == (0, "", "")


def test_a_conflict_is_one_line_and_status_1_and_its_winner_is_written(merge):
    status, out, to = merge(
        BASE, {**BASE, "web.yaml": deployment(3)}, {**BASE, "web.yaml": deployment(5)}
    )
    assert status == 3
    assert out.out == (
        "conflict: web.yaml:6: Deployment/web: spec.replicas: both changed "
        "(base 2, upstream 3, local 5); upstream won\n"
    )
    assert (to / "web.yaml").read_text() == deployment(3)


def test_the_report_has_every_conflict_with_its_values(merge):
    status, out, _ = merge(
        {**BASE, "logo": b"\0a"},
        {**BASE, "web.yaml": deployment(3), "logo": b"\0b"},
        {**BASE, "web.yaml": deployment(5)},
        "-o",
        "json",
    )
    report = json.loads(out.out)
    logo, replicas = sorted(report.pop("conflicts"), key=lambda conflict: conflict["file"])
    assert status == 3
    assert report == {
        "apiVersion": "fanout.dev/v1alpha1", "kind": "MergeReport", "notes": [], "dropped": [],
    }  # fmt: skip
    assert replicas == {
        "file": "web.yaml", "line": 6, "object": "Deployment/web", "field": "spec.replicas",
        "cause": "both changed", "base": 2, "upstream": 3, "local": 5, "winner": "upstream",
    }  # fmt: skip
    assert {"base", "upstream"} < logo.keys()
    assert "local" not in logo, "it was deleted, which is not null"
    assert logo["upstream"]["bytes"] == 2


def test_a_file_that_cannot_be_read_is_merged_as_text_and_noted(merge):
    broken = "a: [\nb: 1\nc: 2\n"
    status, out, to = merge(
        {**BASE, "x.yaml": broken},
        {**BASE, "x.yaml": broken.replace("a:", "A:")},
        {**BASE, "x.yaml": broken.replace("c: 2", "c: 3")},
    )
    assert status == 0
    assert out.out.startswith("note: x.yaml: ")
    assert (to / "x.yaml").read_text() == "A: [\nb: 1\nc: 3\n"


def test_in_place_touches_no_file_that_stays_as_it_is(merge, tmp_path):
    untouched = {"notes.txt": "ours\n", ".hidden": "x\n", ".git/HEAD": "x\n"}
    local = put(tmp_path / "local", untouched)
    before = {name: (local / name).stat() for name in untouched}
    assert merge(BASE, {**BASE, "web.yaml": deployment(3)}, BASE, "--in-place")[0] == 0
    after = {name: (local / name).stat() for name in untouched}
    assert (local / "web.yaml").read_text() == deployment(3)
    assert [(s.st_ino, s.st_mtime_ns) for s in after.values()] == [
        (s.st_ino, s.st_mtime_ns) for s in before.values()
    ]


def test_in_place_keeps_permissions_and_removes_emptied_directories(merge, tmp_path):
    local = tmp_path / "local"
    old = {**BASE, "old/deep/a.txt": "a"}
    put(local, old)
    (local / "web.yaml").chmod(0o640)
    local.chmod(0o750)
    new = {**BASE, "web.yaml": deployment(3)}
    status, _, _ = merge(old, new, {"old/deep/a.txt": "a"}, "--in-place", "--to", str(local))
    assert status == 0
    assert state(local) == {name: text.encode() for name, text in new.items()}
    assert (local / "web.yaml").stat().st_mode & 0o777 == 0o640
    assert local.stat().st_mode & 0o777 == 0o750


FLAT, DEEP = {**BASE, "a": "x"}, {**BASE, "a/b": "x"}


@pytest.mark.parametrize(("before", "after"), [(FLAT, DEEP), (DEEP, FLAT)], ids=["there", "back"])
def test_a_file_can_become_a_directory_and_back(merge, tmp_path, before, after):
    assert merge(before, after, before, "--in-place")[0] == 0
    assert state(tmp_path / "local") == state(put(tmp_path / "wanted", after))


def test_local_changes_that_a_strategy_drops_are_printed(merge):
    status, out, to = merge(
        BASE,
        {**BASE, "web.yaml": deployment(3)},
        {**BASE, "web.yaml": deployment(2, more="  paused: true\n")},
        "--strategy",
        "force-delete-replace",
    )
    assert status == 0
    assert out.out == "dropped: web.yaml: its local changes are lost\n"
    assert (to / "web.yaml").read_text() == deployment(3)


def test_the_strategies_are_those_of_a_kptfile():
    assert [*KptUpdateStrategy] == [
        "resource-merge",
        "fast-forward",
        "force-delete-replace",
        "copy-merge",
    ]


def link(path):
    (path / "local" / "link.yaml").symlink_to("web.yaml")


def link_to_directory(path):
    (path / "upstream" / "below").symlink_to(path / "origin")


def pipe(path):
    os.mkfifo(path / "origin" / "pipe")


def full(path):
    put(path / "to", {"a": "a"})


def leftover(path):
    put(path / "local" / ".fanout-stage-x", {"old/a": "a"})


def bad_name(path):
    (path / "local" / os.fsdecode(b"\xff.txt")).write_bytes(b"x")


REFUSED = [
    ("a symbolic link", link, "local/link.yaml: is a symbolic link", ()),
    (
        "a symbolic link to a directory",
        link_to_directory,
        "upstream/below: is a symbolic link",
        (),
    ),
    ("a pipe", pipe, "origin/pipe: is a pipe", ()),
    ("a name that is not UTF-8", bad_name, "the name is not UTF-8", ()),
    ("a target that is not empty", full, "/to: the directory is not empty", ()),
    (
        "what a killed run left",
        leftover,
        "local/.fanout-stage-x: is left over from a killed run",
        (),
    ),
    (
        "two targets",
        lambda _: None,
        "--to: the output directory is missing",
        ("--in-place", "--to", "x"),
    ),
    ("a strategy that is none", lambda _: None, "'sideways'", ("--strategy", "sideways")),
    (
        "a fast-forward over edits",
        lambda _: None,
        "/local: the package cannot be fast-forwarded: web.yaml changed locally",
        ("--strategy", "fast-forward"),
    ),
]


# What is wrong is the command line and not what is in the directories.
USE = {"/to: the directory is not empty", "--to: the output directory is missing", "'sideways'"}


@pytest.mark.parametrize(
    ("spoil", "sentence", "options"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_refused_merge_writes_no_file(merge, tmp_path, spoil, sentence, options):
    for side in ("origin", "upstream", "local"):
        (tmp_path / side).mkdir()
    spoil(tmp_path)
    sides = BASE, {**BASE, "web.yaml": deployment(3)}, {**BASE, "web.yaml": deployment(4)}
    for name, files in zip(("origin", "upstream", "local"), sides, strict=True):
        put(tmp_path / name, files)
    before = sorted(tmp_path.rglob("*"))
    status, out, _ = merge(*sides, *options)
    assert status == (1 if sentence in USE else 2)
    assert sentence in out.err
    assert out.out == ""
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "local" / "web.yaml").read_text() == deployment(4)


def test_a_fault_is_named_with_the_side_that_has_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for side in ("origin", "upstream", "local"):
        Path(side).mkdir()
    link_to_directory(tmp_path)
    line = ["--origin", "origin", "--upstream", "upstream", "--local", "local", "--to", "to"]
    assert run_arguments(["package", "merge", *line]) == 2
    assert capsys.readouterr().err.startswith("upstream/below: is a symbolic link")


def test_a_directory_that_is_not_there_is_usage(capsys, tmp_path):
    existing = str(tmp_path)
    sides = ["--origin", existing, "--upstream", existing, "--local", f"{existing}/none"]
    assert run_arguments(["package", "merge", *sides, "--to", f"{existing}/to"]) == 1
    assert "does not exist" in capsys.readouterr().err


TEXTS = st.dictionaries(
    st.sampled_from(["a.yaml", "b.yaml", "deep/c.txt", "d", "run*"]),
    st.one_of(
        st.integers(1, 4).map(deployment),
        st.text("ab\r\n: -", max_size=12),
        st.binary(max_size=6),
    ),
)


@settings(max_examples=40, deadline=None)
@given(origin=TEXTS, local=TEXTS)
def test_an_unchanged_upstream_leaves_the_local_package_byte_for_byte(
    tmp_path_factory, origin, local
):
    top = tmp_path_factory.mktemp("law")
    sides = {"origin": origin, "upstream": origin, "local": local}
    words = [w for n, files in sides.items() for w in (f"--{n}", str(put(top / n, files)))]
    assert run_arguments(["package", "merge", *words, "--to", str(top / "to")]) == 0
    assert state(top / "to") == state(top / "local")
