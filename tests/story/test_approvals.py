"""Who may say yes, to what, for how long; and what an override lifts."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, PROMOTION, Fleet

from fanout.gates import gate_wording
from fanout.gates.gate_rules import ApprovalRule

ANN = "Ann <ann@example.com>"
BOB = "Bob <bob@example.com>"
SIGNED = "requires: [{name: signed, approval: {atLeast: 2, from: [sre], expires: 72h}}]"
PROD = "after: {stages: [dev], soak: 1h}"
RULE = ApprovalRule("signed", 2, frozenset({"ann@example.com", "bob@example.com"}), ("sre",))


@company
def fleet(root: Path) -> Fleet:
    """Two sites in prod behind a check that two people of sre must answer; dev verifies nothing."""
    fleet = Fleet.build(root)
    policy = POLICY.replace(", verification: [{name: e2e, report: {}}]", "")
    fleet.write("policy.yaml", policy.replace(PROD, f"after: {{stages: [dev]}}, {SIGNED}"))
    fleet.settle()
    return fleet


def approve(fleet: Fleet, by: str, *more: str) -> str:
    """Answers the approval's name."""
    line = ("--stage", "prod", "--revision", "v1", "--by", by)
    result = fleet.run("approve", "monitoring", *line, *more)
    assert result.code == (4 if "eve@" in by else 0), result.err  # 4: it does not count
    fleet.settle()
    return result.out.split()[0]


def missing(*names: str) -> str:
    return gate_wording.describe_missing_approvals(RULE, names)


def prod(fleet: Fleet) -> list[str]:
    return [fleet.published()[f"sites/{site}"] for site in ("ber", "cph")]


def test_approvals_count_distinct_people_of_the_group(fleet: Fleet):
    for who in (ANN, "Ann Again <ANN@example.com>", "Eve <eve@example.com>"):
        approve(fleet, who)
        assert prod(fleet) == ["", ""]
    approvers = gate_wording.format_approvers(RULE)
    unauthorized = f"approval by eve@example.com does not count: not {approvers}"
    assert fleet.condition("sites/ber") == (
        "ApprovalMissing",
        f"{missing('ann@example.com')}; {unauthorized}",
    )
    approve(fleet, BOB)
    assert prod(fleet) == ["v1", "v1"]


def test_the_list_tells_which_approvals_count_and_why_not(fleet: Fleet):
    names = [approve(fleet, who) for who in (ANN, "Eve <eve@example.com>", BOB)]

    def states() -> list[tuple[str, str]]:
        items = fleet.run("get", "approvals", "-o", "json").items
        statuses = {it["metadata"]["name"]: it["status"] for it in items}
        recorded = [statuses[it.rpartition("/")[2]] for it in names]
        return [(it["state"], it["reason"]) for it in recorded]

    assert prod(fleet) == ["v1", "v1"]
    assert states() == [
        ("Applied", "Applied"),
        ("NotEntitled", "NotEntitled"),
        ("Applied", "Applied"),
    ]
    fleet.release("v2")
    fleet.settle()
    names[:] = [
        approve(fleet, ANN, "--revision", "v2"),
        approve(fleet, "Eve <eve@example.com>", "--revision", "v2"),
    ]
    assert states() == [("Active", "Effective"), ("NotEntitled", "NotEntitled")]
    column = [line.split()[4:5] for line in fleet.run("get", "approvals").out.splitlines()]
    assert column[-2:] == [["Active"], ["NotEntitled"]]


def test_a_person_with_several_addresses_counts_once(fleet: Fleet):
    ann = "'Ann <ann@example.com> ann@example.org git.example.com/ann'"
    fleet.write("promotion.yaml", PROMOTION.replace("ann@example.com", ann))
    approve(fleet, ANN)
    repeated = fleet.run(*line_of("Ann <ann@example.org>", "v1", "--variant", "sites/ber"))
    assert "ann@example.org" in repeated.err
    assert "72h" in repeated.err
    fleet.settle()
    assert prod(fleet) == ["", ""]
    approve(fleet, BOB)
    assert prod(fleet) == ["v1", "v1"]


