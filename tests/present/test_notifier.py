"""State of notifications that another version of fanout wrote is no error."""

import json
from pathlib import Path

import pytest

from fanout.disk_cache import write_cache_file
from fanout.present.notifications.notifier import NO_STATE, OutboxFile

CONTENTS = {
    "an event that is not known": {
        "complete": True,
        "failures": False,
        "conditions": {"policy p/p": [["Unheard", "", "", ""]]},
        "waiting": [],
        "pauses": {},
    },
    "a missing field": {"complete": True},
    "no mapping": [],
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_state_that_makes_no_sense_counts_as_none(content: object, tmp_path: Path):
    path = tmp_path / "notifications.json"
    write_cache_file(path, json.dumps(content).encode(), "1\0default")
    assert OutboxFile(path, "default").read() == NO_STATE
