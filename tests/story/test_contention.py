"""Many processes that record at once, each on a machine of its own: none gives up."""

import os
from pathlib import Path

import pytest
from diagonal import IS_FULL
from fleet import PLAIN, PROMOTION, Fleet
from preloaded import FANOUT, PreloadedProcess

RECORDS_BRANCH = "fanout/default/default/monitoring"
WRITERS = 20 if IS_FULL else 8


@pytest.mark.diagonal
def test_reports_at_once_are_all_recorded(tmp_path: Path):
    fleet = Fleet(tmp_path)
    for name in ("blueprints", "edge"):
        fleet.repository(name)
    fleet.release("v1")
    verified = "{name: dev, verification: [{name: e2e, report: {}}]}"
    fleet.write("policy.yaml", PLAIN.replace("{name: dev}]", f"{verified}]"))
    fleet.write("promotion.yaml", PROMOTION)
    fleet.settle()
    records = fleet.records()
    output = tmp_path / "output"
    with output.open("ab") as written:
        processes = [
            PreloadedProcess(
                [
                    *FANOUT, "report", "monitoring", "--stage", "dev",
                    "--check", "e2e", "--status", "passed", "--revision", "v1",
                    "--by", f"Ci {number} <ci{number}@example.com>",
                    "-f", str(tmp_path / "policies"), "--now", fleet.now.isoformat(),
                    "--state-dir", str(tmp_path / f"machine-{number}"),
                    "--records", str(records.path),
                ],
                directory=tmp_path,
                environment=os.environ,
                stdout=written.fileno(),
                stderr=written.fileno(),
            )
            for number in range(WRITERS)
        ]  # fmt: skip
        codes = [process.wait() for process in processes]
    assert codes == [0] * WRITERS, output.read_text()
    names = [name for name in records.files(RECORDS_BRANCH) if name.startswith("records/")]
    assert len(names) == WRITERS
