"""Where Kargo's steps write, as far as they say it plainly, and what is said about the steps."""

from operator import itemgetter

import pytest
from migrate.kargo_objects import IN, OUT, imported, kargo, policy, stage, writing

CLONE = {"repoURL": OUT, "checkout": [{"branch": "main", "path": "./src"}]}
TWO = [*CLONE["checkout"], {"branch": "env/${{ ctx.stage }}", "path": "./out", "create": True}]
PUSH = {"uses": "git-push", "config": {"path": "./out"}}


def cloning(**config):
    return {"uses": "git-clone", "config": {**CLONE, **config}}


WRITES = [
    ("the branch that was checked out", writing(), (OUT, "main")),
    ("the branch of the directory", [cloning(checkout=TWO), PUSH], (OUT, "env/a")),
    (
        "the branch that is named",
        [
            cloning(checkout=TWO),
            {"uses": "git-push", "config": {"path": "out", "targetBranch": "x"}},
        ],
        (OUT, "x"),
    ),
    (
        "the branch of the pull request",
        [*writing(), {"uses": "git-open-pr", "config": {"targetBranch": "release"}}],
        (OUT, "release"),
    ),
    ("no push that can be followed", [cloning(checkout=TWO), {"uses": "http"}], (OUT, "env/a")),
    ("a clone alone", [cloning()], (OUT, None)),
    ("an expression", [cloning(repoURL="${{ where() }}"), PUSH], None),
    ("a variable nobody set", [cloning(repoURL="${{ vars.where }}"), PUSH], None),
    (
        "a password",
        [cloning(repoURL="https://a:b@git.example.com/x.git", checkout=TWO), PUSH],
        None,
    ),
    ("no clone", [PUSH], None),
    ("a task that is not there", [{"task": {"name": "deploy"}}], None),
]


@pytest.mark.parametrize(("_", "steps", "place"), WRITES, ids=map(itemgetter(0), WRITES))
def test_the_repository_that_steps_push_to_becomes_the_target(_, steps, place):
    made, _lost, _ = imported(stage("a", steps=steps))
    [target] = made["UpstreamPolicy"][0]["spec"]["targets"]
    [entry] = target["repositories"]
    assert entry["packageNames"] == ["a/app"]
    spec = {it["metadata"]["name"]: it["spec"] for it in made["Repository"]}[entry["name"]]
    if place is None:
        assert (entry["name"], spec["url"]) == ("fill-in", "https://fill-in.invalid/repository.git")
    else:
        assert (spec["url"], spec.get("branch")) == place


def test_variables_are_those_of_the_stage_the_template_and_the_task():
    task = {"vars": [{"name": "url"}, {"name": "branch", "value": "x"}]}
    task["steps"] = writing("${{ vars.url }}", "${{ vars.branch }}-${{vars.end}}")
    item = stage(
        "a", steps=[{"task": {"name": "t"}, "vars": [{"name": "url", "value": "${{vars.u}}"}]}]
    )
    item["spec"]["vars"] = [{"name": "u", "value": OUT}, {"name": "end", "value": "old"}]
    item["spec"]["promotionTemplate"]["spec"]["vars"] = [
        {"name": "end", "value": "${{ ctx.stage }}"}
    ]
    made, _, _ = imported(item, kargo("PromotionTask", task, "t"))
    assert {"url": OUT, "branch": "x-a"} in [it["spec"] for it in made["Repository"]]


def test_a_task_of_the_cluster_is_known_in_every_project():
    item = stage("a", steps=[{"task": {"name": "t", "kind": "ClusterPromotionTask"}}])
    item["metadata"]["namespace"] = "far"
    task = kargo("ClusterPromotionTask", {"steps": writing()}, "t")
    made, _, _ = imported(item, task)
    assert made["Repository"][0]["spec"]["url"] == OUT


def test_a_repository_written_by_several_stages_has_a_single_name_and_branch():
    made, _, _ = imported(
        stage("a"),
        stage(
            "b", steps=writing(OUT.upper().replace("HTTPS", "https").replace("OUT.GIT", "out.git"))
        ),
        stage("c", steps=writing(branch="live")),
        stage("d", steps=writing("git@git.example.com:far/out.git")),
    )
    names = {it["metadata"]["name"]: it["spec"]["url"] for it in made["Repository"]}
    assert {"url": OUT} in [
        it["spec"] for it in made["Repository"]
    ]  # they do not agree on a branch
    assert names == {
        "in": IN,
        "out": OUT,
        "out-2": "git@git.example.com:far/out.git",
    }


STEPS = [
    ("what fanout does itself", {"uses": "git-commit"}, None),
    ("a step that is known", {"uses": "argocd-update"}, "uses"),
    ("one that is not", {"uses": "our-own"}, "uses"),
    ("a task", {"task": {"name": "x"}}, "task"),
    ("nothing", {}, "uses"),
    ("no text", {"uses": ["a"]}, "uses"),
]


@pytest.mark.parametrize(("_", "step", "field"), STEPS, ids=map(itemgetter(0), STEPS))
def test_steps_without_a_counterpart_are_named(_, step, field):
    _spec, lost = policy(stage("a", steps=[*writing(), step]))
    path = f"spec.promotionTemplate.spec.steps[2].{field}"
    assert lost == ([("a", path)] if field else [])
