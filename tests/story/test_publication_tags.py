"""Tags of publications that are deleted or moved are told, and a stage goes back all the same."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PROMOTION, Fleet
from returning import BER, CPH, FILE, OURS, rollback, two_sites

V1, V2 = f"refs/tags/{BER}/v1", f"refs/tags/{BER}/v2"


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


def conditions(fleet: Fleet) -> dict[str, str]:
    return {it["type"]: it["message"] for it in fleet.variants()[BER]["conditions"]}


def test_a_deleted_tag_is_reported_with_the_commit_to_put_it_back_on(fleet: Fleet):
    edge = fleet.repos["edge"]
    commit = edge.refs()[V2]
    edge.git("update-ref", "-d", V2)
    sentence = fleet.sweep()
    assert sentence.code == 3
    assert sentence.err.count(f"tag {BER}/v2 ") == 1
    assert f"{commit}:{V2}" in sentence.err
    assert f"tag {BER}/v2 " in conditions(fleet)["TagMissing"]
    assert "TagMissing" in fleet.run("get", "variants").out
    for subject in ("monitoring", "monitoring/prod", f"monitoring/prod/edge:{BER}"):
        assert fleet.run("explain", subject).out.count("TagMissing  ") == 1
    edge.git("update-ref", V2, commit)
    mended = fleet.sweep()
    assert mended.code == 0
    assert mended.err == ""


def test_a_moved_tag_is_reported_with_both_commits(fleet: Fleet):
    edge = fleet.repos["edge"]
    commit, other = edge.refs()[V2], edge.refs()[V1]
    edge.git("update-ref", V2, other)
    sentence = fleet.sweep()
    assert sentence.code == 3
    assert f"tag {BER}/v2 " in sentence.err
    assert other[:12] in sentence.err
    assert commit in sentence.err
    assert "TagMoved" in conditions(fleet)
    assert "TagMissing" not in conditions(fleet)


def test_missing_tags_of_upstream_and_downstream_are_both_reported(fleet: Fleet):
    fleet.repos["edge"].git("update-ref", "-d", V2)
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v2")
    sentence = conditions(fleet)["TagMissing"]
    assert "monitoring/v2" in sentence
    assert f"{BER}/v2" in sentence


def goes_back(fleet: Fleet) -> None:
    """With the person's edit of then, as with its tag."""
    done = rollback(fleet, "--revision", "v1")
    assert done.code == 0, done.err
    fleet.settle()
    assert fleet.published()[BER] == "v1"
    text = fleet.repos["edge"].file("main", FILE)
    assert "replicas: 1" in text
    assert OURS in text


def test_a_rollback_needs_no_tag_of_what_it_goes_back_to(fleet: Fleet):
    fleet.repos["edge"].git("update-ref", "-d", V1)
    goes_back(fleet)


def test_a_rollback_needs_no_tag_at_all(fleet: Fleet):
    for ref in (V1, V2):
        fleet.repos["edge"].git("update-ref", "-d", ref)
    goes_back(fleet)


def test_a_rollback_that_was_done_ends_the_loss_of_an_upstream_tag(fleet: Fleet):
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v2")
    goes_back(fleet)


def test_a_rollback_of_one_variant_leaves_the_lost_tag_of_another(fleet: Fleet):
    fleet.repos["core"].git("update-ref", "-d", f"refs/tags/{CPH}/v2")
    assert rollback(fleet, "--variant", BER).code == 0
    assert fleet.published() == {BER: "v1", CPH: "v2"}


def test_a_rollback_that_a_window_holds_leaves_the_lost_tag_to_be_put_back(fleet: Fleet):
    closed = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'
    fleet.write("promotion.yaml", PROMOTION + closed)
    fleet.repos["edge"].git("update-ref", "-d", V2)
    assert rollback(fleet, "--revision", "v1").code == 3
    assert fleet.published()[BER] == "v2"


