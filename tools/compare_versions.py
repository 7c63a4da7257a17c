"""Compare two versions of fanout: the same worlds, command by command and byte by byte.

    python tools/compare_versions.py OLD NEW

OLD and NEW are checkouts in which `make .venv/test` has run. Each plays the story of the demo and
three seeded worlds of 200 variants below the same directory, at the same stated times. What each
command prints and exits with, every ref and the id of every object of every repository are then
compared. Exits with code 1 where anything differs, and prints where.
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
WHO = "Ann <ann@example.com>"
NOUNS = ("policies", "variants", "stages", "targets", "repositories", "drafts", "records")

# Evidence, tolerated failures, a soak and waves.
STAGES = """  stages:
  - name: dev
    verification: [{name: e2e, report: {}}]
    rollout: {maxFailures: 5}
  - name: prod
    after: {stages: [dev], soak: 10m}
    rollout: {maxInFlight: "30%"}
"""


def main(arguments: Sequence[str]) -> int:
    """Play all worlds with both versions; returns the exit code."""
    old, new = (Path(it).resolve() for it in arguments)
    differences = 0
    with tempfile.TemporaryDirectory(prefix="fanout-compare-") as above:
        for name in ("demo", *(f"seed {it}" for it in SEEDS)):
            played = [play(name, checkout, Path(above) / "world") for checkout in (old, new)]
            differing = sorted(
                key
                for key in played[0].keys() | played[1].keys()
                if played[0].get(key) != played[1].get(key)
            )
            objects = sum(len(it) for key, it in played[0].items() if key.startswith("objects "))
            print(f"{name}: {len(played[0])} answers, {objects} objects, {len(differing)} differ")
            for key in differing[:10]:
                print(f"--- {key}\nold: {shown(played[0], key)}\nnew: {shown(played[1], key)}")
            differences += len(differing)
    return 1 if differences else 0


def shown(played: dict[str, Any], key: str) -> str:
    """The answer of one version, as far as it fits a screen."""
    return json.dumps(played.get(key))[:2000]


def play(name: str, checkout: Path, root: Path) -> dict[str, Any]:
    """Play one world with one version; returns every answer and the state of every repository."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    story = demo(checkout, root) if name == "demo" else seeded(int(name[5:]), checkout, root)
    answers = dict(story)
    for repository in sorted(root.rglob("*.git")):
        if "mirrors" in repository.parts:
            continue
        refs = git(repository, "for-each-ref", "--format=%(refname) %(objectname)")
        listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check")
        answers[f"refs {repository.relative_to(root)}"] = refs.splitlines()
        answers[f"objects {repository.relative_to(root)}"] = sorted(listed.splitlines())
    return answers


def demo(checkout: Path, root: Path) -> Iterator[tuple[str, Any]]:
    """Play the story of the demo; what it prints is one answer, but for the time that it took."""
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import run;"
        "run.ROOT = Path(sys.argv[2]); sys.exit(run.main())"
    )
    done = subprocess.run(
        [checkout / ".venv/bin/python", "-c", script, checkout / "demo", root / "demo"],
        capture_output=True,
        text=True,
        cwd=checkout,
        check=False,
    )
    lines = done.stdout.replace(str(checkout), "CHECKOUT").splitlines()
    told = [line for line in lines if "seconds." not in line and "PATH=" not in line]
    yield "demo", (done.returncode, told, done.stderr)


def seeded(seed: int, checkout: Path, root: Path) -> Iterator[tuple[str, Any]]:
    """Play eight days of a fleet of 200 variants; `seed` draws what people and machines do."""
    world = SeededWorld(seed, checkout, root)
    world.make()
    for key, answer in world.ask("validate"):
        if answer[0]:
            raise RuntimeError(f"the world cannot be played: {answer[2]}")
        yield key, answer
    for day in range(1, 9):
        yield from world.day(day)
    yield from world.ask("get", "records", "-o", "json")


