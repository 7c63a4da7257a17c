"""The exit status of each verb, on real repositories: one row for each status that it can have.

0 done · 1 an error of fanout or of its use · 2 invalid input · 3 something failed or a person must
mend it · 4 nothing had the effect that was asked for.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from companies import company
from editing import conflict, one_site
from fleet import Fleet, Result
from verb_statuses import (
    ANN,
    BER,
    EVE,
    MANUAL,
    PROD,
    VERB_ROWS,
    WHY,
    Change,
    all_gone,
    build_waiting_release,
    gone_while_closed,
    nothing,
    signed,
    suspended,
    window,
)


@company
def fleet(root: Path) -> Fleet:
    """Two sites in prod, published at v1 and drafted at v2, which a person is to publish."""
    return build_waiting_release(root)


@pytest.mark.parametrize(
    ("change", "line", "status"), [row[1:] for row in VERB_ROWS], ids=[row[0] for row in VERB_ROWS]
)
def test_the_exit_status_of_a_verb(fleet: Fleet, change: Change, line: Sequence[str], status: int):
    change(fleet)
    result = fleet.run(*line)
    assert result.code == status, (result.out, result.err)
    assert result.out or result.err or line[0] == "diff", "never silent"


def rows_of_each_verb() -> list[tuple[str, Change, Sequence[str], int]]:
    """Return the first row of each verb, and rows of verbs that have one status alone."""
    first = {
        line[0]: (line[0], change, line, status) for _, change, line, status in VERB_ROWS[::-1]
    }
    reading = (["status"], ["graph", "monitoring"], ["history", "monitoring"], ["render", BER])
    del first["validate"]  # has neither -q nor -A
    return [*first.values(), *((line[0], nothing, line, 0) for line in reading)]


@pytest.mark.parametrize(
    ("change", "line", "status"),
    [row[1:] for row in rows_of_each_verb()],
    ids=[row[0] for row in rows_of_each_verb()],
)
def test_each_verb_is_quiet_and_takes_all_namespaces_where_another_is_set(
    fleet: Fleet, monkeypatch, change: Change, line: Sequence[str], status: int
):
    change(fleet)
    monkeypatch.setenv("FANOUT_NAMESPACE", "other")
    result = fleet.run(*line, "-q", "-A")
    assert result.code == status, (result.out, result.err)


def test_a_record_needs_an_author(fleet: Fleet, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    result = fleet.run("suspend", *PROD, "--reason", "as agreed")
    assert (result.code, result.err) == (
        1,
        (
            'the author of the record is unknown; give --by "Name <address>", or configure'
            " user.name and user.email in Git\n"
        ),
    )


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


def _name(output: Result) -> str:
    return output.out.split()[0]


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
