"""A target is gone: sweeps remove its variant by themselves, level by level, or say what holds."""

import re
import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, PLAIN, POLICY, PROMOTION, Fleet, two_stages
from killing import killer

from fanout.plan import plan_wording

ANN = ("--by", "Ann <ann@example.com>")
WHY = ("--reason", "closed", *ANN)
RECORDS_BRANCH = "fanout/default/default/monitoring"
RENDERED = "fanout/default/rendered"
MANUAL = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")
FREEZE = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'  # the day of the tests
SITES = {
    "ams": ("dev", "edge"),
    "bru": ("dev", "edge"),
    "cph": ("prod", "edge"),
    "dub": ("prod", "core"),
}


@company
def fleet(root: Path) -> Fleet:
    """Two sites in dev and two in prod behind it; all are published."""
    return two_stages(root, SITES)


def close(fleet: Fleet, *sites: str) -> None:
    for site in sites:
        fleet.remove(f"site-{site}.yaml")


def published_sites(fleet: Fleet) -> list[str]:
    """The sites whose packages are on a branch."""
    files = (path for repo in fleet.repos.values() for path in repo.files())
    return sorted({path.split("/")[1] for path in files if path.startswith("sites/")})


def waits(fleet: Fleet) -> dict[str, list[str]]:
    """What holds each that is gone, by site, beside its being gone."""
    items = fleet.run("get", "targets", "-o", "json").views
    return {
        item["path"].removeprefix("sites/"): [hold["reason"] for hold in item["holds"][1:]]
        for item in items
        if item["holds"] and item["holds"][0]["reason"] == "TargetGone"
    }


def condition(fleet: Fleet) -> tuple[str, str]:
    [policy] = fleet.run("get", "policies", "-o", "json").items
    [ready, *_] = policy["status"]["conditions"]
    return ready["reason"], ready["message"]


def explain(fleet: Fleet) -> str:
    return fleet.run("explain", "monitoring").out


def decisions(fleet: Fleet) -> list[str]:
    """Each decision and what has become of it."""
    items = fleet.run("get", "decisions", "-o", "json").items
    return [f"{item['spec']['action']} {item['status']['state']}" for item in items]


def test_the_next_sweep_takes_it_off_the_branch_and_leaves_everything_else(fleet: Fleet):
    edge = fleet.repos["edge"]
    others = [path for path in edge.files() if not path.startswith("sites/ams")]
    close(fleet, "ams")
    planned = fleet.plan()
    assert f"edge:sites/ams: {plan_wording.TARGET_GONE}" in planned.out
    assert "ams" in published_sites(fleet)
    assert re.search(r"TargetGone .*: monitoring-ams-", explain(fleet))
    swept = fleet.sweep()
    assert (swept.code, swept.err) == (0, "")
    assert edge.files() == others
    message = edge.git("log", "-1", "--format=%B", "main")
    assert message.startswith("Remove sites/ams\n\nIts target is gone.\n")
    assert "Fanout-Policy: default/monitoring\nFanout-Variant: monitoring-ams-" in message
    assert edge.tags() == ["sites/ams/v1", "sites/bru/v1", "sites/cph/v1"]
    assert [it for it in edge.files(RENDERED) if "ams" in it] == []
    assert fleet.sweep().out == "nothing to do\n"
    edge.fsck()


def test_a_plan_that_was_saved_is_what_is_done(fleet: Fleet):
    close(fleet, "ams")
    saved = fleet.root / "plan.json"
    assert fleet.plan("--out", str(saved)).code == 0
    assert fleet.sweep("--plan", str(saved)).code == 0
    assert published_sites(fleet) == ["bru", "cph", "dub"]


def test_drafts_alone_are_kept_up_to_date_without_a_removal(fleet: Fleet):
    close(fleet, "ams")
    assert fleet.sweep("--drafts-only").out == "nothing to do\n"
    assert "ams" in published_sites(fleet)


def test_the_open_draft_of_a_removed_variant_is_deleted(fleet: Fleet):
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    close(fleet, "ams")
    fleet.later(minutes=1).sweep()
    assert not any("ams" in ref for ref in fleet.repos["edge"].drafts())
    assert "ams" not in published_sites(fleet)


