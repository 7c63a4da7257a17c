"""`--watch` prints what changed; that time has passed is no change."""

from datetime import timedelta
from operator import itemgetter

import pytest

from fanout.cli.verbs.get import find_changed

BEFORE = {
    "kind": "StageView",
    "metadata": {"name": "monitoring/dev", "namespace": "default"},
    "policy": "monitoring",
    "counts": {"Drafted": 1},
    "holds": [{"message": "v1 soaks until 2026-03-02T10:00:00Z", "since": "2026-03-02T09:00:00Z"}],
}


def stage(message: str, since: str, **other: object) -> dict[str, object]:
    return BEFORE | {"holds": [{"message": message, "since": since}]} | other


SOAKS = "v1 soaks until 2026-03-02T10:00:00Z"
LOOKS = [
    ("nothing changed", BEFORE, False),
    ("an instant moved along with the clock", stage(SOAKS, "2026-03-02T09:00:02Z"), False),
    (
        "one in a sentence did",
        stage("v1 soaks until 2026-03-02T10:00:02Z", "2026-03-02T09:00:00Z"),
        False,
    ),
    ("an instant is another", stage(SOAKS, "2026-03-02T09:00:01Z"), True),
    ("the words are others", stage("v2 soaks", "2026-03-02T09:00:00Z"), True),
    ("a number changed", BEFORE | {"counts": {"Drafted": 2}}, True),
    ("a hold came", BEFORE | {"holds": [*BEFORE["holds"], {}]}, True),
    ("a field went", {key: BEFORE[key] for key in BEFORE if key != "counts"}, True),
    ("another policy has it", BEFORE | {"policy": "logging"}, True),
]


@pytest.mark.parametrize(("_", "after", "printed"), LOOKS, ids=map(itemgetter(0), LOOKS))
def test_changed(_: str, after: dict[str, object], printed: bool):
    fresh = find_changed([BEFORE], [after], timedelta(seconds=2))
    assert fresh == ([after] if printed else [])
