"""Yardstick (a): the naive way, measured on a sample and scaled.

A work tree by GitPython; for each target a branch, every file that changes parsed and written by
ruamel.yaml's round trip, a commit, and a push of its own.
"""

import io
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from git import Actor, Repo
from ruamel.yaml import YAML

from benchmarks.bare_git import draft_ref
from benchmarks.inputs import (
    ALL,
    copy_seed,
    package_files,
    package_path,
    repository_name,
    target_name,
)

SAMPLE = 60
_WHO = Actor("fanout benchmark", "benchmark@localhost")


def run(seed: Path, place: Path, files: int) -> float:
    """Seconds per target."""
    copy_seed(seed, place / "remotes", 1)
    work = Repo.clone_from(str(place / "remotes" / repository_name(0)), str(place / "work"))
    begin = time.perf_counter()
    for target in range(SAMPLE):
        _write_draft(work, target, files)
    seconds = time.perf_counter() - begin
    work.close()
    shutil.rmtree(place)
    return seconds / SAMPLE


def _write_draft(work: Repo, target: int, files: int) -> None:
    branch = draft_ref(target).removeprefix("refs/heads/")
    work.create_head(branch, work.heads.main).checkout()
    directory = Path(work.working_dir) / package_path(target)
    directory.mkdir(parents=True)
    for name, text in _render(target, files).items():
        (directory / name).write_text(text)
    work.index.add([str(directory)])
    work.index.commit(f"Draft of {target_name(target)}", author=_WHO, committer=_WHO)
    work.remote().push(f"{branch}:{branch}").raise_if_error()


def _render(target: int, files: int) -> Mapping[str, str]:
    upstream = package_files(1)
    own = {"Kptfile", "package-context.yaml", "settings.yaml"}
    chosen = upstream if files == ALL else own
    return {
        name: _edited(name, text, target, files) if name in chosen else text
        for name, text in upstream.items()
    }


def _edited(name: str, text: str, target: int, files: int) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    item = yaml.load(text)
    cluster = target_name(target)
    match name:
        case "Kptfile":
            item["metadata"]["name"] = cluster
            place = {"repo": "https://git.example.com/blueprints", "directory": "monitoring"}
            item["upstream"] = {"type": "git", "git": {**place, "ref": "monitoring/v1"}}
            item["upstreamLock"] = {"type": "git", "git": {**place, "commit": "0" * 40}}
        case "package-context.yaml":
            keys = {"name": cluster, "package-path": package_path(target)}
            item["data"].update({**keys, "region": "region-1", "site": f"site-{cluster}"})
        case "settings.yaml":
            item["data"].update({"cluster": cluster, "retention": f"{target % 30 + 1}d"})
            item["metadata"]["annotations"]["kpt.dev/injected-resource"] = cluster
    if files == ALL and name not in ("Kptfile", "package-context.yaml"):
        _set_namespace_and_label(item, cluster)
    out = io.StringIO()
    yaml.dump(item, out)
    return out.getvalue()


def _set_namespace_and_label(item: Any, cluster: str) -> None:
    item["metadata"]["namespace"] = cluster
    places = [item["metadata"].setdefault("labels", {})]
    if item["kind"] == "Deployment":
        template = item["spec"]["template"]["metadata"]["labels"]
        places += [template, item["spec"]["selector"]["matchLabels"]]
    for labels in places:
        labels["site"] = f"site-{cluster}"
