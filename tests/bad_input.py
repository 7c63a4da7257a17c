"""Bad input by people, machines and changes in docs/reference/input-errors.md, row by row.

Each function is given a company whose site ams is published at v1 in dev, and whose site ber waits
in prod for two approvals. It answers what is printed, and asserts what is held and what is not.
"""

from collections.abc import Callable
from datetime import timedelta

from fleet import POLICY, PROMOTION, Fleet

from fanout.cluster.file_cluster import FileCluster
from fanout.controller.sweep_schedule import build_timetable
from fanout.reconcile.pass_scope import PassMode

CI = ("--by", "Ci <ci@example.com>")
FREEZE = 'windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]'  # the day of the tests
Play = Callable[[Fleet], str]


def approve(fleet: Fleet, who: str, status: int = 0) -> str:
    fleet.later(minutes=1)
    line = ("approve", "monitoring", "--stage", "prod", "--revision", "v1")
    done = fleet.run(*line, "--by", f"{who} <{who}@example.com>")
    assert done.code == status, done.err
    return done.err


def awaiting_approval(fleet: Fleet) -> None:
    fleet.report("dev", "v1")
    fleet.settle()
    assert fleet.states()["sites/ber"] == "Released"


def _approved_twice(fleet: Fleet) -> str:
    awaiting_approval(fleet)
    approve(fleet, "ann")
    approve(fleet, "ann")
    fleet.settle()
    assert fleet.published()["sites/ber"] == ""
    return fleet.condition("sites/ber")[1]


def _approver_left(fleet: Fleet) -> str:
    awaiting_approval(fleet)
    approve(fleet, "ann")
    without = PROMOTION.replace("ann@", "cid@")
    fleet.write("promotion.yaml", without)
    approve(fleet, "bob")
    fleet.settle()
    assert fleet.published()["sites/ber"] == ""
    sentence = fleet.condition("sites/ber")[1]
    for text in (PROMOTION, without):  # who is back counts again; what is published stays
        fleet.write("promotion.yaml", text)
        fleet.settle()
        assert fleet.published()["sites/ber"] == "v1"
    return sentence


def _approved_by_a_stranger(fleet: Fleet) -> str:
    awaiting_approval(fleet)
    return approve(fleet, "eve", status=4)


def _evidence_ahead(fleet: Fleet) -> str:
    fleet.later(hours=1).report("dev", "v1")
    fleet.later(minutes=-10)
    assert fleet.states()["sites/ams"] == "Verifying"
    sentence = fleet.condition("sites/ams")[1]
    fleet.later(minutes=10).settle()
    assert fleet.states()["sites/ams"] == "Ready"
    return sentence


def _clock_back(fleet: Fleet) -> str:
    fleet.report("dev", "v1")
    fleet.later(minutes=30).settle()
    before = fleet.refs()
    fleet.later(hours=-2, minutes=-30)
    assert fleet.sweep().code == 0
    assert fleet.refs() == before, "nothing is taken back"
    [dev, _] = fleet.run("get", "stages", "-o", "json").views
    assert dev["verdict"] == "Passed"
    return fleet.condition("sites/ams")[1]


def report_commit(fleet: Fleet, commit: str) -> tuple[int, str]:
    line = ("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed")
    done = fleet.later(minutes=1).run(*line, "--commit", commit, *CI)
    return done.code, done.err


def _commit_elsewhere(fleet: Fleet) -> str:
    edge = fleet.repos["edge"]
    old = edge.git("rev-parse", "main")
    abandoned_commit = edge.commit("main", {"README.md": "never meant\n"})
    edge.git("update-ref", "refs/heads/main", old)
    before = fleet.records().refs()
    code, output = report_commit(fleet, abandoned_commit)
    assert (code, fleet.records().refs()) == (1, before), output
    return output


def _commit_rebased_away(fleet: Fleet) -> str:
    edge = fleet.repos["edge"]
    old = edge.git("rev-parse", "main")
    tested = edge.commit("main", {"README.md": "never meant\n"})
    assert report_commit(fleet, tested)[0] == 0
    fleet.settle()
    assert fleet.states()["sites/ams"] == "Ready"
    edge.git("update-ref", "refs/heads/main", old)
    edge.commit("main", {"README.md": "rebased\n"})
    fleet.later(minutes=1).settle()
    assert fleet.states()["sites/ams"] == "Verifying"
    [dev, _] = fleet.run("get", "stages", "-o", "json").views
    assert dev["verdict"] == "Passed", "what is on record is withdrawn by a failure alone"
    return fleet.condition("sites/ams")[1]


PEOPLE: dict[str, Play] = {
    "one person approves twice": _approved_twice,
    "an approver leaves the group": _approver_left,
    "a user who is not in the group approves": _approved_by_a_stranger,
    "evidence is dated more than five minutes ahead": _evidence_ahead,
    "the clock goes back by two hours": _clock_back,
    "evidence for a commit that is not on the branch": _commit_elsewhere,
    "evidence for a commit that is rebased away later": _commit_rebased_away,
}


