"""What the status remembers comes back as it was, and only differences are written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import CheckAnswer
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.observation.repository_state import normalize_identity
from fanout.plan.records.policy_status import (
    DraftLine,
    GrantLine,
    PreviousGrantLine,
    PreviousLocationLine,
    PublishedLine,
    RecordedStatus,
    VariantLine,
    changed_lines,
    parse_status,
)

text = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=8)
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
reads = st.dictionaries(text, text, max_size=2)
grants = st.builds(
    GrantLine,
    revision=text,
    commit=text,
    digest=text,
    tree=text,
    at=moments,
    repository=st.just("") | text,
    path=text,
    reads=reads,
    since=st.none() | moments,
)
published = st.builds(
    PublishedLine,
    revision=text,
    commit=text,
    digest=text,
    tree=text,
    at=moments,
    merge=text,
    tag=text,
    out_of_band=st.booleans(),
    pristine=text,
    reads=reads,
    heard=text,
    since=st.none() | moments,
)
previous_locations = st.lists(st.builds(PreviousLocationLine, text, text, text), max_size=2).map(
    tuple
)
verdicts = st.sampled_from([Verdict.PASSED, Verdict.FAILED])
answers = st.lists(st.builds(CheckAnswer, text, text, verdicts, moments, text), max_size=2).map(
    tuple
)
lines = st.builds(
    VariantLine,
    repository=text,
    path=text,
    grant=st.none() | grants,
    published=st.none() | published,
    left=previous_locations,
    orphan=st.booleans(),
    stage=st.just("") | text,
    answers=answers,
    previous_grant=st.none() | st.builds(PreviousGrantLine, grant=grants, rendering=text),
)
histories = st.builds(
    RevisionHistory,
    st.none() | moments,
    st.none() | moments,
    st.integers(0, 10**7).map(lambda seconds: timedelta(seconds=seconds)),
    st.none() | moments,
)
statuses = st.builds(
    RecordedStatus,
    variants=st.dictionaries(text, lines, max_size=3),
    history=st.dictionaries(st.tuples(text, text), histories, max_size=3),
    revisions=st.dictionaries(text, text, max_size=3),
    draft_repositories=st.frozensets(text, max_size=3),
    removed=st.dictionaries(text, moments, max_size=3),
    drafts=st.dictionaries(text, st.builds(DraftLine, text, moments), max_size=3),
)


@given(statuses)
def test_a_status_is_read_as_it_was_written(status):
    written = changed_lines(RecordedStatus(), status)
    assert parse_status({key: line for key, line in written.items() if line is not None}) == status


def test_lines_of_versions_without_stretches_are_read():
    """A verdict with one stretch, and a publication since whose instant its revision is there."""
    at = "2026-03-01T10:00:00Z"
    status = parse_status(
        {
            "stage/dev/v1": {"passed": at, "left": "2026-03-01T12:00:00Z", "soaked": 7200},
            "stage/dev/v2": {"passed": at},
            "variant/a": {
                "repository": "x",
                "path": "a",
                "published": {
                    "revision": "v1",
                    "commit": "c",
                    "digest": "d",
                    "tree": "t",
                    "at": at,
                },
            },
        }
    )
    first, second = status.history["dev", "v1"], status.history["dev", "v2"]
    assert (first.soaked, first.since, first.stretch_start) == (
        timedelta(hours=2),
        None,
        first.passed,
    )
    assert (second.since, second.stretch_start) == (None, second.passed)
    line = status.variants["a"].published
    assert line is not None
    assert (line.since, line.in_force_since("v1"), line.in_force_since("v2")) == (
        None,
        line.at,
        None,
    )


@given(statuses, statuses)
def test_only_differences_are_written_and_they_lead_from_one_to_the_other(before, after):
    lines = {
        key: line
        for key, line in changed_lines(RecordedStatus(), before).items()
        if line is not None
    }
    for key, line in changed_lines(before, after).items():
        assert lines.get(key) != line
        if line is None:
            del lines[key]
        else:
            lines[key] = line
    status = parse_status(lines)
    assert (status.variants, status.history, status.removed, status.drafts) == (
        after.variants,
        after.history,
        after.removed,
        after.drafts,
    )
    assert changed_lines(after, after) == {}


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"repository": "x"},
        {"repository": "x", "path": "y", "grant": {"digest": "1"}},
        {"repository": "x", "path": "y", "answers": [{"verdict": "perhaps"}]},
    ],
)
def test_a_line_that_is_none_of_ours_is_not_guessed_at(line):
    assert parse_status({"variant/x": line}).broken_lines == ("variant/x",)


AT = "2026-03-01T10:00:00Z"
BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("nobody/knows", {}),
    ("variant/a", {"repository": "x", "path": "a", "since": AT}),
    ("variant/b", {"repository": "x", "path": "a", "grant": {"digest": 7}}),
    ("stage/dev/v1", {"passed": "2026-03-01T10:00:00"}),  # no zone
    ("stage/dev/v2", {"passed": "yesterday"}),
    ("revision/v1", {}),
    ("removed/a", {"at": 7}),
    ("noticed/never", {"at": AT}),
    ("draft/a", {"digest": "d"}),
    ("request/x:refs/heads/d", {"number": "seven", "state": "Open"}),
    ("refused/a", {"at": AT, "repository": "x", "message": "no", "who": "ann"}),
]


def test_lines_that_are_not_understood_are_named_and_the_others_read():
    status = parse_status({**dict(BROKEN), "draft/b": {"digest": "d", "at": AT}})
    assert status.broken_lines == tuple(key for key, _ in BROKEN)
    assert status.drafts == {"b": DraftLine("d", datetime(2026, 3, 1, 10, tzinfo=UTC))}


def test_the_places_of_a_line_that_is_not_understood_stay_claimed():
    locations = [{"repository": "https://Host/x.git", "path": "old", "tree": "t"}]
    line = {"repository": "https://Host/y.git/", "path": "a", "left": locations, "unknown": 1}
    status = parse_status({"variant/a": line, "variant/b": {"path": "b"}})
    assert status.broken_lines == ("variant/a", "variant/b")
    claim = VariantLine(
        repository=normalize_identity("https://Host/y.git/"),
        path="a",
        left=(PreviousLocationLine(normalize_identity("https://Host/x.git"), "old", "t"),),
    )
    assert status.variants == {"a": claim}
