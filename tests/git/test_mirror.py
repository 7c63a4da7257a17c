"""A mirror is a cache: killed, filled up, damaged or deleted, it never makes a pass wrong."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from threading import Timer

import pytest

from fanout.errors import Unavailable
from fanout.git.mirror import MirrorDirectory
from fanout.git.mirror_refs import LISTED_PREFIX, OUTGOING_PREFIX, read_listed_refs, read_refs


def mirror_of(downstream):
    return next(downstream.store._mirrors.directory.glob("*.git"))


def truncate_packs(mirror):
    for path in (mirror / "objects" / "pack").iterdir():
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:40])


def scramble_packs(mirror):
    for path in (mirror / "objects" / "pack").glob("*.pack"):
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        data[20:-20] = bytes(len(data) - 40)
        path.write_bytes(data)


def remove_packs(mirror):
    shutil.rmtree(mirror / "objects" / "pack")
    (mirror / "objects" / "pack").mkdir()


def garbage_in(name):
    def damage(mirror):
        (mirror / name).write_text("\0garbage <<<<\n")

    return damage


DAMAGES = [
    ("deleted", shutil.rmtree),
    ("emptied", lambda mirror: [shutil.rmtree(mirror), mirror.mkdir()]),
    ("without its HEAD", lambda mirror: (mirror / "HEAD").unlink()),
    ("without its packs", remove_packs),
    ("with packs that were cut off", truncate_packs),
    ("with garbage in its packs", scramble_packs),
    ("with garbage for refs", garbage_in("packed-refs")),
    ("with garbage for a configuration", garbage_in("config")),
    ("with garbage for a HEAD", garbage_in("HEAD")),
    ("a file", lambda mirror: [shutil.rmtree(mirror), mirror.write_text("x")]),
]


@pytest.mark.parametrize("damage", [row[1] for row in DAMAGES], ids=[row[0] for row in DAMAGES])
def test_a_damaged_mirror_costs_one_more_fetch_between_passes(downstream, damage):
    downstream.write({"one": downstream.package("one")})
    damage(mirror_of(downstream))
    # Reading may find the damage first; the pass after it is whole again.
    for _ in range(2):
        try:
            downstream.publish(["one"])
            break
        except Unavailable:
            continue
    assert "refs/tags/one/v1" in downstream.bare.refs()
    assert downstream.ref("one") not in downstream.bare.refs()
    downstream.bare.check()


@pytest.mark.parametrize("damage", [row[1] for row in DAMAGES], ids=[row[0] for row in DAMAGES])
def test_a_mirror_damaged_between_listing_and_change_is_made_again(downstream, damage):
    head = downstream.look().refs[downstream.main]
    package = downstream.package("one")
    draft = downstream.draft("one", package, head)
    damage(mirror_of(downstream))
    written = downstream.change(
        expected={draft.ref: ""}, blobs=downstream.blobs(package), drafts=(draft,)
    )
    assert downstream.bare.refs()[draft.ref] == written.refs[draft.ref]
    downstream.bare.check()


def test_leftovers_of_a_killed_process_are_removed(downstream):
    downstream.write({"one": downstream.package("one")})
    mirror = mirror_of(downstream)
    head = downstream.bare.refs()[downstream.main]
    leftovers = [
        mirror / "packed-refs.lock",
        mirror / "config.lock",
        mirror / "refs/fanout/scratch.lock",
        mirror / "objects/pack/tmp_pack_abc",
        mirror / f"objects/pack/pack-{'1' * 40}.pack",
        mirror / f"objects/pack/pack-{'2' * 40}.idx",
        mirror / f"objects/pack/pack-{'3' * 40}.keep",
        mirror / "fast_import_crash_1",
    ]
    for path in leftovers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for name in (
        OUTGOING_PREFIX + "heads/evil",
        OUTGOING_PREFIX + "tags/evil/v1",
        "refs/fanout/keep/evil",
        LISTED_PREFIX + "x/y",
    ):
        path = mirror / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{head}\n")
    before = set(downstream.bare.refs())
    downstream.write({"two": downstream.package("two")})
    assert set(downstream.bare.refs()) == before | {downstream.ref("two")}
    assert not any(path.exists() for path in leftovers)
    assert read_listed_refs(mirror) == downstream.bare.refs()
    assert set(read_refs(mirror, "refs/fanout/")) == {
        f"seen/{ref.removeprefix('refs/')}" for ref in downstream.bare.refs()
    }


def test_leftovers_of_a_half_made_or_dropped_mirror_are_removed(downstream):
    downstream.look()
    mirror = mirror_of(downstream)
    mirror.rename(mirror.with_suffix(".dropped"))
    making = mirror.with_suffix(".making")
    making.mkdir()
    (making / "HEAD").write_text("half")
    downstream.write({"one": downstream.package("one")})
    assert {path.suffix for path in mirror.parent.glob(f"{mirror.stem}.*")} == {".git", ".lock"}
    assert read_listed_refs(mirror) == downstream.bare.refs()


def test_refs_left_by_a_killed_push_are_never_pushed_by_the_next(downstream):
    """Without a look in between, too."""
    refs = downstream.look().refs
    path = mirror_of(downstream) / OUTGOING_PREFIX / "heads" / "left"
    path.parent.mkdir(parents=True)
    path.write_text(f"{refs[downstream.main]}\n")
    package = downstream.package("one")
    draft = downstream.draft("one", package, refs[downstream.main])
    downstream.change(expected={draft.ref: ""}, blobs=downstream.blobs(package), drafts=(draft,))
    assert set(downstream.bare.refs()) == {downstream.main, draft.ref}


def test_settings_smuggled_into_a_mirror_are_removed(downstream, tmp_path):
    downstream.look()
    mirror = mirror_of(downstream)
    config = mirror / "config"
    proof = tmp_path / "proof"
    config.write_text(
        config.read_text()
        + f"[core]\n\tsshCommand = touch {proof}\n\tfsmonitor = touch {proof}\n"
        + "\thooksPath = hooks\n"
        + f'[url "ext::touch {proof}"]\n\tinsteadOf = {downstream.bare.url}\n'
    )
    hook = mirror / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
    hook.chmod(0o755)
    downstream.write({"one": downstream.package("one")})
    assert not proof.exists()
    assert "insteadOf" not in config.read_text()


def test_two_stores_on_one_directory_take_turns(downstream_of, make_store, bare):
    """Threads here, as processes would: the lock belongs to the open file."""
    stores = [downstream_of(make_store("shared"), bare) for _ in range(2)]
    stores[0].write({"one": stores[0].package("one")})
    stores[1].write({"two": stores[1].package("two")})
    stores[0].publish(["one", "two"])
    assert [ref for ref in bare.refs() if ref.startswith("refs/tags/")] == [
        "refs/tags/one/v1",
        "refs/tags/two/v1",
    ]


HOLDER = """
    import sys, time
    from pathlib import Path
    from fanout.git.mirror import file_lock
    with file_lock(Path(sys.argv[1]), 1.0):
        print("held", flush=True)
        sys.stdin.read()
