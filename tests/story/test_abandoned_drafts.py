"""What a target leaves in a repository to which no variant goes any more is seen all the same."""

from pathlib import Path

from companies import company
from fleet import Fleet

ANN = ("--reason", "the site is closed", "--by", "Ann <ann@example.com>")


@company
def fleet(root: Path) -> Fleet:
    """One site in edge; one in core that never got further than a draft and is gone."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("prod", "core")})
    made.settle()
    assert made.repos["core"].drafts() == ["sites/ber/monitoring"]
    made.remove("site-ber.yaml")
    return made


def list_orphans(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "targets", "-o", "json").views
    return [it["target"] for it in items if it["holds"][:1] and _is_gone(it["holds"][0])]


def _is_gone(hold: dict[str, str]) -> bool:
    return hold["reason"] == "TargetGone"


def test_a_draft_left_behind_is_named_and_can_be_removed(fleet: Fleet):
    [name] = list_orphans(fleet)
    assert name.startswith("monitoring-ber-")
    assert f"variant {name} (sites/ber in " in fleet.run("get", "targets", "-o", "json").out
    done = fleet.run("remove", "monitoring", name, *ANN)
    assert done.code == 0, done.err
    core = fleet.repos["core"]
    assert core.drafts() == []
    assert core.files("fanout/default/rendered") == []
    assert list_orphans(fleet) == []


def test_a_draft_left_behind_is_named_without_any_target(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    assert len(list_orphans(fleet)) == 2


def test_the_repository_is_listed_once_while_something_is_left_and_then_not_at_all(fleet: Fleet):
    assert fleet.counted()["listings"] == 4, "upstream, records, edge and core"
    assert list_orphans(fleet) == [], "that sweep has removed it"
    fleet.settle()
    assert fleet.counted()["listings"] == 3


def test_a_draft_that_a_person_removed_is_forgotten_by_the_next_sweep(fleet: Fleet):
    fleet.repos["core"].git("update-ref", "-d", "refs/heads/drafts/default/sites/ber/monitoring")
    assert list_orphans(fleet) == []
    [done] = fleet.sweep("-o", "json").json["outcomes"]
    assert done["detail"].startswith("that nothing of it is left in ")
    assert fleet.counted()["listings"] == 3


def test_a_repository_that_is_not_declared_any_more_is_not_looked_at(fleet: Fleet):
    fleet.remove("repository-core.yaml")
    assert list_orphans(fleet) == []
    assert fleet.counted()["listings"] == 3


def test_a_target_that_comes_back_finds_its_draft(fleet: Fleet):
    fleet.site("ber", "prod", "core")
    assert list_orphans(fleet) == []
    assert fleet.sweep().out == "nothing to do\n"
