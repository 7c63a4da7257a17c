"""`fanout get records`: what people and machines said, in the order in which they said it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.meta import API_VERSION
from fanout.api.people import person
from fanout.cli.output import Column, Object
from fanout.cli.start import Program
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.approvals import taken_back
from fanout.gates.fates import Fate
from fanout.plan.book import Recorded, standing
from fanout.plan.dates import ahead, counts_at_once
from fanout.plan.status import instant, written
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass

NOUNS: Mapping[str, tuple[str, ...]] = {
    "records": ("Evidence", "Approval", "Decision"),
    "evidence": ("Evidence",),
    "approvals": ("Approval",),
    "decisions": ("Decision",),
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SHORT = 12  # digits of a commit
_SHOWN = 3  # variants


def recorded(program: Program, noun: str, policies: Sequence[str]) -> list[dict[str, Any]]:
    """The records as the objects that they are, those of these policies or of all.

    Raises InvalidInput when there is no such policy. What cannot be read is said.
    """
    mode = Mode(only=frozenset(policies) or None, namespace=program.settings.namespace)
    observed = program.observe(mode)
    found, now = observed.policies, observed.now
    missing = sorted(set(policies) - {item.named.name for item in found})
    if missing:
        raise InvalidInput(
            f"there is no policy {' and no '.join(missing)}",
            reason="NotFound",
            remedy="see `fanout get policies`",
        )
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    for item in found:
        for sentence in item.book.unreadable:
            say(f"{item.title}: {sentence}", program.settings.color, fg="red")
        states = _states(item, now)
        for record in item.about:
            if record.kind in NOUNS[noun]:
                key = (item.named.namespace, record.name)
                objects[key] = _object(item.named.namespace, record, states.get(record.name))
    order = {key: number for number, key in enumerate(objects)}
    return [
        objects[key]
        for key in sorted(
            objects,
            key=lambda key: (objects[key]["metadata"]["creationTimestamp"], order[key]),
        )
    ]


def columns(noun: str, now: datetime, *, wide: bool) -> Sequence[Column]:
    """The columns of their table; of decisions also for whom they are."""
    decisions = noun == "decisions"
    state = Column("STATE", lambda item: item["status"].get("state"))
    variants = Column("VARIANTS", lambda item: _variants(item, wide=wide), wide=not decisions)
    return (
        Column("AGE", lambda item: _age(item["metadata"]["creationTimestamp"], now)),
        Column("KIND", lambda item: item["kind"]),
        Column("WHAT", _what),
        state,
        Column("BY", lambda item: person(item["status"]["by"])),
        Column("POLICY", lambda item: item["spec"].get("policy")),
        Column("STAGE", lambda item: item["spec"].get("stage")),
        *((variants,) if decisions else ()),
        Column("NAME", lambda item: item["metadata"]["name"]),
        *(() if decisions else (variants,)),
        Column("REASON", lambda item: item["spec"].get("reason"), wide=True),
        Column("EXPIRES", lambda item: item["spec"].get("expires"), wide=True),
        Column("LINK", lambda item: item["spec"].get("link"), wide=True),
    )


def _states(item: PolicyPass, now: datetime) -> Mapping[str, Fate]:
    """The state of each decision, and of all other records that do not count."""
    found = {it.name: Fate.AHEAD for it in ahead(item.about, now) if not counts_at_once(it)}
    found |= {it.name: Fate.WITHDRAWN for it in standing(item.about) if it.withdrawn}
    if item.facts is not None:
        revoked = taken_back(item.facts.records.approvals, item.facts.stages)
        found |= dict.fromkeys(revoked, Fate.WITHDRAWN)
    return {**found, **item.fates(now)}


def _object(namespace: str, record: Recorded, fate: Fate | None) -> dict[str, Any]:
    """The record; what is said of it beside is who said it, and its state where it has one."""
    return {
        "apiVersion": API_VERSION,
        "kind": record.kind,
        "metadata": {
            "name": record.name,
            "namespace": namespace,
            "creationTimestamp": written(record.at),
        },
        "spec": dict(record.spec),
        "status": {"by": record.by, **({"state": fate.value} if fate else {})},
    }


def _variants(item: Object, *, wide: bool) -> str:
    """Their names, with -o wide all of them; a record that names none is about all there are."""
    names = item["spec"].get("variants", ())
    if not names:
        return "all"
    rest = 0 if wide else max(len(names) - _SHOWN, 0)
    return ",".join([*names[: len(names) - rest], *([f"+{rest}"] if rest else [])])


def _what(item: Object) -> str:
    spec = item["spec"]
    taken_back = spec.get("revokes") or spec.get("withdraws")
    match item["kind"]:
        case "Evidence":
            words = [spec["check"], spec["status"], spec.get("revision") or spec["commit"][:_SHORT]]
        case "Approval" if taken_back:
            words = ["revokes", taken_back]
        case "Approval":
            words = [spec["check"], spec["revision"]]
        case _:
            words = [spec["action"], spec.get("revision") or taken_back or ""]
            words += [f"without {name}" for name in spec.get("overrides", ())]
    return " ".join(filter(None, words))


def _age(since: str, now: datetime) -> str:
    """As kubectl shows it: 5s, 90m, 26h, 12d; a unit from twice its length on."""
    seconds = max(int((now - instant(since)).total_seconds()), 0)
    length, unit = next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
    return f"{seconds // length}{unit}"