"""


@contextmanager
def held_by_another(lock):
    """Another process works on the mirror, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.stdin.close()


def test_a_mirror_in_use_is_waited_for_but_not_for_ever(make_store, downstream_of, bare, tmp_path):
    machine = downstream_of(make_store("shared"), bare)
    machine.look()
    [mirror] = (tmp_path / "shared").glob("*.git")
    lock = mirror.with_suffix(".lock")
    machine.store._mirrors = MirrorDirectory(tmp_path / "shared", lock_timeout=0.05)
    with held_by_another(lock) as other, pytest.raises(Unavailable) as caught:
        machine.look()
    assert caught.value.reason == "MirrorBusy"
    assert f"process {other.pid} has held the mirror" in str(caught.value)
    assert machine.look().refs == bare.refs()


def test_a_process_that_waits_for_a_mirror_continues_when_it_is_free(
    make_store, downstream_of, bare, tmp_path
):
    machine = downstream_of(make_store("shared"), bare)
    machine.look()
    lock = next((tmp_path / "shared").glob("*.lock"))
    with held_by_another(lock) as other:
        Timer(0.1, other.stdin.close).start()
        assert machine.look().refs == bare.refs()


def test_a_process_killed_with_a_mirror_in_its_hands_holds_up_nobody(
    make_store, downstream_of, bare, tmp_path
):
    machine = downstream_of(make_store("shared"), bare)
    machine.look()
    machine.store._mirrors = MirrorDirectory(tmp_path / "shared", lock_timeout=0.05)
    with held_by_another(next((tmp_path / "shared").glob("*.lock"))) as other:
        other.kill()
        other.wait()
        assert machine.look().refs == bare.refs()


PROGRAM = """
    import sys
    from pathlib import Path
    from fanout.git.mirror_store import MirrorStore
    from fanout.plan.observation.repository_state import (
        FileCommit, CommitIdentity, RefListingRequest, Remote, RepositoryChange)
    from fanout.telemetry.metrics import Counters
    directory, url, name = sys.argv[1:]
    store = MirrorStore(Path(directory), install="x", counters=Counters(), secrets=lambda *_: None)
    for number in range(5):
        ref = f"refs/heads/fanout/{name}"
        remote = Remote(url)
        request = RefListingRequest(remote, ("refs/heads/*",))
        parent = store.list_refs([request])[url].refs.get(ref, "")
        commit = FileCommit(ref=ref, parent=parent, content_by_path={f"{number}": b"x" * 1000},
                            dropped_paths=(), message="m", timestamp=1700000000)
        change = RepositoryChange(remote=remote, identity=CommitIdentity("a", "b"),
                                  expected={ref: parent}, files=(commit,))
        print(store.change([change])[url], flush=True)
"""


def start(tmp_path, url, name):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    return subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "shared"), url, name],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def test_two_processes_write_through_one_mirror(tmp_path, bare):
    processes = [start(tmp_path, bare.url, name) for name in ("a", "b")]
    for process in processes:
        lines = process.communicate()[0].decode().splitlines()
        assert [line.startswith("PushedChange(") for line in lines] == [True] * 5
    for name in ("a", "b"):
        assert set(bare.files(f"fanout/{name}")) == set("01234")
    bare.check()


KILLS = [(0.0, True), (0.03, False), (0.06, True), (0.1, False)]


@pytest.mark.parametrize(("after", "children"), KILLS)
def test_a_killed_process_leaves_nothing_that_stops_the_next(tmp_path, bare, after, children):
    """With its git processes or without them, which then go on and end when they like."""
    killed = start(tmp_path, bare.url, "a")
    killed.stdout.readline()
    time.sleep(after)
    (os.killpg if children else os.kill)(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    lines = start(tmp_path, bare.url, "a").communicate()[0].decode().splitlines()
    # A git process that lived on may win one race; nothing is wrong after it.
    assert sum(line.startswith("PushedChange(") for line in lines) >= (5 if children else 4)
    bare.check()


def test_the_directory_is_its_owners_alone(downstream):
    downstream.look()
    assert not downstream.store._mirrors.directory.stat().st_mode & 0o077
