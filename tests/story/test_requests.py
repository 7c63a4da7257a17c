"""The life of pull requests: opened, held, changed, merged, closed, reopened.

On a real Gitea, and on the tests' GitHub.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea
from github_fleet import GitHubFleet
from github_server import running_github

HEAD = "drafts/default/_stages/default.monitoring/dev"
REMOVALS = "drafts/default/_removals/default.monitoring/dev"
MANUAL = PROMOTION + "  merge: Manual\n"
SIGNED = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"


GITEA = pytest.param("gitea", marks=pytest.mark.forge)
ALL = os.environ.get("STORIES") == "full"
SITES = {"a": ("dev", "edge"), "b": ("dev", "edge")}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each story on Gitea, and each third one on GitHub, or all with STORIES=full."""
    if "fleet" in metafunc.fixturenames:
        is_third = crc32(metafunc.function.__name__.encode()) % 3 == 0
        hosts = [GITEA, "github"] if ALL or is_third else [GITEA]
        metafunc.parametrize("fleet", hosts, indirect=True)


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ForgeFleet]:
    if request.param == "gitea":
        yield ForgeFleet.on(request.getfixturevalue("gitea"), tmp_path, SITES)
    else:
        with running_github(tmp_path / "github") as github:
            yield cast(ForgeFleet, GitHubFleet.on(github, tmp_path, SITES))


def sweep(fleet: ForgeFleet, passes: int = 1) -> str:
    """Sweep each minute; what the last one printed."""
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
    return swept.out


def signed(fleet: ForgeFleet) -> ForgeFleet:
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + SIGNED)
    return fleet


def remove_site_b(fleet: ForgeFleet) -> None:
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [name for it in items if (name := it["metadata"]["name"]).startswith("monitoring-b-")]
    fleet.remove("site-b.yaml")
    removed = fleet.later(minutes=1).run(
        "remove", "monitoring", name, "--reason", "closed", "--by", "Ann <ann@example.com>"
    )
    assert removed.code == 0, removed.err


def shape(request: dict[str, Any]) -> tuple[str, bool, str, str]:
    return request["state"], request["draft"], request["head"], request["base"]


def test_a_request_is_opened_merged_and_tagged(fleet: ForgeFleet):
    assert sweep(fleet) == "2 released, 2 drafts written, 1 pull request opened, 1 status set\n"
    assert shape(fleet.only_request("edge")) == ("open", False, HEAD, "main")
    assert fleet.published() == {"sites/a": "", "sites/b": ""}
    assert sweep(fleet) == "1 pull request merged, 2 recorded\n"
    request = fleet.only_request("edge")
    assert (request["state"], request["merged_by"]) == ("merged", fleet.bot)
    repo = fleet.repos["edge"]
    assert repo.drafts() == []
    assert repo.tags() == ["sites/a/v1", "sites/b/v1"]
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert sweep(fleet) == "nothing to do\n"
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"]


def test_the_merge_says_what_it_publishes(fleet: ForgeFleet):
    sweep(fleet, 2)
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", "main")
    assert message.startswith("Publish 2 variants of stage dev at v1\n\n* sites/a\n* sites/b\n")
    assert "\nFanout-Policy: default/monitoring\n" in message


def test_an_unchanged_request_is_not_written_again(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet)
    fleet.calls()
    sweep(fleet, 2)
    assert fleet.writes() == []


@pytest.mark.parametrize("style", ["merge", "squash", "rebase"])
def test_the_merge_of_a_person_is_found(fleet: ForgeFleet, style: str):
    merge_by_hand(fleet, style)


@pytest.mark.forge
@pytest.mark.parametrize("style", ["rebase-merge", "fast-forward-only"])
def test_the_merge_of_a_person_in_a_style_of_gitea_is_found(
    gitea: Gitea, tmp_path: Path, style: str
):
    merge_by_hand(ForgeFleet.on(gitea, tmp_path, SITES), style)


def merge_by_hand(fleet: ForgeFleet, style: str) -> None:
    """Merge a request as a person, and see that it is found as a publication."""
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 3)
    request = fleet.only_request("edge")
    assert shape(request) == ("open", False, HEAD, "main")
    fleet.merge("edge", request["number"], style=style)
    sweep(fleet)
    repo = fleet.repos["edge"]
    assert repo.tags() == ["sites/a/v1", "sites/b/v1"]
    assert repo.drafts() == []
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert sweep(fleet) == "nothing to do\n"
    assert "OutOfBand" not in fleet.run("explain", "monitoring").out


