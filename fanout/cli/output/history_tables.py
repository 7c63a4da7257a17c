"""Columns of the tables of `fanout history`: revisions of a stage, publications of a variant."""

from fanout.api.durations import format_duration, parse_instant
from fanout.api.table_column import Object, TableColumn

_SHORT_DIGITS = 8  # digits of a commit id in a cell


def _format_begin(item: Object) -> str:
    """Return the instant of an entry as people read it: `2026-03-02 09:00`, in UTC."""
    return str(item["metadata"]["creationTimestamp"])[:16].replace("T", " ")


def _format_passed(item: Object) -> str:
    passed, began = item["status"].get("passed"), item["metadata"]["creationTimestamp"]
    if passed is None:
        return ""
    elapsed = format_duration(parse_instant(passed) - parse_instant(began))
    return f"after {elapsed}"


STAGE_COLUMNS = (
    TableColumn("BEGAN (UTC)", _format_begin, priority=0),
    TableColumn("STAGE", "spec.stage", priority=0),
    TableColumn("REVISION", "spec.revision", priority=0),
    TableColumn("VARIANTS", "status.variants", priority=3),
    TableColumn("PASSED", _format_passed, priority=2),
    TableColumn("STATE", "status.state", wide=True),
    TableColumn("DROPPED", "status.dropped", wide=True),
    TableColumn(
        "RELEASED BY",
        lambda item: "; ".join(it["message"] for it in item["status"]["admissions"]),
        cut_width=22,
    ),
)
PUBLICATION_COLUMNS = (
    TableColumn("SINCE (UTC)", _format_begin, priority=0),
    # Without the path, which the publications of a variant have in common.
    TableColumn("TAG", lambda item: item["status"]["tag"].rpartition("/")[2], priority=0),
    TableColumn("REVISION", "spec.revision", priority=0),
    TableColumn("COMMIT", lambda item: item["status"]["commit"][:_SHORT_DIGITS], priority=3),
    TableColumn("STATE", "status.state", wide=True),
    TableColumn(
        "EVIDENCE",  # the last answer of each check
        lambda item: ",".join(
            map("=".join, {it["check"]: it["result"] for it in item["status"]["evidence"]}.items())
        ),
        priority=2,
    ),
    TableColumn(
        "APPROVED BY",
        lambda item: ",".join(dict.fromkeys(it["by"] for it in item["status"]["approvals"])),
        wide=True,
    ),
    TableColumn("DROPPED", lambda item: len(item["status"]["dropped"]), priority=3),
    TableColumn("RELEASED BY", "status.admission.message", cut_width=22),
    TableColumn("REPOSITORY", "spec.repository", wide=True),
    TableColumn("PATH", "spec.path", wide=True),
    TableColumn("VALUES", lambda item: "; ".join(item["status"]["dropped"]), wide=True),
)
