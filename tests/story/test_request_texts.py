"""What the pull requests of a company on a real Gitea say."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
from fleet import PACKAGE, PLAIN, POLICY, PROMOTION
from forge_fleet import ForgeFleet, GiteaRepo
from gitea_server import Gitea, await_condition

from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.pull_requests import package_changes, upstream_history

pytestmark = pytest.mark.forge

STAGES = """\
  stages:
  - name: dev
    requires: [{name: sign-off, approval: {from: [sre], atLeast: 1}}]
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: access}
stringData: {password: %s}
"""


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    fleet = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    fleet.write("policy.yaml", POLICY[: POLICY.index("  stages:")] + STAGES)
    return fleet


def sweep(fleet: ForgeFleet) -> str:
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 0, swept.err
    return swept.err


def body(fleet: ForgeFleet) -> str:
    return str(fleet.only_request("edge")["body"])


def edits(fleet: ForgeFleet) -> list[str]:
    return [call for call in fleet.calls() if call.startswith("PATCH")]


def pull_request(fleet: ForgeFleet, **fields: str | bool) -> None:
    """Set fields of `spec.pullRequest`, each on a line of its own from line 9 on."""
    lines = "".join(f"    {name}: {json.dumps(value)}\n" for name, value in fields.items())
    fleet.write("promotion.yaml", f"{PROMOTION}  pullRequest:\n{lines}")


def test_a_request_says_what_changes_what_it_waits_for_and_what_to_do(fleet: ForgeFleet):
    sweep(fleet)
    request = fleet.only_request("edge")
    assert request["title"] == "Add 2 packages at monitoring v1 (default/monitoring, stage dev)"
    text = request["body"]
    assert "* Add `v1`: `sites/ams`, `sites/ber`\n" in text
    assert "`ApprovalMissing`" in text
    assert "Approve it for check `sign-off`: give an approving review." in text
    assert "commit to `drafts/default/_stages/default.monitoring/dev`" in text
    commit = fleet.repos["blueprints"].refs()["refs/tags/monitoring/v1"]
    assert f"revision `v1`, commit `{commit}`" in text
    # What both packages have alike is there once, what they have of their own for each.
    assert text.count("+  name: prometheus # ours") == 1
    assert text.count("+  package-path: sites/ams") == text.count("+  package-path: sites/ber") == 1


def test_a_text_stays_until_there_is_something_else_to_say(fleet: ForgeFleet):
    sweep(fleet)
    before = body(fleet)
    fleet.calls()
    sweep(fleet)
    fleet.later(hours=30)
    sweep(fleet)
    assert (edits(fleet), body(fleet)) == ([], before)
    fleet.rewrite("edge", 1, f"Ann: please wait for Bob.\n\n{before.rstrip()}\n\nBob: fine.\n")
    fleet.retitle("edge", 1, "My title")
    fleet.release("v2")
    sweep(fleet)
    request = fleet.only_request("edge")
    assert request["title"] == "Add 2 packages at monitoring v2 (default/monitoring, stage dev)"
    assert request["body"].startswith("Ann: please wait for Bob.\n\n<!-- fanout:")
    assert request["body"].rstrip().endswith("-->\n\nBob: fine.")
    assert "+  replicas: 2" in request["body"]
    assert before not in request["body"]
    title = request["title"]
    fleet.retitle("edge", 1, f"OPS-7: {title} (after lunch)")
    fleet.release("v3")
    sweep(fleet)
    request = fleet.only_request("edge")
    assert request["title"] == f"OPS-7: {title.replace('v2', 'v3')} (after lunch)"
    fleet.rewrite("edge", 1, "")
    sweep(fleet)
    assert body(fleet).strip() in request["body"]


def test_a_change_is_shown_once_against_what_is_in_force_without_values_of_secrets(
    fleet: ForgeFleet,
):
    fleet.release("v2", {"access.yaml": SECRET % "canary-one"})
    sweep(fleet)
    text = body(fleet)
    assert "+stringData: {password: " in text
    assert "canary" not in text
    fleet.retitle("edge", 1, "Ready")
    fleet.merge("edge", 1)
    sweep(fleet)
    deployment = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 3")
    files = {"access.yaml": SECRET % "canary-two", "deployment.yaml": deployment}
    fleet.release("v3", files)
    sweep(fleet)
    text = fleet.requests("edge")[1]["body"]
    assert "* Update `v2` → `v3`: `sites/ams`, `sites/ber`\n" in text
    assert "* replicas 1 → 3, 2 files changed, 2 objects changed (each of 2 packages)\n" in text
    [shown] = re.findall(r"All packages:\n\n```diff\n(.*?)```", text, re.DOTALL)
    assert "-  replicas: 1\n+  replicas: 3\n" in shown
    [folded] = re.findall(r"### Kptfile and package context\n(.*?)###", text, re.DOTALL)
    assert "ref: monitoring/v3" in folded
    assert "*** (before)" in shown
    assert "*** (after)" in shown
    assert "canary" not in text


def test_templates_give_title_and_text(fleet: ForgeFleet):
    pull_request(
        fleet,
        titleTemplate="chore({{ stage }}): {{ variants | length }} of @{{ policy }}",
        bodyTemplate="{% for item in variants %}\n* {{ item.path }} {{ item.action }}\n"
        "{% endfor %}\n"
        "{{ holds[0].sentence }}\n\n{{ differences[0].sentence }}; {{ histories | length }},"
        " {{ stages | length }}\n\n{{ text }}",
        draft=False,
    )
    assert "pullRequest" not in sweep(fleet)
    request = fleet.only_request("edge")
    assert request["title"] == "chore(dev): 2 of _monitoring"
    assert not request["draft"]
    assert "\n* `sites/ams` Add\n* `sites/ber` Add\n" in request["body"]
    assert "\n2 files added, 2 objects added; 0, 0\n" in request["body"]
    assert "### What it waits for" in request["body"]


LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
# Title and text, and what is said about them.
FAILING = [
    ("{{ variants[0].owner }}", "ExpressionError: ", LOOP, "LimitExceeded: "),
    (
        " {{ '' }}",
        "ExpressionError: the template yields no text; ",
        "{{ 'x' * 1048576 }}",
        "LimitExceeded: ",
    ),
]
OTHERS = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: logging}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets: [{repositories: [{name: west, packageNames: [logs]}], template: {stage: dev}}]
  stages: [{name: dev}]
---
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: logging}
spec:
  policies: [logging]
  autoPromotion: {stages: ["*"]}
  pullRequest: {bodyTemplate: "Logs at {{ variants[0].revision }}."}
"""


