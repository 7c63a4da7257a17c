"""Tables of `fanout get`: columns by resource type, and records of policies."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant, parse_instant
from fanout.api.object_meta import API_VERSION
from fanout.api.promotion_policy import normalize_person
from fanout.api.view_base import dump_view
from fanout.cli.command_errors import not_found
from fanout.cli.output.printer import Object, TableColumn
from fanout.cli.output.text_layout import format_age
from fanout.cli.startup import Program
from fanout.cli.terminal import complete_text, print_message
from fanout.control_characters import escape_unprintable
from fanout.errors import FanoutError
from fanout.plan.records.policy_records import RECORD_KINDS, RecordEntry
from fanout.present.history_views import HistoryViews
from fanout.present.record_statuses import find_record_statuses, is_owner
from fanout.reconcile.history.policy_history import PolicyHistory, read_policy_history
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace


def _message_of(column: TableColumn) -> TableColumn:
    """Return the column with a sentence, whose commands get the options that their reader needs."""
    read = column.reader
    return replace(column, cell=lambda item: complete_text(str(read(item) or "")), cut_width=12)


def _format_in_flight(item: Object) -> str:
    """Return the number of variants in flight, and the in-flight limit if there is one."""
    status = item["status"]
    budget = status.get("budget")
    return f"{status['inFlight']}" if budget is None else f"{status['inFlight']}/{budget}"


def _true_conditions(item: Object) -> str:
    """Return the true conditions beside Ready, such as OutOfBand."""
    conditions = item["status"]["conditions"][1:]
    return ",".join(str(it["type"]) for it in conditions if it["status"] == "True")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={number}" for name, number in counts.items())


def _published_revisions(item: Object) -> str:
    """Return the published revision of a stage, or the number of variants by revision."""
    counts = item["status"]["published"]
    return next(iter(counts)) if len(counts) == 1 else _format_counts(counts)


def _request_urls(item: Object) -> str:
    """Return the addresses of the pull requests with its drafts."""
    status = item["status"]
    requests = status.get("requests") or filter(None, [status.get("request")])
    return ",".join(str(it["url"]) for it in requests)


_UNKNOWN_AGE = "<unknown>"  # as kubectl prints it; `<none>`: what has the age does not exist yet


def _created(item: Object) -> str:
    """Return the instant at which a cluster stored the object; objects in files have none."""
    return str(item["metadata"].get("creationTimestamp") or _UNKNOWN_AGE)


_NAMESPACE = TableColumn("NAMESPACE", "metadata.namespace", priority=0)
_NAME = TableColumn("NAME", "metadata.name", priority=0)
_LONG_NAME = replace(_NAME, priority=5)
_TARGET = TableColumn("TARGET", "spec.targetName", priority=0)
_POLICY = TableColumn("POLICY", "spec.policy", priority=2)
_STAGE = TableColumn("STAGE", "spec.stage")
_STATE = TableColumn("STATE", "status.state", priority=0)
_REPOSITORY = TableColumn("REPOSITORY", "spec.repository", priority=4)
_PATH = TableColumn("PATH", "spec.path", priority=4)
_READY = TableColumn("READY", "status.conditions.status")
_REASON = TableColumn("REASON", "status.conditions.reason")
_CONDITION_MESSAGE = _message_of(TableColumn("MESSAGE", "status.conditions.message", wide=True))
_WAITS_FOR = TableColumn("WAITS FOR", "status.holds.reason", cut_width=12)
_MESSAGE = _message_of(TableColumn("MESSAGE", "status.holds.message", wide=True))
_REQUEST = TableColumn("PULL REQUEST", _request_urls, wide=True)
_CANDIDATE = TableColumn("CANDIDATE", "status.candidate")
_VARIANTS = TableColumn("VARIANTS", "status.variants")
_CONFLICTS = TableColumn("CONFLICTS", "status.conflicts", priority=3)


COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "policies": (
        _NAME,
        replace(_READY, priority=0),
        _REASON,
        _VARIANTS,
        TableColumn(
            "FAILED",
            # Targets without a variant, and variants that failed.
            lambda item: item["status"]["failedTargets"] + item["status"]["failedVariants"],
        ),
        _CONFLICTS,
        TableColumn("EDITED", "status.editedVariants", wide=True),
        TableColumn("BROKEN", "status.brokenVariants", wide=True),
        TableColumn("AGE", _created, priority=3),
        replace(_CONDITION_MESSAGE, wide=False, priority=4),
    ),
    "variants": (
        replace(_TARGET, cell="status.targetName"),
        TableColumn("POLICY", "spec.policyRef.name", priority=2),
        _STAGE,
        TableColumn("PUBLISHED", "status.published.revision"),
        _CANDIDATE,
        _STATE,
        _REASON,
        TableColumn("AGE", "status.published.at", priority=2),
        TableColumn("ALSO", _true_conditions, priority=3, cut_width=12),
        TableColumn("REPOSITORY", "spec.downstream.repository", priority=4),
        TableColumn("PATH", "spec.downstream.package", priority=4),
        _LONG_NAME,
        TableColumn("CONFLICTS", "status.conflicts", wide=True),
        _REQUEST,
        _CONDITION_MESSAGE,
    ),
    "stages": (
        replace(_POLICY, priority=0),
        replace(_STAGE, priority=0),
        TableColumn("PUBLISHED", _published_revisions, cut_width=12),
        _CANDIDATE,
        TableColumn("QUEUED", "status.queued", priority=3),
        TableColumn("GATE", "status.gate", priority=2),
        replace(_STATE, priority=1),
        TableColumn(
            "VARIANTS", lambda item: _format_counts(item["status"]["counts"]), cut_width=12
        ),
        _WAITS_FOR,
        _CONFLICTS,
        TableColumn("NEXT", "status.next", priority=3),
        TableColumn("AGE", "status.publishedSince", priority=3),
        TableColumn("IN FLIGHT", _format_in_flight, wide=True),
        TableColumn("VERDICT", "status.verdict", wide=True),
        _REQUEST,
        _MESSAGE,
    ),
    "targets": (
        _TARGET,
        _POLICY,
        _STAGE,
        _STATE,
        _WAITS_FOR,
        TableColumn(
            "AGE",
            lambda item: item["status"]["conditions"][0].get("lastTransitionTime", _UNKNOWN_AGE),
            priority=3,
        ),
        _REPOSITORY,
        _PATH,
        TableColumn("KEY", "spec.target", wide=True),
        _REQUEST,
        _MESSAGE,
    ),
    "drafts": (
        _TARGET,
        _POLICY,
        _STAGE,
        TableColumn("REVISION", "status.revision"),
        _STATE,
        TableColumn("CURRENT", "status.current"),
        _CONFLICTS,
        TableColumn("EDITED", "status.edited", priority=3),
        TableColumn("AGE", "metadata.creationTimestamp", priority=2),
        _REPOSITORY,
        _LONG_NAME,
        TableColumn("BRANCH", "spec.branch", priority=5),
        TableColumn("TREE", "status.tree", wide=True),
        _REQUEST,
    ),
    "conflicts": (
        TableColumn("KEY", "spec.key", priority=0),
        _TARGET,
        replace(_POLICY, priority=4),
        replace(_STAGE, priority=4),
        TableColumn("FILE", lambda item: escape_unprintable(item["spec"]["file"]), priority=2),
        TableColumn(
            "FIELD",  # with its object; a plain file has neither
            lambda item: " ".join(filter(None, (item["spec"]["object"], item["spec"]["field"]))),
            cut_width=12,
        ),
        TableColumn("BASE", "status.base", priority=3, cut_width=12),
        TableColumn("UPSTREAM", "status.upstream", priority=2, cut_width=12),
        TableColumn("LOCAL", "status.local", priority=2, cut_width=12),
        TableColumn("IN FORCE", "status.inForce", priority=2),
        TableColumn("DECIDED", "status.decided"),
        TableColumn("PLACE", "status.place", priority=3),
        TableColumn("REVISION", "status.revision", priority=3),
        TableColumn("AGE", "status.since", priority=2),
        TableColumn("VARIANT", "spec.variant", wide=True),
    ),
    "repositories": (
        _NAME,
        TableColumn("URL", "spec.url", priority=2),
        TableColumn("BRANCH", lambda item: item["spec"].get("branch", "main"), priority=2),
        _READY,
        _VARIANTS,
        TableColumn("AGE", _created, priority=3),
        _CONDITION_MESSAGE,
    ),
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

    With them, whether any could not be read: what that is, is reported on stderr. Raises
    InvalidInput if there is no such policy.
    """
    mode = PassMode(only=frozenset(policies) or None, namespace=program.settings.namespace)
    observed = program.observe(mode)
    evaluated, now = observed.policies, observed.now
    missing = sorted(set(policies) - {item.resolved_policy.name for item in evaluated})
    if missing:
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
                status = statuses.get(record.name, {})
                objects[key] = _serialize_record(item.resolved_policy.namespace, record, status)
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
    if resource_type in KINDS_BY_TYPE:
        columns = _record_columns(resource_type, wide=wide)
    else:
        columns = COLUMNS[resource_type]
    columns = (*((_NAMESPACE,) if with_namespace else ()), *columns)
    return [_with_ages(it, now) if it.head in _INSTANT_FORMATS else it for it in columns]


