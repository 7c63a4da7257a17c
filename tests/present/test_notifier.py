"""State of notifications that another version of fanout wrote is no error."""

import json
from pathlib import Path

import pytest

from fanout.disk_cache import write_cache_file
from fanout.present.notifications.notifier import NO_STATE, Notifier
from fanout.telemetry.metrics import EventCounters


class NoSender:
    def send(self, batches):
        raise AssertionError(batches)


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
    notifier = Notifier([], "default", path, NoSender(), dict, EventCounters())
    assert notifier._state == NO_STATE