def template_conditions(fleet: ForgeFleet, policy: str) -> list[str]:
    """The messages of the policy's conditions about templates."""
    conditions = fleet.run("get", "policies", policy, "-o", "json").items[0]["status"]["conditions"]
    return [it["message"] for it in conditions if it["type"] == "ExpressionError"]


def test_a_template_that_yields_nothing_leaves_the_built_in_text(fleet: ForgeFleet):
    with Path(fleet.options[1]).open("a", encoding="utf-8") as config:
        config.write("sandbox: {cpuSeconds: 1}\n")  # some templates take what they are given
    policy = POLICY[: POLICY.index("  stages:")] + STAGES
    fleet.write("policy.yaml", policy.replace(">=1 <9", ">=1 <2"))
    fleet.repository("west")
    fleet.write("others.yaml", OTHERS)
    only_monitoring = PROMOTION.replace('"*"', "monitoring", 1)
    fleet.write("promotion.yaml", only_monitoring)
    for _ in range(2):
        sweep(fleet)
    before = fleet.only_request("edge")
    for number, (title, title_problem, text, text_problem) in enumerate(FAILING, 2):
        fields = f"    titleTemplate: {json.dumps(title)}\n    bodyTemplate: {json.dumps(text)}\n"
        fleet.write("promotion.yaml", f"{only_monitoring}  pullRequest:\n{fields}")
        fleet.release(f"v{number}")
        warnings = sweep(fleet)
        where = "PromotionPolicy/everything: spec.pullRequest"
        assert f"promotion.yaml:9: {where}.titleTemplate: {title_problem}" in warnings
        assert f"promotion.yaml:10: {where}.bodyTemplate: {text_problem}" in warnings
        assert "the pull request has the built-in text" in warnings
        assert fleet.only_request("edge") == before
        [message] = template_conditions(fleet, "monitoring")
        assert "promotion.yaml:9: " in message
        # Other policies are served: their templates, and in the next pass their publications.
        assert f"Logs at `v{number}`." in fleet.requests("west")[-1]["body"]
        sweep(fleet)
        assert fleet.published()["logs"] == f"v{number}"
    assert template_conditions(fleet, "logging") == []
    pull_request(fleet, titleTemplate="Mended", bodyTemplate="Read this.")
    sweep(fleet)
    request = fleet.only_request("edge")
    assert (request["title"], "Read this." in request["body"]) == ("Mended", True)
    assert template_conditions(fleet, "monitoring") == []


