"""A stage goes back: every variant to the package that it last had of the revision, and stays."""

import shutil
from pathlib import Path

from companies import company
from fleet import PROMOTION, RULE, Fleet
from returning import (
    BER,
    CPH,
    FILE,
    OFF,
    ONE_STAGE,
    OURS,
    VENDOR,
    WHY,
    decision_statuses,
    edit,
    rollback,
    tree,
    two_sites,
    withdrawn,
)


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


def test_each_variant_gets_what_it_last_had_of_the_revision(fleet: Fleet):
    shutil.rmtree(fleet.root / fleet.state / "mirrors")
    result = rollback(fleet)
    assert result.code == 0, result.err
    assert "back to v1\n2 of 2 variants at v1; the rollback stays active until" in result.out
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert fleet.states() == {BER: "Ready", CPH: "Ready"}
    edge, core = fleet.repos["edge"], fleet.repos["core"]
    before = tree(fleet, f"{BER}/v2^1:{BER}")  # with the edit, which is in no tag
    assert tree(fleet, f"{BER}/v3:{BER}") == tree(fleet, f"main:{BER}") == before
    assert OURS in edge.file("main", FILE)
    assert tree(fleet, f"main:{CPH}", "core") == tree(fleet, f"{CPH}/v1:{CPH}", "core")
    assert "ref: monitoring/v1\n" in edge.file("main", f"{BER}/Kptfile")
    assert edge.drafts() == core.drafts() == []
    pristine = tree(fleet, f"{VENDOR}:published/{BER}")
    assert OURS not in edge.file(VENDOR, f"published/{FILE}")
    assert pristine == tree(fleet, f"{BER}/v1:{BER}")
    edge.fsck()
    core.fsck()


def test_and_stays_at_it(fleet: Fleet):
    rollback(fleet)
    fleet.later(minutes=5).settle()
    before = fleet.refs()
    fleet.release("v3")
    fleet.site("ber", "prod", "edge", retention="30d")
    assert fleet.later(minutes=5).settle() == 0
    assert fleet.refs()["edge"] == before["edge"]
    assert fleet.plan().code == 0
    counted = fleet.counted()
    assert (counted["renders"], counted["merges"]) == (0, 0)
    assert decision_statuses(fleet) == ["Rollback Active"]


def test_the_policy_tells_of_it(fleet: Fleet):
    rollback(fleet)
    output = fleet.run("explain", "monitoring").out
    assert "Pinned  stage prod stays at v1, by decision " in output
    assert "fanout withdraw monitoring " in output


def test_a_withdrawn_rollback_continues_with_the_edits(fleet: Fleet):
    was = tree(fleet, f"main:{BER}")
    rollback(fleet)
    withdrawn(fleet)
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    assert tree(fleet, f"main:{BER}") == was
    assert decision_statuses(fleet) == ["Rollback Withdrawn", "Withdraw Applied"]
    fleet.repos["edge"].fsck()


def test_edits_after_a_rollback_are_in_the_next_revision(fleet: Fleet):
    rollback(fleet)
    edit(fleet, FILE, "# and since\n")
    fleet.later(minutes=5).settle()
    withdrawn(fleet)
    fleet.release("v3")
    fleet.later(minutes=5).settle()
    content = fleet.repos["edge"].file("main", FILE)
    assert fleet.published()[BER] == "v3"
    assert "replicas: 3" in content
    assert content.endswith(f"{OURS}# and since\n")


def test_edits_of_the_later_revision_are_reported_and_stay_in_the_history(fleet: Fleet):
    edit(fleet, f"{CPH}/deployment.yaml", "# in v2\n", "core")
    was = tree(fleet, "main", "core")
    result = rollback(fleet)
    assert "1 package edited since publication" in result.err
    assert f"core:{CPH}" in result.err
    assert "# in v2" not in fleet.repos["core"].file("main", f"{CPH}/deployment.yaml")
    fleet.repos["core"].git("merge-base", "--is-ancestor", was, "main")


def test_other_inputs_of_the_revision_are_not_rendered_again(fleet: Fleet):
    """It goes back to the last package of the revision, whatever it was made of."""
    rollback(fleet)
    withdrawn(fleet)
    fleet.later(minutes=5).settle()
    fleet.site("ber", "prod", "edge", retention="30d")
    rollback(fleet)
    assert 'retention: "7d"' in fleet.repos["edge"].file("main", f"{BER}/settings.yaml")
    withdrawn(fleet)
    fleet.later(minutes=5).settle()
    assert 'retention: "30d"' in fleet.repos["edge"].file("main", f"{BER}/settings.yaml")


def test_a_single_variant_goes_back_alone(fleet: Fleet):
    assert rollback(fleet, "--variant", BER).code == 0
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v1", CPH: "v2"}
    output = fleet.run("explain", "monitoring/prod").out
    assert "Pinned  monitoring-ber-928771694f stays at v1, by decision " in output


