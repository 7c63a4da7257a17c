"""Records that are too many or too large are told, and take no memory."""

import pygit2
import pytest
from hostile import Hostile

from fanout.cluster.record_files import PolicyStateBranch, read_branch
from fanout.git.mirror_reader import MirrorReader
from fanout.package.package_limits import SizeLimits
from fanout.plan.records.policy_records import RecordsKey

KEY = RecordsKey("default", "monitoring")


@pytest.fixture
def hostile(tmp_path):
    pygit2.init_repository(str(tmp_path / "x.git"), bare=True)
    return Hostile(tmp_path / "x.git")


def unreadable(hostile, tree):
    head = hostile.commit("refs/heads/records", "records", tree)
    # The limits of packages are not those of records, however low somebody sets them.
    reader = MirrorReader(hostile.repo, SizeLimits(files=1, size=1, file_size=1, depth=1))
    return read_branch(reader, head, KEY, PolicyStateBranch()).state.unreadable


def test_directories_without_end_are_no_records(hostile):
    (sentence,) = unreadable(hostile, hostile.doubling())
    assert "more than 3 directories" in sentence
    assert "packageLimits" not in sentence


def test_a_large_file_is_one_unreadable_record(hostile):
    name = "20260101t000000z-0123456789ab.json"
    (sentence,) = unreadable(hostile, hostile.tree({name: hostile.blob(b" " * (17 << 20))}))
    assert f"records/{name} has more than 16,777,216 bytes" in sentence


def test_low_limits_of_packages_leave_records_readable(hostile):
    names = (f"20260101t00000{number}z-0123456789ab.json" for number in range(3))
    sentences = unreadable(hostile, hostile.tree(dict.fromkeys(names, hostile.kptfile)))
    assert len(sentences) == 3
    assert all("is not JSON" in sentence for sentence in sentences)
