"""`fanout init` and `fanout create`: what they write, and what `fanout validate` says about it."""

import os
import pty
import sys
from pathlib import Path

import pytest
from pages import run_line

URL = "https://git.example.com"
INIT = f"fanout init shop --upstream {URL}/blueprints.git --package apps/web"


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


CREATED = """\
created shop/.gitignore
created shop/README.md
created shop/policies/repositories.yaml
created shop/policies/policy-web.yaml
created shop/policies/promotion.yaml
next: cd shop && fanout validate -f policies
"""
REPOSITORIES = """\
# Upstream: has the package.
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: blueprints, namespace: default}
spec:
  url: "https://git.example.com/blueprints.git"
---
# Downstream: gets variants. It needs a branch main with a first commit.
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: edge, namespace: default}
spec:
  url: "https://git.example.com/edge.git"
"""
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: web, namespace: default}
spec:
  # Revisions are tags such as apps/web/v1 or apps/web/v1.2.3.
  upstream: {repository: blueprints, package: apps/web, revision: {semver: ">=1"}}
  targets:
  - repositories: [{name: edge, packageNames: [dev/apps/web]}]
    template: {stage: dev}
  - repositories: [{name: edge, packageNames: [prod/apps/web]}]
    template: {stage: prod}
  stages: # an after can have soak: 24h, a stage requires: and rollout:
  - name: dev
    verification: [{name: tests, report: {}}] # fanout report web --stage dev --check tests …
  - name: prod
    after: {stages: [dev]}
    verification: [{name: tests, report: {}}] # fanout report web --stage prod --check tests …
"""
PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: automation, namespace: default}
spec:
  policies: [web]
  autoPromotion: {stages: [dev]} # other stages wait for `fanout promote`
  # schedule: "*/15 8-16 * * 1-5" # publish at these times only
  # approvers: [{group: sre, subjects: [ann@example.com]}]
"""


def test_a_working_directory_is_created_and_is_valid(directory):
    assert run_line(f"{INIT} --downstream {URL}/edge.git") == (0, CREATED)
    written = files(directory / "shop")
    assert written[".gitignore"] == ".fanout/\n"
    assert written["README.md"].startswith("# web\n")
    assert written["policies/repositories.yaml"] == REPOSITORIES
    assert written["policies/policy-web.yaml"] == POLICY
    assert written["policies/promotion.yaml"] == PROMOTION
    assert run_line("fanout validate -f shop") == (0, "4 objects are valid\n")


OPTIONS = [
    ("a repository for each stage", "--downstream a=git@h:a.git --downstream b=git@h:b.git", 5),
    ("more repositories than stages", "--downstream /a --downstream /b --downstream /c", 6),
    (
        "repositories of one name",
        f"--downstream {URL}/blueprints.git --downstream /x/blueprints",
        5,
    ),
    ("Cluster objects", "--downstream /a --targets clusters --stages dev,staging,prod", 7),
    ("another namespace", "--downstream /a --namespace platform", 4),
]


@pytest.mark.parametrize(
    ("options", "count"), [row[1:] for row in OPTIONS], ids=[row[0] for row in OPTIONS]
)
def test_every_combination_of_options_is_valid(options, count):
    assert run_line(f"{INIT} {options}")[0] == 0
    assert run_line("fanout validate -f shop") == (0, f"{count} objects are valid\n")


def test_a_dry_run_creates_nothing_and_can_print_the_objects(directory):
    command = f"{INIT} --downstream {URL}/edge.git --dry-run"
    expected = CREATED.replace("created", "would create")
    assert run_line(command) == (0, expected)
    assert run_line(f"{command} -o yaml") == (0, f"{REPOSITORIES}---\n{POLICY}---\n{PROMOTION}")
    assert files(directory) == {}


def test_existing_files_are_kept_and_named(directory):
    (directory / "shop").mkdir()
    (directory / "shop" / ".gitignore").write_text("build/\n", encoding="utf-8")
    code, out = run_line(f"{INIT} --downstream /edge")
    assert code == 0
    assert "kept shop/.gitignore, which exists; add the line .fanout/ to it\n" in out
    assert files(directory / "shop")[".gitignore"] == "build/\n"
    before = files(directory)
    assert run_line(f"{INIT} --downstream /other") == (
        1,
        (
            "shop/policies/repositories.yaml, shop/policies/policy-web.yaml,"
            " shop/policies/promotion.yaml exist already; nothing is overwritten; choose another"
            " directory or name, or move the file away\n"
        ),
    )
    assert files(directory) == before