def _with_ages(column: TableColumn, now: datetime) -> TableColumn:
    """Return a column of instants with the time from then until now, or from now until then."""
    find_instant, format_cell = column.reader, _INSTANT_FORMATS[column.head]

    def format_instant_cell(item: Object) -> str:
        instant = find_instant(item)
        if not instant or instant == _UNKNOWN_AGE:
            return str(instant or "")
        return format_cell(int((now - parse_instant(str(instant))).total_seconds()))

    return replace(column, cell=format_instant_cell)


def _record_columns(resource_type: str, *, wide: bool) -> Sequence[TableColumn]:
    """Return the columns of the table of records; for decisions the variants come earlier."""
    decisions = resource_type == "decisions"
    variants = TableColumn(
        "VARIANTS", lambda item: _format_variants(item, wide=wide), wide=not decisions
    )
    return (
        TableColumn("AGE", "metadata.creationTimestamp", priority=2),
        TableColumn("KIND", lambda item: item["kind"].removesuffix("View")),
        TableColumn("WHAT", _format_subject),
        replace(_STATE, priority=1),
        TableColumn("BY", _format_author),
        replace(_POLICY, priority=1),
        _STAGE,
        *((variants,) if decisions else ()),
        replace(_NAME, priority=1),
        *(() if decisions else (variants,)),
        TableColumn("REASON", _find_reason, wide=True),
        TableColumn("EXPIRES", "spec.expires", wide=True),
        TableColumn("LINK", "spec.link", wide=True),
    )


