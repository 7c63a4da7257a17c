"""What the fields of a Stage become: when it may take a revision, and what is asked there."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from fractions import Fraction
from typing import Any

from fanout.api.durations import LONGEST, format_duration
from fanout.api.faults import BadValue
from fanout.api.foreign.pieces import Found, Put, Remark
from fanout.api.kargo.objects import REQUESTS, dashed, steps_of
from fanout.api.places import fields, items
from fanout.api.texts import shown

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|m|s)", re.ASCII)
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_STRATEGIES = ("All", "OneOf", "")
_OWN = ("kargo.akuity.io/", "kubectl.kubernetes.io/")


def named(found: Found) -> Iterator[Put | Remark]:
    """A name, with dashes for dots."""
    name = dashed(found.value)
    yield Put(found.to, name, found.path)
    if name != found.value:
        yield Remark(found.path, f"names have no dots here: it is called {name}", lost=False)


def annotated(found: Found) -> Iterator[Put | Remark]:
    """Annotations of a Stage: those for other programs go without a word."""
    left = [key for key in fields(found.value) if not str(key).startswith(_OWN)]
    if left:
        problem = f"a stage has no annotations: {', '.join(map(str, left))} are left out"
        yield Remark(found.path, problem, lost=False)


def before(found: Found) -> Iterator[Put | Remark]:
    """The stages before, and how many of them are needed: Kargo's default is one."""
    sources = _sources(found)
    if not isinstance(found.value, list | tuple):
        yield Put(found.to, found.value, found.path)
        return
    if sources.get("direct") is True:
        if found.value:
            problem = "beside `direct` Kargo passes the stages over: this one waits for none"
            yield Remark(found.path, problem, "take `direct` out if it is to wait", lost=False)
        return
    names: list[Any] = []
    for index, name in enumerate(found.value):
        if name is not None and dashed(name) not in names:
            yield Put((*found.to, len(names)), dashed(name), (*found.path, index))
            names.append(dashed(name))
    if len(names) < 2:
        return
    strategy = sources.get("availabilityStrategy")
    path = (*found.path[:-1], "availabilityStrategy") if strategy else found.path
    require = "All" if strategy == "All" else "Any"
    yield Put((*found.to[:-1], "require"), require, path)
    if not strategy:
        problem = "without a strategy one of them is enough to Kargo, so `Any` is written"
        yield Remark(path, problem, "All is the default here", lost=False)


def strategy(found: Found) -> Iterator[Put | Remark]:
    """A strategy that is not known would open the gate or shut it for a reason nobody gave."""
    if found.value not in _STRATEGIES:
        problem = f"{shown(found.value)} is no strategy that is known"
        yield Remark(found.path, problem, "write All or OneOf", spoils=found.to)


def soak(found: Found) -> Iterator[Put | Remark]:
    """How long freight must have been there; Go's durations have fractions and any order."""
    try:
        seconds = _duration(found.value)
    except BadValue as error:
        yield Remark(found.path, error.problem, error.remedy, spoils=found.to)
        return
    sources = _sources(found)
    if not seconds:
        return
    if sources.get("direct") is True:
        problem = "beside `direct` Kargo passes the soak over: this stage does not wait"
        yield Remark(found.path, problem, "take `direct` out if it is to wait", lost=False)
    elif not any(items(sources.get("stages"))):
        problem = "no stage is left in which a revision could soak; Kargo lets none through"
        yield Remark(found.path, problem, "name the stages before, or remove it", spoils=found.to)
    else:
        yield Put(found.to, format_duration(timedelta(seconds=seconds)), found.path)
        problem = "counts from when all checks have passed, to Kargo from when freight arrived"
        yield Remark(found.path, problem, lost=False)


def selection_policy(found: Found) -> Iterator[Put | Remark]:
    """Which of several revisions goes by itself."""
    if found.value not in ("", "NewestFreight"):
        problem = f"{shown(found.value)} has no counterpart: the newest revision that passes goes"
        yield Remark(found.path, problem, "promote by hand, or `inFlight: Serialize`")


def check(found: Found) -> Iterator[Put | Remark]:
    """An AnalysisTemplate as a check that somebody answers."""
    if not steps_of(found.object):
        problem = "Kargo verifies nothing in a control-flow stage, nor does fanout"
        yield Remark(found.path, problem, lost=False)
        return
    templates = items(fields(fields(found.object.get("spec")).get("verification")).get(_TEMPLATES))
    earlier = [fields(entry).get("name") for entry in templates[: int(found.path[-2])]]
    if found.value in earlier:
        return
    name = dashed(found.value)
    yield Put(found.to, name, found.path)
    yield Put((*found.to[:-1], "report"), {}, found.path)
    problem = f"Kargo runs the analysis; here its answer is reported, as the check {shown(name)}"
    remedy = f"run it in a pipeline that calls `fanout report --check {shown(name)}`"
    yield Remark(found.path, problem, remedy, lost=False)


_TEMPLATES = "analysisTemplates"


def _sources(found: Found) -> Mapping[str, Any]:
    requests = items(fields(found.object.get("spec")).get(REQUESTS))
    return fields(fields(requests[0]).get("sources")) if requests else {}


def _duration(value: Any) -> int:
    """Whole seconds, rounded up. Raises BadValue."""
    parts = _PART.findall(value) if isinstance(value, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise BadValue(f"{shown(value)} is no duration", "write hours, minutes, seconds: 24h")
    total = sum(Fraction(number) * _SECONDS[unit] for number, unit in parts)
    if total > LONGEST.total_seconds():
        raise BadValue(f"{shown(value)} is longer than ten years", "write at most 87600h")
    return -(-total.numerator // total.denominator)
