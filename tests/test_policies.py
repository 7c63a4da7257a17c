"""The examples in policies/ have no fault and do what they say, on repositories of this machine."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest
import yaml
from fleet import PACKAGE
from repositories import bare, below

from fanout.cli.main import run_arguments

POLICIES = Path(__file__).parent.parent / "policies"
MONITORING = Path(__file__).parent.parent / "fixtures" / "packages" / "monitoring"


def fanout(*line):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_arguments(line)
    return code, out.getvalue(), err.getvalue()


def package(name):
    if name == "monitoring":
        return below(MONITORING)
    return dict(PACKAGE)


@pytest.fixture
def make_repositories(tmp_path, monkeypatch):
    """Makes the repositories that a file of objects names, below an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def make(file):
        objects = [item for item in yaml.safe_load_all(file.read_text(encoding="utf-8")) if item]
        repos = {}
        for item in objects:
            if item["kind"] == "Repository":
                path = tmp_path / item["spec"]["url"]
                repos[item["metadata"]["name"]] = repo = bare(path)
                repo.commit("main", {"README.md": "hello\n"}, "first commit")
        (policy,) = (item for item in objects if item["kind"] == "UpstreamPolicy")
        upstream = policy["spec"]["upstream"]
        name, repo = upstream["package"], repos[upstream["repository"]]
        files = {f"{name}/{path}": text for path, text in package(name).items()}
        repo.git("update-ref", f"refs/tags/{name}/v1", repo.commit("main", files, f"{name} v1"))
        return repos

    return make


def test_all_examples_together_have_no_fault():
    assert fanout("validate", "-f", str(POLICIES)) == (0, "41 objects are valid\n", "")


def test_scenarios_of_the_examples_pass():
    code, out, err = fanout("test", str(POLICIES))
    assert (code, err) == (0, ""), out
    assert out.endswith(" scenarios, 0 failed\n")


def test_the_page_lists_every_example():
    text = (POLICIES / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([^)]+)\)", text))
    assert listed == {path.name for path in POLICIES.glob("*.yaml")}


EXAMPLES = {
    "clusters.yaml": (
        {"edge-eu": ["monitoring-ams"], "edge-us": []},
        {"monitoring-ber", "monitoring-bos", "monitoring-cph"},
    ),
    "waves.yaml": (
        {"fleet": ["lab-1/gateway"]},
        {"osl/gateway", "rom/gateway", "lis/gateway", "bos/gateway", "sea/gateway"},
    ),
    "tenants.yaml": (
        {"tenant-blue": ["cluster/baseline"], "tenant-green": ["baseline"], "tenant-red": []},
        {"baseline"},
    ),
    "by-hand.yaml": (
        {"office": ["tickets/cache", "wiki/cache", "wiki/sessions"], "lab": ["redis"]},
        set(),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_drafted_and_its_first_stages_published(make_repositories, name):
    repos = make_repositories(POLICIES / name)
    published, waiting = EXAMPLES[name]
    line = ("-f", os.fspath(POLICIES / name), "--now", "2026-03-02T09:00:00Z")
    for _ in range(2):
        code, _, err = fanout("sweep", *line)
        assert (code, err) == (0, "")
    tags = {repo: [tag.removesuffix("/v1") for tag in repos[repo].tags()] for repo in published}
    assert tags == published
    drafts = [draft for repo in repos.values() for draft in repo.drafts()]
    assert {draft.rpartition("/")[0] for draft in drafts} == waiting
