"""Every file of a mirror, corrupted in every way: the mirror is made again by itself."""

import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from diagonal import choose

from fanout.errors import Unavailable
from fanout.git.remote_access import RemoteAccess, parse_address, provide_credentials
from fanout.ports import Credentials

# What git itself may leave in a repository, and fanout does not write.

EXTRAS = {
    "FETCH_HEAD": "0" * 40 + "\t\tbranch 'main' of /somewhere\n",
    "ORIG_HEAD": "0" * 40 + "\n",
    "objects/info/packs": "P pack-0.pack\n",
}


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return bytes(len(data) or 16)


def garbled(data: bytes) -> bytes:
    return random.Random(len(data)).randbytes(len(data) or 16)


def mirror_of(downstream) -> Path:
    return downstream.store._mirrors.path_of(parse_address(downstream.bare.url, ("file",)))


@pytest.fixture
def whole(downstream):
    """A mirror with drafts, publications, several packs, and all that git may put beside them."""
    downstream.write({"one": downstream.package("one")})
    downstream.publish(["one"])
    downstream.write({"two": downstream.package("two")})
    downstream.look()
    mirror = mirror_of(downstream)
    for words in (["multi-pack-index", "write"], ["commit-graph", "write", "--reachable"]):
        subprocess.run(["git", *words], cwd=mirror, check=True, capture_output=True)
    for name, text in EXTRAS.items():
        (mirror / name).parent.mkdir(exist_ok=True)
        (mirror / name).write_text(text)
    (mirror / "shallow").write_text("")
    return downstream


def files(directory: Path) -> list[Path]:
    return sorted(it for it in directory.rglob("*") if it.is_file())


def passes(downstream, draft: str) -> None:
    """What a pass does in a fresh process: look, read everything, write.

    Reading may find the damage first; the pass after it is whole again.
    """
    for _ in range(2):
        refs = downstream.look().refs
        try:
            with downstream.store.reader(downstream.bare.remote) as reader:
                for oid in refs.values():
                    for entry in reader.entries(reader.commit(oid).tree).values():
                        reader.blob(entry.oid)
        except Unavailable:
            continue
        downstream.write({draft: downstream.package(draft)})
        return
    raise AssertionError("the mirror is not made again")


WAYS = [cut, zeroed, garbled]


@pytest.mark.diagonal
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_mirror_with_any_file_corrupted_is_made_again(
    whole, downstream_of, make_store, tmp_path, way
):
    directory, kept = tmp_path / "mirrors", tmp_path / "kept"
    shutil.copytree(directory, kept)
    for number, file in choose(enumerate(files(kept)), WAYS.index(way)):
        shutil.rmtree(directory)
        shutil.copytree(kept, directory)
        target = directory / file.relative_to(kept)
        target.chmod(0o600)
        target.write_bytes(way(target.read_bytes()))
        passes(downstream_of(make_store(), whole.bare), f"new{number}")
    whole.bare.check()


def test_a_damaged_remote_is_left_alone_and_reported(whole, downstream_of, make_store):
    """On our own disks it reads as if the mirror were ill; the mirror alone is made again."""
    shutil.rmtree(mirror_of(whole))
    before = files(whole.bare.path)
    (whole.bare.path / "packed-refs").write_bytes(b"\0" * 80)
    with pytest.raises(Unavailable) as caught:
        downstream_of(make_store(), whole.bare).look()
    assert caught.value.reason == "RemoteFailed"
    assert {*before} <= {*files(whole.bare.path)}


def test_keys_of_a_killed_process_go_and_those_in_use_stay(make_store, tmp_path):
    access = RemoteAccess(
        parse_address("git@host:x.git", {"ssh"}), Credentials(private_key="-----BEGIN KEY")
    )
    directory = tmp_path / "mirrors"
    make_store()
    script = f"""
        import os, signal
        from pathlib import Path
        from fanout.git.remote_access import parse_address
        from fanout.git.remote_access import RemoteAccess, provide_credentials
        from fanout.ports import Credentials
        key = Credentials(private_key="-----BEGIN KEY")
        access = RemoteAccess(parse_address("git@host:x.git", {{"ssh"}}), key)
        with provide_credentials(access, Path({str(directory)!r}), Path("askpass")):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    [key] = directory.glob("secret-*/key")
    with provide_credentials(access, directory, directory / "askpass"):
        make_store()
        [used] = directory.glob("secret-*/key")
        assert used != key
    assert not list(directory.glob("secret-*"))