def test_a_request_is_a_draft_until_people_have_approved(fleet: ForgeFleet):
    signed(fleet).write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    request = fleet.only_request("edge")
    assert request["draft"]
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "pending"}
    approved = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "dev", "--revision", "v1",
        "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert approved.code == 0, approved.err
    sweep(fleet)
    request = fleet.only_request("edge")
    assert not request["draft"]
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "success"}


def test_a_commit_of_a_person_is_merged_with_its_package(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    repo = fleet.repos["edge"]
    text = repo.file(HEAD, "sites/a/settings.yaml") + "  mine: x\n"
    commit = repo.commit(HEAD, {"sites/a/settings.yaml": text}, by="ann")
    sweep(fleet)
    request = fleet.only_request("edge")
    assert request["commit"] == commit
    assert fleet.statuses("edge", commit) == {("fanout", fleet.bot): "success"}
    fleet.merge("edge", request["number"], style="squash")
    fleet.delete_branch("edge", HEAD)
    sweep(fleet)
    assert repo.file("main", "sites/a/settings.yaml") == text
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert repo.tags() == ["sites/a/v1", "sites/b/v1"]
    fleet.release("v2")
    sweep(fleet, 2)
    assert "mine: x" in repo.file(HEAD, "sites/a/settings.yaml")


def test_a_request_closed_by_a_person_stays_closed_until_reopened(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    number = fleet.only_request("edge")["number"]
    fleet.close("edge", number)
    sweep(fleet, 3)
    assert [shape(it)[0] for it in fleet.requests("edge")] == ["closed"]
    assert "RequestClosed" in fleet.run("explain", "monitoring").out
    fleet.reopen("edge", number)
    sweep(fleet, 2)
    assert shape(fleet.only_request("edge")) == ("open", False, HEAD, "main")
    assert "RequestClosed" not in fleet.run("explain", "monitoring").out


def urgent(fleet: ForgeFleet) -> set[str]:
    """The reasons for which a person is asked."""
    view = fleet.run("status", "-o", "json").json["status"]
    return {it["reason"] for it in view["needsPerson"]}


def page(fleet: ForgeFleet, number: int) -> str:
    """The address that the forge gives a pull request."""
    return fleet.page("edge", number)


def names(fleet: ForgeFleet) -> dict[str, str]:
    """The name of each variant, by the last part of its path."""
    items = fleet.run("get", "variants", "-o", "json").items
    return {
        it["spec"]["downstream"]["package"][-1]: it["metadata"]["name"] for it in items
    }  # fmt: skip


RESUME = "fanout resume monitoring --stage dev --reason WHY"


def closed_by_ann(fleet: ForgeFleet, variant: str) -> str:
    return (
        f"{fleet.host}/ann closed pull request 1 ({page(fleet, 1)}) of {variant} at v1;"
        f" reopen it or run `{RESUME}`"
    )


def test_a_closed_request_is_named_before_what_else_its_drafts_wait_for(fleet: ForgeFleet):
    signed(fleet)
    sweep(fleet, 2)
    assert urgent(fleet) == {"ApprovalMissing"}
    name = names(fleet)["a"]
    fleet.close("edge", 1, by="ann")
    output = closed_by_ann(fleet, name)
    for _ in range(2):
        fleet.later(minutes=1).sweep()
        assert fleet.condition("sites/a") == ("RequestClosed", output)
        assert urgent(fleet) == {"RequestClosed"}
        explained = fleet.run("explain", "monitoring").out
        assert explained.index("RequestClosed") < explained.index("ApprovalMissing")
    fleet.delete_branch("edge", HEAD)
    fleet.later(minutes=1).sweep()
    # What the forge does not show any more is on record.
    assert fleet.condition("sites/a") == ("RequestClosed", output)
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["closed", "open"]


def test_a_request_whose_branch_is_deleted_says_so(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    name = names(fleet)["a"]
    fleet.delete_branch("edge", HEAD)
    reason, sentence = fleet.later(minutes=1).condition("sites/a")
    assert reason == "RequestClosed"
    assert sentence in (
        (
            f"a person deleted the branch of pull request 1 ({page(fleet, 1)}) of {name} at v1; run"
            f" `{RESUME}`"
        ),
        closed_by_ann(fleet, name),
    )


@pytest.mark.parametrize("remedy", [True, False], ids=["on record", "after a loss of the memo"])
def test_a_target_branch_that_a_person_changed_is_set_back(fleet: ForgeFleet, remedy: bool):
    sweep(fleet)
    fleet.repos["edge"].commit("trunk", {"notes.md": "x\n"})
    fleet.retarget("edge", 1, "trunk")
    if not remedy:
        shutil.rmtree(fleet.root / fleet.state / "forges")
    reason, sentence = fleet.later(minutes=1).condition("sites/a")
    changed = (
        f"its pull request 1 ({page(fleet, 1)}) is to branch trunk, not to main; the next sweep"
        " sets it back"
    )
    assert (reason, sentence) == ("RequestPending", changed)
    explained = fleet.run("explain", "monitoring", "-o", "json").json["status"]
    [blocker] = [it for it in explained["blockers"] if it["reason"] == reason]
    config = fleet.root / "config.yaml"
    assert blocker["commands"] == [f"fanout sweep --config {config}"]  # which is run below
    assert "to branch main" in fleet.run("plan").out
    swept = fleet.sweep("-o", "json")
    assert "RequestForeign" not in swept.reasons
    assert shape(fleet.only_request("edge")) == ("open", False, HEAD, "main")
    sweep(fleet)
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"]


def test_a_request_to_another_branch_that_a_person_closes_is_declined(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.repos["edge"].commit("trunk", {"notes.md": "x\n"})
    fleet.retarget("edge", 1, "trunk")
    fleet.close("edge", 1)
    sweep(fleet, 2)
    assert [it["state"] for it in fleet.requests("edge")] == ["closed"]
    assert fleet.condition("sites/a")[0] == "RequestClosed"


def test_a_request_merged_to_another_branch_is_opened_again(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.repos["edge"].commit("trunk", {"notes.md": "x\n"})
    fleet.retarget("edge", 1, "trunk")
    fleet.merge("edge", 1)
    sweep(fleet, 2)
    assert [(it["state"], it["base"]) for it in fleet.requests("edge")] == [
        ("merged", "trunk"), ("open", "main"),
    ]  # fmt: skip
    assert fleet.published() == {"sites/a": "", "sites/b": ""}


def test_numbers_and_addresses_of_requests_are_shown(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    url = page(fleet, 1)
    request = {"repository": "edge", "number": 1, "url": url, "state": "open"}
    for kind in ("drafts", "variants", "targets"):
        items = fleet.run("get", kind, "-o", "json").items
        assert [it["status"]["request"] for it in items] == [request, request]
        assert fleet.run("get", kind, "-o", "wide").out.count(url) == 2
        assert url not in fleet.run("get", kind).out
    [dev, prod] = fleet.run("get", "stages", "-o", "json").items
    assert (dev["status"]["requests"], prod["status"]["requests"]) == ([request], [])
    assert fleet.run("get", "stages", "-o", "wide").out.count(url) == 1
    for subject in ("monitoring", "monitoring/dev", "monitoring/dev/a"):
        assert f"  edge  1  open  {url}\n" in fleet.run("explain", subject).out
        view = fleet.run("explain", subject, "-o", "json").json["status"]
        assert view["requests"] == [request]
    stages = fleet.run("status", "-o", "json").json["status"]["stages"]
    assert [it["requests"] for it in stages] == [[request], []]
    assert fleet.links("edge", fleet.only_request("edge")["commit"]) == {url}


def test_a_newer_revision_asks_again(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.close("edge", 1)
    sweep(fleet)
    fleet.release("v2")
    sweep(fleet, 2)
    states = [(it["state"], it["title"]) for it in fleet.requests("edge")]
    assert [state for state, _ in states] == ["closed", "open"]
    assert "v2" in fleet.repos["edge"].git("log", "-1", "--format=%s", HEAD)


def test_a_deleted_branch_is_a_no_until_somebody_resumes(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.delete_branch("edge", HEAD)
    sweep(fleet, 3)
    assert fleet.repos["edge"].drafts() == []
    assert [it["state"] for it in fleet.requests("edge")] == ["closed"]
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["closed", "open"]


def test_a_label_holds_a_request(fleet: ForgeFleet):
    sweep(fleet)
    fleet.label("edge", 1, "fanout/hold")
    sweep(fleet, 2)
    request = fleet.only_request("edge")
    assert request["state"] == "open"
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "pending"}
    assert "RequestHeld" in fleet.run("explain", "monitoring").out
    fleet.unlabel("edge", 1, "fanout/hold")
    sweep(fleet)
    assert fleet.only_request("edge")["state"] == "merged"


def test_no_variant_joins_a_request_that_is_ready(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.site("c", "dev", "edge")
    sweep(fleet, 2)
    assert "sites/c" not in fleet.repos["edge"].files(HEAD)
    assert "RequestOpen" in fleet.run("explain", "monitoring").out
    fleet.merge("edge", 1)
    sweep(fleet, 2)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "open"]


def test_a_newer_candidate_is_in_the_same_request(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.release("v2")
    sweep(fleet, 2)
    request = fleet.only_request("edge")
    assert request["state"] == "open"
    assert "v2" in request["body"]
    assert request["commit"] == fleet.repos["edge"].refs()[f"refs/heads/{HEAD}"]


def test_text_of_people_around_that_of_fanout_stays(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    body = fleet.only_request("edge")["body"]
    fleet.rewrite("edge", 1, f"Please wait for Bob.\n\n{body}")
    fleet.release("v2")
    sweep(fleet, 2)
    body = fleet.only_request("edge")["body"]
    assert body.startswith("Please wait for Bob.\n")
    assert "v2" in body


def test_a_draft_of_a_variant_has_a_request_of_its_own(fleet: ForgeFleet):
    fleet.write("policy.yaml", POLICY.replace("spec:\n", "spec:\n  draftPer: Variant\n", 1))
    sweep(fleet, 2)
    heads = {it["head"] for it in fleet.requests("edge")}
    assert heads == {f"drafts/default/sites/{site}/monitoring" for site in "ab"}
    # After the first merge the server looks for conflicts of the other one: it asks for patience.
    sweep(fleet, 3)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged"]
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}


def test_out_of_band_is_what_the_gates_did_not_let_through(fleet: ForgeFleet):
    signed(fleet).write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.mark_ready("edge", 1)
    fleet.merge("edge", 1)
    swept = fleet.later(minutes=1).sweep("-o", "json")
    assert "OutOfBand" in swept.reasons
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}


def test_a_request_of_somebody_else_from_the_branch_is_left_alone_and_reported(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet)
    fleet.repos["edge"].commit("trunk", {"notes.md": "x\n"})
    opened = fleet.open_request("edge", HEAD, "trunk", "mine")
    swept = fleet.later(minutes=1).sweep()
    assert (swept.code, swept.out) == (0, "nothing to do\n")
    ignored = f"pull request {opened} from {HEAD} to trunk was not opened by fanout"
    assert f"{ignored} and is ignored" in swept.err
    [problem] = fleet.later(minutes=1).sweep("-o", "json").json["held"]
    assert problem["reason"] == "RequestForeign"
    assert [it["state"] for it in fleet.requests("edge")] == ["open", "open"]


def test_labels_are_set_again_and_unknown_reviewers_are_reported(fleet: ForgeFleet):
    request = "  pullRequest: {labels: [team-a], reviewers: [ann, nobody-here]}\n"
    fleet.write("promotion.yaml", MANUAL + request)
    swept = fleet.sweep()
    assert "nobody-here" in swept.err
    assert fleet.only_request("edge")["labels"] == ["team-a"]
    fleet.unlabel("edge", 1, "team-a")
    assert sweep(fleet) == "1 pull request updated\n"
    assert fleet.only_request("edge")["labels"] == ["team-a"]


def test_a_review_lets_it_be_merged_and_is_named_in_the_message(fleet: ForgeFleet):
    approvers = f"subjects: [ann@example.com {fleet.host}/ann, bob@example.com]"
    signed(fleet).write(
        "promotion.yaml",
        PROMOTION.replace("subjects: [ann@example.com, bob@example.com]", approvers),
    )
    sweep(fleet, 2)
    assert fleet.only_request("edge")["draft"]
    fleet.review("edge", 1, "ann")
    sweep(fleet, 2)
    assert fleet.only_request("edge")["state"] == "merged"
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", "main")
    assert "\nFanout-Approved-By: " in message
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}


def test_a_package_is_removed_by_a_request(fleet: ForgeFleet):
    sweep(fleet, 2)
    remove_site_b(fleet)
    sweep(fleet, 3)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged"]
    assert "sites/b" in fleet.requests("edge")[1]["title"]
    assert "sites/b" not in str(fleet.repos["edge"].files())
    assert fleet.repos["edge"].drafts() == []
    assert sweep(fleet) == "nothing to do\n"


def test_a_request_without_targets_is_a_draft_until_they_are_back(fleet: ForgeFleet):
    sweep(fleet, 2)
    fleet.write("promotion.yaml", MANUAL)
    fleet.release("v2")
    sweep(fleet, 2)
    request = fleet.requests("edge")[-1]
    assert (request["state"], request["draft"]) == ("open", False)
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "success"}
    for site in "ab":
        fleet.remove(f"site-{site}.yaml")
    fleet.later(minutes=1).sweep()
    request = fleet.requests("edge")[-1]
    assert (request["state"], request["draft"]) == ("open", True)
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "pending"}
    fleet.calls()
    fleet.later(minutes=1).sweep()
    assert fleet.writes() == []
    for site in "ab":
        fleet.site(site, "dev", "edge")
    sweep(fleet)
    assert not fleet.requests("edge")[-1]["draft"]
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "success"}


def test_a_removal_that_a_person_closes_is_not_opened_again(fleet: ForgeFleet):
    sweep(fleet, 2)
    fleet.write("promotion.yaml", MANUAL)
    fleet.remove("site-b.yaml")
    sweep(fleet)
    [_, request] = fleet.requests("edge")
    assert (request["state"], request["draft"], request["title"]) == (
        "open", False, "Remove sites/b (default/monitoring, stage dev)"
    )  # fmt: skip
    # It waits for a person, and no sweep removes anything.
    leaving = f"pull request 2 ({page(fleet, 2)})"
    output = fleet.run("explain", "monitoring").out
    assert f"{leaving} removes variants without a target" in " ".join(output.split())
    assert "fanout sweep" not in output
    assert f"removed by {leaving}" in fleet.run("get", "targets", "-o", "json").out
    fleet.close("edge", request["number"])
    sweep(fleet, 3)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "closed"]
    [declined] = fleet.blockers("RequestClosed")
    assert f"{fleet.host}/ann closed pull request 2 ({page(fleet, 2)})" in declined["message"]
    fleet.delete_branch("edge", REMOVALS)
    sweep(fleet, 2)
    assert fleet.repos["edge"].drafts() == []
    assert "sites/b/Kptfile" in fleet.repos["edge"].files()
    assert fleet.blockers("RequestClosed") == [declined]
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "closed", "open"]


def test_requested_changes_hold_a_removal(fleet: ForgeFleet):
    sweep(fleet, 2)
    approvers = f"subjects: [ann@example.com {fleet.host}/ann, bob@example.com]"
    signed(fleet).write(
        "promotion.yaml",
        PROMOTION.replace("subjects: [ann@example.com, bob@example.com]", approvers),
    )
    fleet.remove("site-b.yaml")
    sweep(fleet)
    number = fleet.requests("edge")[-1]["number"]
    fleet.review("edge", number, "ann", "REQUEST_CHANGES")
    sweep(fleet, 2)
    request = fleet.requests("edge")[-1]
    assert request["state"] == "open"
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "pending"}
    assert "ann` requested changes" in request["body"]
    [refused] = fleet.blockers("ChangesRequested")
    assert f"{fleet.host}/ann requested changes" in refused["message"]
    assert "(approve, or dismiss the review)" in refused["message"]
    fleet.review("edge", number, "ann")
    sweep(fleet, 3)
    assert fleet.requests("edge")[-1]["state"] == "merged"
    assert "sites/b" not in str(fleet.repos["edge"].files())


