"""What `explain` says: each blocker once, failed targets, conflicts one by one, and commands."""

import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from companies import Companies, company
from fleet import PACKAGE, POLICY, PROMOTION, Fleet

TEXT = PACKAGE["deployment.yaml"]
ANN = ("--by", "Ann <ann@x.org>")


def build_published(root: Path) -> Fleet:
    """Two sites of dev whose check has no answer."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    return made


@company
def fleet(root: Path) -> Fleet:
    return build_published(root)


def test_a_policy_names_targets_without_a_variant_and_variants_without_a_target(fleet: Fleet):
    for number in range(5):
        fleet.site(f"x{number}", "dev", "nosuch")
    fleet.remove("site-ber.yaml")
    result = fleet.run("explain", "monitoring")
    assert result.code == 3
    [line] = [it for it in result.out.splitlines() if "UnknownRepository" in it]
    assert line.strip().startswith("UnknownRepository    5 targets (x0, x1, x2 and 2 more): ")
    assert "there is no Repository nosuch" in line
    [line] = [it for it in result.out.splitlines() if "TargetGone" in it]
    assert line.endswith(": monitoring-ber-928771694f")
    assert fleet.run("explain", "monitoring/dev").code == 0


def test_a_policy_names_variants_that_cannot_be_rendered(fleet: Fleet):
    fleet.release("v2", {"deployment.yaml": "a: [\n"})
    result = fleet.run("explain", "monitoring")
    assert result.code == 3
    assert "deployment.yaml:" in result.out
    assert "2 variants (ams, ber): " in result.out


def conflict(fleet: Fleet) -> None:
    """Both sides set one value, and one deletes what the other changes; the draft is written."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: a}\n"
    fleet.release("v2", {"service.yaml": service})
    fleet.settle()
    path = "sites/ams/deployment.yaml"
    edge = fleet.repos["edge"]
    replicas = TEXT.replace("replicas: 1", "replicas: 7")
    edge.commit("main", {path: replicas, "sites/ams/service.yaml": None})
    changed = service.replace("clusterIP: a", "clusterIP: b")
    text = TEXT.replace("replicas: 1", "replicas: 3")
    fleet.release("v3", {"service.yaml": changed, "deployment.yaml": text})
    fleet.sweep("--drafts-only")


@pytest.mark.parametrize("stages", ["'*'", "prod"], ids=["automatic", "by hand"])
def test_a_variant_names_each_conflict_and_who_won(fleet: Fleet, stages: str):
    conflict(fleet)
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', f"stages: [{stages}]"))
    explained = fleet.run("explain", "monitoring/dev/sites/ams", "-o", "json").json["status"]
    messages = {it["key"]: it["message"] for it in explained["conflicts"] if not it["decided"]}
    replicas, service = sorted(messages.values())
    assert "(base 1, upstream 3, local 7); upstream won; undecided" in replicas
    assert service.startswith("service.yaml")
    assert service.endswith("; local won; undecided")
    blocker = explained["blockers"][0]
    assert (blocker["reason"], blocker["needsPerson"]) == ("MergeConflict", True)
    resolve = "fanout resolve monitoring --variant ams --reason WHY"
    assert blocker["commands"] == ["fanout diff ams", resolve]
    for subject in (["monitoring"], ["monitoring/dev"], []):
        output = fleet.run("explain", *subject).out
        assert resolve in output
        assert all(output.count(key) == 1 for key in messages), "the keys, each once"
    drafts = fleet.run("get", "drafts", "-o", "json").items
    [draft] = [it for it in drafts if it["spec"]["path"] == "sites/ams"]
    assert draft["status"]["conflicts"] == 2


def test_a_decision_says_what_it_decided(fleet: Fleet):
    conflict(fleet)
    done = fleet.run("resolve", "monitoring", "--take", "local", "--reason", "seven it is", *ANN)
    assert done.code == 0, done.err
    fleet.later(minutes=1).sweep("--drafts-only")
    out = fleet.run("explain", "monitoring/dev/sites/ams").out
    lines = [line for line in out.splitlines() if "; local won; " in line]
    assert len(lines) == 2
    for line in lines:
        assert "; decided by Ann <ann@x.org> (" in line
        assert line.endswith(": seven it is")
    assert fleet.run("explain", "monitoring").out.count("MergeConflict") == 0


