"""Comparison of two versions of fanout: output and repositories of the same runs, byte by byte.

    python tools/compare_versions.py OLD NEW

OLD and NEW are checkouts in which `make .venv/test` has run. Both versions run the demo and three
random scenarios with 200 variants, below the same directory and at the same times. The output and
exit code of each command, all refs and the ids of all objects are compared. Prints the differences,
and exits with code 1 if there is one.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks import inputs

SEEDS = (1, 2, 3)
SIZE = inputs.Size(targets=200, repositories=10, files=inputs.ALL)
START = datetime(2026, 2, 2, 9, 0, tzinfo=UTC)
USER = "Ann <ann@example.com>"
RESOURCES = ("policies", "variants", "stages", "targets", "repositories", "drafts", "records")

# Stages with evidence, tolerated failures, a soak and a limit of changes at the same time.
STAGES = """  stages:
  - name: dev
    verification: [{name: e2e, report: {}}]
    rollout: {maxFailures: 5}
  - name: prod
    after: {stages: [dev], soak: 10m}
    rollout: {maxInFlight: "30%"}
"""


def main(arguments: Sequence[str]) -> int:
    """Run all scenarios with both versions. Return the exit code."""
    old, new = (Path(it).resolve() for it in arguments)
    differences = 0
    with tempfile.TemporaryDirectory(prefix="fanout-compare-") as directory:
        for name in ("demo", *(f"seed {it}" for it in SEEDS)):
            results = [run_scenario(name, it, Path(directory) / "run") for it in (old, new)]
            differing = sorted(
                key
                for key in results[0].keys() | results[1].keys()
                if results[0].get(key) != results[1].get(key)
            )
            objects = sum(len(it) for key, it in results[0].items() if key.startswith("objects "))
            print(f"{name}: {len(results[0])} results, {objects} objects, {len(differing)} differ")
            for key in differing[:10]:
                print(f"--- {key}")
                print(f"old: {format_result(results[0], key)}")
                print(f"new: {format_result(results[1], key)}")
            differences += len(differing)
    return 1 if differences else 0


def format_result(results: dict[str, Any], key: str) -> str:
    """Return one result of a version as JSON, cut to fit a screen."""
    return json.dumps(results.get(key))[:2000]


def run_scenario(name: str, checkout: Path, root: Path) -> dict[str, Any]:
    """Run one scenario with one version. Return its results and the state of all repositories."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    results = dict(
        run_demo(checkout, root) if name == "demo" else run_seeded(int(name[5:]), checkout, root)
    )
    for repository in sorted(root.rglob("*.git")):
        if "mirrors" in repository.parts:
            continue
        refs = git(repository, "for-each-ref", "--format=%(refname) %(objectname)")
        objects = git(repository, "cat-file", "--batch-all-objects", "--batch-check")
        results[f"refs {repository.relative_to(root)}"] = refs.splitlines()
        results[f"objects {repository.relative_to(root)}"] = sorted(objects.splitlines())
    return results


def run_demo(checkout: Path, root: Path) -> Iterator[tuple[str, Any]]:
    """Run the demo; its output without the duration is one result."""
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import run;"
        "run.ROOT = Path(sys.argv[2]); sys.exit(run.main())"
    )
    completed = subprocess.run(
        [checkout / ".venv/bin/python", "-c", script, checkout / "demo", root / "demo"],
        capture_output=True,
        text=True,
        cwd=checkout,
        check=False,
    )
    lines = completed.stdout.replace(str(checkout), "CHECKOUT").splitlines()
    output = [line for line in lines if "seconds." not in line and "PATH=" not in line]
    yield "demo", (completed.returncode, output, completed.stderr)


def run_seeded(seed: int, checkout: Path, root: Path) -> Iterator[tuple[str, Any]]:
    """Run eight days of a fleet of 200 variants, with random actions drawn from `seed`."""
    fleet = RandomFleet(seed, checkout, root)
    fleet.create()
    for key, result in fleet.run_fanout("validate"):
        if result[0]:
            raise RuntimeError(f"invalid objects: {result[2]}")
        yield key, result
    for day in range(1, 9):
        yield from fleet.run_day(day)
    yield from fleet.run_fanout("get", "records", "-o", "json")


