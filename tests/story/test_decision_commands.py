"""What people say with the verbs that record: refused where it is idle, taken back, answered."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, PROMOTION, Fleet

from fanout.gates import gate_wording

ANN = "Ann <ann@example.com>"
WHY = ("--reason", "because", "--by", ANN)
BY_HAND = PROMOTION.replace('["*"]}', "[dev]}")
SHORT = (
    "report",
    "monitoring",
    "--stage",
    "dev",
    "--check",
    "e2e",
    "--status",
    "passed",
    "--by",
    ANN,
)


@company
def fleet(root: Path) -> Fleet:
    """Prod is published by hand, as soon as dev has passed; nobody has reported on dev yet."""
    made = Fleet.build(root)
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.write("promotion.yaml", BY_HAND)
    made.settle()
    return made


def promote(fleet: Fleet, *more: str):
    return fleet.run("promote", "monitoring", "--stage", "prod", *more, *WHY)


def commit_of(fleet: Fleet, name: str, branch: str = "main") -> str:
    return fleet.repos[name].refs()[f"refs/heads/{branch}"]


REFUSED = [
    ("promote an unknown revision", ("promote", "monitoring", "--stage", "prod", "--revision", "v7",
     *WHY), 1, ("v7", "default/monitoring", "v1")),
    ("promote until yesterday", ("promote", "monitoring", "--stage", "prod", "--expires",
     "2026-03-01T09:00:00Z", *WHY), 1, ("--expires", "2026-03-01T09:00:00Z")),
    ("promote until whenever", ("promote", "monitoring", "--stage", "prod", "--expires",
     "tomorrow", *WHY), 1, ("--expires", "tomorrow")),
    ("report on a commit of nobody", (*SHORT, "--commit", "0" * 40), 1,
     ("0" * 40, "stage dev", "edge.git")),
    ("report on a commit of no known beginning", (*SHORT, "--commit", "0" * 8), 1,
     ("00000000", "stage dev")),
    ("report on what is no commit", (*SHORT, "--commit", "main"), 1, ("main", "commit")),
    ("link to a place on a disk", (*SHORT, "--revision", "v1", "--link", "/tmp/log"), 1,
     ("--link", "/tmp/log")),
    ("suspend a variant in another stage", ("suspend", "monitoring", "--stage", "prod", "--variant",
     "sites/ams", *WHY), 1, ("sites/ams", "default/monitoring", "stage dev", "prod")),
    ("promote a variant in another stage", ("promote", "monitoring", "--stage", "dev", "--variant",
     "sites/ber", *WHY), 1, ("sites/ber", "stage prod", "dev")),
    ("report on a variant in another stage", (*SHORT, "--revision", "v1", "--variant", "sites/ber"),
     1, ("sites/ber", "stage prod", "dev")),
    ("explain a variant in another stage", ("explain", "monitoring/prod/sites/ams"), 1,
     ("stage dev", "prod", "`fanout explain monitoring/dev/sites/ams`")),
    ("withdraw what nobody said", ("withdraw", "monitoring", "20260302t090000z-000000000000", *WHY),
     1, ("20260302t090000z-000000000000",)),
]  # fmt: skip


@pytest.mark.parametrize(("_", "line", "code", "data"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_command_without_possible_effect_is_refused_and_not_recorded(
    fleet: Fleet, _, line, code, data
):
    before = fleet.records().refs()
    result = fleet.run(*line)
    assert (result.code, result.out) == (code, "")
    assert [word for word in data if word not in result.err] == [], result.err
    assert fleet.records().refs() == before


NAMES = [
    ("its name", "name"),
    ("its target", "target"),
    ("its place", "place"),
    ("its path", "path"),
]
VERBS = [
    ("suspend", "monitoring", "--stage", "dev", "--variant", "{}", *WHY),
    ("resume", "monitoring", "--variant", "{}", *WHY),
    ("promote", "monitoring", "--stage", "dev", "--variant", "{}", *WHY),
    (*SHORT, "--revision", "v1", "--variant", "{}"),
    ("explain", "monitoring/dev/{}"),
    ("explain", "{}"),
    ("diff", "{}"),
    ("render", "{}"),
    ("get", "variants", "{}"),
    ("get", "targets", "{}"),
]


def test_every_verb_takes_every_name_of_a_variant(fleet: Fleet):
    target = fleet.targets()["ams"]
    names = (target["variant"], target["target"], "edge:sites/ams", "sites/ams", "ams")
    for verb in VERBS:
        for name in names:
            result = fleet.run(*(word.replace("{}", name) for word in verb))
            assert result.code in (0, 1), (verb, name, result.err)


# ---- taking back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "before", "after"), [("failed", "Failed", "Pending"), ("passed", "Passed", "Passed")]
)
def test_a_stage_whose_evidence_is_withdrawn_keeps_only_a_pass(
    fleet: Fleet, status: str, before: str, after: str
):
    def verdict() -> str:
        [view] = fleet.run("get", "policies", "-o", "json").views
        [stage] = [it for it in view["stages"] if it["name"] == "dev"]
        return str(stage["verdict"])

    fleet.settle()
    evidence = fleet.report("dev", "v1", status).out.split()[0]
    fleet.settle()
    assert verdict() == before
    assert fleet.run("withdraw", "monitoring", evidence, *WHY).code == 0
    fleet.later(minutes=1).settle()
    assert verdict() == after


def test_a_decision_to_publish_is_withdrawn(fleet: Fleet):
    name = promote(fleet).out.split()[0]
    withdrawn = fleet.later(seconds=1).run("withdraw", "monitoring", name, *WHY)
    assert withdrawn.code == 0
    assert name.partition("/")[2] in withdrawn.out
    fleet.report("dev", "v1")
    fleet.settle()
    assert fleet.published()["sites/ber"] == ""
    assert fleet.condition("sites/ber")[0] == "AutomationOff"
    again = fleet.run("withdraw", "monitoring", name, *WHY)
    assert (again.code, again.out) == (0, "")
    assert name.partition("/")[2] in again.err
    promote(fleet)
    assert fleet.published()["sites/ber"] == "v1"


def test_only_what_is_armed_is_withdrawn(fleet: Fleet):
    name = fleet.run("suspend", "monitoring", *WHY).out.split()[0]
    result = fleet.run("withdraw", "monitoring", name, *WHY)
    assert result.code == 1
    assert "Suspend" in result.err
    assert "fanout resume" in result.err


# ---- nothing to do -----------------------------------------------------------------------------


def decisions(fleet: Fleet, *more: str) -> list[str]:
    """What was decided, and how each decision stands."""
    items = fleet.run("get", "decisions", *more, "-o", "json").items
    return [f"{item['spec']['action']} {item['status']['state']}" for item in items]


IDLE = [
    ("resume a policy", ("resume", "monitoring"), ("the policy", "stage dev")),
    ("resume a stage", ("resume", "monitoring", "--stage", "prod"), ("stage prod", "stage dev")),
    ("resume a variant of a suspended stage", ("resume", "monitoring", "--variant", "sites/ams"),
     ("variant monitoring-ams-",)),
    ("withdraw what was carried out", ("withdraw", "monitoring", "{}"), ("{}",)),
]  # fmt: skip


@pytest.mark.parametrize(("_", "line", "data"), IDLE, ids=[row[0] for row in IDLE])
def test_a_command_without_changes_is_refused_and_not_recorded(fleet: Fleet, _, line, data):
    fleet.report("dev", "v1")
    name = promote(fleet).out.split()[0].partition("/")[2]
    fleet.later(minutes=1).run("suspend", "monitoring", "--stage", "dev", *WHY)
    before = fleet.records().refs()
    result = fleet.run(*(word.replace("{}", name) for word in line), *WHY)
    assert (result.code, result.out) == (4, "")
    assert [it for it in data if it.replace("{}", name) not in result.err] == [], result.err
    assert fleet.records().refs() == before


def test_resuming_a_policy_suspended_by_its_file_names_the_file(fleet: Fleet):
    text = POLICY.replace("spec:\n", "spec:\n  suspend: true\n", 1)
    fleet.write("policy.yaml", text)
    result = fleet.run("resume", "monitoring", *WHY)
    assert result.code == 4
    assert result.err.count("the policy") == 2, "a decision does not suspend it, and a file does"


def test_decisions_say_whether_they_stand(fleet: Fleet):
    promote(fleet, "--expires", "2026-03-02T10:00:00Z", "--variant", "sites/cph")
    withdrawn = promote(fleet).out.split()[0]
    fleet.run("withdraw", "monitoring", withdrawn, *WHY)
    fleet.run("suspend", "monitoring", "--stage", "dev", *WHY)
    promote(fleet, "--variant", "ber")
    assert decisions(fleet) == [
        "Publish Active", "Publish Withdrawn", "Withdraw Applied", "Suspend Active",
        "Publish Active",
    ]  # fmt: skip
    fleet.later(hours=2).run("resume", "monitoring", "--stage", "dev", *WHY)
    fleet.report("dev", "v1")
    fleet.settle()
    assert decisions(fleet) == [
        "Publish Expired", "Publish Withdrawn", "Withdraw Applied", "Suspend Applied",
        "Publish Applied", "Resume Applied",
    ]  # fmt: skip
    header, first, *_, last = fleet.run("get", "decisions").out.splitlines()
    assert header.split()[2:4] == ["WHAT", "STATE"]
    assert header.split()[6:] == ["STAGE", "VARIANTS", "NAME"]
    cells = [cell.strip() for cell in first.split("   ") if cell.strip()]
    assert cells[2:4] == ["Publish v1", "Expired"]
    assert cells[7].startswith("monitoring-cph-")
    assert [cell.strip() for cell in last.split("   ") if cell.strip()][6:8] == ["dev", "all"]


def test_decisions_of_a_stopped_policy_say_whether_they_stand(fleet: Fleet):
    fleet.run("suspend", "monitoring", *WHY)
    promote(fleet)
    fleet.repos["blueprints"].commit("main", {"monitoring/x": "x"})
    fleet.repos["blueprints"].git("update-ref", "refs/tags/monitoring/v1", "main")
    assert fleet.sweep().code == 3
    assert decisions(fleet, "monitoring") == ["Suspend Active", "Publish Active"]


# ---- commits -----------------------------------------------------------------------------------


def test_a_commit_may_be_given_by_its_first_digits(fleet: Fleet):
    full = commit_of(fleet, "edge")
    assert fleet.later(minutes=1).run(*SHORT, "--commit", full[:7]).code == 0
    assert fleet.states()["sites/ams"] == "Ready"
    [evidence] = fleet.run("get", "evidence", "-o", "json").items
    assert evidence["spec"]["commit"] == full


def test_a_commit_before_the_publication_is_refused(fleet: Fleet):
    first = fleet.repos["edge"].git("rev-list", "--max-parents=0", "main")
    result = fleet.run(*SHORT, "--commit", first)
    assert result.code == 4
    assert f"commit {first}" in result.err
    assert "stage dev" in result.err


# ---- the same twice ----------------------------------------------------------------------------


def test_an_equal_statement_within_a_second_is_recorded_again(fleet: Fleet):
    names = [fleet.run(verb, "monitoring", *WHY).out for verb in ("suspend", "resume", "suspend")]
    assert len(set(names)) == 3
    assert fleet.states()["sites/ber"] == "Suspended"


def test_a_suspended_variant_is_not_suspended_again(fleet: Fleet):
    line = ("suspend", "monitoring", "--variant", "sites/ber", *WHY)
    name = fleet.run(*line).out.split()[0].partition("/")[2]
    before = fleet.records().refs()
    again = fleet.later(minutes=1).run(*line)
    assert (again.code, again.out, fleet.records().refs()) == (0, "", before)
    assert "ann@example.com" in again.err
    assert name in again.err
    both = fleet.run(*line, "--variant", "sites/cph")
    assert both.out


# ---- what promote says -------------------------------------------------------------------------


def test_a_promotion_prints_the_gate_that_it_waits_for(fleet: Fleet):
    result = promote(fleet)
    assert result.code == 4
    assert "v1 has not passed stage dev yet" in result.err
    assert gate_wording.format_reporter("e2e", "dev") in result.err
    fleet.report("dev", "v1")
    assert promote(fleet).err == ""
    before = fleet.records().refs()
    again = promote(fleet)
    assert (again.code, fleet.records().refs()) == (0, before)
    assert "v1" in again.err
    assert "stage prod" in again.err


def test_a_promotion_of_another_revision_names_the_candidate(fleet: Fleet):
    fleet.release("v2")
    fleet.settle()
    result = promote(fleet, "--revision", "v1")
    assert result.code == 4
    assert "candidate is v2, not v1" in result.err


def newest_in_prod(fleet: Fleet) -> Fleet:
    """v1 and v2 are there; v2 is published in both stages."""
    fleet.release("v2")
    fleet.settle()
    fleet.report("dev", "v2")
    promote(fleet)
    assert set(fleet.published().values()) == {"v2"}
    return fleet


def test_a_promotion_of_a_past_revision_is_refused(fleet: Fleet):
    newest_in_prod(fleet)
    before = fleet.records().refs()
    refused = promote(fleet, "--revision", "v1")
    assert (refused.code, refused.out, fleet.records().refs()) == (4, "", before)
    assert "v2" in refused.err
    assert "`fanout rollback monitoring --stage prod --revision v1`" in refused.err
    assert "spec.upstream.revision" in refused.err
    fleet.write("policy.yaml", POLICY.replace('{semver: ">=1 <9"}', "{tag: v1}"))
    fleet.sweep("--drafts-only")
    assert promote(fleet, "--override", "after", "--override", "soak").code == 0
    assert fleet.published()["sites/ber"] == "v1"


def test_a_promotion_behind_the_open_gate_of_a_newer_revision_is_refused(fleet: Fleet):
    for name in ("v2", "v3"):
        fleet.release(name)
    refused = fleet.run("promote", "monitoring", "--stage", "dev", "--revision", "v2", *WHY)
    assert refused.code == 4
    assert "v3" in refused.err


def test_a_second_promotion_prints_its_own_decision(fleet: Fleet):
    fleet.release("v2")
    fleet.release("v3")
    fleet.settle()
    assert "not v1" in promote(fleet, "--revision", "v1").err
    errors = promote(fleet, "--revision", "v2")
    assert "candidate is v3, not v2" in errors.err
    assert "v1" not in errors.err


def test_a_promotion_of_a_suspended_variant_names_the_suspension(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.run("suspend", "monitoring", "--variant", "sites/ber", *WHY)
    result = promote(fleet)
    assert fleet.published()["sites/cph"] == "v1"
    assert "1 of 2 variants" in result.err
    variant = "variant monitoring-ber-928771694f"
    assert f"{variant} is suspended by ann@example.com" in result.err


def test_a_promotion_counts_the_variants_by_gate(fleet: Fleet):
    fleet.run("suspend", "monitoring", "--variant", "sites/ber", *WHY)
    err = promote(fleet).err
    variant = "variant monitoring-ber-928771694f"
    suspension = f"{variant} is suspended by ann@example.com"
    for sentence in (suspension, "v1 has not passed stage dev yet"):
        assert f"1 of them {sentence}" in err


def test_a_promotion_names_a_suspended_undrafted_variant_once(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.run("suspend", "monitoring", "--variant", "sites/ber", *WHY)
    fleet.release("v2")
    fleet.settle()
    fleet.report("dev", "v2")
    fleet.sweep("--drafts-only")
    errors = promote(fleet).err
    variant = "variant monitoring-ber-928771694f"
    assert f"{variant} is suspended by ann@example.com" in errors
    assert errors.count("monitoring-ber-928771694f") == 1, errors


# ---- what is on record -------------------------------------------------------------------------


def test_records_are_listed(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.later(minutes=90)
    promote(fleet)
    fleet.run("suspend", "monitoring", "--stage", "prod", *WHY)
    table = fleet.later(seconds=5).run("get", "records").out.splitlines()
    cells = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in table]
    assert cells[0] == ["AGE", "KIND", "WHAT", "STATE", "BY", "POLICY", "STAGE", "NAME"]
    assert [row[:6] for row in cells[1:]] == [
        ["90m", "Evidence", "e2e passed v1", "Active", "ci@example.com", "monitoring"],
        ["90m", "Publication", "v1 sites/ams/v1", "InForce", "<none>", "monitoring"],
        ["5s", "Decision", "Publish v1", "Applied", "ann@example.com", "monitoring"],
        ["5s", "Decision", "Suspend", "Active", "ann@example.com", "monitoring"],
        ["5s", "Publication", "v1 sites/ber/v1", "InForce", "ann@example.com", "monitoring"],
        ["5s", "Publication", "v1 sites/cph/v1", "InForce", "ann@example.com", "monitoring"],
    ]
    assert [row[1] for row in cells[3:5]] == [
        line.split()[1] for line in fleet.run("get", "decisions", "monitoring").out.splitlines()[1:]
    ]
    assert fleet.run("get", "evidence", "-o", "name").out.startswith(
        "evidence.fanout.dev/20260302t"
    )
    assert fleet.run("get", "approvals", "-o", "json").items == []
    unknown = fleet.run("get", "records", "nobody")
    assert unknown.code == 1
    assert "nobody" in unknown.err


def test_a_record_is_printed_as_the_object_that_it_is(fleet: Fleet):
    fleet.report("dev", "v1", "passed", "--link", "https://ci.example.com/7")
    [item] = fleet.statements()
    name = item["metadata"].pop("name")
    assert item == {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "default", "creationTimestamp": "2026-03-02T09:00:00Z"},
        "spec": {
            "policy": "monitoring", "stage": "dev", "check": "e2e", "status": "passed",
            "revision": "v1", "link": "https://ci.example.com/7",
        },
        "status": {
            "by": "Ci <ci@example.com>", "state": "Active", "reason": "Effective",
            "message": "the evidence counts for its check",
        },
    }  # fmt: skip
    assert fleet.records().files("fanout/default/default/monitoring")[0].endswith(f"/{name}.json")