def test_a_commit_on_the_draft_has_decided(fleet: Fleet):
    conflict(fleet)
    path, branch = "sites/ams/deployment.yaml", "drafts/default/sites/ams/monitoring"
    edge = fleet.repos["edge"]
    edge.commit(branch, {path: edge.file(branch, path).replace("replicas: 3", "replicas: 5")})
    out = fleet.run("explain", "monitoring/dev/sites/ams").out
    assert "; decided by a commit on the draft" in out
    assert "deployment.yaml:6: Deployment/prometheus: spec.replicas: both changed" in out


SERVED = [("a policy", ""), ("a stage", "/dev"), ("a variant", "/dev/sites/ams")]


@pytest.mark.parametrize(("_", "rest"), SERVED, ids=[row[0] for row in SERVED])
def test_explain_exits_with_3_when_its_subject_could_not_be_served(fleet: Fleet, _, rest: str):
    assert fleet.run("explain", f"monitoring{rest}").code == 0
    path = fleet.repos["edge"].path
    path.rename(path.with_suffix(".away"))
    assert fleet.run("explain", f"monitoring{rest}").code == 3
    assert fleet.run("explain", "monitoring/prod").code == 0, "nothing of it is there"


VANISHED = [
    ("its target", "monitoring/dev/ber"),
    ("its path", "monitoring/dev/sites/ber"),
    ("its own name", "monitoring/dev/monitoring-ber-928771694f"),
    ("its name alone", "monitoring-ber-928771694f"),
]


@pytest.mark.parametrize(("_", "subject"), VANISHED, ids=[row[0] for row in VANISHED])
def test_a_variant_without_a_target_says_why_it_is_there_still(fleet: Fleet, _, subject: str):
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    fleet.remove("site-ber.yaml")
    result = fleet.run("explain", subject)
    assert result.code == 0, result.err
    head, _, line, *rest = result.out.splitlines()
    assert head.startswith("Variant monitoring/monitoring-ber-928771694f: Held")
    assert line.strip().startswith("AutomationOff  ")
    assert "  fanout remove monitoring monitoring-ber-928771694f --reason WHY" in rest


def test_a_stage_that_has_passed_leaves_with_1_while_it_is_suspended(fleet: Fleet):
    passed = ("--check", "e2e", "--status", "passed", "--revision", "v1")
    done = fleet.run("report", "monitoring", "--stage", "dev", *passed, *ANN)
    assert done.code == 0, done.err
    fleet.sweep()
    assert fleet.run("explain", "monitoring/dev").code == 0
    assert fleet.run("explain", "monitoring").code == 0
    done = fleet.run("suspend", "monitoring", "--stage", "dev", "--reason", "a demo", *ANN)
    assert done.code == 0, done.err
    result = fleet.run("explain", "monitoring/dev")
    assert result.code == 0
    assert result.out.startswith("Stage monitoring/dev: Suspended, ")
    assert "  fanout resume monitoring --stage dev --reason WHY" in result.out.splitlines()
    assert fleet.run("explain", "monitoring").code == 0


def unblocking(output: str) -> list[list[str]]:
    """Return the arguments of the commands that an explanation prints."""
    section = output.partition("To unblock:\n")[2].replace(" \\\n", " ")
    return [shlex.split(it)[1:] for it in section.splitlines() if it.startswith("  fanout ")]


def suspend(fleet: Fleet) -> None:
    done = fleet.run("suspend", "monitoring", "--variant", "ams", "--reason", "because", *ANN)
    assert done.code == 0, done.err


