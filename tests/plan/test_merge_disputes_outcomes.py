"""Outcomes of conflicts as they are read from the lines that commits and status have of them."""

from operator import itemgetter

import pytest

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import NO_CHOICES, ConflictCause, build_conflict
from fanout.plan.edits.merge_disputes import limit_lines, read_published_outcomes, rejected_lines

KEY = "24b2ed6034347caa"
REPLICAS = "a.yaml: Deployment/web: spec.replicas: upstream 3 stands, local 5 not taken (base 2)"
HIDDEN = "upstream (not shown) stands, local (not shown) not taken (base (not shown))"
LINES = [
    (
        "a field of an object",
        REPLICAS,
        ("a.yaml", "Deployment/web", "spec.replicas"),
        {"upstream": "3", "local": "5", "base": "2"},
    ),
    (
        "written before lines had the base",
        "a.yaml: Deployment/web: spec.replicas: local 5 stands, upstream 3 not taken",
        ("a.yaml", "Deployment/web", "spec.replicas"),
        {"upstream": "3", "local": "5"},
    ),
    (
        "decided by a commit",
        f"{REPLICAS}; a commit on the draft has decided it since",
        ("a.yaml", "Deployment/web", "spec.replicas"),
        {"upstream": "3", "local": "5", "base": "2"},
    ),
    (
        "a plain file, of which no value is told",
        "run.sh: upstream stands, local not taken (mode 100644 and 100755)",
        ("run.sh", "", ""),
        {},
    ),
    (
        "a Secret",
        f"a.yaml: Secret/db: data.pw: {HIDDEN}",
        ("a.yaml", "Secret/db", "data.pw"),
        {"upstream": "(not shown)", "local": "(not shown)", "base": "(not shown)"},
    ),
]


@pytest.mark.parametrize(("_", "line", "place", "values"), LINES, ids=map(itemgetter(0), LINES))
def test_a_line_is_read(_: str, line: str, place: tuple[str, ...], values: dict[str, str]):
    [outcome] = read_published_outcomes([f"{KEY} {line}"])
    assert (outcome.key, outcome.is_decided) == (KEY, True)
    assert (outcome.file, outcome.object, outcome.field_path) == place
    assert outcome.values == values


def test_the_line_that_counts_omitted_lines_is_no_conflict():
    lines = limit_lines([f"{KEY} a.yaml: upstream 1 stands, local 2 not taken"] * 60)
    assert lines[-1].endswith("more conflicts")
    assert len(read_published_outcomes(lines)) == len(lines) - 1


@pytest.mark.parametrize(
    "value", [MISSING, 7, "x", "a: b", "q (base 1)", {"a": [1]}, "l\nm\n", None]
)
def test_written_conflicts_are_read_back(value: object):
    where = ErrorLocation("Deployment/web", "spec.value", "a.yaml", 8)
    cause, winner = ConflictCause.BOTH_CHANGED, ConflictWinner.LOCAL
    conflict = build_conflict(where, cause, (value, 1, 2), winner, NO_CHOICES)
    [outcome] = read_published_outcomes(rejected_lines([conflict]))
    assert (outcome.key, outcome.winner) == (conflict.key, ConflictWinner.LOCAL)
    assert (outcome.file, outcome.object, outcome.field_path) == (
        "a.yaml",
        "Deployment/web",
        "spec.value",
    )
    assert set(outcome.values) == {"base", "upstream", "local"}
    assert (outcome.values["upstream"], outcome.values["local"]) == ("1", "2")
