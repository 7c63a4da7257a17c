"""Each command that `explain` prints unblocks, run as it is in the state that printed it."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from companies import Companies
from fleet import PACKAGE, POLICY, PROMOTION, Fleet

from fanout.api.reasons import Reason

ANN = ("--by", "Ann <ann@example.com>")
MONITOR = ("--by", "Monitor <monitor@example.com>")
WHY = ("--reason", "because", *ANN)
AMS, CPH = "sites/ams", "sites/cph"
DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"
REVIEW = "{name: review, approval: {from: [sre]}}"
TEXT = PACKAGE["deployment.yaml"]
MANUAL = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")
OURS = {f"{AMS}/deployment.yaml": f"{TEXT}# ours\n"}
# Verbs that only show something; they are run, and end nothing.
SHOWING = {"diff", "explain"}
# Verbs without an author.
UNSIGNED = {"get", "sweep", *SHOWING}
ASKING = {"rollback"}


def at_rest(root: Path) -> Fleet:
    """Two sites in dev, which waits for reports, and one in prod behind them."""
    made = Fleet.build(
        root, {"ams": ("dev", "edge"), "ber": ("dev", "edge"), "cph": ("prod", "edge")}
    )
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.settle()
    return made.later(minutes=5)


def stages(fleet: Fleet, dev: str, prod: str = "{name: prod, after: {stages: [dev]}}") -> None:
    head = POLICY.partition("  stages:\n")[0]
    fleet.write("policy.yaml", f"{head}  stages:\n  - {dev}\n  - {prod}\n")


def next_revision(fleet: Fleet) -> None:
    fleet.release("v2")
    fleet.later(minutes=1).settle()


def no_report(fleet: Fleet) -> None:
    pass


def failed_report(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1", "failed", "--variant", "ams").code == 0


def contradiction(fleet: Fleet) -> None:
    failed_report(fleet)
    others = ("--stage", "dev", "--check", "e2e", "--status", "passed", "--revision", "v1")
    done = fleet.run("report", "monitoring", *others, "--variant", "ams", *ANN)
    assert done.code == 0, done.err


def failed_requirement(fleet: Fleet) -> None:
    stages(fleet, "{name: dev, requires: [{name: e2e, report: {}}]}")
    next_revision(fleet)
    assert fleet.report("dev", "v2", "failed", "--variant", "ams").code == 0


def timed_out(fleet: Fleet) -> None:
    stages(fleet, "{name: dev, verification: [{name: e2e, report: {}, timeout: 10m}]}")
    fleet.later(minutes=20)


def late(fleet: Fleet) -> None:
    stages(fleet, f"{DEV[:-1]}, rollout: {{progressDeadline: 10m}}}}")
    fleet.later(minutes=20)


def in_flight(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1").code == 0
    stages(fleet, f"{DEV[:-1]}, rollout: {{maxInFlight: 1}}}}")
    next_revision(fleet)


def earlier_group(fleet: Fleet) -> None:
    text = (fleet.root / fleet.policies / "site-ams.yaml").read_text(encoding="utf-8")
    fleet.write("site-ams.yaml", text.replace("tier: dev", "tier: dev, canary: 'yes'"))
    stages(fleet, f"{DEV[:-1]}, rollout: {{groups: [{{matchLabels: {{canary: 'yes'}}}}]}}}}")
    next_revision(fleet)


def halted(fleet: Fleet) -> None:
    in_flight(fleet)
    [moved] = [path for path, revision in fleet.published().items() if revision == "v2"]
    assert fleet.report("dev", "v2", "failed", "--variant", moved).code == 0


def halted_by_a_rollback(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1").code == 0
    next_revision(fleet)
    assert fleet.report("dev", "v2").code == 0
    back = ("rollback", "monitoring", "--stage", "dev", "--variant", "ams", "--yes")
    assert fleet.run(*back, *WHY).code == 0
    fleet.later(minutes=1).settle()
    fleet.release("v3")
    fleet.later(minutes=1).settle()


def shared_draft(fleet: Fleet) -> None:
    stages(fleet, f"{{name: dev, requires: [{REVIEW}]}}")
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", policy.replace("  stages:\n", "  draftPer: Stage\n  stages:\n"))
    next_revision(fleet)
    approval = ("approve", "monitoring", "--stage", "dev", "--variant", "ams", "--revision", "v2")
    assert fleet.run(*approval, *ANN).code == 0


def stage_before(fleet: Fleet) -> None:
    pass


def stage_before_failed(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1", "failed").code == 0


def no_approval(fleet: Fleet) -> None:
    stages(fleet, f"{{name: dev, requires: [{REVIEW}]}}")
    next_revision(fleet)


def conflict(fleet: Fleet) -> None:
    changed = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {f"{AMS}/deployment.yaml": changed})
    next_revision(fleet)


def suspended(*scope: str) -> Callable[[Fleet], None]:
    def suspend(fleet: Fleet) -> None:
        next_revision(fleet)
        fleet.release("v3")
        done = fleet.later(minutes=1).run("suspend", "monitoring", *scope, *WHY)
        assert done.code == 0, done.err

    return suspend


def adoption(fleet: Fleet) -> None:
    policy = POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
    fleet.write("policy.yaml", policy)
    upstream = fleet.repos["blueprints"]
    commit = upstream.refs()["refs/tags/monitoring/v1"]
    git = f"  git: {{repo: {upstream.path}, directory: /monitoring, ref: monitoring/v1"
    kptfile = PACKAGE["Kptfile"] + f"upstream:\n  type: git\n{git}}}\n"
    kptfile += f"upstreamLock:\n  type: git\n{git}, commit: {commit}}}\n"
    package = {f"sites/dus/{name}": text for name, text in PACKAGE.items()}
    fleet.repos["edge"].commit("main", {**package, "sites/dus/Kptfile": kptfile}, "cloned")
    fleet.site("dus", "dev", "edge")
    fleet.sweep()


def no_automation(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    fleet.release("v2")
    fleet.sweep("--drafts-only")


def rewound(fleet: Fleet) -> None:
    records_branch = "refs/heads/fanout/default/default/monitoring"
    assert fleet.report("dev", "v1").code == 0
    fleet.settle()
    fleet.records().git("update-ref", records_branch, f"{records_branch}~2")


def closed_window(fleet: Fleet) -> None:
    closed = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'  # all of that day
    fleet.write("promotion.yaml", PROMOTION + closed)
    next_revision(fleet)


def older_candidate(fleet: Fleet) -> None:
    next_revision(fleet)
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", policy.replace(">=1 <9", ">=1 <2"))
    fleet.later(minutes=1).sweep("--drafts-only")


def unwritten_draft(fleet: Fleet) -> None:
    fleet.release("v2")


def target_gone(fleet: Fleet) -> None:
    no_automation(fleet)
    fleet.remove("site-ber.yaml")


def removal_to_approve(fleet: Fleet) -> None:
    stages(fleet, f"{{name: dev, requires: [{REVIEW}]}}")
    fleet.remove("site-ber.yaml")
    fleet.later(minutes=1).sweep()


def many_gone(fleet: Fleet) -> None:
    policy = POLICY.replace("  stages:\n", "  removalLimit: 1\n  stages:\n")
    fleet.write("policy.yaml", policy)
    for name in ("ams", "ber", "cph"):
        fleet.remove(f"site-{name}.yaml")


def later_removal(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [dev]"))
    fleet.remove("site-ams.yaml")
    fleet.remove("site-cph.yaml")


def reverted(fleet: Fleet) -> None:
    next_revision(fleet)
    edge = fleet.repos["edge"]
    tree = edge.git("rev-parse", f"{AMS}/v1^{{tree}}")
    commit = edge.git("commit-tree", tree, "-p", "refs/heads/main", "-m", "Revert")
    edge.git("update-ref", "refs/heads/main", commit)
    fleet.sweep()


def pending_of_another(fleet: Fleet, *, passed: bool = True) -> None:
    if passed:
        assert fleet.report("dev", "v1", "passed", "--variant", "ams").code == 0
    others = ("--stage", "dev", "--check", "e2e", "--status", "pending", "--revision", "v1")
    done = fleet.run("report", "monitoring", *others, "--variant", "ams", *MONITOR)
    assert done.code == 0, done.err


def timed_out_while_pending(fleet: Fleet) -> None:
    pending_of_another(fleet, passed=False)
    timed_out(fleet)


def contradiction_about_a_draft(fleet: Fleet) -> None:
    failed_requirement(fleet)
    others = ("--stage", "dev", "--check", "e2e", "--status", "passed", "--revision", "v2")
    done = fleet.run("report", "monitoring", *others, "--variant", "ams", *MONITOR)
    assert done.code == 0, done.err


def all_skipped(fleet: Fleet) -> None:
    variants = ("--variant", "ams", "--variant", "ber")
    done = fleet.run("skip", "monitoring", "--stage", "dev", *variants, "--revision", "v1", *WHY)
    assert done.code == 0, done.err


def one_skipped(fleet: Fleet) -> None:
    done = fleet.run(
        "skip", "monitoring", "--stage", "dev", "--variant", "ams", "--revision", "v1", *WHY
    )
    assert done.code == 0, done.err


def queued(fleet: Fleet) -> None:
    two = "{name: review, approval: {from: [sre], atLeast: 2}}"
    stages(fleet, f"{{name: dev, requires: [{two}]}}")
    next_revision(fleet)
    approval = ("approve", "monitoring", "--stage", "dev", "--revision", "v2")
    assert fleet.run(*approval, "--by", "Bob <bob@example.com>").code == 0
    fleet.release("v3")
    fleet.later(minutes=1).sweep()


def serialized(fleet: Fleet) -> None:
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", policy.replace("  stages:\n", "  inFlight: Serialize\n  stages:\n"))
    next_revision(fleet)


def serialized_although_promoted(fleet: Fleet) -> None:
    serialized(fleet)
    promotion = ("promote", "monitoring", "--stage", "dev", "--revision", "v2")
    assert fleet.run(*promotion, *WHY).code in (0, 4)
    fleet.later(minutes=1).settle()


def waiting_decision(fleet: Fleet) -> None:
    fleet.release("v2")
    fleet.sweep("--drafts-only")
    promotion = ("promote", "monitoring", "--stage", "prod", "--revision", "v2")
    done = fleet.run(*promotion, *WHY)
    assert done.code in (0, 4), done.err


def dated_ahead(fleet: Fleet) -> None:
    fleet.later(minutes=60)
    assert fleet.report("dev", "v1").code == 0
    fleet.later(minutes=-60)


def go_back(fleet: Fleet) -> None:
    assert fleet.run("rollback", "monitoring", "--stage", "dev", "--yes", *WHY).code in (0, 3)
    fleet.settle()


def rolled_back(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1").code == 0
    next_revision(fleet)
    go_back(fleet)


def soak_cut_short(fleet: Fleet) -> None:
    stages(fleet, DEV, "{name: prod, after: {stages: [dev], soak: 1h}}")
    assert fleet.report("dev", "v1").code == 0
    fleet.later(minutes=90).settle()
    next_revision(fleet)
    assert fleet.report("dev", "v2").code == 0
    fleet.later(minutes=1).sweep()
    go_back(fleet)


def declare_paths(fleet: Fleet) -> None:
    """Have the packages at the paths that the targets name, and publish by decisions alone."""
    path = "has(target.spec.path) ? target.spec.path : 'sites/' + target.metadata.name"
    text = POLICY.replace(", soak: 1h", "").replace("'sites/' + target.metadata.name", path)
    fleet.write("policy.yaml", text)
    fleet.write("promotion.yaml", MANUAL)


def leftover(fleet: Fleet) -> None:
    declare_paths(fleet)
    fleet.site("ams", "dev", "edge", path="eu/ams")
    fleet.later(minutes=1).settle()
    moved = fleet.run("promote", "monitoring", "--stage", "dev", "--variant", "ams", *WHY)
    assert moved.code == 0, moved.err
    assert fleet.report("dev", "v1").code == 0
    fleet.later(minutes=1).settle()


def edited_leftover(fleet: Fleet) -> None:
    leftover(fleet)
    fleet.repos["edge"].commit("main", OURS)


def edited_and_gone(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", OURS)
    fleet.remove("site-ams.yaml")


def path_of_one_gone(fleet: Fleet) -> None:
    declare_paths(fleet)
    fleet.remove("site-ams.yaml")
    fleet.site("dub", "dev", "edge", path=AMS)


def stale_answer(fleet: Fleet) -> None:
    stages(fleet, "{name: dev, requires: [{name: e2e, report: {}, freshFor: 1h}]}")
    fleet.write("promotion.yaml", MANUAL)
    fleet.release("v2")
    fleet.later(minutes=1).sweep()
    assert fleet.report("dev", "v2").code == 0
    fleet.later(minutes=90).sweep()


def removed_by_hand(fleet: Fleet) -> None:
    edge = fleet.repos["edge"]
    edge.commit("main", dict.fromkeys(it for it in edge.files() if it.startswith(f"{AMS}/")))


def soak_of_the_next_cut_short(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [dev]"))
    soak_cut_short(fleet)


STATES: list[tuple[str, Callable[[Fleet], None], Reason]] = [
    ("no report", no_report, Reason.VERIFICATION_PENDING),
    ("a failed report", failed_report, Reason.VERIFICATION_FAILED),
    ("two reporters who differ", contradiction, Reason.CONTRADICTION),
    ("a draft that failed a check", failed_requirement, Reason.REQUIRES_FAILED),
    ("a pending report beside one that passed", pending_of_another, Reason.VERIFICATION_PENDING),
    ("a contradiction about a draft", contradiction_about_a_draft, Reason.REQUIRES_FAILED),
    ("a report that is dated ahead", dated_ahead, Reason.FROM_THE_FUTURE),
    ("no report in time", timed_out, Reason.CHECK_TIMED_OUT),
    ("a pending report, and no other in time", timed_out_while_pending, Reason.CHECK_TIMED_OUT),
    ("not ready in time", late, Reason.DEADLINE_EXCEEDED),
    ("as many in flight as may be", in_flight, Reason.BUDGET_EXHAUSTED),
    ("an earlier group", earlier_group, Reason.GROUP_AWAITS),
    ("too many failures", halted, Reason.HALTED),
    ("a variant that went back alone", halted_by_a_rollback, Reason.HALTED),
    ("a shared draft", shared_draft, Reason.STAGE_DRAFT_PENDING),
    ("one revision at a time", serialized, Reason.SERIALIZED),
    ("a promoted one behind one in flight", serialized_although_promoted, Reason.SERIALIZED),
    ("a revision that is approved by some", queued, Reason.REVISION_QUEUED),
    ("a stage of skipped variants", all_skipped, Reason.NOTHING_COUNTS),
    ("a decision about a later candidate", waiting_decision, Reason.DECISION_WAITS),
    ("a stage before", stage_before, Reason.AFTER_PENDING),
    ("a stage before that failed", stage_before_failed, Reason.AFTER_FAILED),
    ("a soak that was cut short", soak_cut_short, Reason.SOAK_CUT_SHORT),
    ("a soak of the next one", soak_of_the_next_cut_short, Reason.SOAK_CUT_SHORT),
    ("no approval", no_approval, Reason.APPROVAL_MISSING),
    ("a conflict", conflict, Reason.MERGE_CONFLICT),
    ("a suspended policy", suspended(), Reason.SUSPENDED),
    ("a suspended stage", suspended("--stage", "dev"), Reason.SUSPENDED),
    ("a suspended variant", suspended("--variant", "ams"), Reason.SUSPENDED),
    ("an adopted package", adoption, Reason.ADOPTION_AWAITS),
    ("no automation", no_automation, Reason.AUTOMATION_OFF),
    ("records that were put back", rewound, Reason.RECORDS_REWOUND),
    ("a closed window", closed_window, Reason.WINDOW_CLOSED),
    ("an older candidate", older_candidate, Reason.WOULD_GO_BACK),
    ("a draft that is not written", unwritten_draft, Reason.NO_DRAFT),
    ("a variant without a target", target_gone, Reason.AUTOMATION_OFF),
    ("a removal that nobody approved", removal_to_approve, Reason.APPROVAL_MISSING),
    ("more removals than may be", many_gone, Reason.TOO_MANY_REMOVALS),
    ("a removal after one of a later stage", later_removal, Reason.REMOVAL_AWAITS),
    ("a publication that was reverted", reverted, Reason.EDITED_DOWNSTREAM),
    ("a package that a move has left", leftover, Reason.PLACE_LEFT),
    ("an edited one that a move has left", edited_leftover, Reason.EDITED_DOWNSTREAM),
    ("an edited package without a target", edited_and_gone, Reason.EDITED_DOWNSTREAM),
    ("the path of a variant without a target", path_of_one_gone, Reason.PATH_TAKEN),
    ("an answer that is too old", stale_answer, Reason.ANSWER_STALE),
]


def blockers(fleet: Fleet) -> list[dict]:
    return fleet.run("explain", "monitoring", "-o", "json").json["status"]["blockers"]


def blocker(fleet: Fleet, reason: str, of: dict | None = None) -> dict | None:
    """Return the first blocker with the reason, which concerns what the one in `of` does."""
    for candidate in blockers(fleet):
        same = of is None or (
            candidate["stage"] == of["stage"]
            and ({*candidate["variants"]} & {*of["variants"]} or not of["variants"])
        )
        if candidate["reason"] == reason and same:
            return candidate
    return None


def run(fleet: Fleet, command: str) -> None:
    program, verb, *rest = shlex.split(command)
    assert program == "fanout"
    answer = ["--yes"] if verb in ASKING else []  # what a person answers on a terminal
    done = fleet.run(verb, *rest, *answer, *(() if verb in UNSIGNED else ANN))
    assert done.code in ((0, 1) if verb in SHOWING else (0, 3)), f"{command}: {done.err}"


@pytest.mark.parametrize(("_", "block", "reason"), STATES, ids=[row[0] for row in STATES])
def test_each_command_alone_unblocks(companies: Companies, _, block, reason):
    fleet = companies.begin(at_rest)
    block(fleet)
    blocking = blocker(fleet, reason)
    assert blocking is not None, blockers(fleet)
    assert blocking["commands"]
    for command in blocking["commands"]:
        fleet = companies.begin(at_rest)
        block(fleet)
        assert blocker(fleet, reason) == blocking
        run(fleet.later(minutes=1), command)
        if shlex.split(command)[1] not in SHOWING:
            for _ in range(3):
                fleet.later(minutes=1).sweep()
            assert blocker(fleet, reason, blocking) is None, command


NOTES: list[tuple[str, Callable[[Fleet], None], Reason]] = [
    ("a rollback", rolled_back, Reason.PINNED),
    ("a skipped variant", one_skipped, Reason.SKIPPED),
    ("a report that is dated ahead", dated_ahead, Reason.FROM_THE_FUTURE),
]


def notes(fleet: Fleet, reason: str) -> list[dict]:
    view = fleet.run("explain", "monitoring", "-o", "json").json["status"]
    return [it for it in view["notes"] if it["reason"] == reason]


@pytest.mark.parametrize(("_", "begin", "reason"), NOTES, ids=[row[0] for row in NOTES])
def test_the_command_of_a_note_ends_what_it_is_about(companies: Companies, _, begin, reason):
    fleet = companies.begin(at_rest)
    begin(fleet)
    [note] = notes(fleet, reason)
    run(fleet.later(minutes=1), note["command"])
    fleet.sweep()
    assert notes(fleet, reason) == []


def window_over_a_removal(fleet: Fleet) -> None:
    closed_window(fleet)
    fleet.remove("site-ams.yaml")


def pending_alone(fleet: Fleet) -> None:
    pending_of_another(fleet, passed=False)


def early_approval(fleet: Fleet) -> None:
    prod = f"{{name: prod, after: {{stages: [dev], soak: 1h}}, requires: [{REVIEW}]}}"
    stages(fleet, DEV, prod)
    next_revision(fleet)


# Nothing that somebody runs ends these: time does, or whoever is named.
WITHOUT = [
    ("a removal that a window holds", window_over_a_removal, Reason.WINDOW_CLOSED, "ams"),
    ("an approval before the soak", early_approval, Reason.APPROVAL_MISSING, "cph"),
    ("a package that was removed by hand", removed_by_hand, Reason.EDITED_DOWNSTREAM, "ams"),
    ("a check of which a reporter says so", pending_alone, Reason.VERIFICATION_PENDING, "ams"),
]


@pytest.mark.parametrize(("_", "block", "reason", "site"), WITHOUT, ids=[row[0] for row in WITHOUT])
def test_no_command_is_printed_that_does_not_help(companies: Companies, _, block, reason, site):
    fleet = companies.begin(at_rest)
    block(fleet)
    candidate = [it for it in blockers(fleet) if it["reason"] == reason and site in str(it)]
    assert [it["commands"] for it in candidate] == [[]]
    assert candidate[0]["who"] or "who can act" in candidate[0]["message"]


def test_the_note_of_a_dropped_revision_has_no_command(companies: Companies):
    fleet = companies.begin(at_rest)
    stages(fleet, DEV, "{name: prod, after: {stages: [dev], soak: 1h}}")
    assert fleet.report("dev", "v1").code == 0
    fleet.later(minutes=1).sweep()
    next_revision(fleet)
    # Nothing waits for v1: v2 is to follow it.
    [note] = notes(fleet, Reason.SOAK_CUT_SHORT)
    assert (note["command"], "--override soak" in note["who"]) == ("", True)


def soaking(fleet: Fleet) -> None:
    stages(fleet, DEV, "{name: prod, after: {stages: [dev], soak: 1h}}")
    fleet.release("v2")
    fleet.sweep("--drafts-only")


PROMOTE_V2 = ("promote", "monitoring", "--revision", "v2", "--reason", "because")
MESSAGES: list[tuple[str, Callable[[Fleet], None], tuple[str, ...]]] = [
    ("nothing to go back to", no_report, ("rollback", "monitoring", "--stage", "dev", "--yes")),
    ("nothing that failed", no_report, ("retry", "monitoring", "--stage", "dev")),
    ("nobody to skip", no_report, ("skip", "monitoring", "--stage", "dev")),
    ("no such record", no_report, ("withdraw", "monitoring", "one")),
    ("no such approval", no_report, ("revoke", "monitoring", "one")),
    ("no conflict", no_report, ("resolve", "monitoring", "--stage", "dev")),
    ("no such policy", no_report, ("suspend", "other")),
    ("no orphan", no_report, ("remove", "monitoring", "--all-gone")),
    (
        "a stage that is rolled back",
        rolled_back,
        (*PROMOTE_V2, "--stage", "dev", "--variant", "ams"),
    ),
    ("an override too few", soaking, (*PROMOTE_V2, "--stage", "prod", "--override", "after")),
]


@pytest.mark.parametrize(("_", "begin", "line"), MESSAGES, ids=[row[0] for row in MESSAGES])
def test_the_commands_of_a_message_can_be_run(companies: Companies, _, begin, line):
    fleet = companies.begin(at_rest)
    begin(fleet)
    reason = () if "--reason" in line or line[0] == "revoke" else ("--reason", "because")
    result = fleet.later(minutes=1).run(*line, *reason, *ANN)
    assert result.code in (1, 2, 4)
    commands = re.findall(r"`(fanout [^`]+)`", result.err)
    assert commands, result.err
    for command in commands:
        if not re.search(r" (VARIANT|FILE)\b", command):
            run(fleet, command)
