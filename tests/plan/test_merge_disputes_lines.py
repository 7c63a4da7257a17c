"""The lines of values not taken: what a commit message has of them, and what is read again."""

import pytest

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    build_conflict,
)
from fanout.plan.changes.publication_messages import with_paragraph
from fanout.plan.commit_statement import parse_message
from fanout.plan.edits.merge_disputes import (
    CONFLICTS_HEADING,
    conflict_paragraph,
    limit_lines,
    parse_conflict_paragraph,
    rejected_lines,
)
from fanout.values import replace

LOCAL = ConflictChoices(default_side=ConflictWinner.LOCAL)


def conflict(values=(1, 2, 7), subject="Deployment/web", field="spec.replicas", choices=NO_CHOICES):
    where = ErrorLocation(subject, field, "deployment.yaml", 8)
    return build_conflict(
        where, ConflictCause.BOTH_CHANGED, values, ConflictWinner.UPSTREAM, choices
    )


PLACE = "deployment.yaml: Deployment/web: spec.replicas"
HIDDEN_LINE = "upstream (not shown) stands, local (not shown) not taken (base (not shown))"
SECRET_PLACE = "deployment.yaml: Secret/shop/db: data.pw"
SECRET = {"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="}}
OUTCOMES = [
    (
        "upstream's value stands",
        conflict(),
        f"{PLACE}: upstream 2 stands, local 7 not taken (base 1)",
    ),
    (
        "the local value stands",
        conflict(choices=LOCAL),
        f"{PLACE}: local 7 stands, upstream 2 not taken (base 1)",
    ),
    (
        "a value that is not there",
        conflict((1, MISSING, 7)),
        f"{PLACE}: upstream absent stands, local 7 not taken (base 1)",
    ),
    (
        "lines of a text, without those that are alike",
        conflict(("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n")),
        f'{PLACE}: upstream "x\\n" stands, local "y\\n" not taken (base "b\\n")',
    ),
    (
        "a Secret's values are not shown",
        conflict(("aHVudGVyMg==", "aHVudGVyMw==", "aHVudGVyNA=="), "Secret/shop/db", "data.pw"),
        f"{SECRET_PLACE}: {HIDDEN_LINE}",
    ),
]


@pytest.mark.parametrize(("_", "one", "line"), OUTCOMES, ids=[row[0] for row in OUTCOMES])
def test_an_outcome(_, one, line):
    assert rejected_lines([one]) == (f"{one.key} {line}",)


HIDDEN = [
    ("in a file that is merged as text", b"kind: Secret\ndata: {a: aHVudGVyMg==}\n{{"),
    ("in a JSON text", '{"kind": "Secret", "data": {"a": "aHVudGVyMg=="}}'),
    ("as an object", SECRET),
    ("as an item of a List", {"kind": "List", "items": [SECRET]}),
]


@pytest.mark.parametrize(("_", "value"), HIDDEN, ids=[row[0] for row in HIDDEN])
def test_a_secret_is_not_shown_wherever_it_stands(_, value):
    for one in (conflict((MISSING, "a", value), ""), conflict((value, "a", "b"), "")):
        for text in (str(one), one.resolution):
            assert "aHVudGVyMg" not in text
            assert "(not shown)" in text


def test_written_rejections_are_read_back():
    lines = rejected_lines([conflict(), conflict((1, 3, 7)), conflict()])
    assert len(lines) == 2
    message = with_paragraph("Update a\n\nFanout-Policy: default/a\n", conflict_paragraph(lines))
    assert message.splitlines()[2] == CONFLICTS_HEADING
    assert message.endswith("\n\nFanout-Policy: default/a\n")
    assert parse_conflict_paragraph(message) == lines
    assert with_paragraph("Update a\n", "") == "Update a\n"


def test_a_name_with_line_breaks_writes_no_trailer():
    odd = replace(
        conflict(), where=ErrorLocation(file="a\n\nFanout-Policy: default/other\n\nb.yaml")
    )
    message = with_paragraph(
        "Update a\n\nFanout-Policy: default/a\n", conflict_paragraph(rejected_lines([odd]))
    )
    assert len(message.split("\n\n")) == 3
    assert parse_message(message) is None


def test_lines_are_cut_whole_and_counted():
    many = [f"{number:016x} {PLACE}" for number in range(500)]
    shown = limit_lines(many)
    assert list(shown[:-1]) == many[: len(shown) - 1]
    assert shown[-1] == f"and {500 - len(shown) + 1} more conflicts"
    assert len(conflict_paragraph(many)) < 9000
    assert limit_lines(["x" * 9000]) == ("and 1 more conflict",)
