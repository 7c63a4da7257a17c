"""Files that may be thrown away: whatever happens to one, it is as it was written or not there."""

import os
from pathlib import Path

import pytest

from fanout.disk_cache import read_cache_file, write_cache_file

CONTENT = b"what was found out\nat some cost\n"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file that was written, where a state directory may have gone away."""
    path = tmp_path / "state" / "forges" / "kept"
    write_cache_file(path, CONTENT, "1.0")
    return path


def test_a_written_cache_file_is_read(kept: Path):
    assert read_cache_file(kept, "1.0") == CONTENT


def test_a_cache_file_of_another_version_is_missing(kept: Path):
    assert read_cache_file(kept, "1.1") is None


DAMAGE = [
    ("a byte is another", lambda data: data[:-2] + b"?" + data[-1:]),
    ("its end is missing", lambda data: data[:-1]),
    ("something follows", lambda data: data + b"x"),
    ("its digest is missing", lambda data: CONTENT),
    ("it is empty", lambda data: b""),
    ("it is rubbish", lambda data: os.urandom(200)),
]


@pytest.mark.parametrize("made", [pytest.param(made, id=name) for name, made in DAMAGE])
def test_a_damaged_cache_file_is_missing(kept: Path, made):
    kept.write_bytes(made(kept.read_bytes()))
    assert read_cache_file(kept, "1.0") is None


def test_a_new_content_takes_the_place_of_the_old_one(kept: Path):
    write_cache_file(kept, b"news", "1.0")
    assert read_cache_file(kept, "1.0") == b"news"
    assert [path.name for path in kept.parent.iterdir()] == ["kept"]


def test_an_unwritable_directory_keeps_no_cache_file(tmp_path: Path):
    (tmp_path / "state").write_text("a file is in the way")
    write_cache_file(tmp_path / "state" / "kept", CONTENT, "1.0")
    assert read_cache_file(tmp_path / "state" / "kept", "1.0") is None


def test_a_directory_in_its_place_stays(tmp_path: Path):
    write_cache_file(tmp_path, CONTENT, "1.0")
    assert tmp_path.is_dir()
    assert read_cache_file(tmp_path, "1.0") is None
    assert not list(tmp_path.parent.glob("*.[0-9]*")), "no temporary file is left"
