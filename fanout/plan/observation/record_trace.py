"""Trace of records in a downstream repository: the last record that stops something.

By it a process that has never read the records sees that they were put back to an older state.
One branch of each repository has a file for each policy.
"""

import json
import re
from datetime import datetime

from fanout.api.durations import parse_instant
from fanout.api.field_errors import InvalidValue
from fanout.values import Value

_NAME = re.compile(r"[\w.-]{1,253}")  # as much as a message shows


class RecordTrace(Value):
    """Name and instant of a record."""

    record: str
    at: datetime


def format_trace(trace: RecordTrace) -> bytes:
    """Return the content of the file of a trace."""
    return (
        f'{{"at":"{trace.at:%Y-%m-%dT%H:%M:%SZ}","record":{json.dumps(trace.record)}}}\n'.encode()
    )


def parse_trace(data: bytes) -> RecordTrace | None:
    """Parse the content of the file of a trace; None if it is none, as after an edit."""
    try:
        line = json.loads(data)
        name, at = str(line["record"]), parse_instant(line["at"])
    except (InvalidValue, ValueError, KeyError, TypeError, RecursionError):
        return None
    return RecordTrace(name, at) if _NAME.fullmatch(name) else None