HOSTILE_PATHS = ["sites/@ann", "sites/#1", "!1", "<b>x</b>", "a`b|c", "x-->", "0123456789abcdef"]


@pytest.mark.parametrize(("drafts", "number"), [("Stage", 7), ("Variant", 2)])
def test_packages_of_hostile_names_are_published_and_notify_nobody(
    fleet: ForgeFleet, drafts: str, number: int
):
    paths = HOSTILE_PATHS[:number]
    text = PLAIN.replace("[sites/ams, sites/ber]", json.dumps(paths))
    fleet.write("policy.yaml", text.replace("spec:\n", f"spec:\n  draftPer: {drafts}\n", 1))
    for _ in range(12):  # Gitea merges one after the other, and checks the rest again after each
        sweep(fleet.later(minutes=1))
        if {it["state"] for it in fleet.requests("edge")} == {"merged"}:
            break
    sweep(fleet)
    assert fleet.published() == dict.fromkeys(paths, "v1")
    mentioned = fleet.gitea.get("/repos/issues/search?mentioned=true&type=pulls", by="ann")
    assert [it for it in mentioned if it["repository"]["owner"] == fleet.owner] == []


def release_upstream(fleet: ForgeFleet, version: str, subjects: Sequence[str]) -> list[str]:
    """Commit to the upstream repository on the server, and tag the last commit; return them."""
    base = fleet.repos["base"]
    assert isinstance(base, GiteaRepo)
    commits = []
    for number, subject in enumerate(subjects):
        text = PACKAGE["deployment.yaml"].replace("replicas: 1", f"replicas: {number + 2}")
        files = PACKAGE | {"deployment.yaml": text, "notes.txt": f"{version} {subject}\n"}
        files = {f"monitoring/{path}": content for path, content in files.items()}
        commits.append(base.commit("main", files, f"{subject}\n\nCloses #1\n"))
    base.push(f"{commits[-1]}:refs/tags/monitoring/{version}")
    return commits


def open_second_requests(fleet: ForgeFleet) -> list[str]:
    """Have v2 wait for approvals in two repositories of the second stage; return its commits.

    Upstream is on the server, and dev has reported that v2 passed.
    """
    fleet.repository("base")
    fleet.repository("west")
    fleet.gitea.post(f"{fleet.path('west')}/issues", {"title": "first"})
    sites = {"ams": ("dev", "edge"), "ber": ("prod", "edge"), "cph": ("prod", "west")}
    for name, place in sites.items():
        fleet.site(name, *place)
    stages = POLICY.replace("blueprints", "base").replace(", soak: 1h", "")
    sign_off = "requires: [{name: sign-off, approval: {from: [sre], atLeast: 1}}]"
    fleet.write("policy.yaml", stages.replace("{name: prod,", f"{{name: prod, {sign_off},"))
    ann = f"subjects: ['{fleet.gitea.host}/ann']"
    fleet.write("promotion.yaml", re.sub(r"subjects: \[.*?\]", ann, PROMOTION))
    release_upstream(fleet, "v1", ["Begin"])
    link = "https://ci.example.com/runs/7"

    def report(version: str) -> None:
        result = ("--check", "e2e", "--status", "passed", "--revision", version)
        evidence = (*result, "--link", link, "--by", "CI <ci@example.com>")
        reported = fleet.run("report", "monitoring", "--stage", "dev", *evidence)
        assert reported.code == 0, reported.err

    commits: list[str] = []
    for version in ("v1", "v2"):
        for _ in range(4):
            sweep(fleet)
        report(version)
        for _ in range(2):
            sweep(fleet)
        if version == "v1":
            for repository in ("edge", "west"):
                number = fleet.requests(repository)[-1]["number"]
                fleet.review(repository, number, "ann")
            for _ in range(3):
                sweep(fleet)
            commits = release_upstream(fleet, "v2", ["Run more", "Fix @ann and #1, closes #1"])
    return commits


