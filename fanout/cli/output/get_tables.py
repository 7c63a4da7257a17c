"""Tables of `fanout get`: columns by resource type, and records of policies."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.object_meta import API_VERSION
from fanout.api.promotion_policy import normalize_person
from fanout.cli.command_errors import not_found
from fanout.cli.output.printer import Object, TableColumn
from fanout.cli.startup import Program
from fanout.cli.terminal import print_message
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.approval_index import find_revoked
from fanout.plan.evidence.record_times import counts_at_once, records_ahead
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.records.policy_status import format_instant, parse_instant
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode


def _hold_reason(item: Object) -> str:
    holds = item["status"].get("holds") or ()
    return str(holds[0]["reason"]) if holds else ""


def _hold_message(item: Object) -> str:
    holds = item["status"].get("holds") or ()
    return str(holds[0]["message"]) if holds else ""


def _condition(item: Object, field: str) -> str:
    conditions: Sequence[Object] = item.get("status", {}).get("conditions") or ({},)
    return str(conditions[0].get(field, ""))


def _count_failed(item: Object) -> int:
    """Return the number of targets without a variant and of variants that failed."""
    status = item["status"]
    return int(status["failedTargets"]) + int(status["failedVariants"])


def _format_in_flight(item: Object) -> str:
    """Return the number of variants in flight, and the in-flight limit if there is one."""
    status = item["status"]
    budget = status.get("budget")
    return f"{status['inFlight']}" if budget is None else f"{status['inFlight']}/{budget}"


def _true_conditions(item: Object) -> str:
    """Return the true conditions beside Ready, such as OutOfBand."""
    conditions = item["status"]["conditions"][1:]
    return ",".join(str(it["type"]) for it in conditions if it["status"] == "True")


_NAME = TableColumn("NAME", lambda item: item["metadata"]["name"])
_POLICY = TableColumn("POLICY", lambda item: item["spec"].get("policy"))
_STAGE = TableColumn("STAGE", lambda item: item["spec"].get("stage"))
_WAITS_FOR = TableColumn("WAITS FOR", _hold_reason)
_MESSAGE = TableColumn("MESSAGE", _hold_message, wide=True)
COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "policies": (
        _NAME,
        TableColumn("READY", lambda item: _condition(item, "status")),
        TableColumn("REASON", lambda item: _condition(item, "reason")),
        TableColumn("VARIANTS", lambda item: item["status"]["variants"]),
        TableColumn("FAILED", _count_failed),
        TableColumn("EDITED", lambda item: item["status"]["editedVariants"], wide=True),
        TableColumn("BROKEN", lambda item: item["status"]["brokenVariants"], wide=True),
        TableColumn("MESSAGE", lambda item: _condition(item, "message")),
    ),
    "variants": (
        _NAME,
        TableColumn("STAGE", lambda item: item["spec"].get("stage")),
        TableColumn("REPOSITORY", lambda item: item["spec"]["downstream"]["repository"]),
        TableColumn("PATH", lambda item: item["spec"]["downstream"]["package"]),
        TableColumn("PUBLISHED", lambda item: item["status"].get("published", {}).get("revision")),
        TableColumn("CANDIDATE", lambda item: item["status"]["candidate"]),
        TableColumn("STATE", lambda item: item["status"]["state"]),
        TableColumn("ALSO", _true_conditions),
        TableColumn("REASON", lambda item: _condition(item, "reason"), wide=True),
        TableColumn("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
    "stages": (
        _POLICY,
        _STAGE,
        TableColumn("CANDIDATE", lambda item: item["status"]["candidate"]),
        TableColumn("GATE", lambda item: item["status"]["gate"]),
        TableColumn("VERDICT", lambda item: item["status"]["verdict"]),
        TableColumn(
            "VARIANTS",
            lambda item: ",".join(
                f"{name}={number}" for name, number in item["status"]["counts"].items()
            ),
        ),
        _WAITS_FOR,
        TableColumn("NEXT", lambda item: item["status"].get("next")),
        TableColumn("IN FLIGHT", _format_in_flight, wide=True),
        TableColumn("HALTED", lambda item: item["status"]["halted"], wide=True),
        TableColumn("QUEUED", lambda item: ",".join(item["status"]["queued"]), wide=True),
        _MESSAGE,
    ),
    "targets": (
        TableColumn("TARGET", lambda item: item["spec"]["target"]),
        _POLICY,
        _STAGE,
        TableColumn("REPOSITORY", lambda item: item["spec"]["repository"]),
        TableColumn("PATH", lambda item: item["spec"]["path"]),
        TableColumn("STATE", lambda item: item["status"]["state"]),
        _WAITS_FOR,
        _MESSAGE,
    ),
    "drafts": (
        _NAME,
        _STAGE,
        TableColumn("REPOSITORY", lambda item: item["spec"]["repository"]),
        TableColumn("REVISION", lambda item: item["status"]["revision"]),
        TableColumn("CURRENT", lambda item: item["status"]["current"]),
        TableColumn("CONFLICTS", lambda item: item["status"]["conflicts"]),
        TableColumn("EDITED", lambda item: item["status"]["edited"]),
        TableColumn("STATE", lambda item: item["status"]["state"]),
        TableColumn("TREE", lambda item: item["status"]["tree"], wide=True),
        TableColumn("BRANCH", lambda item: item["spec"]["branch"]),
    ),
    "repositories": (
        _NAME,
        TableColumn("URL", lambda item: item["spec"]["url"]),
        TableColumn("BRANCH", lambda item: item["spec"].get("branch", "main")),
        TableColumn("READY", lambda item: _condition(item, "status")),
        TableColumn("VARIANTS", lambda item: item["status"]["variants"]),
        TableColumn("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
}


RECORD_KINDS: Mapping[str, tuple[str, ...]] = {
    "records": ("Evidence", "Approval", "Decision"),
    "evidence": ("Evidence",),
    "approvals": ("Approval",),
    "decisions": ("Decision",),
}
_AGE_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SHORT_DIGITS = 12  # digits of a commit id in a cell
_VARIANT_LIMIT = 3  # variants named in a cell


def list_records(
    program: Program, resource_type: str, policies: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the records of these policies, or of all, as objects by time.

    Raises InvalidInput if there is no such policy. Unreadable records are reported on
    stderr.
    """
    mode = PassMode(only=frozenset(policies) or None, namespace=program.settings.namespace)
    observed = program.observe(mode)
    evaluated, now = observed.policies, observed.now
    missing = sorted(set(policies) - {item.resolved_policy.name for item in evaluated})
    if missing:
        raise not_found(
            f"there is no policy {' and no '.join(missing)}", "see `fanout get policies`"
        )
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    for item in evaluated:
        for problem in item.policy_state.unreadable:
            print_message(f"{item.title}: {problem}", program.settings.color, fg="red")
        states = _record_states(item, now)
        for record in item.records:
            if record.kind in RECORD_KINDS[resource_type]:
                key = (item.resolved_policy.namespace, record.name)
                objects[key] = _serialize_record(
                    item.resolved_policy.namespace, record, states.get(record.name)
                )
    # Times have whole seconds only; within one second the order of recording is kept.
    return sorted(objects.values(), key=lambda it: it["metadata"]["creationTimestamp"])


