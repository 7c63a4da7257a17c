"""Tables of `fanout get`: those of views, and records of policies."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant, parse_instant
from fanout.api.object_meta import API_VERSION
from fanout.api.object_statuses import POLICY_COLUMNS, REPOSITORY_COLUMNS, VARIANT_COLUMNS
from fanout.api.output_views import CONFLICT_COLUMNS, DRAFT_COLUMNS
from fanout.api.promotion_policy import normalize_person
from fanout.api.results import STAGE_COLUMNS, TARGET_COLUMNS
from fanout.api.table_column import Object, TableColumn
from fanout.api.view_base import dump_view
from fanout.cli.output.text_layout import format_age
from fanout.cli.process_exit import not_found
from fanout.cli.startup import Program
from fanout.cli.terminal import complete_text, print_message
from fanout.errors import FanoutError
from fanout.plan.records.policy_records import RECORD_KINDS
from fanout.present.history_views import HistoryViews
from fanout.present.record_statuses import find_record_statuses, is_owner
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.policy_history import PolicyHistory, read_policy_history
from fanout.values import replace

_COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "policies": POLICY_COLUMNS,
    "variants": VARIANT_COLUMNS,
    "stages": STAGE_COLUMNS,
    "targets": TARGET_COLUMNS,
    "drafts": DRAFT_COLUMNS,
    "conflicts": CONFLICT_COLUMNS,
    "repositories": REPOSITORY_COLUMNS,
}

PUBLICATION = "PublicationView"
KINDS_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "records": (*RECORD_KINDS, PUBLICATION),
    "evidence": ("Evidence",),
    "approvals": ("Approval",),
    "decisions": ("Decision",),
    "publications": (PUBLICATION,),
}
_SHORT_DIGITS = 12  # digits of a commit id in a cell
_VARIANT_LIMIT = 3  # variants named in a cell


def list_records(
    program: Program, resource_type: str, policies: Sequence[str]
) -> tuple[list[dict[str, Any]], bool]:
    """Return records and publications of these policies, or of all, as objects by time.

    With them, whether any could not be read, which is reported. Raises InvalidInput.
    """
    mode = PassMode(only=frozenset(policies) or None, namespace=program.settings.namespace)
    observed = program.observe(mode)
    evaluated, now = observed.policies, observed.now
    if missing := sorted(set(policies) - {item.resolved_policy.name for item in evaluated}):
        raise not_found(
            f"there is no policy {' and no '.join(missing)}", "run `fanout get policies`"
        )
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    problems: list[str] = []
    for item in evaluated:
        failure = item.policy_state.failure
        unreadable = (*((str(failure),) if failure else ()), *item.policy_state.unreadable)
        problems += [f"{item.title}: {problem}" for problem in unreadable]
        records = [it for it in item.records if it.kind in KINDS_BY_TYPE[resource_type]]
        statuses = find_record_statuses(item, records, now)
        for record in records:
            key = (item.resolved_policy.namespace, record.name)
            if key not in objects or is_owner(item, record):
                objects[key] = {
                    "apiVersion": API_VERSION,
                    "kind": record.kind,
                    "metadata": {
                        "name": record.name,
                        "namespace": item.resolved_policy.namespace,
                        "creationTimestamp": format_instant(record.at),
                    },
                    "spec": record.fields,
                    "status": {"by": record.by, **statuses.get(record.name, {})},
                }
        if PUBLICATION in KINDS_BY_TYPE[resource_type]:
            try:
                history = read_policy_history(program.world, item)
            except FanoutError as error:
                problems.append(f"{item.title}: {error}")
                continue
            problems += describe_unread(history)
            for view in map(HistoryViews(item).publication, history.entries):
                objects[item.resolved_policy.namespace, view.metadata.name] = dump_view(view)
    for problem in dict.fromkeys(problems):
        print_message(problem, program.settings.color, fg="red")
    # Times have whole seconds only; within one second the order of recording is kept.
    by_time = sorted(objects.values(), key=lambda it: it["metadata"]["creationTimestamp"])
    return by_time, bool(problems)


def describe_unread(history: PolicyHistory) -> list[str]:
    """Return a sentence for each repository whose part of a history could not be read."""
    return [f"repository {url}: {error}" for url, error in history.failures.items()]


def build_columns(
    resource_type: str, now: datetime, *, wide: bool, with_namespace: bool = False
) -> Sequence[TableColumn]:
    """Return the columns of the table of a resource type; ages are those at `now`.

    `with_namespace`: the items are of several namespaces, in which names may be the same.
    """
    namespace = TableColumn("NAMESPACE", "metadata.namespace", priority=0)
    columns = _COLUMNS.get(resource_type) or _record_columns(resource_type, wide=wide)

    def with_format(column: TableColumn) -> TableColumn:
        """Return a column of instants or messages with its cells as people read them at `now`."""
        read, format_text = column.reader, _CELL_FORMATS[column.head]

        def format_cell(item: Object) -> str:
            text = str(read(item) or "")
            return text if text in ("", column.absent) else format_text(text, now)

        return replace(column, cell=format_cell)

    all_columns = (namespace, *columns) if with_namespace else columns
    return [with_format(it) if it.head in _CELL_FORMATS else it for it in all_columns]


def _record_columns(resource_type: str, *, wide: bool) -> Sequence[TableColumn]:
    """Return the columns of the table of records; for decisions the variants come earlier."""
    decisions = resource_type == "decisions"

    def format_variants(item: Object) -> str:
        """Format the names of the record's variants, shortened unless `wide`."""
        spec = item["spec"]
        names = [spec["variant"]] if item["kind"] == PUBLICATION else spec.get("variants", ())
        if not names:
            return "all"
        omitted = 0 if wide else max(len(names) - _VARIANT_LIMIT, 0)
        return ",".join([*names[: len(names) - omitted], *([f"+{omitted}"] if omitted else [])])

    def format_author(item: Object) -> str:
        """Format who wrote the record, or who released the publication, as their address."""
        status = item["status"]
        author = status["admission"]["by"] if item["kind"] == PUBLICATION else status["by"]
        return normalize_person(author) if author else ""

    def find_reason(item: Object) -> object:
        is_publication = item["kind"] == PUBLICATION
        return (item["status"]["admission"] if is_publication else item["spec"]).get("reason")

    variants = TableColumn("VARIANTS", format_variants, wide=not decisions)
    return (
        TableColumn("AGE", "metadata.creationTimestamp", priority=2),
        TableColumn("KIND", lambda item: item["kind"].removesuffix("View")),
        TableColumn("WHAT", _format_subject),
        TableColumn("STATE", "status.state"),
        TableColumn("BY", format_author),
        TableColumn("POLICY", "spec.policy"),
        TableColumn("STAGE", "spec.stage"),
        *((variants,) if decisions else ()),
        TableColumn("NAME", "metadata.name"),
        *(() if decisions else (variants,)),
        TableColumn("REASON", find_reason, wide=True),
        TableColumn("EXPIRES", "spec.expires", wide=True),
        TableColumn("LINK", "spec.link", wide=True),
    )


def _format_subject(item: Object) -> str:
    spec = item["spec"]
    revoked_record = spec.get("revokes") or spec.get("withdraws")
    match item["kind"]:
        case "Evidence":
            words = [
                spec["check"],
                spec["status"],
                spec.get("revision") or spec["commit"][:_SHORT_DIGITS],
            ]
        case "PublicationView":
            status = item["status"]
            words = [spec["revision"], status["tag"] or status["commit"][:_SHORT_DIGITS]]
        case "Approval" if revoked_record:
            words = ["revokes", revoked_record]
        case "Approval":
            words = [spec["check"], spec.get("revision") or "removals"]
        case _:
            words = [spec["action"], spec.get("revision") or revoked_record or ""]
            words += [f"without {name}" for name in spec.get("overrides", ())]
    return " ".join(filter(None, words))


# By head of the column: how its texts are shown at a time. A message has commands, which get the
# options that their reader needs.
_CELL_FORMATS: Mapping[str, Callable[[str, datetime], str]] = {
    "AGE": lambda instant, now: format_age(now - parse_instant(instant)),
    "NEXT": lambda instant, now: f"in {format_age(parse_instant(instant) - now)}",
    "MESSAGE": lambda message, _: complete_text(message),
}