def test_the_last_stage_goes_first_and_the_others_when_it_is_gone(fleet: Fleet):
    close(fleet, "ams", "cph", "dub")
    assert waits(fleet) == {"ams": ["RemovalAwaits"], "cph": [], "dub": []}
    fleet.sweep()
    assert published_sites(fleet) == ["ams", "bru"]
    assert waits(fleet) == {"ams": []}
    fleet.sweep()
    assert published_sites(fleet) == ["bru"]


def test_a_repository_that_does_not_answer_keeps_the_stages_before(fleet: Fleet):
    close(fleet, "ams", "dub")
    core = fleet.repos["core"].path
    core.rename(core.with_suffix(".away"))
    fleet.sweep()
    assert waits(fleet)["ams"] == ["RemovalAwaits"]
    core.with_suffix(".away").rename(core)
    fleet.settle()
    assert published_sites(fleet) == ["bru", "cph"]


def nothing_matches(fleet: Fleet) -> None:
    text = POLICY.replace("kind: Cluster}", "kind: Cluster, matchLabels: {wanted: very}}")
    fleet.write("policy.yaml", text.replace(", soak: 1h", ""))


def test_a_selector_that_suddenly_matches_nothing_removes_nothing(fleet: Fleet):
    before = fleet.refs()
    nothing_matches(fleet)
    assert fleet.sweep().code == 3
    assert fleet.refs() == before
    reason, sentence = condition(fleet)
    assert reason == "TooManyRemovals"
    assert "4 " in sentence
    assert "fanout remove monitoring --all-gone --reason WHY" in explain(fleet)


def test_more_than_the_limit_wait_for_a_person_who_lets_them_all_go(fleet: Fleet):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace("  stages:\n", "  removalLimit: 1\n  stages:\n"))
    close(fleet, "ams", "dub")
    fleet.sweep()
    assert published_sites(fleet) == ["ams", "bru", "cph", "dub"]
    done = fleet.run("remove", "monitoring", "--all-gone", *WHY)
    assert (done.code, done.err) == (0, "")
    removed = [line.split()[0].split("-")[1] for line in done.out.splitlines()[1:]]
    assert removed == ["dub", "ams"], "the last stage first"
    assert published_sites(fleet) == ["bru", "cph"]
    assert fleet.sweep().out == "nothing to do\n"