@pytest.mark.parametrize("how", ["by a sweep", "by hand"])
def test_a_removal_waits_for_the_reviews_of_its_stage(fleet: ForgeFleet, how: str):
    sweep(fleet, 2)
    approvers = f"subjects: [ann@example.com {fleet.host}/ann, bob@example.com]"
    signed(fleet).write(
        "promotion.yaml",
        PROMOTION.replace("subjects: [ann@example.com, bob@example.com]", approvers),
    )
    if how == "by hand":
        remove_site_b(fleet)
    else:
        fleet.remove("site-b.yaml")
    sweep(fleet, 3)
    request = fleet.requests("edge")[-1]
    assert (request["state"], request["draft"], request["head"]) == ("open", True, REMOVALS)
    assert fleet.statuses("edge", request["commit"]) == {("fanout", fleet.bot): "pending"}
    assert "ok: 0 of 1 approval" in request["body"]
    [missing] = fleet.blockers("ApprovalMissing")
    number = request["number"]
    address = f"pull request {number} ({page(fleet, number)})"
    assert f"ok: 0 of 1 approval; approve {address}; who can act: an approver" in missing["message"]
    assert missing["commands"] == []
    assert "sites/b/Kptfile" in fleet.repos["edge"].files()
    approval = ("approve", "monitoring", "--stage", "dev", "--removals")
    recorded = fleet.run(*approval, "--by", "Ann <ann@example.com>")
    assert (recorded.code, "approve the pull request in edge" in recorded.err) == (4, True)
    fleet.review("edge", number, "bob")  # nobody that the group has by this name
    sweep(fleet, 2)
    assert fleet.requests("edge")[-1]["state"] == "open"
    fleet.review("edge", number, "ann")
    sweep(fleet, 3)
    assert fleet.requests("edge")[-1]["state"] == "merged"
    assert "sites/b" not in str(fleet.repos["edge"].files())
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", "main")
    assert message.startswith("Remove sites/b\n"), message
    assert f"\nFanout-Approved-By: {fleet.host}/ann" in message, message


