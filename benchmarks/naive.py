"""Yardstick of a simple script with GitPython and ruamel.yaml, measured on a sample of targets.

The script has one work tree. For each target it creates a branch, reads and writes each differing
file with the round trip of ruamel.yaml, commits, and pushes.
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
_AUTHOR = Actor("fanout benchmark", "benchmark@localhost")


def measure_sample(seed: Path, directory: Path, files: int) -> float:
    """Return the seconds per target."""
    copy_seed(seed, directory / "remotes", 1)
    work = Repo.clone_from(str(directory / "remotes" / repository_name(0)), str(directory / "work"))
    start = time.perf_counter()
    for target in range(SAMPLE):
        _write_draft(work, target, files)
    seconds = time.perf_counter() - start
    work.close()
    shutil.rmtree(directory)
    return seconds / SAMPLE


def _write_draft(work: Repo, target: int, files: int) -> None:
    branch = draft_ref(target).removeprefix("refs/heads/")
    work.create_head(branch, work.heads.main).checkout()
    package = Path(work.working_dir) / package_path(target)
    package.mkdir(parents=True)
    for name, text in _render(target, files).items():
        (package / name).write_text(text)
    work.index.add([str(package)])
    work.index.commit(f"Draft of {target_name(target)}", author=_AUTHOR, committer=_AUTHOR)
    work.remote().push(f"{branch}:{branch}").raise_if_error()


def _render(target: int, files: int) -> Mapping[str, str]:
    upstream = package_files(1)
    always_different = {"Kptfile", "package-context.yaml", "settings.yaml"}
    different = upstream if files == ALL else always_different
    return {
        name: _edit(name, text, target, files) if name in different else text
        for name, text in upstream.items()
    }


def _edit(name: str, text: str, target: int, files: int) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    document = yaml.load(text)
    cluster = target_name(target)
    match name:
        case "Kptfile":
            document["metadata"]["name"] = cluster
            origin = {"repo": "https://git.example.com/blueprints", "directory": "monitoring"}
            document["upstream"] = {"type": "git", "git": {**origin, "ref": "monitoring/v1"}}
            document["upstreamLock"] = {"type": "git", "git": {**origin, "commit": "0" * 40}}
        case "package-context.yaml":
            values = {"name": cluster, "package-path": package_path(target)}
            document["data"].update({**values, "region": "region-1", "site": f"site-{cluster}"})
        case "settings.yaml":
            document["data"].update({"cluster": cluster, "retention": f"{target % 30 + 1}d"})
            document["metadata"]["annotations"]["kpt.dev/injected-resource"] = cluster
    if files == ALL and name not in ("Kptfile", "package-context.yaml"):
        _set_namespace_and_label(document, cluster)
    output = io.StringIO()
    yaml.dump(document, output)
    return output.getvalue()


def _set_namespace_and_label(document: Any, cluster: str) -> None:
    document["metadata"]["namespace"] = cluster
    label_sets = [document["metadata"].setdefault("labels", {})]
    if document["kind"] == "Deployment":
        template = document["spec"]["template"]["metadata"]["labels"]
        label_sets += [template, document["spec"]["selector"]["matchLabels"]]
    for labels in label_sets:
        labels["site"] = f"site-{cluster}"