def test_a_stage_that_is_half_through_goes_back_where_it_was(fleet: Fleet):
    fleet.write("promotion.yaml", OFF)
    fleet.release("v3")
    fleet.later(minutes=5).settle()
    fleet.run("promote", "monitoring", "--stage", "prod", "--variant", BER, *WHY)
    assert fleet.published() == {BER: "v3", CPH: "v2"}
    head = tree(fleet, "main", "core")
    rollback(fleet)
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    assert tree(fleet, "main", "core") == head
    fleet.later(minutes=5).settle()
    assert fleet.repos["core"].drafts() == []  # of v3: nobody waits for it


def test_a_pin_in_the_policy_does_the_same(fleet: Fleet):
    fleet.write("policy.yaml", ONE_STAGE.replace("{name: prod}", "{name: prod, pin: v1}"))
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert OURS in fleet.repos["edge"].file("main", FILE)
    fleet.release("v3")
    assert fleet.later(minutes=5).settle() == 0
    fleet.write("policy.yaml", ONE_STAGE)
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v3", CPH: "v3"}
    assert OURS in fleet.repos["edge"].file("main", FILE)


def test_a_pin_in_the_policy_waits_for_a_person_where_automation_is_off(fleet: Fleet):
    fleet.write("promotion.yaml", OFF)
    fleet.write("policy.yaml", ONE_STAGE.replace("{name: prod}", "{name: prod, pin: v1}"))
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    result = fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    assert result.code == 0, result.err
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    result = fleet.run("promote", "monitoring", "--stage", "prod", "--revision", "v2", *WHY)
    assert result.code == 4
    assert "the policy pins it to v1; remove or change the pin of stage prod" in result.err


def test_a_variant_that_never_had_the_revision_is_held_and_the_others_go(fleet: Fleet):
    fleet.site("dan", "prod", "core")
    fleet.later(minutes=5).settle()
    result = rollback(fleet, "--revision", "v1")
    never = "core:sites/dan was never published at v1; choose a published revision"
    assert never in result.err
    assert fleet.published() == {BER: "v1", CPH: "v1", "sites/dan": "v2"}
    assert fleet.condition("sites/dan")[0] == "NeverPublished"
    line = ("promote", "monitoring", "--stage", "prod", "--revision", "v2")
    result = fleet.run(*line, "--variant", BER, *WHY)
    assert result.code == 4
    assert "rolls it back to v1" in result.err


def test_a_draft_with_commits_of_people_is_not_dropped(fleet: Fleet):
    fleet.write("promotion.yaml", OFF)
    fleet.release("v3")
    fleet.later(minutes=5).settle()
    branch, edge = f"drafts/default/{BER}/monitoring", fleet.repos["edge"]
    edge.commit(branch, {FILE: edge.file(branch, FILE) + "# a fix\n"})
    result = rollback(fleet, "--revision", "v1")
    assert (
        f"branch {branch} has people's commits on a draft of v3, which a rollback to v1 would drop;"
        " save them in another branch and remove this one"
    ) in result.err
    assert fleet.published() == {BER: "v2", CPH: "v1"}
    assert fleet.condition(BER)[0] == "DraftEdited"
    assert edge.file(branch, FILE).endswith("# a fix\n")
    edge.git("update-ref", "-d", f"refs/heads/{branch}")
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v1", CPH: "v1"}


def test_a_commit_on_the_draft_of_the_way_back_is_published_with_it(fleet: Fleet):
    fleet.write("promotion.yaml", OFF)
    fleet.write("policy.yaml", ONE_STAGE.replace("{name: prod}", "{name: prod, pin: v1}"))
    fleet.later(minutes=5).settle()
    branch, edge = f"drafts/default/{BER}/monitoring", fleet.repos["edge"]
    edge.commit(branch, {FILE: edge.file(branch, FILE) + "# a fix\n"})
    fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    assert edge.file("main", FILE).endswith(f"{OURS}# a fix\n")
    fleet.later(minutes=5).settle()
    assert fleet.published()[BER] == "v1"
    assert edge.drafts() == []


def test_a_rollback_reaches_a_revision_that_is_no_longer_allowed(fleet: Fleet):
    rule = RULE.replace(">=1", ">=2")
    fleet.write("policy.yaml", ONE_STAGE.replace(RULE, rule))
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v1")
    fleet.later(minutes=5).settle()
    result = rollback(fleet)
    assert fleet.published() == {BER: "v1", CPH: "v1"}, result.err
    assert OURS in fleet.repos["edge"].file("main", FILE)


