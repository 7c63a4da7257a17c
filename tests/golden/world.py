"""A case as a folder: what goes in, the steps, and what comes out, as files to compare."""

import contextlib
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from fleet import Repo
from repositories import bare, below

from fanout.cli.main import run_arguments

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Case:
    """One folder of fixtures/cases, played in an empty working directory.

    Repositories are named by relative paths, and every date is fixed, so that the result is the
    same on every machine, commit ids included.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.input = folder / "input"
        self.root = root
        self.now = START
        self.policies = root / "policies"
        shutil.copytree(self.input / "policies", self.policies)
        self.objects = list(self._objects())
        self.repositories = {
            item["metadata"]["name"]: self._repository(item)
            for item in self.objects
            if item["kind"] == "Repository"
        }

    def play(self) -> dict[str, str]:
        """All steps, then the plan and the sweep that the case is about; what came of it."""
        for line in self._steps():
            verb, _, rest = line.partition(" ")
            match verb:
                case "release":
                    self._release(rest)
                case "edit":
                    self._edit()
                case _:
                    self._fanout(line)
            self.now += timedelta(minutes=1)
        plan = self._fanout("plan -o json")
        self._fanout("sweep")
        files = {"plan.json": plan, "status.yaml": self._status()}
        upstream = {item["repository"] for item in self._upstreams()}
        for name in self.repositories.keys() - upstream:
            repo = self.repositories[name]
            files |= self._drafts(name, repo)
            on_main = _packages(repo, "main")
            files |= {f"published/{name}/{path}": text for path, text in on_main.items()}
        return {path: text.replace(str(self.root), "$ROOT") for path, text in files.items()}

    def _objects(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.policies.glob("*.yaml")):
            yield from filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8")))

    def _repository(self, item: dict[str, Any]) -> Repo:
        repo = bare(self.root / item["spec"]["url"])
        self._commit(repo, {"README.md": f"# {item['metadata']['name']}\n"}, "first commit")
        return repo

    def _commit(self, repo: Repo, files: dict[str, str], message: str) -> str:
        os.environ |= dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), self.now.isoformat())
        return repo.commit("main", dict(files), message)

    def _steps(self) -> list[str]:
        steps = self.input / "steps"
        if not steps.exists():
            return [f"release {path.name}" for path in sorted((self.input / "upstream").iterdir())]
        return steps.read_text(encoding="utf-8").splitlines()

    def _release(self, revision: str) -> None:
        """Commit the upstream packages as they are at a revision, and tag them."""
        declared = self._upstreams()
        repo = self.repositories[declared[0]["repository"]]
        commit = self._commit(
            repo, below(self.input / "upstream" / revision), f"release {revision}"
        )
        for package in {upstream["package"] for upstream in declared}:
            repo.git("update-ref", f"refs/tags/{package}/{revision}", commit)

    def _upstreams(self) -> list[dict[str, Any]]:
        specs = (item.get("spec", {}) for item in self.objects)
        return [spec["upstream"] for spec in specs if "upstream" in spec]

    def _edit(self) -> None:
        """A maintainer commits what is in input/edits to the repositories."""
        for folder in sorted((self.input / "edits").iterdir()):
            self._commit(self.repositories[folder.name], below(folder), "edited by a maintainer")

    def _fanout(self, line: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_arguments([*line.split(), "-f", "policies", "--now", self.now.isoformat()])
        assert code in (0, 1, 3), err.getvalue()
        return out.getvalue()

    def _status(self) -> str:
        """Return the output of `fanout get` by object name, reduced to the compared fields."""
        items = {
            noun: {item["metadata"]["name"]: short(item) for item in self._get(noun)}
            for noun, short in SHORT.items()
        }
        return yaml.safe_dump(items, width=120, sort_keys=False)

    def _get(self, noun: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self._fanout(f"get {noun} -o json"))["items"]
        return items

    def _drafts(self, name: str, repo: Repo) -> dict[str, str]:
        files: dict[str, str] = {}
        for branch in repo.drafts():
            path = branch.rpartition("/")[0]
            inside = _packages(repo, f"drafts/default/{branch}", path)
            files |= {f"drafts/{name}/{file}": text for file, text in inside.items()}
        return files


def _stage(item: dict[str, Any]) -> dict[str, Any]:
    status = item["status"]
    kept = {name: status[name] for name in ("candidate", "gate", "verdict", "counts")}
    return {**kept, "waitsFor": [hold["reason"] for hold in status["holds"]]}


def _target(item: dict[str, Any]) -> dict[str, Any]:
    spec, status = item["spec"], item["status"]
    kept = {name: spec[name] for name in ("variant", "repository", "path")}
    holds = [{hold["reason"]: hold["message"]} for hold in status["holds"]]
    return {**kept, "state": status["state"], "holds": holds}


def _variant(item: dict[str, Any]) -> dict[str, Any]:
    kept = {name: item["status"].get(name) for name in ("candidate", "published", "draft")}
    return {name: value for name, value in kept.items() if value}


SHORT = {"stages": _stage, "targets": _target, "variants": _variant}


def _packages(repo: Repo, revision: str, path: str = "") -> dict[str, str]:
    """The files in directories below a path, byte for byte."""
    files = [file for file in repo.files(revision) if file.startswith(path) and "/" in file]
    return {file: _content(repo, f"{revision}:{file}") for file in files}


def _content(repo: Repo, what: str) -> str:
    done = subprocess.run(["git", "show", what], cwd=repo.path, check=True, capture_output=True)
    return done.stdout.decode()
