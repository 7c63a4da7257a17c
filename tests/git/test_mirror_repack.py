"""A mirror that is used every minute stays quick and small, and costs little."""

import subprocess
from functools import partial

import pytest

from fanout.git.mirror import repack_if_due


def mirror_of(downstream):
    return next(downstream.store._mirrors.directory.glob("*.git"))


def objects_in(mirror):
    """How many objects there are, reachable or not; twice where they are in two packs."""
    shown = subprocess.run(
        ["git", "count-objects", "-v"], cwd=mirror, capture_output=True, text=True, check=True
    ).stdout
    counts = dict(line.split(": ") for line in shown.splitlines())
    return int(counts["in-pack"]) + int(counts["count"])


def test_many_packs_become_few_and_nothing_is_lost(downstream):
    paths = [f"p{number}" for number in range(6)]
    for path in paths:
        downstream.write({path: downstream.package(path)})
    mirror = mirror_of(downstream)
    repack_if_due(downstream.store._git, mirror, max_packs=3)
    assert len(list((mirror / "objects" / "pack").glob("*.pack"))) <= 3
    downstream.publish(paths)
    downstream.bare.check()


def test_superseded_drafts_do_not_stay_for_ever(downstream, counters):
    """One draft is written again and again; without the vendor branch nothing else remains."""
    mirror = None
    sizes, repacks = [], 0
    for round_ in range(40):
        downstream.write({"p": downstream.package(f"round {round_}", 9)}, vendor=None)
        mirror = mirror_of(downstream)
        counters.reset()
        repack_if_due(downstream.store._git, mirror, max_packs=5)
        repacks += counters.read()["git_processes"]
        sizes.append(objects_in(mirror))
    assert max(sizes[20:]) <= max(sizes[:20])
    assert repacks <= 40 / 4
    ref = downstream.ref("p")
    assert downstream.look().refs[ref] == downstream.bare.refs()[ref]


def test_a_large_mirror_is_not_written_anew_for_small_changes(downstream):
    large = {f"file-{number}": f"{number}\n" for number in range(400)}
    downstream.write({"large": large})
    mirror = mirror_of(downstream)
    packs = mirror / "objects" / "pack"
    (biggest,) = sorted(packs.glob("*.pack"), key=lambda it: it.stat().st_size)[-1:]
    for number in range(20):
        downstream.write({"p": downstream.package(f"round {number}")}, vendor=None)
        repack_if_due(downstream.store._git, mirror, max_packs=5)
        assert biggest.exists()
    assert len(list(packs.glob("*.pack"))) <= 6


@pytest.mark.parametrize("packs", [0, 1, 5])
def test_few_packs_are_left_alone(downstream, counters, packs):
    downstream.look()
    for number in range(packs):
        downstream.write({"p": downstream.package(f"round {number}")}, vendor=None)
    counters.reset()
    repack_if_due(downstream.store._git, mirror_of(downstream))
    assert counters.read()["git_processes"] == 0


def test_a_mirror_that_is_only_read_is_repacked_too(downstream, monkeypatch):
    """Each fetch leaves a pack."""
    monkeypatch.setattr(
        "fanout.git.remote_listing.repack_if_due", partial(repack_if_due, max_packs=4)
    )
    for number in range(12):
        head = downstream.bare.commit({"README.md": f"{number}\n"})
        assert downstream.look().refs[downstream.main] == head
    assert len(list((mirror_of(downstream) / "objects" / "pack").glob("*.pack"))) <= 5
    with downstream.store.reader(downstream.bare.remote) as reader:
        assert reader.commit(head).parents