def test_no_variant_joins_a_request_that_a_person_closed(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.close("edge", 1)
    fleet.site("c", "dev", "edge")
    sweep(fleet, 2)
    assert "sites/c" not in str(fleet.repos["edge"].files(HEAD))
    assert [it["state"] for it in fleet.requests("edge")] == ["closed"]
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["closed", "open"]


def test_a_draft_that_a_person_makes_change_nothing_is_published_once(fleet: ForgeFleet):
    sweep(fleet, 2)
    fleet.write("promotion.yaml", MANUAL)
    fleet.release("v2")
    sweep(fleet, 2)
    repo = fleet.repos["edge"]
    for site in "ab":
        path = f"sites/{site}"
        files = {it: repo.file("main", it) for it in repo.files() if it.startswith(f"{path}/")}
        repo.commit(HEAD, files, by="ann")
    fleet.write("promotion.yaml", PROMOTION)
    sweep(fleet, 5)  # the server checks again after each push, and merges nothing meanwhile
    # Gitea works off pushes later: the deletion of the branch after the first merge may close the
    # next request from a branch of the same name. fanout then opens another.
    states = [it["state"] for it in fleet.requests("edge")]
    assert [it for it in states if it != "closed"] == ["merged", "merged"]
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v2"}
    assert sweep(fleet) == "nothing to do\n"


OFFERED = "fanout/hold"


def labels(fleet: ForgeFleet) -> list[str]:
    return sorted(it["name"] for it in fleet.gitea.get(f"{fleet.path('edge')}/labels"))


@pytest.mark.forge
def test_labels_are_created_once_with_the_first_requests(gitea: Gitea, tmp_path: Path):
    sites = {name: (name, "edge") for name in ("one", "two", "three", "four")}
    fleet = ForgeFleet.on(gitea, tmp_path, sites)
    stages = ", ".join(f"{{name: {it}}}" for it in sites)
    fleet.write("policy.yaml", POLICY[: POLICY.index("  stages:")] + f"  stages: [{stages}]\n")
    fleet.write("promotion.yaml", MANUAL + "  pullRequest: {labels: [team-a]}\n")
    sweep(fleet)
    assert len(fleet.requests("edge")) == len(sites)
    assert labels(fleet) == [OFFERED, "team-a"]
    assert {tuple(it["labels"]) for it in fleet.requests("edge")} == {("team-a",)}


def test_the_label_that_texts_offer_holds_a_request(fleet: ForgeFleet):
    sweep(fleet)
    number = fleet.only_request("edge")["number"]
    fleet.label("edge", number, OFFERED)
    sweep(fleet, 2)
    assert fleet.only_request("edge")["state"] == "open"


@pytest.mark.forge
def test_a_label_that_cannot_be_created_is_reported_and_stops_nothing(gitea: Gitea, tmp_path: Path):
    """The token has the scopes that suffice where no labels are configured."""
    scopes = ("write:repository", "read:issue", "read:user")
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge")}, scopes=scopes)
    swept = fleet.sweep()
    assert "cannot create the label fanout/hold" in swept.err
    assert swept.code == 0
    assert fleet.only_request("edge")["state"] == "open"
    assert labels(fleet) == []
    swept = fleet.later(minutes=1).sweep()
    assert (swept.code, "fanout/hold" in swept.err) == (0, False)
    assert fleet.only_request("edge")["state"] == "merged"


@pytest.mark.forge
def test_the_label_of_a_repository_is_not_created_again(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, SITES)
    fleet.gitea.post(f"{fleet.path('edge')}/labels", {"name": OFFERED, "color": "#cccccc"})
    assert "fanout/hold" not in fleet.sweep().err
    assert labels(fleet) == [OFFERED]
