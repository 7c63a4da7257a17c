"""A full disk below the mirrors: nothing is pushed, it is said, and with room all goes on."""

import shutil
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import os, random, sys
    from pathlib import Path
    from fanout.errors import FanoutError
    from fanout.git.mirror_store import MirrorStore
    from fanout.plan.observation.repository_state import (
        CommitIdentity, FileCommit, RefListingRequest, Remote, RepositoryChange)
    from fanout.telemetry.metrics import Counters
    directory, url = Path(sys.argv[1]), sys.argv[2]
    store = MirrorStore(directory, install="x", counters=Counters(), secrets=lambda *_: None)
    for size in map(int, sys.argv[3:]):
        ref = f"refs/heads/fanout/{size}"
        remote = Remote(url)
        listing = store.list_refs([RefListingRequest(remote, ("refs/heads/fanout/*",))])[url]
        data = random.Random(size).randbytes(size)
        commit = FileCommit(ref=ref, parent="", content_by_path={"big": data},
                            dropped_paths=(), message="m", timestamp=1700000000)
        change = RepositoryChange(remote=remote, identity=CommitIdentity("a", "b"),
                                  expected={ref: ""}, files=(commit,))
        answer = store.change([change])[url]
        print(answer.reason if isinstance(answer, FanoutError) else "written")
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs a private mount")
def test_a_full_disk_is_reported_and_goes_by(tmp_path, bare):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    mirrors = tmp_path / "mirrors"
    mirrors.mkdir()
    run = f"{sys.executable} {program} {mirrors} {bare.url}"
    script = f"""
        mount -t tmpfs -o size=2m,mode=700 tmpfs {mirrors} || exit 77
        {run} 1000 2500000 3000000 2000
        mount -o remount,size=64m {mirrors}
        {run} 3000000
    """
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount")
    answers = ["written", "DiskFull", "DiskFull", "written", "written"]
    assert done.stdout.split() == answers, done.stderr
    assert {ref for ref in bare.refs() if "fanout" in ref} == {
        f"refs/heads/fanout/{size}" for size in (1000, 2000, 3000000)
    }
    bare.check()
