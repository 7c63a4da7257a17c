"""The exit status of each verb, on real repositories: one row for each status that it can have.

0 done · 1 an error of fanout or of its use · 2 invalid input · 3 something failed or a person must
mend it · 4 nothing had the effect that was asked for.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from companies import company
from editing import conflict, one_site
from fleet import PACKAGE, POLICY, PROMOTION, Fleet, Result

ANN = ("--by", "Ann <ann@example.com>")
EVE = ("--by", "Eve <eve@example.com>")
WHY = ("--reason", "as agreed", *ANN)
BER, CPH = "sites/ber", "sites/cph"
SIGNED = "requires: [{name: signed, approval: {atLeast: 1, from: [sre]}}]"
VERIFIED = "verification: [{name: e2e, report: {}}]"
STAGES = POLICY[POLICY.index("  stages:") :]
MANUAL = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")
PROD = ("monitoring", "--stage", "prod")

Change = Callable[[Fleet], object]


def stages(*lines: str) -> str:
    return POLICY.replace(STAGES, "  stages:\n" + "".join(f"  - {{{line}}}\n" for line in lines))


@company
def fleet(root: Path) -> Fleet:
    """Two sites in prod, published at v1 and drafted at v2, which a person is to publish."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", stages(f"name: prod, {VERIFIED}"))
    made.settle()
    made.report("prod", "v1")
    made.write("promotion.yaml", MANUAL)
    made.release("v2")
    made.later(minutes=5).settle()
    return made.later(minutes=5)


def nothing(fleet: Fleet) -> None:
    """The world stays as it is."""


def newer(fleet: Fleet) -> None:
    fleet.release("v3")


def automatic(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION)
    fleet.settle()


def signed(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages(f"name: prod, {VERIFIED}, {SIGNED}"))
    fleet.later(minutes=5).settle()


def window(fleet: Fleet) -> None:
    closed = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'
    fleet.write("promotion.yaml", MANUAL + closed)


def bad_expression(fleet: Fleet) -> None:
    fleet.site("dub", "prod", "edge")
    path = fleet.root / "policies" / "site-dub.yaml"
    path.write_text(path.read_text().replace("labels: {tier: prod}", "labels: {}"))


def bad_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages("nam: prod"))


def away(fleet: Fleet) -> None:
    path = fleet.root / "state" / "records.git"
    path.rename(path.with_name("away.git"))
    path.write_text("no repository\n")


def source_gone(fleet: Fleet) -> None:
    """A required point of the published package finds nothing any more."""
    fleet.release("v3", {"settings.yaml": PACKAGE["settings.yaml"].replace("optional", "required")})
    fleet.remove("site-ber.yaml")
    fleet.site("ber", "prod", "edge")
    path = fleet.root / "policies" / "site-ber.yaml"
    path.write_text(path.read_text().partition("---")[0])


def published(fleet: Fleet) -> None:
    assert fleet.run("promote", *PROD, *WHY).code == 0
    fleet.later(minutes=5)


def failed(fleet: Fleet) -> None:
    published(fleet)
    fleet.report("prod", "v2", "failed", "--variant", BER)
    fleet.later(minutes=5)


def suspended(fleet: Fleet) -> None:
    assert fleet.run("suspend", *PROD, *WHY).code == 0


def resumed(fleet: Fleet) -> None:
    suspended(fleet)
    assert fleet.run("resume", *PROD, *WHY).code == 0


def suspended_twice(fleet: Fleet) -> None:
    suspended(fleet)
    assert fleet.run("suspend", "monitoring", *WHY).code == 0


def suspended_in_the_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages(f"name: prod, suspend: true, {VERIFIED}"))


def gone(fleet: Fleet) -> None:
    fleet.remove("site-cph.yaml")


def gone_while_closed(fleet: Fleet) -> None:
    gone(fleet)
    window(fleet)


def all_gone(fleet: Fleet) -> None:
    for site in ("ber", "cph"):
        fleet.remove(f"site-{site}.yaml")


