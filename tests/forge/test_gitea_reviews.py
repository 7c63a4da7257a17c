"""Reviews on a real Gitea as approvals of drafts."""

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

from fanout.gates import gate_wording
from fanout.gates.gate_rules import ApprovalRule

pytestmark = pytest.mark.forge

HEAD = "drafts/default/_stages/default.monitoring/dev"
SITES = {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
SIGNED = "{name: signed, approval: {atLeast: 2, from: [sre]}}"
RULE = ApprovalRule("signed", 2, frozenset({"ann", "bob"}), ("sre",))


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Two sites of dev in one pull request; two people of sre must approve."""
    made = ForgeFleet.on(gitea, tmp_path / "fleet", SITES)
    made.write(
        "policy.yaml",
        POLICY.replace(
            "{name: dev, verification", f"{{name: dev, requires: [{SIGNED}], verification"
        ),
    )
    people = f"[ann@example.com {gitea.host}/ann, Bob <bob@example.com> {gitea.host}/bob]"
    made.write("promotion.yaml", PROMOTION.replace("[ann@example.com, bob@example.com]", people))
    assert made.sweep().code == 0
    return made


def request_number(fleet: ForgeFleet) -> int:
    """The number of the request of the stage; it is opened if fanout has not."""
    if not fleet.requests("edge"):
        opening = {"head": HEAD, "base": "main", "title": "dev"}
        fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by=fleet.bot)
    return int(fleet.only_request("edge")["number"])


def missing(*names: str) -> str:
    return gate_wording.describe_missing_approvals(RULE, names)


def approvals(fleet: ForgeFleet, site: str) -> str:
    reason, sentence = fleet.condition(f"sites/{site}")
    return sentence if reason == "ApprovalMissing" else reason


def test_the_life_of_reviews(fleet):
    number, host = request_number(fleet), fleet.gitea.host
    assert approvals(fleet, "ams") == missing()
    fleet.review("edge", number, "ann")
    fleet.review("edge", number, "ada")
    unauthorized = (
        f"approval by {host}/ada does not count: not {gate_wording.format_approvers(RULE)}"
    )
    assert approvals(fleet, "ams") == f"{missing(f'{host}/ann')}; {unauthorized}"
    fleet.review("edge", number, "ann", "COMMENT")
    assert missing(f"{host}/ann") in approvals(fleet, "ams")
    fleet.review("edge", number, "ann", "REQUEST_CHANGES")
    assert approvals(fleet, "ams") == "ChangesRequested"
    again = fleet.review("edge", number, "ann")
    assert missing(f"{host}/ann") in approvals(fleet, "ams")
    fleet.dismiss("edge", number, again)
    assert approvals(fleet, "ams").startswith(missing())


def test_a_push_asks_again_for_what_it_changed(fleet):
    number, host = request_number(fleet), fleet.gitea.host
    fleet.review("edge", number, "ann")
    fleet.review("edge", number, "bob")
    fleet.repos["edge"].commit(HEAD, {"sites/ams/notes.txt": "by bob\n"}, by="bob")
    other = f"approval by {host}/ann, {host}/bob is for other drafts of v1"
    assert approvals(fleet, "ams") == f"{missing()}; {other}"
    assert approvals(fleet, "ber") == "StageDraftPending"
    assert fleet.run("approve", "monitoring", "--stage", "dev", "--revision", "v1",
                     "--by", "Ann <ann@example.com>").code == 0  # fmt: skip
    fleet.review("edge", number, "ann")
    assert missing(f"{host}/ann") in approvals(fleet, "ams"), "one person with two names"
    fleet.review("edge", number, "bob")
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}


def test_a_review_of_an_author_of_the_draft_does_not_count(fleet):
    host = fleet.gitea.host
    # Of a login that no address is joined to, nobody can tell which commits are theirs.
    people = f"[{host}/ann, Bob <bob@example.com> {host}/bob]"
    promotion = PROMOTION.replace("[ann@example.com, bob@example.com]", people)
    fleet.write("promotion.yaml", f"{promotion}  requiresSeparation: true\n")
    number = request_number(fleet)
    fleet.repos["edge"].commit(HEAD, {"sites/ams/notes.txt": "by bob\n"}, by="bob")
    fleet.later(minutes=1).sweep()
    fleet.review("edge", number, "ann")
    fleet.review("edge", number, "bob")
    sentence = approvals(fleet, "ams")
    assert sentence.startswith(f"{missing()}; ")
    assert f"approval by {host}/bob does not count: they changed the draft" in sentence
    assert f"approval by {host}/ann does not count: their commit address is not in" in sentence
    assert approvals(fleet, "ber") == "StageDraftPending"


def test_a_publication_names_its_approvers(fleet):
    number, host = request_number(fleet), fleet.gitea.host
    fleet.review("edge", number, "bob")
    result = fleet.run("approve", "monitoring", "--stage", "dev", "--revision", "v1",
                     "--by", "Ann <ann@example.com>")  # fmt: skip
    assert result.code == 0, result.err
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}
    message = fleet.repos["edge"].git("log", "-1", "--format=%(trailers:only)", "main")
    assert [line for line in message.splitlines() if "Approved" in line] == [
        f"Fanout-Approved-By: {host}/bob",
        "Fanout-Approved-By: ann@example.com",
    ]


def test_a_merge_by_a_person_after_reviews_is_in_band(fleet):
    promotion = (fleet.root / fleet.policies / "promotion.yaml").read_text(encoding="utf-8")
    fleet.write("promotion.yaml", promotion + "  merge: Manual\n")
    number = request_number(fleet)
    for person in ("ann", "bob"):
        fleet.review("edge", number, person)
    fleet.settle()
    fleet.merge("edge", number, by="ann")
    fleet.delete_branch("edge", HEAD)
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}
    conditions = fleet.variants()["sites/ams"]["conditions"]
    assert "OutOfBand" not in {it["type"] for it in conditions}


def held(fleet: ForgeFleet) -> tuple[str, str]:
    """Reason and sentence of what holds a site, after a sweep."""
    fleet.later(minutes=1).sweep()
    return fleet.condition("sites/ams")


def sign(fleet: ForgeFleet, by: str) -> None:
    signed = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "dev", "--revision", "v1", "--by", by
    )
    assert signed.code == 0, signed.err


@pytest.fixture
def refused(fleet: ForgeFleet) -> ForgeFleet:
    """Bob has requested changes, and whoever else may approve has approved."""
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", policy.replace("atLeast: 2", "atLeast: 1"))
    number = request_number(fleet)
    fleet.review("edge", number, "bob", "REQUEST_CHANGES")
    fleet.review("edge", number, "ann")
    return fleet


def test_a_request_for_changes_is_named_and_holds_whoever_approves(refused):
    number, bob = request_number(refused), f"{refused.gitea.host}/bob"
    reason, sentence = held(refused)
    assert reason == "ChangesRequested"
    request = refused.only_request("edge")
    assert f"{bob} requested changes (http" in sentence
    assert f"/{refused.owner}/edge/pulls/{number}#issuecomment-" in sentence
    assert (request["state"], request["draft"]) == ("open", True)
    for shown in (
        request["body"],
        refused.run("status").out,
        refused.run("explain", "monitoring").out,
    ):
        assert "ChangesRequested" in shown
        assert bob in shown
        assert f"/edge/pulls/{number}#issuecomment-" in shown
    view = refused.run("status", "-o", "json").json["status"]
    [urgent] = [it for it in view["needsPerson"] if it["reason"] == "ChangesRequested"]
    assert urgent["who"].startswith(bob)
    assert "until" not in urgent


def test_a_request_for_changes_holds_a_draft_that_is_written_anew(refused):
    before = refused.only_request("edge")["commit"]
    policy = (refused.root / refused.policies / "policy.yaml").read_text(encoding="utf-8")
    injection = "      injectors: [{kind: ConfigMap, nameExpr: target.metadata.name}]\n"
    assert injection in policy
    refused.write("policy.yaml", policy.replace(injection, ""))
    refused.later(minutes=1).sweep()
    assert refused.only_request("edge")["commit"] != before
    sign(refused, "Ann <ann@example.com>")
    assert held(refused)[0] == "ChangesRequested"


def test_a_new_revision_replaces_what_a_request_for_changes_is_about(refused):
    assert held(refused)[0] == "ChangesRequested"
    refused.release("v2")
    reason, sentence = held(refused)
    assert reason == "ApprovalMissing"
    assert "requested changes" not in sentence
    refused.review("edge", request_number(refused), "ann")
    refused.settle()
    assert refused.published() == {"sites/ams": "v2", "sites/ber": "v2"}


def test_a_request_for_changes_holds_the_drafts_of_its_request_alone(fleet):
    policy = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    policy = policy.replace("spec:\n", "spec:\n  draftPer: Variant\n", 1)
    fleet.write("policy.yaml", policy.replace("atLeast: 2", "atLeast: 1"))
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    numbers = {
        it["head"].split("/")[3]: it["number"]
        for it in fleet.requests("edge")
        if it["state"] == "open" and "/sites/" in it["head"]
    }
    fleet.review("edge", numbers["ams"], "bob", "REQUEST_CHANGES")
    for number in numbers.values():
        fleet.review("edge", number, "ann")
    for _ in range(5):
        fleet.later(minutes=1).sweep()
    assert fleet.condition("sites/ams")[0] == "ChangesRequested"
    assert fleet.published() == {"sites/ams": "", "sites/ber": "v1"}
    fleet.release("v2")
    assert held(fleet)[0] == "ApprovalMissing"


def resume(fleet: ForgeFleet) -> int:
    """Have another pull request opened, which Ann approves; return its number."""
    resumed = fleet.later(minutes=1).run(
        "resume", "monitoring", "--stage", "dev", "--reason", "go", "--by", "Ann <ann@example.com>"
    )
    assert resumed.code in (0, 3), resumed.err
    fleet.later(minutes=1).sweep()
    [_, request] = fleet.requests("edge")
    number = int(request["number"])
    fleet.review("edge", number, "ann")
    return number


@pytest.mark.parametrize("end", ["review", "record"])
@pytest.mark.parametrize("act", ["closed", "deleted"])
def test_a_request_for_changes_holds_the_next_pull_request_of_its_revision(refused, act, end):
    number = request_number(refused)
    if act == "closed":
        refused.close("edge", number)
    else:
        refused.delete_branch("edge", HEAD)
    held(refused)
    other = resume(refused)
    for _ in range(2):
        reason, sentence = held(refused)
        assert (reason, f"{refused.gitea.host}/bob" in sentence) == ("ChangesRequested", True)
    if end == "review":
        refused.review("edge", other, "bob")
    else:
        sign(refused, "Bob <bob@example.com>")
    refused.later(minutes=1).settle()
    assert refused.published() == {"sites/ams": "v1", "sites/ber": "v1"}


@pytest.mark.parametrize("end", ["review", "record", "dismissal"])
def test_a_request_for_changes_ends(refused, end):
    assert held(refused)[0] == "ChangesRequested"
    number = request_number(refused)
    match end:
        case "review":
            refused.review("edge", number, "bob")
        case "record":
            sign(refused, "Bob <bob@example.com>")
        case "dismissal":
            reviews = refused.gitea.get(f"{refused.path('edge')}/pulls/{number}/reviews")
            [review] = [it["id"] for it in reviews if it["state"] == "REQUEST_CHANGES"]
            refused.dismiss("edge", number, review)
    refused.settle()
    assert refused.published() == {"sites/ams": "v1", "sites/ber": "v1"}


def test_a_merge_by_a_person_against_a_request_for_changes_is_out_of_band(refused):
    assert held(refused)[0] == "ChangesRequested"
    number = request_number(refused)
    refused.retitle("edge", number, "mine")
    refused.merge("edge", number, by="ann")
    swept = refused.later(minutes=1).sweep("-o", "json")
    assert "OutOfBand" in swept.reasons


def write_policy(fleet: ForgeFleet, *edits: tuple[str, str]) -> None:
    """Change the text of the policy, and let fanout follow."""
    text = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    fleet.write("policy.yaml", text)
    for _ in range(4):
        fleet.later(minutes=1).sweep()


PER_VARIANT = ("spec:\n  upstream", "spec:\n  draftPer: Variant\n  upstream")
PER_STAGE = ("draftPer: Variant", "draftPer: Stage")


def open_numbers(fleet: ForgeFleet) -> dict[str, int]:
    """Return the numbers of the open pull requests by branch, without what all names begin with."""
    return {
        it["head"].removeprefix("drafts/default/"): int(it["number"])
        for it in fleet.requests("edge")
        if it["state"] == "open"
    }


def approve_all(fleet: ForgeFleet, person: str = "ann") -> None:
    for number in open_numbers(fleet).values():
        fleet.review("edge", number, person)
    for _ in range(4):
        fleet.later(minutes=1).sweep()


def is_held_by_bob(fleet: ForgeFleet, path: str) -> bool:
    reason, sentence = fleet.condition(path)
    return (reason, f"{fleet.gitea.host}/bob" in sentence) == ("ChangesRequested", True)


@pytest.fixture
def refused_alone(fleet: ForgeFleet) -> ForgeFleet:
    """Each variant has a pull request, and Bob requests changes of one."""
    write_policy(fleet, PER_VARIANT, ("atLeast: 2", "atLeast: 1"))
    numbers = open_numbers(fleet)
    fleet.review("edge", numbers["sites/ams/monitoring"], "bob", "REQUEST_CHANGES")
    fleet.later(minutes=1).sweep()
    assert is_held_by_bob(fleet, "sites/ams")
    return fleet


@pytest.mark.parametrize("end", ["review", "revision"])
def test_a_request_for_changes_holds_the_drafts_of_each_variant_after_that_of_the_stage(
    refused, end
):
    write_policy(refused, PER_VARIANT)
    assert sorted(open_numbers(refused)) == ["sites/ams/monitoring", "sites/ber/monitoring"]
    approve_all(refused)
    assert set(refused.published().values()) == {""}
    assert is_held_by_bob(refused, "sites/ams")
    assert is_held_by_bob(refused, "sites/ber")
    if end == "review":
        refused.review("edge", open_numbers(refused)["sites/ams/monitoring"], "bob")
        for _ in range(3):
            refused.later(minutes=1).sweep()
        assert refused.published() == {"sites/ams": "v1", "sites/ber": ""}
        assert is_held_by_bob(refused, "sites/ber")
    else:
        refused.release("v2")
        for _ in range(2):
            refused.later(minutes=1).sweep()
        approve_all(refused)
        assert refused.published() == {"sites/ams": "v2", "sites/ber": "v2"}


def test_a_request_for_changes_holds_the_draft_of_the_stage_after_that_of_its_variant(
    refused_alone,
):
    write_policy(refused_alone, PER_STAGE)
    assert list(open_numbers(refused_alone)) == [HEAD.removeprefix("drafts/default/")]
    approve_all(refused_alone)
    assert set(refused_alone.published().values()) == {""}
    assert is_held_by_bob(refused_alone, "sites/ams")
    # And back again.
    write_policy(refused_alone, ("draftPer: Stage", "draftPer: Variant"))
    approve_all(refused_alone)
    assert refused_alone.published() == {"sites/ams": "", "sites/ber": "v1"}
    assert is_held_by_bob(refused_alone, "sites/ams")
    approve_all(refused_alone, "bob")
    assert refused_alone.published() == {"sites/ams": "v1", "sites/ber": "v1"}


def test_a_request_for_changes_holds_a_draft_whose_path_is_changed(refused_alone):
    write_policy(refused_alone, ("'sites/' +", "'eu/' +"))
    approve_all(refused_alone)
    assert refused_alone.published() == {"eu/ams": "", "eu/ber": "v1"}
    assert is_held_by_bob(refused_alone, "eu/ams")


def test_a_request_for_changes_holds_the_draft_of_a_stage_that_is_renamed(refused):
    for site in ("ams", "ber"):
        refused.site(site, "lab", "edge")
    write_policy(refused, ("name: dev,", "name: lab,"), ("[dev]", "[lab]"))
    approve_all(refused)
    assert set(refused.published().values()) == {""}
    assert is_held_by_bob(refused, "sites/ams")
