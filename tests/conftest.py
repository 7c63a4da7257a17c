"""Fixed git configuration, time zone and colors for every test on any machine."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

# Set before anything is imported that reads it; child processes inherit it. Nothing that fanout
# would have to take away from its own git: that is one more process each time, and has own tests.
PINNED = {
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_TERMINAL_PROMPT": "0",
    "KUBECONFIG": os.devnull,  # without files, verbs would read the cluster of a developer
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
}
# Where files are in memory: tests write some millions of small ones, and none has to last.
MEMORY, ENOUGH_MEMORY = Path("/dev/shm"), 4 << 30


def _pin() -> None:
    """Forget what the caller's shell, or a git hook that runs the tests, has set."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "FANOUT_", "SSH_")) or name in {"NO_COLOR", "COLUMNS"}:
            del os.environ[name]
    os.environ.update(PINNED)
    # Images often forbid bytecode. Each of some thousand processes would then compile fanout again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    has_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_MEMORY
    if has_memory and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
    # A shell starts background jobs with SIGINT ignored; child processes would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_pin()
yaml.SafeLoader = yaml.CSafeLoader  # of `yaml.safe_load`: ten times faster, and tests read a lot
gc.set_threshold(1_000_000)  # as `fanout` does when it starts
# A slow machine is no defect: laws are checked without a clock. Which examples are tried hangs on
# the test alone, so that a red run is about the change it judges; `make laws` looks at random.
settings.register_profile("fanout", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("search", deadline=None, derandomize=False, max_examples=200)
settings.load_profile("fanout")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes what is expected anew; look at the difference before committing."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected results of golden cases anew instead of comparing with them",
    )


# By marker: what TEST_REQUIRES calls the server, and what a reader does.
SERVERS = {
    "cel_go": ("cel-go", "cel-go"),
    "forge": ("gitea", "Gitea"),
    "kube": ("kubernetes", "kube-apiserver"),
}

TESTS = Path(__file__).parent
CODE = {"test_architecture", "test_names", "test_docstrings"}
# The packages that docs/architecture.md calls pure, as in the Makefile.
CORE = {"api", "package", "calendar", "selection", "variants", "gates", "plan"}


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the marks in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests of servers that nobody asked for; group and order the others."""
    required = os.environ.get("TEST_REQUIRES", "").split()
    selected = config.option.markexpr.split()
    places: dict[pytest.Item, int] = {}
    for item in items:
        markers = [*filter(item.get_closest_marker, SERVERS)]
        places[item] = place_of(item, markers)
        if group := group_of(item, markers):
            item.add_marker(pytest.mark.xdist_group(group))
        for marker in markers:
            name, server = SERVERS[marker]
            if name not in required and marker not in selected:
                reason = f"asks a real {server}: `make test-servers`"
                item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=places.__getitem__)


def pytest_collection_finish() -> None:
    """Keep what was collected out of later garbage collections.

    All modules and tests are some millions of objects, which live as long as the process. To look
    at them takes half a second for each collection that fanout or pytest asks for.
    """
    gc.freeze()


def group_of(item: pytest.Item, markers: list[str]) -> str | None:
    """Return the name of the tests that one process of `--dist loadgroup` runs one by one.

    Tests that ask one server are a group, so that a run has one Gitea and one API server. So are
    tests of a module that share a fixture or a company, which each process would else make again.
    """
    if markers:
        return SERVERS[markers[0]][0]
    fixtures = item._fixtureinfo.name2fixturedefs
    shared = any(it.scope == "module" for row in fixtures.values() for it in row)
    return item.path.stem if shared or "companies" in fixtures else None


@cache
def folder_of(path: Path) -> str:
    """Return the folder below `tests` that a file is in, or its name."""
    return path.relative_to(TESTS).parts[0]


def place_of(item: pytest.Item, markers: list[str]) -> int:
    """Return the place of a test in a run: first what fails most often, and fastest.

    Servers come second and not last: each is one process that waits most of the time, beside which
    the others do their work. At the end of a run they would keep one core busy, or none.
    """
    folder = folder_of(item.path)
    if folder in CORE or item.path.stem in CODE:
        return 0
    if markers:
        return 1
    return 3 if folder == "story" else 2


@pytest.fixture(autouse=True)
def unconfigured_log() -> Iterator[None]:
    """Undo the configuration of the log by a line of `fanout run` in this process."""
    yield
    # With its level, tests that count passes in the log would miss those without an action.
    if "structlog" in sys.modules:
        sys.modules["structlog"].reset_defaults()


@pytest.fixture(scope="session")
def gitea(tmp_path_factory: pytest.TempPathFactory):
    """Return the Gitea of this session; tests use repositories of their own."""
    # Imported here because it loads fanout, which reads the environment.
    from gitea_server import running_gitea

    with running_gitea(tmp_path_factory.mktemp("servers") / "gitea") as server:
        yield server


@pytest.fixture(scope="session")
def kube_server(tmp_path_factory: pytest.TempPathFactory):
    """Return the kube-apiserver of this session; tests use namespaces of their own."""
    from kube_server import running_kube_server

    with running_kube_server(tmp_path_factory.mktemp("servers") / "kubernetes") as server:
        yield server


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Return whether golden tests rewrite their expectations."""
    return bool(request.config.getoption("--update-golden"))