def test_a_rewritten_draft_asks_again_and_for_itself_only(fleet: Fleet):
    approve(fleet, ANN)
    fleet.site("cph", "prod", "core", retention="30d")
    fleet.settle()
    approve(fleet, BOB)
    assert prod(fleet) == ["v1", ""]
    assert missing("bob@example.com") in fleet.condition("sites/cph")[1]
    approve(fleet, ANN, "--variant", "sites/cph")
    assert prod(fleet) == ["v1", "v1"]


def test_an_approval_that_expired_or_was_revoked_counts_no_more(fleet: Fleet):
    approve(fleet, ANN)
    fleet.later(hours=73)
    taken = approve(fleet, BOB)
    assert prod(fleet) == ["", ""]
    assert missing("bob@example.com") in fleet.condition("sites/ber")[1]
    assert fleet.run("revoke", "monitoring", taken, "--by", ANN).code == 0
    approve(fleet, ANN)
    assert missing("ann@example.com") in fleet.condition("sites/ber")[1]
    fleet.later(seconds=1)
    approve(fleet, BOB)
    assert prod(fleet) == ["v1", "v1"]


REFUSALS = [
    ("another revision than the drafts'", ("--stage", "prod", "--revision", "v9"), "no draft"),
    (
        "a stage that asks for none",
        ("--stage", "dev", "--revision", "v1"),
        "it requires no approval",
    ),
    (
        "an unknown check",
        ("--stage", "prod", "--revision", "v1", "--check", "x"),
        "requires: signed",
    ),
]