class RandomFleet:
    """Fleet below one directory, with repositories in `git/` and objects in `files/`."""

    def __init__(self, seed: int, checkout: Path, root: Path) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.checkout, self.root = checkout, root
        self.now = START
        self.count = 0
        self.revision = 1

    def create(self) -> None:
        """Create the repositories with v1 of the package, and the objects."""
        inputs.make_upstream(self.root / "git" / inputs.UPSTREAM)
        inputs.make_seed(self.root / "seed.git")
        inputs.copy_seed(
            self.root / "seed.git", self.root / "git" / inputs.REMOTES, SIZE.repositories
        )
        self.write_objects({})

    def write_objects(self, retention: dict[int, str]) -> None:
        """Write the objects of the benchmarks with other stages; `retention`: values by target."""
        files = self.root / "files"
        inputs.write_objects(files, SIZE, str(self.root / "git"))
        for number in range(SIZE.repositories):
            inputs.write_clusters(files, SIZE, number, retention)
        policy = files / "policy.yaml"
        text = policy.read_text().replace("  stages:\n  - name: dev\n  - name: prod\n", STAGES)
        policy.write_text(text)

    def run_day(self, day: int) -> Iterator[tuple[str, Any]]:
        """Run one day: actions of people, each with a sweep after it."""
        targets = self.random.sample(range(SIZE.targets), 9)
        in_dev = [it for it in range(SIZE.targets) if it // SIZE.repositories % 2]
        failing, skipped = map(inputs.package_path, self.random.sample(in_dev, 2))
        if day in (3, 6):
            self.revision += 1
            inputs.release(self.root / "git" / inputs.UPSTREAM, self.revision)
        if day in (2, 5):
            self.write_objects({it: f"{self.random.randrange(90)}d" for it in targets[:6]})
        for target in targets[6:9]:
            self.commit_edit(target)
        yield from self.run_fanout("plan", "-o", "json")
        yield from self.sweep()
        yield from self.sweep()
        revision = f"v{self.revision}"
        subject = ("monitoring", "--revision", revision)
        evidence = (
            "report",
            *subject,
            "--stage",
            "dev",
            "--check",
            "e2e",
            "--by",
            USER,
            "--status",
        )
        yield from self.run_fanout(*evidence, "passed")
        yield from self.run_fanout(*evidence, "failed", "--variant", failing)
        yield from self.sweep()
        author = ("--reason", f"day {day}", "--by", USER)
        match day:
            case 2:
                yield from self.run_fanout("suspend", "monitoring", "--stage", "prod", *author)
            case 3:
                yield from self.run_fanout("resume", "monitoring", "--stage", "prod", *author)
            case 4:
                yield from self.run_fanout("promote", *subject, "--stage", "prod", *author)
            case 7:
                yield from self.run_fanout("rollback", "monitoring", "--stage", "prod", *author)
            case _:
                yield from self.run_fanout(
                    "skip", *subject, "--stage", "dev", "--variant", skipped, *author
                )
        yield from self.sweep()
        for resource in RESOURCES:
            yield from self.run_fanout("get", resource, "-o", "json")
        for verb in ("explain", "forecast"):
            yield from self.run_fanout(verb, "monitoring", "-o", "json")
        yield from self.run_fanout("diff", inputs.package_path(targets[0]))
        self.now += timedelta(hours=20)

    def sweep(self) -> Iterator[tuple[str, Any]]:
        """Run a sweep, 15 minutes later."""
        self.now += timedelta(minutes=15)
        yield from self.run_fanout("sweep", "-o", "json")

    def commit_edit(self, target: int) -> None:
        """Commit an edit to a package on the main branch, if it is published."""
        name = inputs.repository_name(SIZE.repository(target))
        repository = self.root / "git" / inputs.REMOTES / name
        path = f"{inputs.package_path(target)}/app-1.yaml"
        file = run(["git", "-C", str(repository), "show", f"main:{path}"], {})
        if file.returncode:
            return
        changed = file.stdout.replace("replicas: 2", f"replicas: {3 + self.count % 5}")
        stream = (
            f"commit refs/heads/main\ncommitter {USER} {int(self.now.timestamp())} +0000\n"
            f"data 4\nedit\nfrom refs/heads/main^0\nM 644 inline {path}\n"
            f"data {len(changed.encode())}\n{changed}\n"
        )
        subprocess.run(
            ["git", "-C", str(repository), "fast-import", "--quiet"],
            input=stream, text=True, check=True, capture_output=True,
        )  # fmt: skip

    def run_fanout(self, *command: str) -> Iterator[tuple[str, Any]]:
        """Run one command; exit code, stdout and stderr are its result."""
        self.count += 1
        completed = run(
            [str(self.checkout / ".venv/bin/fanout"), *command],
            {"FANOUT_FILES": "files", "FANOUT_NOW": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")},
            self.root,
        )
        yield (
            f"{self.count:03d} {' '.join(command)}",
            (completed.returncode, completed.stdout, completed.stderr),
        )


def run(
    command: Sequence[str], environment: dict[str, str], directory: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command with only PATH and HOME of the caller's environment."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command,
        env=inherited | environment,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def git(repository: Path, *command: str) -> str:
    """Run git and return stdout. Raises CalledProcessError if it fails."""
    return subprocess.run(
        ["git", "-C", str(repository), *command], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
