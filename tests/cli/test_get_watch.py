"""`--watch` prints what changed; that time has passed is no change."""

from datetime import timedelta
from operator import itemgetter

import pytest

from fanout.cli.verbs.get import find_changed

BEFORE = {
    "kind": "StageView",
    "metadata": {"name": "monitoring/dev", "namespace": "default"},
    "spec": {"policy": "monitoring"},
    "status": {
        "counts": {"Drafted": 1},
        "holds": [
            {"message": "v1 soaks until 2026-03-02T10:00:00Z", "since": "2026-03-02T09:00:00Z"}
        ],
    },
}


def stage(**status: object) -> dict[str, object]:
    return BEFORE | {"status": BEFORE["status"] | status}


def held(message: str, since: str) -> dict[str, object]:
    return stage(holds=[{"message": message, "since": since}])


SOAKS = "v1 soaks until 2026-03-02T10:00:00Z"
LOOKS = [
    ("nothing changed", BEFORE, False),
    ("an instant moved along with the clock", held(SOAKS, "2026-03-02T09:00:02Z"), False),
    (
        "one in a sentence did",
        held("v1 soaks until 2026-03-02T10:00:02Z", "2026-03-02T09:00:00Z"),
        False,
    ),
    ("an instant is another", held(SOAKS, "2026-03-02T09:00:01Z"), True),
    ("the words are others", held("v2 soaks", "2026-03-02T09:00:00Z"), True),
    ("a number changed", stage(counts={"Drafted": 2}), True),
    ("a hold came", stage(holds=[*BEFORE["status"]["holds"], {}]), True),
    ("a field went", BEFORE | {"status": {"holds": BEFORE["status"]["holds"]}}, True),
    ("another policy has it", BEFORE | {"spec": {"policy": "logging"}}, True),
]


@pytest.mark.parametrize(("_", "after", "printed"), LOOKS, ids=map(itemgetter(0), LOOKS))
def test_changed(_: str, after: dict[str, object], printed: bool):
    fresh = find_changed([BEFORE], [after], timedelta(seconds=2))
    assert fresh == ([after] if printed else [])