def fail(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1", "failed", "--variant", "ams").code == 0
    fleet.sweep()


def switch_off(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    fleet.release("v2")
    fleet.sweep("--drafts-only")


def remove_target(fleet: Fleet) -> None:
    switch_off(fleet)
    fleet.remove("site-ber.yaml")


def remove_edited(fleet: Fleet) -> None:
    fleet.report("dev", "v1")
    fleet.settle()
    path = "sites/ber/deployment.yaml"
    fleet.repos["edge"].commit("main", {path: TEXT.replace("replicas: 1", "replicas: 7")})
    remove_target(fleet)


BLOCKED = [
    ("a check without an answer", lambda fleet: None, "VerificationPending"),
    ("a check that failed", fail, "VerificationFailed"),
    ("a suspended variant", suspend, "Suspended"),
    ("a merge conflict", conflict, "MergeConflict"),
    ("no automation", switch_off, "AutomationOff"),
    ("a variant without a target", remove_target, "AutomationOff"),
    ("an edited variant without a target", remove_edited, "EditedDownstream"),
]
RECORDING = ("report", "skip", "resume", "resolve", "promote", "remove", "retry", "approve")


@pytest.mark.parametrize(("_", "block", "reason"), BLOCKED, ids=[row[0] for row in BLOCKED])
def test_the_commands_unblock_as_they_are_printed(fleet: Fleet, monkeypatch, _, block, reason):
    block(fleet)
    monkeypatch.setenv("COLUMNS", "60")
    output = fleet.later(minutes=1).run("explain", "monitoring").out
    assert reason in output
    assert all(len(line) <= 60 for line in output.splitlines())
    commands = unblocking(output)
    assert commands, output
    fleet.later(minutes=1)
    for arguments in commands:
        author = ANN if arguments[0] in RECORDING else ()
        done = fleet.run(*arguments, *author)
        assert done.code in (0, 3), f"{arguments}: {done.err}"
    fleet.later(minutes=1).settle()
    assert reason not in fleet.run("explain", "monitoring").out


def test_a_single_command_removes_an_edited_variant(fleet: Fleet):
    remove_edited(fleet)
    result = fleet.run("explain", "monitoring")
    assert {"AutomationOff", "EditedDownstream"} <= set(result.out.split())
    name = "monitoring-ber-928771694f"
    command = ["remove", "monitoring", name, "--edited", "--reason", "WHY"]
    assert [it for it in unblocking(result.out) if it[0] == "remove"] == [command]
    shown = fleet.run("get", "targets", "-o", "yaml").out
    assert f"fanout remove monitoring {name} --reason WHY" not in " ".join(shown.split())


LINK = "https://ci.example.com/7"
DEV = ("monitoring", "--stage", "dev", "--variant", "ams")


def report(fleet: Fleet, status: str, revision: str, by: str, *more: str) -> None:
    done = fleet.later(minutes=1).run(
        "report", *DEV, "--check", "e2e", "--status", status, "--revision", revision,
        "--by", f"{by.title()} <{by}@x.org>", *more,
    )  # fmt: skip
    assert done.code == 0, done.err


def fail_first(fleet: Fleet) -> None:
    report(fleet, "failed", "v1", "ci", "--link", LINK)


def fail_later(fleet: Fleet) -> None:
    fleet.report("dev", "v1")
    fleet.settle()
    fleet.release("v2")
    fleet.settle()
    report(fleet, "failed", "v2", "ci", "--link", LINK)


def contradict(fleet: Fleet) -> None:
    fail_later(fleet)
    report(fleet, "passed", "v2", "ann")


def fail_draft(fleet: Fleet) -> None:
    requires = "requires: [{name: e2e, report: {}}]"
    fleet.write("policy.yaml", POLICY.replace("verification: [{name: e2e, report: {}}]", requires))
    fleet.release("v2")
    fleet.sweep("--drafts-only")
    report(fleet, "failed", "v2", "ci", "--link", LINK)


WAYS_ON = [
    ("of the first revision", fail_first, "VerificationFailed", ["retry", "skip"]),
    ("of a later one", fail_later, "VerificationFailed", ["rollback", "retry", "skip"]),
    ("that another report contradicts", contradict, "Contradiction",
     ["withdraw", "rollback", "retry", "skip"]),
    ("of a draft", fail_draft, "RequiresFailed", ["retry", "skip"]),
]  # fmt: skip


@cache
def builder(fail_check: Callable[[Fleet], None]) -> Callable[[Path], Fleet]:
    """Return what builds the company whose check has failed, once for all ways on."""

    def build(root: Path) -> Fleet:
        made = build_published(root)
        fail_check(made)
        made.later(minutes=1).sweep()
        return made

    return build


@pytest.mark.parametrize(
    ("fail_check", "reason", "verb", "verbs"),
    [(row[1], row[2], verb, row[3]) for row in WAYS_ON for verb in row[3]],
    ids=[f"{row[0]}: {verb}" for row in WAYS_ON for verb in row[3]],
)
def test_a_failed_check_has_its_link_and_each_way_on_works(
    companies: Companies, fail_check, reason, verb, verbs
):
    """Each by itself, as it is printed; nobody is told to report what somebody else let run."""
    fleet = companies.begin(builder(fail_check))
    output = fleet.run("explain", "monitoring").out
    [line] = [it for it in output.splitlines() if it.split()[1:2] == [reason]]
    assert f"ci@x.org ({LINK})" in line
    commands = {it[0]: it for it in unblocking(output)}
    assert list(commands)[: len(verbs)] == verbs
    assert not [it for it in unblocking(output) if "ams" in it and it[0] == "report"]
    asks = ("--yes",) if verb == "rollback" else ()  # there is no terminal that could ask
    done = fleet.later(minutes=1).run(*commands[verb], *ANN, *asks)
    assert done.code == 0, done.err
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert reason not in fleet.run("explain", "monitoring").out


def test_the_reporter_of_a_failure_may_report_that_it_passed(fleet: Fleet):
    fail_first(fleet)
    view = fleet.run("explain", "monitoring", "-o", "json").json["status"]
    [who] = [it["who"] for it in view["blockers"] if it["reason"] == "VerificationFailed"]
    assert who.startswith("ci@x.org (fanout report, when it has run again) or ")
    report(fleet, "passed", "v1", "ci")
    assert fleet.run("explain", "monitoring/dev/ams").out.startswith(
        "Variant monitoring/dev/ams: Ready"
    )


def test_without_a_name_the_most_urgent_of_all_policies_comes_first(fleet: Fleet):
    fleet.policy("second")
    conflict(fleet)
    explained = fleet.run("explain")
    assert explained.code == 3
    head, section, first, *_ = explained.out.splitlines()
    assert head == "Fleet: 2 policies, 0 of 4 variants ready"
    assert section == "Blocked by:"
    assert first.split()[:2] == ["monitoring/dev", "MergeConflict"]
    views = fleet.run("explain", "-o", "json").items
    assert [it["kind"] for it in views] == ["ExplanationView"] * 2
    schema = fleet.run("schema", "ExplanationView", files=False).json
    assert views[0]["status"].keys() <= schema["$defs"]["ExplanationStatus"]["properties"].keys()


def test_a_variant_is_named_by_its_policy_and_target(fleet: Fleet):
    by_stage = fleet.run("explain", "monitoring/dev/sites/ams").out
    assert by_stage.startswith("Variant monitoring/dev/ams: Verifying, ")
    assert fleet.run("explain", "monitoring/ams").out == by_stage
    assert fleet.run("explain", "monitoring/nobody").code == 1


def test_a_variant_has_the_commands_of_its_stage(fleet: Fleet):
    approval = "requires: [{name: signed, approval: {atLeast: 1, from: [sre]}}]"
    fleet.write("policy.yaml", POLICY.replace("verification: [{name: e2e, report: {}}]", approval))
    switch_off(fleet)
    of_stage, of_variant = (
        unblocking(fleet.run("explain", subject).out)
        for subject in ("monitoring/dev", "monitoring/dev/ams")
    )
    approve = ["approve", "monitoring", "--stage", "dev", "--revision", "v2"]
    assert of_stage == [approve, ["promote", "monitoring", "--stage", "dev", "--reason", "WHY"]]
    own = ["--stage", "dev", "--variant", "ams"]
    assert of_variant == [
        ["approve", "monitoring", *own, "--revision", "v2"],
        ["promote", "monitoring", *own, "--reason", "WHY"],
    ]


def test_colors_are_for_terminals(fleet: Fleet):
    assert "\x1b" not in fleet.run("explain").out
    painted = fleet.run("explain", "monitoring", "--color", "always").out
    assert "\x1b[33m\x1b[1mPending\x1b[0m" in painted
