"""Rules about checks: what each way of asking needs, and what would mean nothing beside it.

They are checked on the data as written: see `fanout.api.places`.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from fanout.api.durations import parse_duration
from fanout.api.faults import BadValue, Fault, Path
from fanout.api.places import fields, items, places

ASKED = ("object", "prometheus", "http")
"""The ways whose answers carry no commit."""

_IDLE = {
    ("approval", "freshFor"): ("an approval counts for as long as it says itself", "use expires"),
    ("approval", "settle"): ("an approval is asked at once", "remove it"),
    ("report", "settle"): ("nobody is asked: whoever reports knows when", "remove it"),
}


def check_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the checks of a policy's stages, beside their fields one by one."""
    for number, stage in enumerate(items(fields(data.get("spec")).get("stages"))):
        for group in ("verification", "requires"):
            for path, check in places(stage, f"{group}[*]"):
                yield from _check(("spec", "stages", number, *path), fields(check))


def _check(at: Path, check: Mapping[str, Any]) -> Iterator[Fault]:
    for way in ASKED:
        if way in check:
            yield from _about_which(at, way, check)
    for (way, field), (problem, remedy) in _IDLE.items():
        if way in check and field in check:
            yield Fault((*at, field), problem, remedy)
    http = fields(check.get("http"))
    if "body" in http and http.get("method", "GET") != "POST":
        yield Fault((*at, "http", "body"), "only a POST has a body", "add method: POST")
    asked = fields(check.get("object"))
    if (asked.get("kind"), asked.get("apiVersion")) == ("Secret", "v1"):
        yield Fault((*at, "object", "kind"), "no check reads a Secret", "ask another object")


def _about_which(at: Path, way: str, check: Mapping[str, Any]) -> Iterator[Fault]:
    """An answer without a commit may be about what was there before. (Design §6, "Checks".)"""
    if _absent(check.get("freshFor")):
        problem = f"a check by {way} needs freshFor: its answer is of one moment"
        yield Fault((*at, "freshFor"), problem, "say for how long an answer counts, like 10m")
    if _absent(check.get("settle")) and not fields(check.get(way)).get("observedRevision"):
        problem = f"a check by {way} needs observedRevision or settle: its answer may be about what"
        remedy = "say how to read the revision, or how long after publication to ask first"
        yield Fault((*at, "settle"), f"{problem} was there before", remedy)


def _absent(value: object) -> bool:
    """Is the duration not there, or zero, which is as if absent? What is none is told elsewhere."""
    if not isinstance(value, str):
        return value is None
    try:
        return parse_duration(value) == timedelta(0)
    except BadValue:
        return False