@pytest.mark.parametrize(("_", "line", "words"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_an_approval_that_could_never_count_is_refused(fleet: Fleet, _, line, words):
    before = fleet.records().refs()
    result = fleet.run("approve", "monitoring", *line, "--by", ANN)
    assert result.code in (1, 4)
    assert words in result.err
    assert fleet.records().refs() == before


def test_revoking_what_was_never_approved_is_refused(fleet: Fleet):
    result = fleet.run("revoke", "monitoring", "20260302t090000z-000000000000", "--by", ANN)
    assert result.code == 1
    assert "has no approval" in result.err


# What the stage asks for, what was lifted, and whether the variants of prod are published then.
OVERRIDES = [
    ("nothing lifted, nothing open", False, (), ["", ""]),
    ("`after` lifts the gate and not the soak", False, ("after",), ["", ""]),
    ("`soak` lifts the soak and not the gate", False, ("soak",), ["", ""]),
    ("`after` and `soak` lift both", False, ("after", "soak"), ["v1", "v1"]),
    ("`soak` is enough where the stage before has passed", True, ("soak",), ["v1", "v1"]),
    ("`verification` counts dev as ready, then it soaks", False, ("verification",), ["", ""]),
]


@company
def soaking(root: Path) -> Fleet:
    """Dev is published; it is to be verified and to soak before prod, which asks nobody."""
    made = Fleet.build(root)
    made.settle()
    return made


@pytest.mark.parametrize(
    ("_", "passed", "lifted", "published"), OVERRIDES, ids=[row[0] for row in OVERRIDES]
)
def test_an_override_opens_the_gates_that_it_names(soaking: Fleet, _, passed, lifted, published):
    fleet = soaking
    if passed:
        fleet.report("dev", "v1")
    flags = [f"--override={name}" for name in lifted]
    why = ("--reason", "outage", "--by", ANN)
    result = fleet.run("promote", "monitoring", "--stage", "prod", *flags, *why)
    assert result.code == (4 if published == ["", ""] else 0)
    waits = "2 variants will be published when their gates open"
    assert (waits in result.out) is (published == ["", ""])
    fleet.settle()
    assert prod(fleet) == published


def test_verification_that_a_person_overrides_starts_the_soak(soaking: Fleet):
    fleet = soaking
    why = ("--override=verification", "--reason", "tested by hand", "--by", ANN)
    output = fleet.run("promote", "monitoring", "--stage", "dev", *why).out
    [consequence] = [it for it in output.splitlines() if it.startswith("monitoring-ams-")]
    assert ": Ready" in consequence
    assert "v1 in stage dev: passed" in consequence
    fleet.settle()
    assert fleet.states()["sites/ams"] == "Ready"
    assert fleet.later(minutes=59).settle() == 0
    assert fleet.later(minutes=2).settle() > 0
    assert prod(fleet) == ["v1", "v1"]


def test_requires_that_a_person_overrides_are_open_for_the_drafts_of_that_revision(fleet: Fleet):
    why = ("--override=requires", "--reason", "outage", "--by", ANN)
    line = ("promote", "monitoring", "--stage", "prod", "--variant", "sites/cph")
    result = fleet.run(*line, *why)
    assert result.code == 0
    [decision] = fleet.run("get", "decisions", "-o", "json").items
    assert decision["status"]["state"] == "Applied"
    fleet.settle()
    assert prod(fleet) == ["", "v1"]


def test_an_approver_outside_every_group_is_refused_at_once(fleet: Fleet):
    line = ("approve", "monitoring", "--stage", "prod", "--revision", "v1")
    result = fleet.run(*line, "--by", "Eve <Eve@example.com>")
    assert result.code == 4
    assert "eve@example.com" in result.err
    assert "sre" in result.err
    good = fleet.run(*line, "--by", ANN)
    assert good.err == ""
    name = good.out.split()[0]
    eve = ("revoke", "monitoring", name, "--by", "Eve <eve@example.com>")
    assert "eve@example.com" in fleet.run(*eve).err
    assert fleet.run("revoke", "monitoring", name, "--by", BOB).err == ""


def test_an_approval_of_an_earlier_draft_is_hinted_at(fleet: Fleet):
    approve(fleet, ANN)
    fleet.site("cph", "prod", "core", retention="30d")
    fleet.settle()
    output = fleet.run("explain", "monitoring/prod/sites/cph").out
    assert "approval by ann@example.com is for other drafts of v1" in output


UNNAMED = [
    ("neither", (), "use --stage prod --revision v1"),
    ("no revision", ("--stage", "prod"), "use --stage prod --revision v1"),
    ("no stage", ("--revision", "v1"), "use --stage prod --revision v1"),
    ("a stage that asks for none", ("--stage", "dev"), "stage dev requires no approval"),
    ("a stage that is not there", ("--stage", "pord"), "choose one of: dev, prod"),
]


@pytest.mark.parametrize(("_", "arguments", "words"), UNNAMED, ids=[row[0] for row in UNNAMED])
def test_an_approval_without_a_check_lists_the_waiting_checks(fleet: Fleet, _, arguments, words):
    result = fleet.run("approve", "monitoring", *arguments, "--by", ANN)
    assert (result.code, result.out) == (1, "")
    assert words in result.err
    assert fleet.run("get", "approvals", "-o", "json").items == []


def test_an_approval_is_revoked_once(fleet: Fleet):
    name = approve(fleet, ANN)
    for word in ("revokes", "nothing to do: "):
        result = fleet.run("revoke", "monitoring", name, "--by", ANN)
        assert result.code == 0
        assert word in result.out + result.err
    assert len(fleet.run("get", "approvals", "-o", "json").items) == 2


def test_an_approval_of_a_satisfied_check_is_refused(fleet: Fleet):
    approve(fleet, ANN)
    approve(fleet, BOB)
    result = fleet.run("approve", "monitoring", "--by", ANN)
    assert (result.code, number(fleet)) == (1, 2)
    assert "prod" in result.err


# ---- what is told at once ------------------------------------------------------------------------

FOREVER = SIGNED.replace(", expires: 72h", "")


def line_of(by: str, revision: str = "v1", *more: str) -> tuple[str, ...]:
    return ("approve", "monitoring", "--stage", "prod", "--revision", revision, "--by", by, *more)


def number(fleet: Fleet) -> int:
    return len(fleet.run("get", "approvals", "-o", "json").items)


def test_a_repeated_approval_of_the_same_drafts_records_no_approval(fleet: Fleet):
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", policy.replace(SIGNED, FOREVER))
    approve(fleet, ANN, "--variant", "sites/cph")
    first = fleet.run(*line_of(ANN))
    assert "2 drafts" in first.out
    assert "ann@example.com" in first.err
    assert "monitoring-cph-" in first.err
    again = fleet.run(*line_of("Ann Again <ANN@example.com>"))
    assert (again.code, again.out) == (0, "")
    assert "ann@example.com" in again.err
    assert number(fleet) == 2


def test_an_approval_that_was_taken_back_or_expires_is_given_again(fleet: Fleet):
    taken = approve(fleet, ANN)
    anew = fleet.later(hours=1).run(*line_of(ANN))
    assert "2 drafts" in anew.out
    assert "72h" in anew.err
    for name in (taken, anew.out.split()[0]):
        assert fleet.later(minutes=1).run("revoke", "monitoring", name, "--by", ANN).code == 0
    assert fleet.later(minutes=1).run(*line_of(ANN)).err == ""
    assert number(fleet) == 5


def test_an_approval_by_an_author_of_a_draft_is_recorded_with_a_warning(fleet: Fleet):
    fleet.write("promotion.yaml", PROMOTION + "  requiresSeparation: true\n")
    edge, branch = fleet.repos["edge"], "drafts/default/sites/ber/monitoring"
    with pytest.MonkeyPatch.context() as set_:
        edge.commit(branch, {"sites/ber/notes.txt": "by ada\n"})
        for role in ("AUTHOR", "COMMITTER"):
            set_.setenv(f"GIT_{role}_NAME", "Bob")
            set_.setenv(f"GIT_{role}_EMAIL", "bob@example.com")
        mine = edge.git("commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "by bob")
        edge.git("update-ref", f"refs/heads/{branch}", mine)
    fleet.settle()
    result = fleet.run(*line_of(BOB))
    assert "2 drafts" in result.out
    assert "monitoring-ber-" in result.err
    assert "monitoring-cph-" not in result.err
    assert "bob@example.com" in result.err
    alone = fleet.run(*line_of(BOB, "v1", "--variant", "sites/ber"))
    assert "bob@example.com" in alone.err
    assert fleet.run(*line_of(ANN)).err == ""


UNDRAFTED = [
    ("a revision that there is not", "v9", ("v9", "v1, v2")),
    ("what is published", "v1", ("v1", "published")),
    ("what soaks in the stage before", "v2",
     ("v2", "v1", "2026-03-02T11:00:00Z", "soaks in stage dev")),
]  # fmt: skip


@company
def waiting(root: Path) -> Fleet:
    """Prod has v1; v2 soaks in dev for another hour."""
    made = Fleet.build(root)
    policy = POLICY.replace(", verification: [{name: e2e, report: {}}]", "")
    made.write("policy.yaml", policy.replace(PROD, f"{PROD}, {SIGNED}"))
    made.settle()
    made.later(hours=1).settle()
    for who in (ANN, BOB):
        approve(made, who)
    made.release("v2")
    made.settle()
    return made


@pytest.mark.parametrize(("_", "revision", "data"), UNDRAFTED, ids=[row[0] for row in UNDRAFTED])
def test_an_approval_before_the_draft_is_refused_with_the_expected_time(
    waiting: Fleet, _, revision, data
):
    result = waiting.run(*line_of(ANN, revision))
    assert result.code == 4
    assert [word for word in data if word not in result.err] == [], result.err
    assert number(waiting) == 2


def test_an_approval_without_an_expected_time_advises_the_forecast(waiting: Fleet):
    waiting.release("v3")
    waiting.sweep()
    errors = waiting.run(*line_of(ANN, "v3")).err
    assert "v3 has not passed stage dev yet" in errors
    assert "`fanout forecast monitoring" in errors


def test_a_forecast_draft_can_be_approved_at_its_time(waiting: Fleet):
    waiting.later(hours=1).settle()
    assert waiting.run(*line_of(ANN, "v2")).code == 0
    older = waiting.run(*line_of(ANN, "v1"))
    assert older.code == 4
    assert "candidate is v2" in older.err
