"""`make servers`: build the servers that tests need from their pinned Go modules, once by version.

They are kept outside the work tree, in the folder that TEST_SERVERS names (default:
~/.cache/fanout-test-servers), so that a fresh clone finds them. Exits with code 1 if something is
missing, and says what.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GITEA = "code.gitea.io/gitea"
MODULE = Path(__file__).parent / "gitea"
# What a server reads at run time, beside its binary. The module has no built front end.
DATA = ("options", "templates")
GO = Path(__file__).with_name("go.txt")  # a Go for machines that have none, or an older one


class MissingError(Exception):
    """Something that the build needs is not on this machine."""


def pinned(module: str) -> str:
    """Return the version of a module that go.mod pins, without its `v`."""
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", _go_mod(), re.MULTILINE)
    assert match, f"{MODULE / 'go.mod'} requires no {module}"
    return match[1]


def gitea_folder() -> Path:
    """Return the folder of the pinned Gitea: `gitea`, and what it reads."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    named = os.environ.get("TEST_SERVERS")
    return Path(named or cache / "fanout-test-servers") / f"gitea-{pinned(GITEA)}"


def build_gitea() -> Path:
    """Build Gitea unless it is there; return its folder. Raises MissingError."""
    folder = gitea_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two builds at once would take as long as four.
    with (folder.parent / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "gitea").exists():
            _find_compiler()
            go = find_go() or _install_go(folder.with_name("go"))
            print(f"building Gitea {pinned(GITEA)} into {folder}: some minutes", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                _build(go, Path(unfinished) / "gitea")
                Path(unfinished, "gitea").rename(folder)
    return folder


def _build(go: str, target: Path) -> None:
    target.mkdir()
    environment = {**os.environ, "CGO_ENABLED": "1"}  # SQLite is C
    _run(
        [
            *(go, "build", "-trimpath", "-tags", "sqlite sqlite_unlock_notify"),
            *("-ldflags", f"-s -w -X main.Version={pinned(GITEA)}"),
            *("-o", str(target / "gitea"), GITEA),
        ],
        environment,
    )
    source = Path(_run([go, "list", "-m", "-f", "{{.Dir}}", GITEA], environment).strip())
    for name in DATA:
        # Files of Go's cache are read-only, which would keep the folder from being removed.
        shutil.copytree(source / name, target / name, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(target / name):
            Path(folder).chmod(0o755)


def find_go() -> str | None:
    """Return the path of a Go of this machine that is new enough, or None."""
    match = re.search(r"^go (\S+)", _go_mod(), re.MULTILINE)
    assert match
    needed = match[1]
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        return None
    # Outside the module, where a Go that is too old still says its version.
    reported = subprocess.run(
        [go, "env", "GOVERSION", "GOTOOLCHAIN"], cwd="/", text=True, capture_output=True, check=True
    )
    version, toolchain = reported.stdout.split()[:2]
    return None if _numbers(version) < _numbers(needed) and toolchain == "local" else go


def _install_go(folder: Path) -> str:
    """Install the pinned Go into a virtual environment; return its path. Raises MissingError."""
    print(f"installing Go into {folder}", flush=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], dict(os.environ))
    _run([*pip, "--quiet", "--require-hashes", "-r", str(GO)], dict(os.environ))
    go = shutil.which("go", path=folder / "bin")
    if go is None:
        raise MissingError(f"{GO.name} has no Go for this machine; install one (https://go.dev/dl)")
    return go


def _find_compiler() -> None:
    name = os.environ.get("CC") or "gcc"
    if shutil.which(name.split()[0]) is None:
        raise MissingError(f"a C compiler is missing ({name}): Gitea's SQLite is written in C")


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=MODULE, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise MissingError(f"`{' '.join(command[:2])}` failed with code {done.returncode}")
    return done.stdout


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _go_mod() -> str:
    return (MODULE / "go.mod").read_text(encoding="utf-8")


def main() -> int:
    os.nice(10)  # a build that nobody waits for should not slow down what somebody does
    try:
        print(f"Gitea {pinned(GITEA)}: {build_gitea()}")
    except MissingError as error:
        print(f"make servers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
