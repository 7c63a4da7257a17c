"""How many packages one commit of a chain takes, and how many commits a chain has at most."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.plan.changes.commit_chain import MAX_COMMITS, PACKAGES_PER_COMMIT, split_by_commit

SIZES = [
    (0, []),
    (1, [1]),
    (16, [16]),
    (17, [16, 1]),
    (40, [16, 16, 8]),
    (512, [16] * 32),
    (513, [17] * 30 + [3]),
    (30_000, [938] * 31 + [922]),
]


@pytest.mark.parametrize(("count", "sizes"), SIZES)
def test_packages_are_divided_among_commits(count, sizes):
    assert [len(items) for items in split_by_commit(range(count))] == sizes


@given(st.integers(0, 100_000))
def test_a_chain_has_all_packages_in_order_and_a_limited_number_of_commits(count):
    batches = [*split_by_commit(range(count))]
    assert [*chain.from_iterable(batches)] == [*range(count)]
    assert len(batches) <= MAX_COMMITS
    assert all(len(items) >= PACKAGES_PER_COMMIT for items in batches[:-1])
