"""Summary of what was tried: tests count the worlds and steps that they go through."""

import pytest

COUNTED = {"worlds": "small worlds judged twice", "steps": "steps of the model of a running system"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each that was counted."""
    reports = [it for outcomes in terminalreporter.stats.values() for it in outcomes]
    for name, what in COUNTED.items():
        values = [
            value
            for report in reports
            if isinstance(report, pytest.TestReport) and report.when == "call"
            for key, value in report.user_properties
            if key == name
        ]
        if values:
            terminalreporter.write_line(f"{sum(values):,} {what}")