def record_columns(resource_type: str, now: datetime, *, wide: bool) -> Sequence[TableColumn]:
    """Return the columns of the table of records; for decisions the variants come earlier."""
    decisions = resource_type == "decisions"
    state = TableColumn("STATE", lambda item: item["status"].get("state"))
    variants = TableColumn(
        "VARIANTS", lambda item: _format_variants(item, wide=wide), wide=not decisions
    )
    return (
        TableColumn("AGE", lambda item: _format_age(item["metadata"]["creationTimestamp"], now)),
        TableColumn("KIND", lambda item: item["kind"]),
        TableColumn("WHAT", _format_subject),
        state,
        TableColumn("BY", lambda item: normalize_person(item["status"]["by"])),
        TableColumn("POLICY", lambda item: item["spec"].get("policy")),
        TableColumn("STAGE", lambda item: item["spec"].get("stage")),
        *((variants,) if decisions else ()),
        TableColumn("NAME", lambda item: item["metadata"]["name"]),
        *(() if decisions else (variants,)),
        TableColumn("REASON", lambda item: item["spec"].get("reason"), wide=True),
        TableColumn("EXPIRES", lambda item: item["spec"].get("expires"), wide=True),
        TableColumn("LINK", lambda item: item["spec"].get("link"), wide=True),
    )


def _record_states(item: PolicyResult, now: datetime) -> Mapping[str, DecisionStatus]:
    """Return the status of each decision, and of all other records that do not count."""
    states = {
        it.name: DecisionStatus.AHEAD
        for it in records_ahead(item.records, now)
        if not counts_at_once(it)
    }
    states |= {
        it.name: DecisionStatus.WITHDRAWN for it in active_records(item.records) if it.withdrawn
    }
    if item.facts is not None:
        revoked = find_revoked(item.facts.records.approvals, item.facts.stages)
        states |= dict.fromkeys(revoked, DecisionStatus.WITHDRAWN)
    # The status of decisions comes last: it tells more than that the record does not count.
    return {**states, **item.decision_statuses(now)}


def _serialize_record(
    namespace: str, record: RecordEntry, decision_status: DecisionStatus | None
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
        "spec": dict(record.spec),
        "status": {
            "by": record.by,
            **({"state": decision_status.value} if decision_status else {}),
        },
    }


def _format_variants(item: Object, *, wide: bool) -> str:
    """Return the names of the record's variants, shortened unless `wide`.

    `all` if it names none.
    """
    names = item["spec"].get("variants", ())
    if not names:
        return "all"
    omitted = 0 if wide else max(len(names) - _VARIANT_LIMIT, 0)
    return ",".join([*names[: len(names) - omitted], *([f"+{omitted}"] if omitted else [])])


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
        case "Approval" if revoked_record:
            words = ["revokes", revoked_record]
        case "Approval":
            words = [spec["check"], spec["revision"]]
        case _:
            words = [spec["action"], spec.get("revision") or revoked_record or ""]
            words += [f"without {name}" for name in spec.get("overrides", ())]
    return " ".join(filter(None, words))


def _format_age(since: str, now: datetime) -> str:
    """Return an age as kubectl prints it: 5s, 90m, 26h, 12d. A unit from twice its length on."""
    seconds = max(int((now - parse_instant(since)).total_seconds()), 0)
    length, unit = next(
        (age_unit for age_unit in _AGE_UNITS if seconds >= 2 * age_unit[0]), _AGE_UNITS[-1]
    )
    return f"{seconds // length}{unit}"
