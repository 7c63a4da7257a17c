"""Windows of PromotionPolicies that cannot be read: what is told of them, and where."""

from pathlib import Path

import pytest

from fanout.cluster.file_cluster import FileCluster

HEAD = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: p}
spec:
  policies: ["*"]
  windows:
  - allow: {schedule: "0 8 * * 1-5", until: "0 16 * * 1-5", timeZone: Europe/Oslo}
"""
WINDOWS = [
    # sentence, a second window, what is told: field, problem and remedy
    ("a window of fourteen days", 'deny: {schedule: "0 0 20 12 *", duration: 336h}', []),
    (
        "a line of four fields", 'deny: {schedule: "0 20 12 *", duration: 1h}',
        [("deny.schedule: schedule '0 20 12 *': it has 4 fields, cron has five; "
         "write minute, hour, day-of-month, month, day-of-week, such as '*/15 8-16 * * 1-5'")],
    ),
    (
        "31 February", 'deny: {schedule: "0 0 31 2 *", duration: 1h}',
        [("deny.schedule: schedule '0 0 31 2 *': it never fires: none of its months has that day; "
         "change day-of-month or month")],
    ),
    (
        "an end on 31 February", 'allow: {schedule: "@monthly", until: "0 0 31 2 *"}',
        [("allow.until: schedule '0 0 31 2 *': it never fires: none of its months has that day; "
         "change day-of-month or month")],
    ),
    (
        "a zone with two letters exchanged",
        'deny: {schedule: "@daily", duration: 1h, timeZone: Europe/Olso}',
        ["deny.timeZone: there is no time zone 'Europe/Olso'; did you mean 'Europe/Oslo'?"],
    ),
    (
        "no time at all", 'deny: {schedule: "@daily", duration: 0s}',
        ["deny.duration: the duration is zero; write one like 8h"],
    ),
    (
        "more than a year", 'deny: {schedule: "@yearly", duration: 8785h}',
        ["deny.duration: 8785h is longer than 366 days; write at most 8784h"],
    ),
    (
        "until it begins", 'deny: {schedule: "@daily", until: "0 0 * * *"}',
        ["deny.until: its start and its end have the same schedule; write another end"],
    ),
    (
        "until an end that comes every four years",
        'deny: {schedule: "0 0 1 3 *", until: "0 0 29 2 *"}',
        [("deny.until: the window that starts on 2000-03-01 lasts longer than 366 days; "
         "let it end within a year")],
    ),
    (
        "everything at once", 'allow: {schedule: nightly, duration: 8785h, timeZone: Mars}',
        [("allow.schedule: schedule 'nightly': it has 1 field, cron has five; "
         "write minute, hour, day-of-month, month, day-of-week, such as '*/15 8-16 * * 1-5'"),
         "allow.timeZone: there is no time zone 'Mars'; write one like 'Europe/Oslo'",
         "allow.duration: 8785h is longer than 366 days; write at most 8784h"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_", "window", "problem"), WINDOWS, ids=[row[0] for row in WINDOWS])
def test_windows(tmp_path: Path, _, window: str, problem: list[str]):
    """All faults at once, with file and line; an object with one is not used."""
    file = tmp_path / "a.yaml"
    file.write_text(f"{HEAD}  - {window}\n")
    declared = FileCluster([tmp_path]).read()
    place = f"{file}:8: PromotionPolicy/p: spec.windows[1]."
    assert [str(fault) for fault in declared.faults if fault.severity == "error"] == [
        f"{place}{line}" for line in problem
    ]
    assert [item.metadata.name for item in declared.promotions] == ([] if problem else ["p"])
    assert [key.name for key in declared.left_out] == (["p"] if problem else [])


@pytest.mark.parametrize(("count", "is_read"), [(1_000, True), (1_001, False)])
def test_as_many_windows_are_read_as_the_api_server_accepts(
    tmp_path: Path, count: int, is_read: bool
):
    windows = "".join(
        f'  - deny: {{schedule: "{n % 60} {n // 60 % 24} {n // 1440 + 1} 1-11 *", duration: 1h}}\n'
        for n in range(count - 1)  # there is one already
    )
    (tmp_path / "a.yaml").write_text(HEAD + windows)
    declared = FileCluster([tmp_path]).read()
    assert bool(declared.promotions) is is_read
    errors = [it.where.field for it in declared.faults if it.severity == "error"]
    assert errors == ([] if is_read else ["spec.windows"])