def edited_and_gone(fleet: Fleet) -> None:
    fleet.repos["core"].commit("main", {"sites/cph/deployment.yaml": "kind: Mine\n"})
    gone(fleet)


def skipped(fleet: Fleet) -> None:
    assert fleet.run("skip", *PROD, "--variant", BER, *WHY).code == 0


VERB_ROWS: list[tuple[str, Change, Sequence[str], int]] = [
    ("plan with changes", nothing, ["plan"], 0),
    ("plan with changes, in detail", newer, ["plan", "--detailed-exitcode"], 2),
    ("plan without changes, in detail", nothing, ["plan", "--detailed-exitcode"], 0),
    ("plan of an unknown policy", nothing, ["plan", "monitorin"], 1),
    ("plan of an unknown policy, in detail", nothing, ["plan", "x", "--detailed-exitcode"], 1),
    ("plan with an unknown flag", nothing, ["plan", "--no-such"], 1),
    ("plan of a policy with errors", bad_file, ["plan", "monitoring"], 2),
    ("plan with a failing target", bad_expression, ["plan"], 3),
    ("plan with a failing target, in detail", bad_expression, ["plan", "--detailed-exitcode"], 1),
    ("plan with a failed check", failed, ["plan"], 3),
    ("plan without its records", away, ["plan"], 1),
    ("sweep", nothing, ["sweep"], 0),
    ("sweep that publishes", automatic, ["sweep"], 0),
    ("sweep of an unknown policy", nothing, ["sweep", "x"], 1),
    ("sweep without its records", away, ["sweep"], 1),
    ("sweep with another's error", bad_file, ["sweep"], 3),
    ("sweep with a failing target", bad_expression, ["sweep"], 3),
    ("sweep with a failed check", failed, ["sweep"], 3),
    ("sweep without a required source", source_gone, ["sweep"], 3),
    ("sweep with too many removals", all_gone, ["sweep"], 3),
    ("sweep that a window holds", window, ["sweep"], 0),
    ("sweep of what is suspended", suspended, ["sweep"], 0),
    ("sweep with a plan that is none", nothing, ["sweep", "--plan", "/dev/null"], 2),
    ("promote", nothing, ["promote", *PROD, *WHY], 0),
    ("promote again", published, ["promote", *PROD, *WHY], 0),
    ("promote in an unknown stage", nothing, ["promote", "monitoring", "--stage", "x", *WHY], 1),
    ("promote an unknown revision", nothing, ["promote", *PROD, "--revision", "v9", *WHY], 1),
    ("promote until what is no time", nothing, ["promote", *PROD, "--expires", "x", *WHY], 1),
    ("promote without its records", away, ["promote", *PROD, *WHY], 1),
    ("promote while a window is closed", window, ["promote", *PROD, *WHY], 4),
    ("promote what is suspended", suspended, ["promote", *PROD, *WHY], 4),
    ("promote what nobody approved", signed, ["promote", *PROD, *WHY], 0),  # it is released
    ("promote an older revision", published, ["promote", *PROD, "--revision", "v1", *WHY], 4),
    ("promote what is not drafted", newer, ["promote", *PROD, *WHY], 0),  # its draft is written
    ("approve", signed, ["approve", *PROD, "--revision", "v2", *ANN], 0),
    ("approve as nobody's approver", signed, ["approve", *PROD, "--revision", "v2", *EVE], 4),
    ("approve what has no draft", signed, ["approve", *PROD, "--revision", "v1", *ANN], 4),
    ("approve what nobody asks for", nothing, ["approve", *PROD, "--revision", "v2", *ANN], 1),
    ("approve without its records", away, ["approve", *PROD, "--revision", "v2", *ANN], 1),
    ("rollback", published, ["rollback", *PROD, *WHY], 0),
    ("rollback of nothing", nothing, ["rollback", *PROD, *WHY], 4),
    ("rollback to what never was", published, ["rollback", *PROD, "--revision", "v9", *WHY], 4),
    ("rollback in an unknown stage", nothing, ["rollback", "monitoring", "--stage", "x", *WHY], 1),
    ("skip", nothing, ["skip", *PROD, "--variant", BER, *WHY], 0),
    ("skip again", skipped, ["skip", *PROD, "--variant", BER, *WHY], 0),
    ("skip nobody", nothing, ["skip", *PROD, *WHY], 1),
    ("retry", failed, ["retry", *PROD, *WHY], 0),
    ("retry where nothing failed", nothing, ["retry", *PROD, *WHY], 4),
    ("report", published, ["report", *PROD, "--check", "e2e", "--status", "passed",
                           "--revision", "v2", *ANN], 0),
    ("report what is not published", nothing, ["report", *PROD, "--check", "e2e", "--status",
                                               "passed", "--revision", "v2", *ANN], 4),
    ("report to an unknown check", nothing, ["report", *PROD, "--check", "x", "--status", "passed",
                                             "--revision", "v1", *ANN], 1),
    ("suspend", nothing, ["suspend", *PROD, *WHY], 0),
    ("suspend again", suspended, ["suspend", *PROD, *WHY], 0),
    ("suspend an unknown stage", nothing, ["suspend", "monitoring", "--stage", "x", *WHY], 1),
    ("resume", suspended, ["resume", *PROD, *WHY], 0),
    ("resume again", resumed, ["resume", *PROD, *WHY], 0),
    ("resume what nobody suspended", nothing, ["resume", *PROD, *WHY], 4),
    ("resume less than was suspended", suspended_twice, ["resume", *PROD, *WHY], 4),
    ("resume what a file suspends", suspended_in_the_file, ["resume", *PROD, *WHY], 4),
    ("resolve what has no conflict", nothing, ["resolve", *PROD, *WHY], 4),
    ("remove", gone, ["remove", "monitoring", "cph", *WHY], 0),
    ("remove in a closed window", gone_while_closed, ["remove", "monitoring", "cph", *WHY], 4),
    ("remove what people edited", edited_and_gone, ["remove", "monitoring", "cph", *WHY], 4),
    ("remove an unknown target", nothing, ["remove", "monitoring", "x", *WHY], 1),
    ("remove all, and nothing is gone", nothing, ["remove", "monitoring", "--all-gone", *WHY], 4),
    ("revoke what nobody gave", nothing, ["revoke", "monitoring", "x", *ANN], 1),
    ("withdraw what nobody decided", nothing, ["withdraw", "monitoring", "x", *WHY], 1),
    ("diff with differences", nothing, ["diff", BER], 0),
    ("diff with differences, in detail", nothing, ["diff", BER, "--detailed-exitcode"], 2),
    ("diff without, in detail", published, ["diff", BER, "--detailed-exitcode"], 0),
    ("diff of an unknown variant, in detail", nothing, ["diff", "x", "--detailed-exitcode"], 1),
    ("diff of an unknown variant", nothing, ["diff", "x"], 1),
    ("explain what waits", nothing, ["explain", "monitoring"], 0),
    ("explain what failed", failed, ["explain", "monitoring"], 3),
    ("explain an unknown policy", nothing, ["explain", "x"], 1),
    ("forecast", nothing, ["forecast", "monitoring"], 0),
    ("forecast of what is suspended", suspended, ["forecast", "monitoring"], 3),
    ("get", nothing, ["get", "variants"], 0),
    ("get nothing known", nothing, ["get", "things"], 1),
    ("get beside errors", bad_file, ["get", "variants"], 3),
    ("validate", nothing, ["validate"], 0),
    ("validate errors", bad_file, ["validate"], 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line", "status"), [row[1:] for row in VERB_ROWS], ids=[row[0] for row in VERB_ROWS]
)
def test_the_exit_status_of_a_verb(fleet: Fleet, change: Change, line: Sequence[str], status: int):
    change(fleet)
    told = fleet.run(*line)
    assert told.code == status, (told.out, told.err)
    assert told.out or told.err or line[0] == "diff", "never silent"


def test_no_files_are_an_error_of_use(fleet: Fleet):
    assert fleet.run("sweep", files=False).code == 1


def test_an_outdated_plan_has_no_effect(fleet: Fleet, tmp_path: Path):
    saved = str(tmp_path / "plan.json")
    fleet.release("v3")
    assert fleet.plan("--out", saved).code == 0
    fleet.release("v4")
    before = fleet.refs()
    assert fleet.sweep("--plan", saved).code == 4
    assert fleet.refs() == before


def test_a_conflict_is_to_be_mended(tmp_path: Path):
    made = one_site(tmp_path)
    conflict(made)
    assert made.later(minutes=1).sweep("--drafts-only").code == 3
    assert made.sweep("--drafts-only").code == 3, "also at rest"


def _name(told: Result) -> str:
    return told.out.split()[0]


def test_revoking_an_approval(fleet: Fleet):
    signed(fleet)
    line = ("approve", *PROD, "--revision", "v2")
    approval = _name(fleet.run(*line, *ANN))
    assert fleet.run("revoke", "monitoring", approval, *EVE).code == 4
    assert fleet.run("revoke", "monitoring", approval, *ANN).code == 0
    assert fleet.run("revoke", "monitoring", approval, *ANN).code == 0, "it is revoked already"


def test_withdrawing_a_decision(fleet: Fleet):
    window(fleet)
    decision = _name(fleet.run("promote", *PROD, *WHY))
    assert fleet.run("withdraw", "monitoring", decision, *WHY).code == 0
    assert fleet.run("withdraw", "monitoring", decision, *WHY).code == 0, "it is withdrawn already"
    fleet.write("promotion.yaml", MANUAL)
    spent = _name(fleet.run("promote", *PROD, *WHY))
    assert fleet.run("withdraw", "monitoring", spent, *WHY).code == 4


def reasons(fleet: Fleet) -> set[tuple[str, str]]:
    """Site or stage, and reason, of each hold in the plan as data."""
    plan = fleet.plan("-o", "json").json
    return {
        (
            (it.get("variant") or it.get("stage") or "policy").removeprefix("monitoring-")[:4],
            it["reason"],
        )
        for it in plan["holds"]
    }


HOLDS: list[tuple[str, Change, set[tuple[str, str]]]] = [
    ("automation is off", nothing, {("ber-", "AutomationOff"), ("cph-", "AutomationOff")}),
    ("a closed window", window, {("ber-", "WindowClosed"), ("cph-", "WindowClosed")}),
    ("all targets are gone", all_gone, {("ber-", "TooManyRemovals"), ("poli", "TooManyRemovals")}),
    ("one is gone, in a closed window", gone_while_closed, {("cph-", "WindowClosed")}),
    ("suspended", suspended, {("prod", "Suspended")}),
    ("approvals are missing", signed, {("ber-", "AutomationOff")}),
]


@pytest.mark.parametrize(
    ("change", "expected"), [row[1:] for row in HOLDS], ids=[row[0] for row in HOLDS]
)
def test_a_plan_as_data_gives_the_reason_of_every_hold(
    fleet: Fleet, change: Change, expected: set[tuple[str, str]]
):
    change(fleet)
    assert expected <= reasons(fleet), reasons(fleet)
    assert expected <= reasons(fleet), "also at rest"


def test_a_plan_as_data_lists_the_hold_of_a_stage_once(fleet: Fleet):
    suspended(fleet)
    holds = fleet.plan("-o", "json").json["holds"]
    [hold] = [it for it in holds if it["reason"] == "Suspended"]
    assert (hold["stage"], hold.get("variant")) == ("prod", None)
    assert len({json.dumps({**it, "variant": ""}) for it in holds}) == len(holds)