def _serialize_record(
    namespace: str, record: RecordEntry, status: Mapping[str, str]
) -> dict[str, Any]:
    """Return the record as an object, with its author and its status if it has one."""
    return {
        "apiVersion": API_VERSION,
        "kind": record.kind,
        "metadata": {
            "name": record.name,
            "namespace": namespace,
            "creationTimestamp": format_instant(record.at),
        },
        "spec": record.fields,
        "status": {"by": record.by, **status},
    }


def _format_variants(item: Object, *, wide: bool) -> str:
    """Return the names of the record's variants, shortened unless `wide`.

    `all` if it names none.
    """
    spec = item["spec"]
    names = [spec["variant"]] if item["kind"] == PUBLICATION else spec.get("variants", ())
    if not names:
        return "all"
    omitted = 0 if wide else max(len(names) - _VARIANT_LIMIT, 0)
    return ",".join([*names[: len(names) - omitted], *([f"+{omitted}"] if omitted else [])])


def _format_author(item: Object) -> str:
    """Return who wrote the record, or who released the publication, as their address."""
    status = item["status"]
    author = status["admission"]["by"] if item["kind"] == PUBLICATION else status["by"]
    return normalize_person(author) if author else ""


def _find_reason(item: Object) -> object:
    if item["kind"] == PUBLICATION:
        return item["status"]["admission"]["reason"]
    return item["spec"].get("reason")


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
            words = [spec["check"], spec["revision"]]
        case _:
            words = [spec["action"], spec.get("revision") or revoked_record or ""]
            words += [f"without {name}" for name in spec.get("overrides", ())]
    return " ".join(filter(None, words))


# Columns whose cells are instants, and how the seconds from then until now are shown.
_INSTANT_FORMATS: Mapping[str, Callable[[int], str]] = {
    "AGE": lambda seconds: format_age(max(seconds, 0)),
    "NEXT": lambda seconds: f"in {format_age(max(-seconds, 0))}",
}
