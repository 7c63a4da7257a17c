"""A records repository on disk, and processes that use it, each with mirrors of its own."""

import shutil
import subprocess
from itertools import count

import pytest

from fanout.cluster.policy_state_store import PolicyStateStore
from fanout.cluster.records_repository import LocalRepository, RecordsRepository
from fanout.cluster.sweep_log_store import SweepLogStore
from fanout.git.mirror import create_bare
from fanout.git.mirror_store import MirrorStore
from fanout.plan.observation.repository_state import CommitIdentity, Remote
from fanout.telemetry.metrics import Counters

FANOUT = CommitIdentity("fanout", "fanout@localhost")


class World:
    """The bare repository, plain git on it, and fresh processes."""

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / "records.git"
        self.counters = Counters()
        self._number = count(1)
        create_bare(self.path)

    def process(self, install="default"):
        """Return a store as in a fresh process: no mirror, nothing in memory."""
        return PolicyStateStore(self.repository(install), install, FANOUT)

    def sweep_log(self, install="default"):
        """Return a sweep log as in a fresh process."""
        return SweepLogStore(self.repository(install), install, FANOUT)

    def repository(self, install="default"):
        store = MirrorStore(
            self.directory / f"mirrors-{next(self._number)}",
            install=install,
            secrets=lambda *_: None,
            counters=self.counters,
        )
        local = LocalRepository(self.path, create_bare)
        return RecordsRepository(store, Remote(str(self.path)), self.counters, local)

    def remove(self):
        shutil.rmtree(self.path)

    def git(self, *arguments, data=None):
        command = ["git", "-C", str(self.path), *arguments]
        return (
            subprocess.run(command, check=True, capture_output=True, input=data)
            .stdout.decode()
            .strip()
        )

    def head(self, ref):
        return self.git("for-each-ref", "--format=%(objectname)", ref)

    def commit(self, ref, files, by, at, message="edit"):
        """A person's commit: files by path; None removes one, a pair is (mode, content)."""
        who = f"{by.name} <{by.email}> {int(at.timestamp())} +0000"
        head = f"commit {ref}\ncommitter {who}\ndata {len(message)}\n{message}\n"
        lines = [head.encode()]
        if self.head(ref):
            lines.append(f"from {self.head(ref)}\n".encode())
        for path, content in files.items():
            if content is None:
                lines.append(f"D {path}\n".encode())
                continue
            mode, data = content if isinstance(content, tuple) else ("100644", content)
            lines.append(f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        self.git("fast-import", "--quiet", data=b"".join(lines))


@pytest.fixture
def remote(tmp_path):
    return World(tmp_path)
