"""A person takes a published package off the branch: seen at once, and nothing put back."""

from pathlib import Path

from companies import company
from fleet import Fleet

AMS = "sites/ams"


@company
def fleet(root: Path) -> Fleet:
    """Two sites in dev before one in prod; all is published and ready."""
    sites = {"ams": ("dev", "edge"), "ber": ("dev", "edge"), "cph": ("prod", "core")}
    made = Fleet.build(root, sites)
    made.settle()
    made.later(minutes=1).report("dev", "v1")
    made.settle()
    made.later(hours=2).settle()
    assert set(made.states().values()) == {"Ready"}
    return made


def take_away(fleet: Fleet, path: str = AMS) -> str:
    """Answers the commit before."""
    edge = fleet.repos["edge"]
    before = edge.refs()["refs/heads/main"]
    edge.commit("main", {it: None for it in edge.files() if it.startswith(f"{path}/")})
    return before


def test_a_variant_removed_by_hand_is_held_at_once_and_its_remedies_are_named(fleet: Fleet):
    take_away(fleet)
    assert fleet.states() == {AMS: "Held", "sites/ber": "Ready", "sites/cph": "Ready"}
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert sentence.startswith("edge:sites/ams was removed from the branch by hand; restore it")
    assert "git revert" in sentence
    assert "fanout remove monitoring monitoring-" in sentence
    result = fleet.run("diff", AMS)
    assert (result.code, result.out) == (3, "")  # it is not put back
    assert sentence in result.err
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["conditions"][0]["status"] == "False"


def test_a_variant_removed_by_hand_is_unfinished_and_withdraws_no_verdict(fleet: Fleet):
    take_away(fleet)
    verdicts = {
        it["stage"]: it["verdicts"] for it in fleet.run("get", "stages", "-o", "json").views
    }
    assert verdicts == {"dev": {"v1": "Passed"}, "prod": {"v1": "Passed"}}
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    fleet.later(minutes=1).report("dev", "v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ber"] == "v2"
    stages = {it["stage"]: it for it in fleet.run("get", "stages", "-o", "json").views}
    assert stages["dev"]["verdicts"]["v2"] == "Pending"
    assert fleet.repos["edge"].tags() == ["sites/ams/v1", "sites/ber/v1", "sites/ber/v2"]
    assert [it for it in fleet.repos["edge"].files() if it.startswith(AMS)] == []


def test_a_package_put_back_is_ready_again(fleet: Fleet):
    before = take_away(fleet)
    edge = fleet.repos["edge"]
    kept = {it: edge.file(before, it).removesuffix("\n") + "\n" for it in edge.files(before)}
    edge.commit("main", {it: text for it, text in kept.items() if it.startswith(AMS)})
    assert set(fleet.states().values()) == {"Ready"}
    assert fleet.sweep().out == "nothing to do\n"


def test_a_repository_that_does_not_answer_has_lost_nothing(fleet: Fleet):
    edge = fleet.repos["edge"].path
    edge.rename(edge.with_suffix(".away"))
    assert fleet.states()[AMS] == "Held"
    assert fleet.condition(AMS)[0] == "RepositoryUnavailable"
