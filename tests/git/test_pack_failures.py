"""Packs that were cut off, that lie, that nobody needs; servers that have rules of their own."""

import signal
import struct
import subprocess
import sys
import textwrap

import pytest

from fanout.errors import Denied, Unavailable


def packs_of(downstream):
    (mirror,) = downstream.store._mirrors.directory.glob("*.git")
    return mirror / "objects" / "pack"


# The kernel ends a process at once, without another word, whose file grows beyond its limit.
PROGRAM = """
    import random, resource, signal, sys
    from pathlib import Path
    from fanout.git.mirror_store import MirrorStore
    from fanout.plan.observation.repository_state import (
        CommitIdentity, FileCommit, RefListingRequest, Remote, RepositoryChange)
    from fanout.telemetry.metrics import Counters
    directory, url, limit = sys.argv[1:]
    store = MirrorStore(Path(directory), install="x", counters=Counters(), secrets=lambda *_: None)
    ref = "refs/heads/fanout/big"
    listing = store.list_refs([RefListingRequest(Remote(url), ("refs/heads/*",))])[url]
    chance = random.Random(1)
    put = {f"file-{number}": chance.randbytes(300_000) for number in range(10)}
    commit = FileCommit(ref=ref, parent="", content_by_path=put,
                        dropped_paths=(), message="m", timestamp=1700000000)
    change = RepositoryChange(remote=Remote(url), identity=CommitIdentity("a", "b"),
                              expected={ref: ""}, files=(commit,))
    if limit != "none":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    print(store.change([change])[url].refs[ref])
"""


def run(tmp_path, mirrors, bare, limit="none"):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    return subprocess.run(
        [sys.executable, str(program), str(tmp_path / mirrors), bare.url, limit],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("limit", ["100000", "1500000", "2900000"])
def test_a_process_killed_inside_a_pack_writes_the_same_ids_afterwards(
    tmp_path, bare, new_bare, limit
):
    other = new_bare("other")
    whole = run(tmp_path, "undisturbed", other).stdout
    killed = run(tmp_path, "mirrors", bare, limit)
    assert killed.returncode == -signal.SIGXFSZ
    (packs,) = (tmp_path / "mirrors").glob("*.git/objects/pack")
    assert [path.name for path in packs.glob("tmp_*")], "it was in the middle"
    assert set(bare.refs()) == {"refs/heads/main"}
    again = run(tmp_path, "mirrors", bare)
    assert (again.stdout, again.stderr) == (whole, "")
    assert not list(packs.glob("tmp_*"))
    assert bare.refs()["refs/heads/fanout/big"] == whole.strip()
    bare.check()


def of_another_pack(packs):
    first, second, *_ = sorted(packs.glob("*.idx"))
    content = first.read_bytes()
    _write(first, second.read_bytes())
    _write(second, content)


def with_offsets_exchanged(packs):
    """Each object is said to be where another one is."""
    for path in packs.glob("*.idx"):
        data = bytearray(path.read_bytes())
        (count,) = struct.unpack_from(">I", data, 8 + 255 * 4)
        at = 8 + 256 * 4 + count * 24
        offsets = struct.unpack_from(f">{count}I", data, at)
        struct.pack_into(f">{count}I", data, at, *reversed(offsets))
        _write(path, bytes(data))


def with_offsets_beyond_the_end(packs):
    for path in packs.glob("*.idx"):
        data = bytearray(path.read_bytes())
        (count,) = struct.unpack_from(">I", data, 8 + 255 * 4)
        struct.pack_into(f">{count}I", data, 8 + 256 * 4 + count * 24, *[1 << 30] * count)
        _write(path, bytes(data))


def with_other_names(packs):
    """The ids are one off: none of them is found, and some that are found are not there."""
    for path in packs.glob("*.idx"):
        data = bytearray(path.read_bytes())
        data[8 + 256 * 4 + 19] ^= 1
        _write(path, bytes(data))


def cut_off(packs):
    for path in packs.glob("*.idx"):
        _write(path, path.read_bytes()[:-30])


def emptied(packs):
    for path in packs.glob("*.idx"):
        _write(path, b"")


def _write(path, content):
    path.chmod(0o644)
    path.write_bytes(content)


LIES = [
    of_another_pack,
    with_offsets_exchanged,
    with_offsets_beyond_the_end,
    with_other_names,
    cut_off,
    emptied,
]


@pytest.mark.parametrize("damage", LIES, ids=lambda it: it.__name__.replace("_", " "))
def test_an_index_that_does_not_fit_its_pack_is_never_believed(
    downstream_of, make_store, new_bare, damage
):
    """The world comes out as it does where nothing was damaged, one failed pass later at most."""
    worlds = []
    for name in ("whole", "damaged"):
        bare = new_bare(name)
        bare.commit({"README.md": "hello\n"})
        machine = downstream_of(make_store(name), bare)
        machine.write({path: machine.package(path) for path in ("one", "two")})
        machine.write({"three": machine.package("three")})
        if name == "damaged":
            damage(packs_of(machine))
            # As another process finds it, which has nothing of it in memory.
            machine = downstream_of(make_store(name), bare)
        for _ in range(3):
            try:
                machine.publish(["one", "two"])
                break
            except Unavailable:
                continue
        machine.write({"three": machine.package("three, changed")})
        worlds.append(bare.refs())
        bare.check()
    assert worlds[0] == worlds[1]


SERVERS = [
    ("keeps every pack", {"receive.unpackLimit": "1"}),
    ("unpacks everything", {"receive.unpackLimit": "1000000"}),
    ("checks every object", {"transfer.fsckObjects": "true", "receive.unpackLimit": "1"}),
    ("checks what it unpacks", {"receive.fsckObjects": "true", "receive.unpackLimit": "1000000"}),
    ("takes no rewritten branches", {"receive.denyNonFastForwards": "true"}),
    ("lets nobody remove anything", {"receive.denyDeletes": "true"}),
    ("compresses everything", {"core.compression": "9", "pack.window": "50"}),
]


@pytest.mark.parametrize("rules", [row[1] for row in SERVERS], ids=[row[0] for row in SERVERS])
def test_every_server_ends_up_with_the_same(downstream_of, make_store, new_bare, rules):
    worlds = []
    for name, settings in (("plain", {}), ("strict", rules)):
        bare = new_bare(name)
        bare.commit({f"wide/p{number}/f": f"{number}\n" for number in range(80)})
        for key, value in settings.items():
            bare.git("config", key, value)
        machine = downstream_of(make_store(name), bare)
        paths = [f"wide/new-{number}" for number in range(20)]
        machine.write({path: machine.package(path, 5) for path in paths})
        machine.publish(paths[:17])
        worlds.append(bare.refs())
        bare.check()
    remaining = set(paths[:17]) if "receive.denyDeletes" in rules else set()
    added = worlds[1].keys() - worlds[0].keys()
    assert added == {machine.ref(path) for path in remaining}
    assert {ref: worlds[1][ref] for ref in worlds[0]} == worlds[0]


def test_a_pack_whose_refs_never_came_to_be_is_harmless(downstream):
    packages = {"one": downstream.package("one")}
    downstream.bare.hook("pre-receive", "exit 1")
    for _ in range(2):
        with pytest.raises(Denied):
            downstream.write(packages)
    assert set(downstream.bare.refs()) == {downstream.main}
    remaining = {path.name for path in packs_of(downstream).iterdir()}
    (downstream.bare.path / "hooks" / "pre-receive").unlink()
    downstream.write(packages)
    assert {path.name for path in packs_of(downstream).iterdir()} == remaining
    downstream.publish(["one"])
    downstream.bare.check()