def test_a_request_answers_what_reviewers_ask(fleet: ForgeFleet):
    commits = open_second_requests(fleet)
    [request] = [it for it in fleet.requests("edge") if it["state"] == "open"]
    [other] = [it for it in fleet.requests("west") if it["state"] == "open"]
    text, page = request["body"], f"{fleet.gitea.git_url('base', owner=fleet.owner)[:-4]}"
    sections = dict(re.findall(r"### (.*)\n\n((?:(?!### |<!--).*\n)*)", text))
    assert list(sections)[:6] == [
        "What changes",
        "Packages",
        "Why",
        "Where it is already",
        "What it waits for",
        "Checks",
    ]
    assert sections["What changes"] == "* replicas 2 → 3, 2 files changed, 1 object changed\n\n"
    ids = [f"[`{it[:10]}`]({page}/commit/{it})" for it in reversed(commits)]
    assert sections["Why"].splitlines()[2:4] == [
        f"* {ids[0]} Fix `@ann` and `#1`, closes `#1` (Ada)",
        f"* {ids[1]} Run more (Ada)",
    ]
    assert f"{page}/src/tag/monitoring/v2" in sections["Why"]
    assert re.search(rf"{page}/compare/[0-9a-f]{{40}}\.\.\.{commits[-1]}", sections["Why"])
    rows = sections["Where it is already"].splitlines()
    assert re.fullmatch(
        r"\| `dev` \| `v2` \| all of 1 \| `[-0-9T:]+Z` \| \[`e2e`\]\(.*runs/7\) passed \|", rows[2]
    )
    assert rows[3].startswith("| `prod` (this request) | `v1` | none of 2 |  |")
    url = f"{fleet.gitea.url}/{fleet.owner}/west/pulls/{other['number']}"
    assert f"* `west`: [pull request {other['number']}]({url}), open\n" in text
    fleet.calls()
    sweep(fleet)
    assert edits(fleet) == []
    # Of a process that stays, a pass without changes reads neither packages nor commits.
    with fleet.opened() as program:
        assert not program.observe(PassMode()).plan.actions
        failing = mock.Mock(side_effect=AssertionError)
        with (
            mock.patch.object(package_changes, "_build_patch", failing),
            mock.patch.object(upstream_history, "read_span", failing),
        ):
            assert not program.observe(PassMode()).plan.actions
    assert not failing.called
    # A request of the stage that is merged is no reason to write the others.
    fleet.retitle("west", other["number"], "Ready")
    fleet.merge("west", other["number"])
    sweep(fleet)
    sweep(fleet)
    assert fleet.requests("west")[-1]["state"] == "merged"
    edited = [it for it in edits(fleet) if "/edge/" in it]
    assert edited == []
    # Words of upstream's commits close and mention nothing where its packages go.
    issue = f"{fleet.path('west')}/issues/1"
    assert fleet.gitea.get(issue)["state"] == "open"
    assert not [it for it in fleet.gitea.get(f"{issue}/timeline") or [] if it.get("ref_issue")]


def test_values_in_messages_of_commits_close_and_mention_nothing(fleet: ForgeFleet):
    """A value that a conflict rejects is in the commits that are merged."""
    fleet.gitea.post(f"{fleet.path('edge')}/issues", {"title": "first"})
    for _ in range(2):
        sweep(fleet)
    fleet.retitle("edge", 2, "Ready")
    fleet.merge("edge", 2)
    sweep(fleet)
    text = fleet.repos["edge"].file("main", "sites/ams/settings.yaml")
    hostile = text.replace('retention: "7d"', "retention: 'closes #1, @bob [skip ci]'")
    assert hostile != text
    fleet.repos["edge"].commit("main", {"sites/ams/settings.yaml": hostile}, "by hand")
    fleet.site("ams", "dev", "edge", retention="9d")
    fleet.later(minutes=1).sweep()
    by = ("--reason", "why", "--by", "Ann <ann@example.com>")
    resolved = fleet.run("resolve", "monitoring", "--variant", "ams", *by)
    assert resolved.code == 0, resolved.err
    for _ in range(2):
        sweep(fleet)
    request = fleet.requests("edge")[-1]
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", request["commit"])
    assert "closes #\N{WORD JOINER}1, @\N{WORD JOINER}bob [\N{WORD JOINER}skip ci]" in message
    assert "closes #1" not in message
    # In the text the same value is code, and read back as it was.
    [line] = re.findall(r"settings.yaml.* not taken.*", request["body"])
    assert "closes `#1`, `@bob`" in line
    assert "\N{WORD JOINER}" not in request["body"]
    fleet.retitle("edge", request["number"], "Ready")
    fleet.merge("edge", request["number"])
    fleet.later(minutes=1).sweep()
    issue = f"{fleet.path('edge')}/issues/1"
    assert fleet.gitea.get(issue)["state"] == "open"
    # So would have been the others.
    fleet.repos["edge"].commit("main", {"README.md": "x\n"}, "closes #1")
    await_condition(
        lambda: fleet.gitea.get(issue)["state"] == "closed", "a plain message closes nothing"
    )
