"""Who changes places with whom, told by who is where and who is to be."""

from itertools import product

import pytest

from fanout.plan.move_locations import PathHolder, exchange_partners, occupied_path_hold
from fanout.selection.variant_spec import VariantSpec
from fanout.values import replace


def parse_moves(text: str) -> tuple[dict[str, tuple[str, str]], dict[str, PathHolder]]:
    """`a:1>2` is variant a at path 1, to be at 2; `a:1>2@core` in another repository."""
    wanted, homes = {}, {}
    for word in text.split():
        name, _, rest = word.partition(":")
        at, _, to = rest.partition(">")
        to, _, repository = to.partition("@")
        wanted[name] = (repository or "edge", to)
        homes["edge", at] = name
    tenants = {
        name: PathHolder(owner=("ns", homes[place]), policy="ns/p", place=place, is_moving=True)
        for name, place in wanted.items()
        if place in homes and homes[place] != name
    }
    return wanted, tenants


RINGS = [
    ("two change places", "a:1>2 b:2>1", {"b"}),
    ("three go round", "a:1>2 b:2>3 c:3>1", {"b", "c"}),
    ("a chain is no ring", "a:1>2 b:2>3", set()),
    ("who waits for a ring is not in it", "a:9>1 b:1>2 c:2>1", set()),
    ("nobody is at the new path", "a:1>2", set()),
    ("over two repositories there is no ring", "a:1>2@core b:2>1", set()),
]


@pytest.mark.parametrize(("_", "text", "others"), RINGS, ids=[row[0] for row in RINGS])
def test_a_ring_is_found_from_each_of_its_variants(_, text, others):
    wanted, tenants = parse_moves(text)
    assert exchange_partners("a", wanted, tenants) == others
    for other in others:
        assert exchange_partners(other, wanted, tenants) == (others | {"a"}) - {other}


def test_a_variant_of_another_policy_is_in_no_ring():
    wanted, tenants = parse_moves("a:1>2 b:2>1")
    del wanted["b"]
    assert exchange_partners("a", wanted, tenants) == frozenset()


def test_a_variant_that_has_moved_already_is_in_no_ring():
    wanted, tenants = parse_moves("a:1>2 b:2>1")
    tenants["a"] = replace(tenants["a"], is_leaving=True)
    assert exchange_partners("a", wanted, tenants) == frozenset()


@pytest.mark.parametrize("name", ["ams", "secret"])
@pytest.mark.parametrize(
    ("is_moving", "is_leaving", "is_undeclared"), [*product([False, True], repeat=3)]
)
def test_a_hold_names_nothing_of_another_namespace(name, is_moving, is_leaving, is_undeclared):
    """Also not of a variant that has the same name there."""
    spec = VariantSpec("ams", "ns", "p", "dev", "Cluster//ams", "up", "pkg", "edge", "sites/ams")
    occupant = PathHolder(
        owner=("hidden", name),
        policy="hidden/secret",
        place=("edge", "sites"),
        is_moving=is_moving,
        is_leaving=is_leaving,
        is_undeclared=is_undeclared,
    )
    hold = occupied_path_hold(spec, occupant)
    assert "sites belongs to a variant in another namespace" in hold.message
    for word in ("hidden", "secret"):
        assert word not in f"{hold.message} {hold.who}"
