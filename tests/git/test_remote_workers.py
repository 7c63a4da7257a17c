"""Many repositories at once: who is slow, dead or interrupted holds up nobody else."""

import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from http_git import serving
from interrupting import start_interruptible

from fanout.errors import Conflict, ErrorLocation, FanoutError, Unavailable
from fanout.git import remote_workers
from fanout.git.remote_workers import (
    LOCAL_CONCURRENCY,
    RemoteTimeout,
    RemoteWorkers,
    waiting_for_remote,
)
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
)

KEEP = ("refs/heads/*",)
NAMES = [f"r{number}" for number in range(8)]


@pytest.fixture
def remotes(new_bare):
    """Eight repositories, each with a commit of its own."""
    bares = {name: new_bare(name) for name in NAMES}
    for name, bare in bares.items():
        bare.commit({"name": f"{name}\n"})
    return bares


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def nothing_but_git(tmp_path, monkeypatch):
    """As in a small container: there is no ps and no pgrep to find processes by."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(programs))


def started_for(url):
    """Processes that were started with this URL in their arguments."""
    names = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            names += [path.parent.name] if url.encode() in path.read_bytes() else []
        except OSError:
            continue
    return names


def write(url, expected=""):
    commit = FileCommit(
        ref="refs/heads/written",
        parent=expected,
        content_by_path={"f": b"x"},
        dropped_paths=(),
        message="m",
        timestamp=1_700_000_000,
    )
    who = CommitIdentity("fanout", "fanout@localhost")
    return RepositoryChange(
        remote=Remote(url), identity=who, expected={commit.ref: expected}, files=(commit,)
    )


def test_a_host_that_never_answers_is_reported_and_the_others_are_listed(
    remotes, server, make_store, nothing_but_git
):
    dead = server.url("r3.git")
    server.silence("r3.git")
    looks = [RefListingRequest(Remote(server.url(f"{name}.git")), KEEP) for name in NAMES]
    answers = make_store(concurrency=2, timeout=3).list_refs(looks)
    failure = answers.pop(dead)
    assert isinstance(failure, Unavailable)
    assert (failure.reason, failure.where.object) == ("GitTimeout", dead)
    assert failure.problem == "git did not finish within 3 s"
    assert answers == {
        server.url(f"{name}.git"): RefListing(bare.refs())
        for name, bare in remotes.items()
        if name != "r3"
    }
    assert started_for(dead) == []


def test_a_host_that_takes_no_push_is_reported_and_the_others_are_written(
    remotes, server, make_store, nothing_but_git
):
    urls = {name: server.url(f"{name}.git") for name in NAMES}
    store = make_store(concurrency=2, timeout=3)
    store.list_refs([RefListingRequest(Remote(url), KEEP) for url in urls.values()])
    server.silence("r0.git/git-receive-pack")
    answers = store.change([write(url) for url in urls.values()])
    failed = {name for name, url in urls.items() if isinstance(answers[url], FanoutError)}
    assert failed == {"r0"}
    assert answers[urls["r0"]].reason == "GitTimeout"
    assert [name for name, bare in remotes.items() if "refs/heads/written" in bare.refs()] == [
        name for name in NAMES if name != "r0"
    ]
    assert started_for(urls["r0"]) == []


def test_a_push_whose_response_was_lost_is_seen_by_the_next_pass(remotes, server, make_store):
    """The server takes the push and falls silent: the answer is lost, not the work."""
    url = server.url("r0.git")
    store = make_store(timeout=3)
    store.list_refs([RefListingRequest(Remote(url), KEEP)])
    taken = threading.Event()

    def answer_nothing(path):
        if path.endswith("git-receive-pack") and "?" not in path:
            remotes["r0"].git("update-ref", "refs/heads/written", "refs/heads/main")
            taken.set()
            server.closing.wait()

    server.before = answer_nothing
    assert isinstance(store.change([write(url)])[url], Unavailable)
    assert taken.is_set()
    assert isinstance(store.change([write(url)])[url], FanoutError)
    server.before = lambda _: None
    assert store.list_refs([RefListingRequest(Remote(url), KEEP)])[url] == RefListing(
        remotes["r0"].refs()
    )
    assert isinstance(store.change([write(url)])[url], Conflict)


def test_remote_repositories_are_asked_all_at_once(remotes, server, make_store):
    """Nobody is answered before all have asked."""
    together = threading.Barrier(len(NAMES))
    server.before = lambda path: "?service=" in path and together.wait(30)
    looks = [RefListingRequest(Remote(server.url(f"{name}.git")), KEEP) for name in NAMES]
    answers = make_store(concurrency=len(NAMES)).list_refs(looks)
    assert [answer.refs for answer in answers.values()] == [it.refs() for it in remotes.values()]


def test_local_repositories_are_not_delayed_by_dead_hosts(remotes, server, make_store):
    """As many dead hosts as there are workers; the repositories on disk are listed meanwhile."""
    listed = threading.Event()
    server.before = lambda _: listed.wait(30)
    far = [RefListingRequest(Remote(server.url(f"{name}.git")), KEEP) for name in NAMES[:4]]
    near = [RefListingRequest(Remote(remotes[name].url), KEEP) for name in NAMES[4:]]
    store = make_store(concurrency=4)
    store._progress = Counting(len(near), listed)
    answers = store.list_refs([*far, *near])
    assert all(isinstance(answer, RefListing) for answer in answers.values())


class Counting:
    """Progress that says when so many are done."""

    def __init__(self, number, reached):
        self.left, self.reached, self.lock = number, reached, threading.Lock()

    def task(self, *_):
        return self

    def __enter__(self):
        return self.one_more

    def __exit__(self, *_):
        pass

    def one_more(self):
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.reached.set()


BOUNDS = [
    ("far away, as many as the administrator says", 12, False, 12),
    ("at home, as many as keep the processors busy", 64, True, LOCAL_CONCURRENCY),
    ("at home, fewer where the administrator says so", 1, True, 1),
]


@pytest.mark.parametrize(
    ("most", "near", "bound"), [row[1:] for row in BOUNDS], ids=[row[0] for row in BOUNDS]
)
def test_the_workers_run_the_permitted_number_at_once(most, near, bound):
    lock, now, seen = threading.Lock(), [], []
    together = threading.Barrier(bound)

    def work(one):
        with lock:
            now.append(one)
            seen.append(len(now))
        together.wait(30)  # nobody goes on before so many have come
        with lock:
            now.remove(one)
        return one

    items = {str(number): number for number in range(3 * bound)}
    assert (
        RemoteWorkers(most, None, (), lambda: None).run_all(
            items, work, lambda _: near, lambda _: ErrorLocation(), lambda: None
        )
        == items
    )
    assert max(seen) == bound


def test_a_batch_waits_in_full_for_the_first_of_many_that_hang(monkeypatch, tmp_path):
    monkeypatch.setattr(remote_workers, "_LEAST", 0.05)
    is_ended = threading.Event()

    def work(number):
        if number < 80:
            with waiting_for_remote(tmp_path):
                is_ended.wait()
        return number

    workers = RemoteWorkers(8, RemoteTimeout(1.0, 2.0), (), lambda: None)
    items = {str(number): number for number in range(81)}
    started = time.monotonic()
    answers = workers.run_all(items, work, lambda _: False, lambda _: ErrorLocation(), lambda: None)
    # Ten in a row would be ten seconds.
    assert time.monotonic() - started < 5
    assert answers.pop("80") == 80
    assert {it.reason for it in answers.values()} == {"RemoteUnavailable"}
    is_ended.set()


def test_an_interruption_ends_what_runs_and_begins_nothing_more(remotes, server, tmp_path):
    """A Ctrl-C while two hosts are silent: the command ends, and its helpers with it."""
    reached = threading.Barrier(3)
    server.before = lambda _: (reached.wait(30), server.closing.wait())
    urls = [server.url(f"{name}.git") for name in NAMES]
    code = f"""
        from pathlib import Path
        from fanout.git.mirror_store import MirrorStore
        from fanout.plan.observation.repository_state import RefListingRequest, Remote
        from fanout.telemetry.metrics import Counters
        store = MirrorStore(Path({str(tmp_path / "m")!r}), install="x", counters=Counters(),
                            secrets=lambda *_: None, concurrency=2)
        store.list_refs([RefListingRequest(Remote(url), ()) for url in {urls!r}])
    """
    process = start_interruptible(
        [sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, text=True
    )
    with process:
        reached.wait(30)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, output
    assert len(server.requests) == 2
    assert [url for url in urls if started_for(url)] == []


HOLDING = """
if [ "$1" = prepared ]; then
    touch "$GIT_DIR/holding"
    exec sleep {seconds}