def narrow(fleet: Fleet) -> None:
    text = POLICY.replace("kind: Cluster}", "kind: Cluster, matchLabels: {wanted: very}}")
    fleet.write("policy.yaml", text)


def _matches_nothing(fleet: Fleet) -> str:
    before = fleet.repos["edge"].refs()
    narrow(fleet)
    swept = fleet.sweep()
    assert fleet.repos["edge"].refs() == before
    return swept.err


def _matches_nothing_warned(fleet: Fleet) -> str:
    narrow(fleet)
    validated = fleet.run("validate")
    assert validated.code == 0
    return validated.out


def _stage_renamed(fleet: Fleet) -> str:
    text = POLICY.replace("{name: dev,", "{name: test,").replace("[dev]", "[test]")
    fleet.write("policy.yaml", text)
    fleet.release("v2")
    swept = fleet.sweep()
    assert swept.code == 3
    assert fleet.states()["sites/ams"] == "Held"
    assert fleet.published()["sites/ams"] == "v1"
    return swept.err


def _stage_renamed_alone(fleet: Fleet) -> str:
    fleet.write("policy.yaml", POLICY.replace("{name: dev,", "{name: test,"))
    fleet.release("v2")
    before = fleet.refs()
    swept = fleet.sweep()
    assert (swept.code, fleet.refs()) == (3, before)
    return swept.err


def second(fleet: Fleet, stages: str, *more: str) -> None:
    text = PROMOTION.replace("everything", "second").replace('{stages: ["*"]}', stages)
    fleet.write("second.yaml", text + "".join(f"  {line}\n" for line in more))


def _automation_disputed(fleet: Fleet) -> str:
    second(fleet, "{stages: [prod]}")
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ams"] == "v1"
    sentence = fleet.condition("sites/ams")[1]
    line = ("promote", "monitoring", "--stage", "dev", "--revision", "v2", "--reason", "x", *CI)
    assert fleet.run(*line).code == 0
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"
    return sentence


def _time_disputed(fleet: Fleet) -> str:
    second(fleet, '{stages: ["*"]}', FREEZE)
    return closed(fleet)


def closed(fleet: Fleet) -> str:
    """A newer revision waits for the window that is closed today, and no longer."""
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ams"] == "v1"
    return fleet.condition("sites/ams")[1]


def _many_windows(fleet: Fleet) -> str:
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    others = (
        f'{{deny: {{schedule: "{n % 60} {n // 60 % 24} {1 + n // 1440 % 28} 4 *", duration: 1h}}}}'
        for n in range(999)
    )
    windows = FREEZE.replace("[", f"[{', '.join(others)}, ")
    fleet.write("promotion.yaml", f"{PROMOTION}  {windows}\n")
    assert fleet.sweep().out == "nothing to do\n"
    return fleet.condition("sites/ams")[1]


def _circle(fleet: Fleet) -> str:
    for name, other in (("web", "db"), ("db", "web")):
        fleet.write(
            f"variant-{name}.yaml",
            "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\n"
            f"metadata: {{name: {name}}}\nspec:\n"
            "  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}\n"
            f"  downstream: {{repository: edge, package: {name}}}\n"
            f"  dependsOn: [{{variant: {other}}}]\n",
        )
    second(fleet, '{stages: ["*"]}', "variants: [web, db]")
    assert fleet.run("validate").code == 2
    fleet.sweep()
    fleet.sweep()
    assert (fleet.published()["web"], fleet.published()["db"]) == ("", "")
    return fleet.condition("web")[1]


def _every_minute(fleet: Fleet) -> str:
    fleet.write("promotion.yaml", f'{PROMOTION}  schedule: "* * * * *"\n')
    declared = FileCluster([fleet.root / fleet.policies]).read()
    [timed] = build_timetable(declared).schedules
    begun = timed.log_entry(fleet.now)
    ended = fleet.now + timedelta(minutes=7, seconds=30)
    missed = timed.find_missed(begun, ended)
    assert missed == fleet.now + timedelta(minutes=7), "the last one that was missed, once"
    assert timed.find_missed(timed.log_entry(missed), ended) is None
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    with fleet.opened() as program:
        [passed] = program.observe(PassMode(sweep=False)).policies
    assert passed.decision
    holds = [hold for it in passed.decision.variants.values() for hold in it.holds]
    return "\n".join(hold.message for hold in holds)


CHANGES: dict[str, Play] = {
    "a selector suddenly matches nothing": _matches_nothing,
    "the same selector, validated in advance": _matches_nothing_warned,
    "a stage is renamed with variants in it": _stage_renamed,
    "a stage is renamed, and a later stage still names the old one": _stage_renamed_alone,
    "two PromotionPolicies disagree about automation": _automation_disputed,
    "two PromotionPolicies disagree about the time": _time_disputed,
    "variants depend on each other": _circle,
    "1,000 windows, the maximum": _many_windows,
    "a schedule every minute, sweeps that take longer": _every_minute,
}
