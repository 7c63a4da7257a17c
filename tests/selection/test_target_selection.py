"""Names of targets for people: short, and unique in a policy."""

from operator import itemgetter

import pytest

from fanout.selection.target_selection import shorten_target_keys

NAMES = [
    ("an object by its name", ["Cluster.x.org/edge/ams"], ["ams"]),
    (
        "two of one name by their namespaces",
        ["Cluster.x.org/edge/ams", "Cluster.x.org/core/ams", "Cluster.x.org/core/ber"],
        ["edge/ams", "core/ams", "ber"],
    ),
    (
        "two kinds of one name and namespace by their keys",
        ["Cluster.x.org/edge/ams", "Site/edge/ams"],
        ["Cluster.x.org/edge/ams", "Site/edge/ams"],
    ),
    (
        "a package in a repository, and an object named like it",
        ["Repository/edge/ams", "Cluster.x.org/x/edge/ams"],
        ["ams", "x/edge/ams"],
    ),
    (
        "a variant whose target is gone by its own name",
        ["web-ams-047978a1d8"],
        ["web-ams-047978a1d8"],
    ),
    ("nothing", [], []),
]


@pytest.mark.parametrize(("_", "keys", "names"), NAMES, ids=map(itemgetter(0), NAMES))
def test_the_shortest_name_that_is_unique(_: str, keys: list[str], names: list[str]):
    assert shorten_target_keys(keys) == dict(zip(keys, names, strict=True))
