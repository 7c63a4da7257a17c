"""Conversions of the fields of a Kargo Stage: its order, soak, and verification."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from fractions import Fraction
from typing import Any

from fanout.api.durations import MAX_DURATION, format_duration
from fanout.api.field_errors import InvalidValue
from fanout.api.field_paths import as_list, as_mapping
from fanout.api.text_fields import format_value
from fanout.migrate.field_conversion import Remark, SourceField, TargetField
from fanout.migrate.kargo.kargo_objects import REQUESTS_FIELD, promotion_steps_of, replace_dots

_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|m|s)", re.ASCII)
_SECONDS_PER_UNIT = {"h": 3600, "m": 60, "s": 1}
_AVAILABILITY_STRATEGIES = ("All", "OneOf", "")
_IGNORED_PREFIXES = ("kargo.akuity.io/", "kubectl.kubernetes.io/")


def convert_name(source: SourceField) -> Iterator[TargetField | Remark]:
    """Copy a name with dashes for dots."""
    name = replace_dots(source.value)
    yield TargetField(source.target, name, source.path)
    if name != source.value:
        yield Remark(source.path, f"names have no dots here: it is called {name}", is_lost=False)


def convert_stage_annotations(source: SourceField) -> Iterator[TargetField | Remark]:
    """Report the annotations of a Stage, except those of Kargo and kubectl."""
    unsupported_keys = [
        key for key in as_mapping(source.value) if not str(key).startswith(_IGNORED_PREFIXES)
    ]
    if unsupported_keys:
        problem = (
            f"a stage has no annotations: {', '.join(map(str, unsupported_keys))} are left out"
        )
        yield Remark(source.path, problem, is_lost=False)


def convert_upstream_stages(source: SourceField) -> Iterator[TargetField | Remark]:
    """Convert the upstream stages and the number of them that must pass.

    Kargo's default is one.
    """
    sources = _sources(source)
    if not isinstance(source.value, list | tuple):
        yield TargetField(source.target, source.value, source.path)
        return
    if sources.get("direct") is True:
        if source.value:
            problem = "beside `direct` Kargo passes the stages over: this one waits for none"
            yield Remark(source.path, problem, "take `direct` out if it is to wait", is_lost=False)
        return
    names: list[Any] = []
    for index, name in enumerate(source.value):
        if name is not None and replace_dots(name) not in names:
            yield TargetField(
                (*source.target, len(names)), replace_dots(name), (*source.path, index)
            )
            names.append(replace_dots(name))
    if len(names) < 2:
        return
    strategy = sources.get("availabilityStrategy")
    path = (*source.path[:-1], "availabilityStrategy") if strategy else source.path
    require = "All" if strategy == "All" else "Any"
    yield TargetField((*source.target[:-1], "require"), require, path)
    if not strategy:
        problem = "without a strategy one of them is enough to Kargo, so `Any` is written"
        yield Remark(path, problem, "All is the default here", is_lost=False)


def convert_availability_strategy(source: SourceField) -> Iterator[TargetField | Remark]:
    """Reject an unknown strategy: guessing could open or close the gate without a reason."""
    if source.value not in _AVAILABILITY_STRATEGIES:
        problem = f"{format_value(source.value)} is no strategy that is known"
        yield Remark(source.path, problem, "write All or OneOf", invalidates=source.target)


def convert_soak(source: SourceField) -> Iterator[TargetField | Remark]:
    """Convert the required soak time.

    Go's durations have fractions and any order of units.
    """
    try:
        seconds = _parse_go_duration(source.value)
    except InvalidValue as error:
        yield Remark(source.path, error.problem, error.remedy, invalidates=source.target)
        return
    sources = _sources(source)
    if not seconds:
        return
    if sources.get("direct") is True:
        problem = "beside `direct` Kargo passes the soak over: this stage does not wait"
        yield Remark(source.path, problem, "take `direct` out if it is to wait", is_lost=False)
    elif not any(as_list(sources.get("stages"))):
        problem = "no stage is left in which a revision could soak; Kargo lets none through"
        yield Remark(
            source.path, problem, "name the stages before, or remove it", invalidates=source.target
        )
    else:
        yield TargetField(source.target, format_duration(timedelta(seconds=seconds)), source.path)
        problem = "counts from when all checks have passed, to Kargo from when freight arrived"
        yield Remark(source.path, problem, is_lost=False)


def convert_selection_policy(source: SourceField) -> Iterator[TargetField | Remark]:
    """Report a policy for automatic promotion other than the newest freight."""
    if source.value not in ("", "NewestFreight"):
        problem = (
            f"{format_value(source.value)} has no counterpart: the newest revision that passes goes"
        )
        yield Remark(source.path, problem, "promote by hand, or `inFlight: Serialize`")


def convert_verification(source: SourceField) -> Iterator[TargetField | Remark]:
    """Convert an AnalysisTemplate to a check that is answered by `fanout report`."""
    if not promotion_steps_of(source.source_object):
        problem = "Kargo verifies nothing in a control-flow stage, nor does fanout"
        yield Remark(source.path, problem, is_lost=False)
        return
    templates = as_list(
        as_mapping(as_mapping(source.source_object.get("spec")).get("verification")).get(
            _ANALYSIS_TEMPLATES
        )
    )
    earlier = [as_mapping(entry).get("name") for entry in templates[: int(source.path[-2])]]
    if source.value in earlier:
        return
    name = replace_dots(source.value)
    yield TargetField(source.target, name, source.path)
    yield TargetField((*source.target[:-1], "report"), {}, source.path)
    problem = (
        f"Kargo runs the analysis; here its answer is reported, as the check {format_value(name)}"
    )
    remedy = f"run it in a pipeline that calls `fanout report --check {format_value(name)}`"
    yield Remark(source.path, problem, remedy, is_lost=False)


_ANALYSIS_TEMPLATES = "analysisTemplates"


def _sources(source: SourceField) -> Mapping[str, Any]:
    requests = as_list(as_mapping(source.source_object.get("spec")).get(REQUESTS_FIELD))
    return as_mapping(as_mapping(requests[0]).get("sources")) if requests else {}


def _parse_go_duration(value: Any) -> int:
    """Return whole seconds of a Go duration, rounded up. Raises InvalidValue."""
    parts = _DURATION_PART.findall(value) if isinstance(value, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise InvalidValue(
            f"{format_value(value)} is no duration", "write hours, minutes, seconds: 24h"
        )
    total = sum(Fraction(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    if total > MAX_DURATION.total_seconds():
        raise InvalidValue(
            f"{format_value(value)} is longer than ten years", "write at most 87600h"
        )
    # Rounded up, because a soak must never become shorter than Kargo's; exact, hence no float.
    return -(-total.numerator // total.denominator)
