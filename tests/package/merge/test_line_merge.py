"""Aligning lines and elements by their common base."""

from time import process_time

import pytest

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.package.merge.line_merge import merge_order, merge_texts

ROWS = [
    ("edits in different places are both taken", "abcde", "Abcde", "abcdE", "AbcdE"),
    ("equal edits are one", "abc", "aXc", "aXc", "aXc"),
    ("neighbours touch", "abcd", "aBcd", "abCd", None),
    ("two insertions at one place touch", "ab", "aXb", "aYb", None),
    ("a deletion beside an edit touches it", "abc", "ac", "abC", None),
    ("deletions in different places are both made", "abcde", "bcde", "abcd", "bcd"),
    ("the same deletion on both sides is made once", "abc", "ac", "ac", "ac"),
    ("an insertion and an equal one elsewhere stay two", "ab", "Xab", "abX", "XabX"),
    ("frequent lines align like others", "}a}b}", "}A}b}", "}a}B}", "}A}B}"),
]


def lines(text):
    return None if text is None else "".join(f"{char}\n" for char in text)


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_lines(origin, upstream, local, expected):
    assert merge_texts(*map(lines, (origin, upstream, local))) == lines(expected)


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "theirs", "ours"),
    [
        ("abcde", "Xbcde", "YbcdE", "XbcdE", "YbcdE"),
        ("abcde", "XbcdE", "Ybcde", "XbcdE", "YbcdE"),
        ("abc", "axyc", "ac", "axyc", "ac"),
        ("abcd", "abXcd", "abYcD", "abXcD", "abYcD"),
    ],
)
def test_the_winner_has_the_disputed_lines_and_no_others(origin, upstream, local, theirs, ours):
    sides = tuple(map(lines, (origin, upstream, local)))
    assert merge_texts(*sides) is None
    assert merge_texts(*sides, ConflictWinner.UPSTREAM) == lines(theirs)
    assert merge_texts(*sides, ConflictWinner.LOCAL) == lines(ours)


def test_a_last_line_without_a_break_gets_one_when_something_follows():
    assert merge_texts("a\nb\nc", "A\nb\nc", "a\nb\nc\nd\n") == "A\nb\nc\nd\n"
    assert merge_texts("a\nb\nc", "A\nb\nc", "a\nb\nc") == "A\nb\nc"


def test_texts_that_would_take_minutes_to_align_are_not():
    base = "x\n" * 3000
    assert merge_texts(base, f"a\n{base}b\n", f"c\n{base}d\n") is None


def numbered(count, step=0, word="x"):
    """Lines of which each `step`-th is another one."""
    return "".join(f"{n}{word if step and n % step == 0 else ''}\n" for n in range(count))


def repeated(count, step, word):
    """Lines that repeat, of which each `step`-th is another one."""
    return "".join(f"{word if n % step == 0 else n % 7}\n" for n in range(count))


@pytest.mark.parametrize(
    "sides",
    [
        pytest.param([numbered(20_000), numbered(20_000, 3), numbered(20_000, 5)], id="scattered"),
        pytest.param([numbered(20_000), "y\n" * 20_000, numbered(20_000, 2)], id="replaced"),
        pytest.param([repeated(20_000, 9, w) for w in "abc"], id="repeated"),
        pytest.param([repeated(20_000, 9 + n, "a") for n in range(3)], id="repeated otherwise"),
        pytest.param(["x\n" * n for n in (20_000, 19_000, 21_000)], id="equal"),
    ],
)
def test_long_texts_are_merged_in_bounded_time(sides):
    start = process_time()
    merge_texts(*sides)
    merge_texts(*sides, ConflictWinner.UPSTREAM)
    assert process_time() - start < 20


def test_edits_of_a_long_text_that_do_not_touch_are_all_taken():
    origin, upstream, local = (numbered(20_000).splitlines() for _ in range(3))
    for at in range(0, 20_000, 10):
        upstream[at], local[at + 5] = "theirs", "ours"
    expected = [u if u != o else m for o, u, m in zip(origin, upstream, local, strict=True)]
    texts = ["\n".join(side) + "\n" for side in (origin, upstream, local, expected)]
    assert merge_texts(*texts[:3]) == texts[3]


ORDERS = [
    ("what upstream adds stands behind what precedes it", "ac", "abc", "acd", "abcd"),
    ("what both add stands side by side, upstream's first", "a", "ab", "ac", "abc"),
    ("the local order holds", "abc", "abc", "cba", "cba"),
    ("an order that upstream alone changed is taken", "abc", "cab", "abc", "cab"),
    ("local additions follow what they followed", "abc", "cab", "aXbc", "caXb"),
    ("an order that both changed is the local one", "abc", "cab", "bac", "bac"),
    ("what one side deleted is still in the order", "abc", "ac", "abc", "abc"),
]


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "expected"), [r[1:] for r in ORDERS], ids=[r[0] for r in ORDERS]
)
def test_order(origin, upstream, local, expected):
    assert "".join(merge_order(origin, upstream, local)) == expected