def test_a_missing_value_is_an_error_without_a_terminal(directory):
    message = (
        "--upstream: a value is missing, and there is no terminal to ask for it; give --upstream\n"
    )
    assert run_line("fanout init shop") == (1, message)
    code, out = run_line(f"{INIT} --downstream /a --stages Dev")
    assert code == 2
    assert "is not a valid name; write at most 63 lowercase letters" in out
    assert files(directory) == {}


def test_questions_are_asked_on_a_terminal(directory):
    answers = f"{URL}/blueprints.git\napps/web\n{URL}/edge.git\n\n\n"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fanout", "init", "shop"])
    os.write(terminal, answers.encode())
    output = b""
    try:
        while part := os.read(terminal, 4096):
            output += part
    except OSError:
        pass  # Linux reports the end of a terminal as an error
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, output.decode()
    text = output.decode()
    assert "Path of the package in it: " in text
    assert "Stages [dev,prod]: " in text
    assert files(directory / "shop")["policies/policy-web.yaml"] == POLICY


CREATE = [
    (
        "repository edge --url git/edge.git --branch main --label region=eu --secret token",
        (
            "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
            "metadata: {name: edge, namespace: default, labels: {region: eu}}\n"
            "spec:\n  url: git/edge.git\n  branch: main\n  secretRef: {name: token}\n"
        ),
    ),
    (
        (
            "policy web --upstream blueprints --package apps/web --downstream dev=edge"
            " --downstream prod=edge"
        ),
        POLICY,
    ),
    (
        "promotion-policy automation --policies web --auto dev",
        PROMOTION,
    ),
    (
        (
            "promotion-policy working-days --schedule '0 8 * * 1-5' --time-zone Europe/Oslo"
            " --approver sre=ann@example.com --approver sre=bob@example.com"
        ),
        (
            "apiVersion: fanout.dev/v1alpha1\nkind: PromotionPolicy\n"
            "metadata: {name: working-days, namespace: default}\nspec:\n"
            '  policies: ["*"]\n  schedule: "0 8 * * 1-5"\n  timeZone: Europe/Oslo\n'
            "  approvers: [{group: sre, subjects: [ann@example.com, bob@example.com]}]\n"
        ),
    ),
]


@pytest.mark.parametrize(("arguments", "text"), CREATE)
def test_create_prints_an_object_or_writes_it_to_a_file(directory, arguments, text):
    (directory / "policies").mkdir()
    noun, name, *_ = arguments.split()
    path = f"policies/{noun}-{name}.yaml"
    assert run_line(f"fanout create {arguments}") == (0, text)
    assert run_line(f"fanout create {arguments} -f policies --dry-run -o yaml") == (0, text)
    assert files(directory) == {}
    assert run_line(f"fanout create {arguments} -f policies") == (0, f"created {path}\n")
    assert files(directory) == {path: text}
    code, out = run_line(f"fanout create {arguments} -f policies")
    assert (code, out.startswith(f"{path} exists already; nothing is overwritten;")) == (1, True)


WRONG = [
    ("repository Edge --url x", 2, "Repository/Edge: metadata.name: Edge is not a valid name; "),
    ("repository edge --url https://a:b@h/x", 2, "Repository/edge: spec.url: the URL carries a"),
    ("repository edge --url x --label region", 1, "--label: 'region' needs a key and a value; "),
    ("policy web --upstream a --package b", 1, "one of --downstream and --stages is needed"),
    ("promotion-policy p --schedule '* * * *'", 2, "PromotionPolicy/p: spec.schedule: schedule"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG)
def test_create_refuses_what_would_not_be_valid(directory, arguments, code, message):
    result = run_line(f"fanout create {arguments} -f {directory}")
    assert (result[0], result[1][: len(message)]) == (code, message)
    assert files(directory) == {}