def test_a_variant_that_moves_does_not_go_back_in_the_same_step(fleet: Fleet):
    fleet.write("promotion.yaml", OFF)
    fleet.write("policy.yaml", ONE_STAGE.replace("'sites/'", "'places/'"))
    result = rollback(fleet, "--revision", "v1")
    assert result.code == 4
    assert "v1 was never published in stage prod" in result.err
    fleet.write("policy.yaml", ONE_STAGE)
    rollback(fleet)
    fleet.write("policy.yaml", ONE_STAGE.replace("'sites/'", "'places/'"))
    fleet.later(minutes=5).settle()
    assert fleet.published() == {"places/ber": "v1", "places/cph": "v1"}
    reason, sentence = fleet.condition("places/ber")
    assert (reason, "v1" in sentence) == ("PathChanged", True)


def test_a_rollback_reaches_a_revision_that_a_person_squashed(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ber": ("prod", "edge")})
    fleet.write("policy.yaml", ONE_STAGE)
    fleet.write("promotion.yaml", OFF)
    fleet.settle()
    edge, draft = fleet.repos["edge"], f"drafts/default/{BER}/monitoring"
    squashed = edge.git("commit-tree", f"{draft}^{{tree}}", "-p", "main", "-m", "All of it")
    edge.git("update-ref", "refs/heads/main", squashed)
    fleet.later(minutes=5).settle()
    edit(fleet, FILE, OURS)
    was = tree(fleet, f"main:{BER}")
    fleet.release("v2")
    fleet.later(minutes=5).settle()
    fleet.run("promote", "monitoring", "--stage", "prod", *WHY)
    assert fleet.published() == {BER: "v2"}
    assert rollback(fleet).code == 0
    assert fleet.published() == {BER: "v1"}
    assert tree(fleet, f"main:{BER}") == was


def test_a_rollback_without_its_rendering_is_held(fleet: Fleet):
    fleet.release("v3")
    fleet.later(minutes=5).settle()
    fleet.repos["edge"].git("update-ref", "-d", VENDOR)
    shutil.rmtree(fleet.root / fleet.state / "mirrors")
    rollback(fleet)
    assert fleet.published() == {BER: "v3", CPH: "v2"}
    assert fleet.condition(BER)[0] == "BaseMissing"


def test_a_publication_that_was_reverted_by_hand_is_put_on_record_by_going_back(fleet: Fleet):
    edge = fleet.repos["edge"]
    before = edge.git("rev-parse", f"{BER}/v2^1^{{tree}}")
    edge.git(
        "update-ref", "refs/heads/main", edge.git("commit-tree", before, "-p", "main", "-m", "undo")
    )
    assert rollback(fleet).code == 0
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert fleet.states() == {BER: "Ready", CPH: "Ready"}
    packages = {name: fleet.refs()[name] for name in ("edge", "core")}
    # One sweep writes only that the stage is ready with v1 again: its soak goes on from there.
    assert fleet.later(minutes=5).settle() == 1
    assert {name: fleet.refs()[name] for name in packages} == packages
    assert fleet.plan().code == 0


def test_a_rollback_goes_further_back_to_a_named_revision(fleet: Fleet):
    fleet.release("v3")
    fleet.later(minutes=5).settle()
    rollback(fleet)
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    again = rollback(fleet)
    assert again.code == 0
    assert "already recorded: back to v2; name an older --revision to go further" in again.out
    rollback(fleet, "--revision", "v1")
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert decision_statuses(fleet) == ["Rollback Applied", "Rollback Active"]


def test_promoting_another_revision_ends_it(fleet: Fleet):
    rollback(fleet)
    result = fleet.later(minutes=5).run(
        "promote", "monitoring", "--stage", "prod", "--revision", "v2", *WHY
    )
    assert result.code == 0, result.err
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    assert decision_statuses(fleet) == ["Rollback Applied", "Publish Applied"]


def test_the_window_binds_a_rollback_unless_overridden(fleet: Fleet):
    closed = "  windows: [{deny: {schedule: '0 0 * * *', duration: 24h}}]\n"
    fleet.write("promotion.yaml", PROMOTION + closed)
    result = rollback(fleet)
    assert fleet.published() == {BER: "v2", CPH: "v2"}
    assert "not published yet" in result.err or "nothing is published yet" in result.err
    assert rollback(fleet, "--override", "window").code == 0
    assert fleet.published() == {BER: "v1", CPH: "v1"}


def test_a_suspended_variant_stays_as_it_is(fleet: Fleet):
    fleet.run("suspend", "monitoring", "--variant", BER, *WHY)
    rollback(fleet)
    assert fleet.published() == {BER: "v2", CPH: "v1"}
    fleet.later(minutes=5).run("resume", "monitoring", "--variant", BER, *WHY)
    fleet.later(minutes=5).settle()
    assert fleet.published() == {BER: "v1", CPH: "v1"}