OTHER = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {}}}
spec: {{url: {}, secretRef: {{name: of-another-team}}}}
"""


@pytest.mark.parametrize("sites", [("ams",), ("ams", "bru", "cph")], ids=["one", "all of edge"])
@pytest.mark.parametrize("name", ["a-first", "z-last"])
def test_a_secret_of_another_repository_at_the_same_url_is_not_needed(
    fleet: Fleet, name: str, sites: tuple[str, ...]
):
    close(fleet, *sites)
    fleet.write("other.yaml", OTHER.format(name, fleet.repos["edge"].path))
    done = fleet.run("remove", "monitoring", "--all-gone", *WHY)
    assert (done.code, done.err) == (0, "")
    assert published_sites(fleet) == sorted({*SITES} - {*sites})


def test_a_variant_removed_by_name_goes_despite_the_removal_limit(fleet: Fleet):
    nothing_matches(fleet)
    assert fleet.run("remove", "monitoring", "sites/ams", *WHY).code == 0
    fleet.sweep()
    assert published_sites(fleet) == ["bru", "cph", "dub"]


def manual(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", MANUAL)


def suspend(fleet: Fleet) -> None:
    assert fleet.run("suspend", "monitoring", "--stage", "dev", *WHY).code == 0


def edit(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {"sites/ams/deployment.yaml": EDITED})


def freeze(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION + FREEZE)


def twice(fleet: Fleet) -> None:
    text = (fleet.root / "policies" / "site-bru.yaml").read_text()
    fleet.write("copy.yaml", text.replace("bru", "ams") + "---\n" + text.replace("bru", "ams"))


def no_yaml(fleet: Fleet) -> None:
    fleet.write("broken.yaml", "a: [\n")


def no_name(fleet: Fleet) -> None:
    text = "apiVersion: infra.example.com/v1\nkind: Cluster\nmetadata: {nmae: ams}\n"
    fleet.write("nameless.yaml", text)


def broken_repository(fleet: Fleet) -> None:
    text = (
        "apiVersion: fanout.dev/v1alpha1\nkind: Repository\nmetadata: {name: x}\nspec: {ulr: y}\n"
    )
    fleet.write("repository-x.yaml", text)


HOLDS = [
    ("automation that is off", manual, "AutomationOff"),
    ("a person's suspension", suspend, "Suspended"),
    ("people's edits", edit, "EditedDownstream"),
    ("a window", freeze, "WindowClosed"),
    ("an object that is there twice", twice, "InvalidObject"),
    ("a file that is no YAML", no_yaml, "InvalidObject"),
    ("an object without a name", no_name, "InvalidObject"),
    ("a Repository with a fault", broken_repository, "InvalidObject"),
]


@pytest.mark.parametrize(("_", "hold", "reason"), HOLDS, ids=[row[0] for row in HOLDS])
def test_a_held_variant_is_not_removed(fleet: Fleet, _, hold, reason):
    close(fleet, "ams")
    hold(fleet)
    before = fleet.repos["edge"].refs()
    fleet.sweep()
    assert fleet.repos["edge"].refs() == before
    assert waits(fleet)["ams"][0] == reason


def test_an_edited_package_goes_when_a_person_lets_its_edits_go(fleet: Fleet):
    edit(fleet)
    close(fleet, "ams")
    fleet.sweep()
    assert fleet.run("remove", "monitoring", "--all-gone", *WHY).code == 4
    assert fleet.run("remove", "monitoring", "--all-gone", "--edited", *WHY).code == 0
    assert "ams" not in published_sites(fleet)


def test_a_word_in_a_closed_window_is_carried_out_when_it_opens(fleet: Fleet):
    fleet.write("promotion.yaml", MANUAL + FREEZE)
    edit(fleet)
    close(fleet, "ams")
    name = fleet.run("remove", "monitoring", "sites/ams", "--edited", *WHY)
    assert name.code == 4
    assert "2026-03-03T00:00:00Z" in name.err
    assert "2026-03-03T00:00:00Z" in fleet.run("explain", "monitoring", "-o", "json").out
    fleet.sweep()
    assert "ams" in published_sites(fleet)
    assert decisions(fleet) == ["ConfirmRemoval Active"]
    fleet.later(days=1).sweep()
    assert "ams" not in published_sites(fleet)
    assert decisions(fleet) == ["ConfirmRemoval Applied"]


def test_a_word_that_waits_can_be_taken_back(fleet: Fleet):
    fleet.write("promotion.yaml", MANUAL + FREEZE)
    close(fleet, "ams")
    name = fleet.run("remove", "monitoring", "sites/ams", *WHY).out.split()[0]
    assert fleet.run("withdraw", "monitoring", name, *WHY).code == 0
    fleet.later(days=1).sweep()
    assert "ams" in published_sites(fleet)


def test_leftovers_of_a_move_wait_for_the_window_too(fleet: Fleet):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace("'sites/'", "'places/'"))
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    assert "cph" in published_sites(fleet)
    freeze(fleet)
    waiting = fleet.sweep("-o", "json")
    assert ("core:sites/dub" in waiting.out, "WindowClosed" in waiting.reasons) == (True, True)
    assert "dub" in published_sites(fleet)
    fleet.later(days=1).sweep()
    assert published_sites(fleet) == ["ams", "bru"], (
        "those of dev are not verified at their new place"
    )


def test_orphans_are_not_removed_while_a_target_is_uncertain(fleet: Fleet):
    close(fleet, "ams")
    no_yaml(fleet)
    refused = fleet.run("remove", "monitoring", "--all-gone", *WHY)
    assert refused.code == 2
    assert "broken.yaml" in refused.err
    assert "ams" in published_sites(fleet)


def test_with_orphan_the_package_stays_as_nobody_s(fleet: Fleet):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write(
        "policy.yaml", policy.replace("  stages:\n", "  deletionPolicy: Orphan\n  stages:\n")
    )
    variant = fleet.targets()["ams"]["variant"]
    close(fleet, "ams")
    head = fleet.repos["edge"].refs()["refs/heads/main"]
    orphaned = f"that {variant} is gone with its target; its package stays on the branch"
    assert orphaned in fleet.plan().out
    fleet.settle()
    assert fleet.repos["edge"].refs()["refs/heads/main"] == head
    assert [it for it in fleet.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert waits(fleet) == {}


def test_a_target_that_is_back_in_time_finds_its_variant_as_it_was(fleet: Fleet):
    freeze(fleet)
    close(fleet, "ams")
    fleet.sweep()
    fleet.site("ams", *SITES["ams"])
    fleet.later(days=1)
    assert fleet.sweep().out == "nothing to do\n"
    assert published_sites(fleet) == ["ams", "bru", "cph", "dub"]


def test_a_target_that_is_back_after_the_removal_begins_anew(fleet: Fleet):
    fleet.write("promotion.yaml", MANUAL)
    promote = ("promote", "monitoring", "--stage", "dev", "--variant", "sites/eze", *WHY)
    fleet.site("eze", "dev", "edge")
    fleet.sweep()
    fleet.later(minutes=1).run(*promote)
    assert "eze" in published_sites(fleet)
    text = (fleet.root / "policies" / "site-eze.yaml").read_text()
    close(fleet, "eze")
    fleet.write("promotion.yaml", PROMOTION)
    fleet.later(minutes=1).sweep()
    fleet.write("promotion.yaml", MANUAL)
    fleet.write("site-eze.yaml", text)
    fleet.later(minutes=1).settle()
    assert "eze" not in published_sites(fleet), "what was decided about the first one is spent"
    assert fleet.run(*promote).code == 0
    assert fleet.repos["edge"].tags()[-2:] == ["sites/eze/v1", "sites/eze/v2"]


def test_a_target_that_is_back_before_its_removal_was_recorded_begins_anew(fleet: Fleet):
    close(fleet, "ams")
    fleet.sweep()
    records = fleet.records()
    records.git(
        "update-ref", f"refs/heads/{RECORDS_BRANCH}", f"refs/heads/{RECORDS_BRANCH}~1"
    )  # the pass was ended
    shutil.rmtree(fleet.root / fleet.state / "heads")  # and never saw what it would have recorded
    fleet.site("ams", *SITES["ams"])
    fleet.later(minutes=1).settle()
    assert "ams" in published_sites(fleet)
    assert "sites/ams/v2" in fleet.repos["edge"].tags()


def test_the_status_knows_of_a_variant_its_stage(fleet: Fleet):
    fleet.site("bru", "prod", "edge")
    variant = fleet.targets()["bru"]["variant"]
    assert f"that {variant} is in stage prod now" in fleet.plan().out
    fleet.settle()
    close(fleet, "ams", "bru")
    assert waits(fleet) == {"ams": ["RemovalAwaits"], "bru": []}
    prod = fleet.run("get", "targets", "--stage", "prod", "-o", "json").views
    assert {it["path"] for it in prod} == {"sites/bru", "sites/cph", "sites/dub"}


def test_a_push_that_fails_is_tried_again_and_settles(fleet: Fleet):
    edge = fleet.repos["edge"]
    close(fleet, "ams")
    edge.hook("pre-receive", "exit 1")
    assert fleet.sweep().code == 3
    edge.hook("pre-receive", "exit 0")
    fleet.later(minutes=1).settle()
    assert published_sites(fleet) == ["bru", "cph", "dub"]


@pytest.mark.diagonal
@pytest.mark.parametrize("word", ["Delete", "Orphan"])
def test_a_sweep_that_is_killed_anywhere_is_continued(tmp_path: Path, word: str):
    fleet = Fleet.build(tmp_path / "live", {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", PLAIN)
    fleet.settle()
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    fleet.write("policy.yaml", PLAIN.replace("sites/ams, ", "") + f"  deletionPolicy: {word}\n")

    def outcome() -> object:
        fleet.settle()
        records = fleet.records()
        status = {
            it: records.file(RECORDS_BRANCH, it)
            for it in records.files(RECORDS_BRANCH)
            if "status/" in it
        }
        return fleet.refs(), status

    driver = killer(fleet)
    assert driver.everywhere(["sweep"], outcome) > 4
    assert published_sites(fleet) == (["ber"] if word == "Delete" else ["ams", "ber"])


def test_a_plan_as_data_says_that_a_removal_waits_for_later_stages(fleet: Fleet):
    close(fleet, "ams", "cph")
    plan = fleet.plan("-o", "json").json
    [awaiting] = [it for it in plan["holds"] if it["reason"] == "RemovalAwaits"]
    assert awaiting["variant"].startswith("monitoring-ams-")
    assert "RemovalAwaits" in [it["reason"] for it in plan["held"]]
