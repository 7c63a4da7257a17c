"""A number of a publication is used once, also after its path was left and its tag deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet
from moving import AMS, ANN, NEW, POLICY, edit, packages, place, two_sites

BER = "sites/ber"
V1, V2 = f"{AMS}/v1", f"{AMS}/v2"


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


def settle(fleet: Fleet, passes: int = 4) -> None:
    for _ in range(passes):
        fleet.later(minutes=1).sweep()


def delete_tag(fleet: Fleet, tag: str = V1) -> None:
    fleet.repos["edge"].git("update-ref", "-d", f"refs/tags/{tag}")


def name_at(fleet: Fleet, path: str) -> str:
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [it["metadata"]["name"] for it in items if it["spec"]["downstream"]["package"] == path]
    return name


def sweep_it(fleet: Fleet) -> None:
    fleet.remove("site-ams.yaml")
    settle(fleet, 2)


def remove_it(fleet: Fleet) -> None:
    name = name_at(fleet, AMS)
    fleet.remove("site-ams.yaml")
    assert fleet.run("remove", "monitoring", name, *ANN).code == 0


def delete_policy(fleet: Fleet) -> None:
    fleet.write(
        "policy.yaml", POLICY.replace("objectSelector: {", "objectSelector: {name: nobody, ")
    )
    done = fleet.later(minutes=1).run("remove", "monitoring", "--all-gone", *ANN)
    assert done.code == 0, done.err


def orphan_it(fleet: Fleet) -> None:
    orphans = POLICY.replace("  stages:", "  deletionPolicy: Orphan\n  stages:")
    fleet.write("policy.yaml", orphans)
    sweep_it(fleet)
    edge = fleet.repos["edge"]
    assert AMS in packages(fleet)
    edge.commit("main", dict.fromkeys([it for it in edge.files() if it.startswith(AMS)]))


def move_it(fleet: Fleet) -> None:
    place(fleet, "ams", NEW)
    settle(fleet)
    assert AMS not in packages(fleet)


def move_it_elsewhere(fleet: Fleet) -> None:
    place(fleet, "ams", NEW, "core")
    settle(fleet)
    assert AMS not in packages(fleet)


def remove_after_approval(fleet: Fleet) -> None:
    requires = "[{name: dev, requires: [{name: ok, approval: {from: [sre]}}]}]"
    fleet.write("policy.yaml", POLICY.replace("[{name: dev}]", requires))
    fleet.remove("site-ams.yaml")
    settle(fleet, 1)
    assert AMS in packages(fleet)
    approve = ("approve", "monitoring", "--stage", "dev", "--removals", *ANN[2:])
    assert fleet.later(minutes=1).run(*approve).code == 0
    settle(fleet, 3)
    assert AMS not in packages(fleet)


LEAVES = [
    sweep_it,
    remove_it,
    remove_after_approval,
    delete_policy,
    orphan_it,
    move_it,
    move_it_elsewhere,
]


def comes_back(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY)
    place(fleet, "ams", AMS)
    settle(fleet)
    assert fleet.published()[AMS] == "v1"


def ams_tags(fleet: Fleet) -> list[str]:
    return [tag for tag in fleet.repos["edge"].tags() if tag.startswith(AMS)]


@pytest.mark.parametrize("leave", LEAVES)
def test_a_tag_deleted_after_its_variant_left_is_not_used_again(
    fleet: Fleet, leave: Callable[[Fleet], None]
):
    leave(fleet)
    delete_tag(fleet)
    comes_back(fleet)
    assert ams_tags(fleet) == [V2]
    # The vendor branch says so once, and the next publications count on.
    delete_tag(fleet, V2)
    fleet.release("v2")
    settle(fleet)
    assert ams_tags(fleet) == [f"{AMS}/v3"]
    fleet.repos["edge"].fsck()


@pytest.mark.parametrize("leave", LEAVES)
def test_a_tag_deleted_before_its_variant_left_is_not_used_again(
    fleet: Fleet, leave: Callable[[Fleet], None]
):
    delete_tag(fleet)
    leave(fleet)
    comes_back(fleet)
    assert ams_tags(fleet) == [V2]


def test_a_tag_deleted_while_a_move_leaves_its_package_behind_is_not_used_again(fleet: Fleet):
    checked = "[{name: dev, verification: [{name: e2e, report: {}}]}]"
    fleet.write("policy.yaml", POLICY.replace("[{name: dev}]", checked))
    place(fleet, "ams", NEW)
    settle(fleet)
    assert {AMS, NEW} <= packages(fleet)
    delete_tag(fleet)
    fleet.write("policy.yaml", POLICY)
    settle(fleet)
    assert AMS not in packages(fleet)
    comes_back(fleet)
    assert ams_tags(fleet) == [V2]


def test_a_tag_deleted_before_a_move_that_is_taken_back_is_not_used_again(fleet: Fleet):
    checked = "[{name: dev, verification: [{name: e2e, report: {}}]}]"
    fleet.write("policy.yaml", POLICY.replace("[{name: dev}]", checked))
    place(fleet, "ams", NEW)
    settle(fleet)
    delete_tag(fleet)
    assert {AMS, NEW} <= packages(fleet)
    comes_back(fleet)
    assert ams_tags(fleet) == [V2]


def test_a_deleted_tag_of_the_other_package_of_an_exchange_is_not_used_again(fleet: Fleet):
    fleet.release("v2")
    settle(fleet)
    place(fleet, "ams", NEW)  # so that the numbers of the two paths differ
    settle(fleet)
    delete_tag(fleet, f"{BER}/v2")
    place(fleet, "ams", BER)
    place(fleet, "ber", NEW)
    settle(fleet)
    assert packages(fleet) == {BER, NEW}
    assert fleet.repos["edge"].tags() == [
        f"{NEW}/v1",
        f"{NEW}/v2",
        V1,
        V2,
        f"{BER}/v1",
        f"{BER}/v3",
    ]


def test_a_tag_deleted_while_no_policy_is_declared_is_not_used_again(fleet: Fleet):
    fleet.remove("policy.yaml")
    for _ in range(2):
        fleet.later(minutes=1).sweep()
    assert AMS in packages(fleet)
    delete_tag(fleet)
    comes_back(fleet)
    assert ams_tags(fleet) == []
    fleet.release("v2")
    settle(fleet)
    assert ams_tags(fleet) == [V2]


def test_a_number_on_record_stays_used_when_its_publication_is_reverted(fleet: Fleet):
    edge = fleet.repos["edge"]
    before = edge.git("rev-parse", "main").strip()
    fleet.release("v2")
    settle(fleet)
    assert V2 in ams_tags(fleet)
    delete_tag(fleet, V2)
    edge.git("update-ref", "refs/heads/main", before)
    fleet.write("policy.yaml", POLICY.replace(">=1 <9", ">=1 <2"))
    settle(fleet)
    fleet.write("policy.yaml", POLICY)
    fleet.release("v3")
    settle(fleet)
    assert V2 not in ams_tags(fleet)


def test_a_tag_far_above_the_others_is_none_of_a_publication(fleet: Fleet):
    """Whoever may push tags would else have each pass count to its number."""
    edge = fleet.repos["edge"]
    edge.git("tag", f"{AMS}/v999999999999999999", "main")
    edit(fleet, AMS)
    fleet.release("v2")
    settle(fleet)
    assert V2 in edge.tags()
    assert fleet.published()[AMS] == "v2"
    history = fleet.run("history", f"monitoring/dev/{name_at(fleet, AMS)}", "-o", "json")
    assert [it["tag"] for it in history.views] == [V2, V1]
