"""Conditions have the instants that records and commits tell, and no others."""

from datetime import UTC, datetime
from pathlib import Path

from editing import AMS, conflict, one_site
from fleet import POLICY, Fleet


def conditions(fleet: Fleet, noun: str) -> list[dict[str, dict]]:
    """The conditions by type, of each item."""
    items = fleet.run("get", noun, "-o", "json").items
    return [{it["type"]: it for it in item["status"]["conditions"]} for item in items]


def test_a_variant_is_verifying_since_its_publication_and_ready_since_its_check(tmp_path: Path):
    fleet = one_site(tmp_path)
    published = fleet.variants()[AMS]["published"]["at"]
    [variant] = conditions(fleet, "variants")
    assert (variant["Ready"]["status"], variant["Ready"]["lastTransitionTime"]) == (
        "False",
        published,
    )
    fleet.later(minutes=7).report("dev", "v1")
    reported = fleet.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    fleet.later(minutes=3).settle()
    [variant] = conditions(fleet, "variants")
    [target] = conditions(fleet, "targets")
    [policy] = conditions(fleet, "policies")
    dev, prod = conditions(fleet, "stages")
    assert variant["Ready"]["lastTransitionTime"] == reported > published
    assert target["Ready"] == variant["Ready"]
    assert policy["Ready"]["lastTransitionTime"] == reported
    assert dev["Passed"]["status"] == "True"
    assert dev["Passed"]["lastTransitionTime"] >= reported
    assert prod["Passed"]["status"] == "Unknown"


def test_the_same_state_has_the_same_instants_later(tmp_path: Path):
    fleet = one_site(tmp_path)
    fleet.report("dev", "v1")
    fleet.settle()
    before = [conditions(fleet, noun) for noun in ("policies", "variants", "targets", "stages")]
    fleet.later(hours=5)
    after = [conditions(fleet, noun) for noun in ("policies", "variants", "targets", "stages")]
    assert after == before


def test_the_age_of_a_stage_is_since_its_candidate_was_first_published(tmp_path: Path):
    fleet = one_site(tmp_path)
    published = fleet.variants()[AMS]["published"]["at"]
    fleet.report("dev", "v1")
    fleet.later(minutes=7).settle()
    dev, prod = fleet.run("get", "stages", "-o", "json").views
    assert dev["publishedSince"] == published
    assert "publishedSince" not in prod
    fleet.release("v2")
    assert "publishedSince" not in fleet.run("get", "stages", "-o", "json").views[0]
    fleet.later(minutes=2).settle()
    head, dev_row, prod_row = fleet.later(minutes=9).run("get", "stages").out.splitlines()
    age = head.index(" AGE") + 1
    assert (dev_row[age:], prod_row[age:]) == ("9m", "<none>")


def test_a_conflict_is_there_since_the_commit_of_the_draft(tmp_path: Path):
    fleet = one_site(tmp_path)
    conflict(fleet)
    [draft] = fleet.run("get", "drafts", "-o", "json").items
    written = draft["metadata"]["creationTimestamp"]
    branch = f"drafts/default/{AMS}/monitoring"
    seconds = int(fleet.repos["edge"].git("log", "-1", "--format=%ct", branch))
    assert datetime.fromisoformat(written) == datetime.fromtimestamp(seconds, UTC)
    for noun in ("variants", "drafts", "targets"):
        [condition] = conditions(fleet, noun)
        assert condition["MergeConflict"]["lastTransitionTime"] == written
    assert conditions(fleet, "stages")[0]["MergeConflict"]["status"] == "True"


def test_the_generation_is_that_of_the_policy_if_it_has_one(tmp_path: Path):
    fleet = one_site(tmp_path)
    nouns = ("policies", "variants", "targets", "stages")
    shown = [value for noun in nouns for item in conditions(fleet, noun) for value in item.values()]
    assert not any("observedGeneration" in it for it in shown)
    fleet.write("policy.yaml", POLICY.replace("monitoring}", "monitoring, generation: 3}", 1))
    shown = [value for noun in nouns for item in conditions(fleet, noun) for value in item.values()]
    assert {it["observedGeneration"] for it in shown} == {3}
