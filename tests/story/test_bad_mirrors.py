"""The private mirrors are a cache: filled up, deleted, damaged or half made, nothing is lost."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet import Fleet

from fanout.git.git_errors import DISK_FULL, MIRRORS_REMEDY


def mirrors(fleet: Fleet) -> Path:
    return fleet.root / fleet.state / "mirrors"


def mirror_of(fleet: Fleet, name: str) -> Path:
    url = str(fleet.repos[name].path)
    return next(it.parent for it in mirrors(fleet).glob("*/config") if url in it.read_text())


def delete(mirror: Path) -> None:
    shutil.rmtree(mirror)


def delete_packs(mirror: Path) -> None:
    shutil.rmtree(mirror / "objects")


def spoil_packs(mirror: Path) -> None:
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o600)
        data = bytearray(pack.read_bytes())
        chance = random.Random(7)
        for _ in range(200):
            data[chance.randrange(12, len(data))] ^= 0xFF
        pack.write_bytes(bytes(data))


def cut_packs(mirror: Path) -> None:
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:40])


def lock_refs(mirror: Path) -> None:
    """As git leaves it when it is killed between writing and renaming."""
    (mirror / "packed-refs.lock").write_text("half a li")
    (mirror / "config.lock").write_text("")
    (mirror / "objects" / "pack" / "tmp_pack_abc").write_bytes(b"PACK")


def spoil_refs(mirror: Path) -> None:
    (mirror / "packed-refs").write_text("# pack-refs with: sorted \nnonsense\n")


def empty_head(mirror: Path) -> None:
    (mirror / "HEAD").write_bytes(b"")


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    ("deleted", delete),
    ("without its objects", delete_packs),
    ("with spoiled packs", spoil_packs),
    ("with packs cut short", cut_packs),
    ("with the locks of a killed git", lock_refs),
    ("with spoiled refs", spoil_refs),
    ("with an empty HEAD", empty_head),
]


@pytest.mark.parametrize("damage", [row[1] for row in DAMAGES], ids=[row[0] for row in DAMAGES])
def test_a_mirror_is_made_again(fleet: Fleet, damage: Callable[[Path], None]):
    """Damaged once before drafts are written and once before they are published."""
    for name in fleet.repos:
        fleet.sweep("--drafts-only")
        damage(mirror_of(fleet, name))
    fleet.release("v2")
    swept = fleet.sweep()
    assert swept.code == 0, swept.err
    for name in fleet.repos:
        damage(mirror_of(fleet, name))
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"
    for repo in fleet.repos.values():
        repo.fsck()


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return bytes(len(data) or 16)


def garbled(data: bytes) -> bytes:
    return random.Random(len(data)).randbytes(len(data) or 16)


@pytest.mark.parametrize("way", [cut, zeroed, garbled], ids=lambda way: way.__name__)
def test_the_next_sweep_succeeds_whatever_became_of_all_that_is_kept(
    fleet: Fleet, way: Callable[[bytes], bytes]
):
    """Mirrors, the records' among them, and every cache and lock file."""
    fleet.settle()
    fleet.report("dev", "v1")
    fleet.settle()
    state = fleet.root / fleet.state
    kept = [it for it in state.rglob("*") if it.is_file() and "records.git" not in it.parts]
    assert {"packed-refs", "askpass", "publish-sweep.json"} <= {it.name for it in kept}
    for file in kept:
        file.chmod(0o600)
        file.write_bytes(way(file.read_bytes()))
    fleet.release("v2")
    swept = fleet.sweep()
    assert (swept.code, swept.err) == (0, "")
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"


@pytest.fixture
def tiny(fleet: Fleet) -> Iterator[Path]:
    """A disk of its own for the mirrors, as small as a tmpfs can be made."""
    directory = mirrors(fleet)
    directory.mkdir(parents=True)
    line = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(line, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def test_a_full_disk_is_reported_and_the_next_pass_with_room_goes_on(fleet: Fleet, tiny: Path):
    (tiny / "ballast").write_bytes(b"x" * (1900 << 10))
    before = fleet.refs()
    swept = fleet.sweep()
    assert swept.code in (1, 3)
    assert DISK_FULL in swept.err
    assert fleet.refs() == before
    (tiny / "ballast").unlink()
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v1"


def test_a_disk_that_cannot_be_written_stops_the_pass(fleet: Fleet, tiny: Path):
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    swept = fleet.sweep()
    assert swept.code == 1
    assert MIRRORS_REMEDY in swept.err


def test_a_file_where_the_mirrors_go_stops_the_pass(fleet: Fleet):
    mirrors(fleet).parent.mkdir()
    mirrors(fleet).write_text("a file\n")
    swept = fleet.sweep()
    assert swept.code == 1
    assert f"[Errno 17] File exists: '{mirrors(fleet)}'" in swept.err