def test_a_rollback_is_not_misled_by_a_tag_that_was_moved(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("update-ref", V1, edge.refs()[V2])
    goes_back(fleet)


def test_a_rollback_without_a_revision_finds_the_one_before(fleet: Fleet):
    fleet.repos["edge"].git("update-ref", "-d", V1)
    assert rollback(fleet, "--variant", BER).code == 0
    fleet.settle()
    assert fleet.published()[BER] == "v1"


def test_a_rollback_to_an_unpublished_revision_is_refused(fleet: Fleet):
    fleet.repos["edge"].git("update-ref", "-d", V1)
    refused = rollback(fleet, "--revision", "v7")
    assert refused.code == 4
    assert "v7" in refused.err


def releases(fleet: Fleet) -> None:
    fleet.release("v3")


def rolls_back(fleet: Fleet) -> None:
    done = rollback(fleet, "--revision", "v1")
    assert done.code == 0, done.err


def share_drafts(fleet: Fleet) -> None:
    policy = fleet.root / fleet.policies / "policy.yaml"
    text = policy.read_text(encoding="utf-8")
    fleet.write("policy.yaml", text.replace("spec:\n", "spec:\n  draftPer: Stage\n", 1))


@pytest.mark.parametrize("is_shared", [False, True], ids=["Variant", "Stage"])
@pytest.mark.parametrize("act", [releases, rolls_back])
def test_the_number_of_a_deleted_tag_is_not_used_again(
    fleet: Fleet, act: Callable[[Fleet], None], is_shared: bool
):
    if is_shared:
        share_drafts(fleet)
        fleet.settle()
    edge = fleet.repos["edge"]
    commit = edge.refs()[V2]
    edge.git("update-ref", "-d", V2)
    act(fleet)
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert set(edge.tags()) == {f"{BER}/v1", f"{BER}/v3"}
    items = fleet.run("history", "monitoring/ber", "-o", "json").items
    assert [it["status"]["tag"] for it in items] == [f"{BER}/v{it}" for it in (3, 2, 1)]
    # It stays told, and can be put back as the message says.
    assert fleet.run("status").code == 3
    sentence = conditions(fleet)["TagMissing"]
    [command] = re.findall(r"`(git push [^`]+)`", sentence)
    assert command.endswith(f"{commit}:{V2}")
    assert "in a clone of edge, run" in sentence
    clone = fleet.root / "clone"
    subprocess.run(["git", "clone", "-q", edge.path, clone], check=True)
    subprocess.run(command.split(), cwd=clone, check=True, capture_output=True)
    assert edge.refs()[V2] == commit
    mended = fleet.later(minutes=1).sweep()
    assert (mended.code, mended.err) == (0, "")
    assert fleet.sweep().out == "nothing to do\n"


def test_the_number_of_a_tag_deleted_after_a_merge_by_hand_is_not_used_again(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("update-ref", "-d", V2)
    fleet.release("v3")
    fleet.later(minutes=1).sweep("--drafts-only")
    draft = f"drafts/default/{BER}/monitoring"
    edge.git("update-ref", "refs/heads/main", edge.refs()[f"refs/heads/{draft}"])
    for _ in range(2):
        fleet.later(minutes=1).sweep()
    assert set(edge.tags()) == {f"{BER}/v1", f"{BER}/v3"}
    assert f"{BER}/v2 " in conditions(fleet)["TagMissing"]


def test_a_tag_with_thousands_of_digits_is_of_no_publication(fleet: Fleet):
    edge = fleet.repos["edge"]
    packed = Path(edge.path) / "packed-refs"
    packed_refs = packed.read_text(encoding="ascii") if packed.exists() else ""
    line = f"{edge.refs()[V2]} refs/tags/{BER}/v{'9' * 5000}\n"
    packed.write_text(packed_refs + line, encoding="ascii")
    releases(fleet)
    for _ in range(3):
        done = fleet.later(minutes=1).sweep()
        assert "InternalError" not in done.err
    packed.write_text(packed_refs, encoding="ascii")  # libgit2 takes no such name either
    assert f"{BER}/v3" in edge.tags()