class SeededWorld:
    """A fleet below one directory: `git/` has the repositories, `files/` the objects."""

    def __init__(self, seed: int, checkout: Path, root: Path) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.checkout, self.root = checkout, root
        self.now = START
        self.count = 0
        self.revision = 1

    def make(self) -> None:
        """Make the repositories with v1 of the package, and the objects."""
        inputs.make_upstream(self.root / "git" / inputs.UPSTREAM)
        inputs.make_seed(self.root / "seed.git")
        inputs.copy_seed(
            self.root / "seed.git", self.root / "git" / inputs.REMOTES, SIZE.repositories
        )
        self.objects({})

    def objects(self, retention: dict[int, str]) -> None:
        """Write the objects anew, with stages that ask for more than the measured ones."""
        files = self.root / "files"
        inputs.write_objects(files, SIZE, str(self.root / "git"))
        for number in range(SIZE.repositories):
            inputs.write_clusters(files, SIZE, number, retention)
        policy = files / "policy.yaml"
        text = policy.read_text().replace("  stages:\n  - name: dev\n  - name: prod\n", STAGES)
        policy.write_text(text)

    def day(self, day: int) -> Iterator[tuple[str, Any]]:
        """Play one day: what people do, and a sweep after each of it."""
        chosen = self.random.sample(range(SIZE.targets), 9)
        in_dev = [it for it in range(SIZE.targets) if it // SIZE.repositories % 2]
        failing, skipped = map(inputs.package_path, self.random.sample(in_dev, 2))
        if day in (3, 6):
            self.revision += 1
            inputs.release(self.root / "git" / inputs.UPSTREAM, self.revision)
        if day in (2, 5):
            self.objects({it: f"{self.random.randrange(90)}d" for it in chosen[:6]})
        for target in chosen[6:9]:
            self.edit(target)
        yield from self.ask("plan", "-o", "json")
        yield from self.sweep()
        yield from self.sweep()
        revision = f"v{self.revision}"
        about = ("monitoring", "--revision", revision)
        yield from self.ask("report", *about, "--stage", "dev", "--check", "e2e",
                            "--status", "passed", "--by", WHO)  # fmt: skip
        yield from self.ask("report", *about, "--stage", "dev", "--check", "e2e", "--status",
                            "failed", "--variant", failing, "--by", WHO)  # fmt: skip
        yield from self.sweep()
        word = ("--reason", f"day {day}", "--by", WHO)
        match day:
            case 2:
                yield from self.ask("suspend", "monitoring", "--stage", "prod", *word)
            case 3:
                yield from self.ask("resume", "monitoring", "--stage", "prod", *word)
            case 4:
                yield from self.ask("promote", *about, "--stage", "prod", *word)
            case 7:
                yield from self.ask("rollback", "monitoring", "--stage", "prod", *word)
            case _:
                yield from self.ask("skip", *about, "--stage", "dev", "--variant", skipped, *word)
        yield from self.sweep()
        for noun in NOUNS:
            yield from self.ask("get", noun, "-o", "json")
        for verb in ("explain", "forecast"):
            yield from self.ask(verb, "monitoring", "-o", "json")
        yield from self.ask("diff", inputs.package_path(chosen[0]))
        self.now += timedelta(hours=20)

    def sweep(self) -> Iterator[tuple[str, Any]]:
        """Sweep a quarter of an hour later."""
        self.now += timedelta(minutes=15)
        yield from self.ask("sweep", "-o", "json")

    def edit(self, target: int) -> None:
        """Commit, as a person would, to the branch of a published package, if it is there."""
        name = inputs.repository_name(SIZE.repository(target))
        repository = self.root / "git" / inputs.REMOTES / name
        path = f"{inputs.package_path(target)}/app-1.yaml"
        shown = run(["git", "-C", str(repository), "show", f"main:{path}"], {})
        if shown.returncode:
            return
        changed = shown.stdout.replace("replicas: 2", f"replicas: {3 + self.count % 5}")
        stream = (
            f"commit refs/heads/main\ncommitter {WHO} {int(self.now.timestamp())} +0000\n"
            f"data 4\nedit\nfrom refs/heads/main^0\nM 644 inline {path}\n"
            f"data {len(changed.encode())}\n{changed}\n"
        )
        subprocess.run(
            ["git", "-C", str(repository), "fast-import", "--quiet"],
            input=stream, text=True, check=True, capture_output=True,
        )  # fmt: skip

    def ask(self, *command: str) -> Iterator[tuple[str, Any]]:
        """Run one command; its exit code, stdout and stderr are the answer."""
        self.count += 1
        done = run(
            [str(self.checkout / ".venv/bin/fanout"), *command],
            {"FANOUT_FILES": "files", "FANOUT_NOW": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")},
            self.root,
        )
        yield f"{self.count:03d} {' '.join(command)}", (done.returncode, done.stdout, done.stderr)


def run(
    command: Sequence[str], environment: dict[str, str], where: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command whose environment holds nothing of the caller's but paths."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, env=kept | environment, cwd=where, capture_output=True, text=True, check=False
    )


def git(repository: Path, *command: str) -> str:
    """Return what git prints; raises CalledProcessError where it fails."""
    return subprocess.run(
        ["git", "-C", str(repository), *command], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
