"""What the tables of `fanout get` show of each object."""

from collections.abc import Mapping, Sequence

from fanout.cli.output import Column, Object


def _hold(item: Object) -> str:
    holds = item.get("holds") or ()
    return str(holds[0]["reason"]) if holds else ""


def _message(item: Object) -> str:
    holds = item.get("holds") or ()
    return str(holds[0]["message"]) if holds else ""


def _condition(item: Object, field: str) -> str:
    conditions: Sequence[Object] = item.get("status", {}).get("conditions") or ({},)
    return str(conditions[0].get(field, ""))


def _failed(item: Object) -> int:
    """Targets without a variant, and variants that failed to be rendered or a check."""
    status = item["status"]
    return int(status["failedTargets"]) + int(status["failedVariants"])


def _in_flight(item: Object) -> str:
    """How many variants are in flight, of how many that may be."""
    budget = item.get("budget")
    return f"{item['inFlight']}" if budget is None else f"{item['inFlight']}/{budget}"


def _also(item: Object) -> str:
    """What holds beside whether it is ready, as OutOfBand."""
    conditions = item["status"]["conditions"][1:]
    return ",".join(str(it["type"]) for it in conditions if it["status"] == "True")


_NAME = Column("NAME", lambda item: item["metadata"]["name"])
_POLICY = Column("POLICY", lambda item: item.get("policy"))
_STAGE = Column("STAGE", lambda item: item.get("stage"))
_WHY = Column("WAITS FOR", _hold)
_SENTENCE = Column("MESSAGE", _message, wide=True)
COLUMNS: Mapping[str, Sequence[Column]] = {
    "policies": (
        _NAME,
        Column("READY", lambda item: _condition(item, "status")),
        Column("REASON", lambda item: _condition(item, "reason")),
        Column("VARIANTS", lambda item: item["status"]["variants"]),
        Column("FAILED", _failed),
        Column("EDITED", lambda item: item["status"]["editedVariants"], wide=True),
        Column("BROKEN", lambda item: item["status"]["brokenVariants"], wide=True),
        Column("MESSAGE", lambda item: _condition(item, "message")),
    ),
    "variants": (
        _NAME,
        Column("STAGE", lambda item: item["spec"].get("stage")),
        Column("REPOSITORY", lambda item: item["spec"]["downstream"]["repository"]),
        Column("PATH", lambda item: item["spec"]["downstream"]["package"]),
        Column("PUBLISHED", lambda item: item["status"].get("published", {}).get("revision")),
        Column("CANDIDATE", lambda item: item["status"]["candidate"]),
        Column("STATE", lambda item: item["status"]["state"]),
        Column("ALSO", _also),
        Column("REASON", lambda item: _condition(item, "reason"), wide=True),
        Column("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
    "stages": (
        _POLICY,
        _STAGE,
        Column("CANDIDATE", lambda item: item["candidate"]),
        Column("GATE", lambda item: item["gate"]),
        Column("VERDICT", lambda item: item["verdict"]),
        Column(
            "VARIANTS",
            lambda item: ",".join(f"{name}={number}" for name, number in item["counts"].items()),
        ),
        _WHY,
        Column("NEXT", lambda item: item.get("next")),
        Column("IN FLIGHT", _in_flight, wide=True),
        Column("HALTED", lambda item: item["halted"], wide=True),
        Column("QUEUED", lambda item: ",".join(item["queued"]), wide=True),
        _SENTENCE,
    ),
    "targets": (
        Column("TARGET", lambda item: item["target"]),
        _POLICY,
        _STAGE,
        Column("REPOSITORY", lambda item: item["repository"]),
        Column("PATH", lambda item: item["path"]),
        Column("STATE", lambda item: item["state"]),
        _WHY,
        _SENTENCE,
    ),
    "drafts": (
        _NAME,
        _STAGE,
        Column("REPOSITORY", lambda item: item["repository"]),
        Column("REVISION", lambda item: item["revision"]),
        Column("CURRENT", lambda item: item["current"]),
        Column("CONFLICTS", lambda item: item["conflicts"]),
        Column("EDITED", lambda item: item["edited"]),
        Column("STATE", lambda item: item["state"]),
        Column("TREE", lambda item: item["tree"], wide=True),
        Column("BRANCH", lambda item: item["branch"]),
    ),
    "repositories": (
        _NAME,
        Column("URL", lambda item: item["spec"]["url"]),
        Column("BRANCH", lambda item: item["spec"].get("branch", "main")),
        Column("READY", lambda item: _condition(item, "status")),
        Column("VARIANTS", lambda item: item["status"]["variants"]),
        Column("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
}
