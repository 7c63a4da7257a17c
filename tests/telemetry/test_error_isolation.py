"""Internal errors: what of them is logged, and how often."""

import logging

from fanout.telemetry.error_isolation import TracebackFilter


def record(origin: str | None) -> logging.LogRecord:
    made = logging.LogRecord("fanout", logging.DEBUG, "", 0, "", (), None)
    made.origin = origin
    return made


def test_a_traceback_passes_once_and_other_records_always():
    log_filter = TracebackFilter()
    origins = ["one", "one", None, None, "two", "one"]
    assert [log_filter.filter(record(it)) for it in origins] == [
        True,
        False,
        True,
        True,
        True,
        False,
    ]


def test_a_filter_remembers_a_bounded_number_of_errors():
    log_filter = TracebackFilter()
    assert all(log_filter.filter(record(f"error {number}")) for number in range(5_000))
    assert not log_filter.filter(record("error 4999"))
    assert log_filter.filter(record("error 0"))
