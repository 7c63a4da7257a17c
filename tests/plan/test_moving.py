"""Who changes places with whom, told by who is where and who is to be."""

import pytest

from fanout.plan.moves.move_locations import PathHolder, exchange_partners


def world(text: str) -> tuple[dict[str, tuple[str, str]], dict[str, PathHolder]]:
    """`a:1>2` is variant a at path 1, to be at 2; `a:1>2@core` in another repository."""
    wanted, homes = {}, {}
    for word in text.split():
        name, _, rest = word.partition(":")
        at, _, to = rest.partition(">")
        to, _, repository = to.partition("@")
        wanted[name] = (repository or "edge", to)
        homes["edge", at] = name
    tenants = {
        name: PathHolder(
            variant=homes[place], policy="ns/p", path=place[1], repository=place[0], is_moving=True
        )
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
    wanted, tenants = world(text)
    assert exchange_partners("a", wanted, tenants) == others
    for other in others:
        assert exchange_partners(other, wanted, tenants) == (others | {"a"}) - {other}


def test_one_of_another_policy_is_in_no_ring():
    wanted, tenants = world("a:1>2 b:2>1")
    del wanted["b"]
    assert exchange_partners("a", wanted, tenants) == frozenset()


def test_who_has_left_already_is_in_no_ring():
    wanted, tenants = world("a:1>2 b:2>1")
    tenants["a"] = PathHolder(
        variant="b", policy="ns/p", path="2", repository="edge", is_moving=True, is_leaving=True
    )
    assert exchange_partners("a", wanted, tenants) == frozenset()