fi
"""


@pytest.mark.parametrize("seconds", [1, 60], ids=["for a moment", "for ever"])
@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2]], ids=["one repository", "two"])
def test_an_interruption_leaves_no_lock_in_a_repository_of_others(
    remotes, store, tmp_path, names, seconds
):
    """A Ctrl-C while the server on this machine holds the refs that it is about to change.

    A push that would end soon comes to its end. Git that is asked to end in between may leave a
    lock, so that is for pushes that hang.
    """
    bares = [remotes[name] for name in names]
    urls = [str(bare.path) for bare in bares]
    for bare in bares:
        bare.hook("reference-transaction", HOLDING.format(seconds=seconds))
    code = f"""
        from pathlib import Path
        from fanout.git import git_command
        git_command.PUSH_GRACE = {2.0 if seconds > 2 else 20.0}
        from fanout.git.mirror_store import MirrorStore
        from fanout.plan.observation.repository_state import CommitIdentity, FileCommit
        from fanout.plan.observation.repository_state import Remote, RepositoryChange
        from fanout.telemetry.metrics import Counters
        store = MirrorStore(Path({str(tmp_path / "m")!r}), install="x", counters=Counters(),
                            secrets=lambda *_: None)
        commit = FileCommit(ref="refs/heads/written", parent="", content_by_path={{"f": b"x"}},
                            dropped_paths=(), message="m", timestamp=1_700_000_000)
        who = CommitIdentity("fanout", "fanout@localhost")
        store.change([RepositoryChange(remote=Remote(url), identity=who,
                                       expected={{commit.ref: ""}}, files=(commit,))
                      for url in {urls!r}])
    """
    process = start_interruptible(
        [sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, text=True
    )
    with process:
        until(lambda: all((bare.path / "holding").exists() for bare in bares))
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, output
    for bare in bares:
        assert list(bare.path.rglob("*.lock")) == []
        assert list(bare.path.glob("objects/tmp_objdir*")) == []
        assert ("refs/heads/written" in bare.refs()) == (seconds == 1)
        (bare.path / "hooks" / "reference-transaction").unlink()
    if seconds > 1:
        answers = store.change([write(url) for url in urls])
        assert not any(isinstance(answer, FanoutError) for answer in answers.values()), answers


def test_a_lock_that_was_left_is_named_with_what_to_do(remotes, store):
    """As a killed process leaves it. What is asked for besides is served."""
    bares = [remotes[name] for name in NAMES[:2]]
    lock = bares[0].path / "refs" / "heads" / "written.lock"
    lock.touch()
    answers = store.change([write(str(bare.path)) for bare in bares])
    locked, written = (answers[str(bare.path)] for bare in bares)
    assert isinstance(locked, Conflict)
    assert locked.reason == "RemoteLocked"
    assert str(locked).count("refs/heads/written.lock") == 1
    assert "lock file" in locked.remedy
    assert "editor" not in str(locked)
    assert not isinstance(written, FanoutError)
    lock.unlink()
    assert not isinstance(store.change([write(str(bares[0].path))]), FanoutError)


def until(holds, seconds=30.0):
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
