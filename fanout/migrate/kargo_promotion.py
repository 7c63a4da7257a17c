"""Automatic promotion, promotion windows and stage selectors of a ProjectConfig."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from fanout.api.durations import format_duration
from fanout.api.field_errors import FieldPath, InvalidValue, as_list, as_mapping
from fanout.api.text_fields import NAME_PATTERN, format_value
from fanout.migrate.field_mapping import Conversion, Remark, TargetField
from fanout.migrate.kargo_stages import KargoObject, replace_dots
from fanout.values import Value

_SELECTOR_FIELDS = ("name", "matchLabels", "matchExpressions")
_NAME_STAGES_REMEDY = "name the Stages"


class StageSelector(Value):
    """Selector of Stages; `pattern` is fanout's name pattern for it, if there is one."""

    matches: Callable[[KargoObject], bool]
    pattern: str | None = None
    exact_name: str | None = None


def parse_name_selector(name: Any) -> StageSelector:
    """Parse a name, or a pattern after `glob:` or `regex:`. Raises InvalidValue."""
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"{format_value(name)} is not the name of a Stage", _NAME_STAGES_REMEDY)
    syntax, colon, name_pattern = name.partition(":")
    if not colon:
        return StageSelector(lambda stage: stage.name == name, exact_name=name)
    if syntax == "glob" and not re.search(r"[{}\\]", name_pattern):
        pattern = name_pattern if re.match(NAME_PATTERN, name_pattern) else None
        return StageSelector(lambda stage: fnmatchcase(stage.name, name_pattern), pattern)
    if syntax in ("regex", "regexp"):
        try:
            expression = re.compile(name_pattern)
        except (re.error, OverflowError, RecursionError) as error:
            problem = f"{format_value(name)} cannot be read: {error}"
            raise InvalidValue(problem, _NAME_STAGES_REMEDY) from error
        return StageSelector(lambda stage: expression.search(stage.name) is not None)
    raise InvalidValue(f"{format_value(name)} is not a supported pattern", _NAME_STAGES_REMEDY)


def parse_stage_selector(value: Any) -> StageSelector:
    """Parse a `stageSelector`. Raises InvalidValue for an unreadable or empty one."""
    selector_fields = as_mapping(value)
    unknown_fields = [str(key) for key in selector_fields if key not in _SELECTOR_FIELDS]
    if unknown_fields:
        problem = f"{unknown_fields[0]} is not a known field of a selector"
        raise InvalidValue(problem, _NAME_STAGES_REMEDY)
    if not any(selector_fields.get(key) for key in _SELECTOR_FIELDS):
        raise InvalidValue("the selector is empty", _NAME_STAGES_REMEDY)
    match_labels = as_mapping(selector_fields, "matchLabels")
    tests: list[Callable[[Mapping[str, Any]], bool]] = []
    if match_labels:
        tests.append(
            lambda labels: all(labels.get(key) == match_labels[key] for key in match_labels)
        )
    entries = as_list(selector_fields, "matchExpressions")
    tests += [_parse_requirement(as_mapping(entry)) for entry in entries]
    name = selector_fields.get("name")
    name_selector = parse_name_selector(name) if name else StageSelector(lambda _: True)
    if not tests:
        return name_selector
    return StageSelector(
        lambda stage: name_selector.matches(stage) and all(test(stage.labels) for test in tests)
    )


def _parse_requirement(entry: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    key, operator, values = entry.get("key"), entry.get("operator"), as_list(entry, "values")
    if not isinstance(key, str):
        raise InvalidValue("an entry of matchExpressions has no key", _NAME_STAGES_REMEDY)
    match operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    raise InvalidValue(f"{format_value(operator)} is not an operator", _NAME_STAGES_REMEDY)


PROMOTION_POLICIES_PATH: FieldPath = ("spec", "promotionPolicies")
_AUTO_PROMOTION_PATH: FieldPath = ("spec", "autoPromotion", "stages")


class _AutomationPolicy(Value):
    path: FieldPath
    enabled: bool
    selector: StageSelector | None  # None: invalid


def convert_automation(
    config: KargoObject,
    stages: Sequence[KargoObject],
    control_flow_stages: Sequence[KargoObject],
    converted_names: Collection[str],
    blocked_names: Collection[str],
) -> Conversion:
    """Yield the names of stages that are promoted automatically, and remarks.

    `stages`: Stages of the Project with targets. `control_flow_stages`: the other Stages.
    `converted_names`: names of the stages that were converted. `blocked_names`: names of
    Stages where automation must stay off.
    """
    policies = []
    for index, entry in enumerate(as_list(config.spec, "promotionPolicies")):
        path: FieldPath = (*PROMOTION_POLICIES_PATH, index)
        enabled = as_mapping(entry).get("autoPromotionEnabled") is True
        stage_selector = as_mapping(entry).get("stageSelector")
        selector: StageSelector | None = None
        try:
            selector = (
                parse_name_selector(as_mapping(entry).get("stage"))
                if stage_selector is None
                else parse_stage_selector(stage_selector)
            )
        except InvalidValue as error:
            yield Remark(path, f"{error.problem}; nothing after it is automatic", error.remedy)
        policies.append(_AutomationPolicy(path, enabled, selector))
    automatic_stages: dict[str, FieldPath] = {}
    for stage in stages:
        # An unreadable policy might have selected the Stage, so no later policy may decide for it.
        deciding = next(
            (it for it in policies if it.selector is None or it.selector.matches(stage)), None
        )
        may_be = replace_dots(stage.name) in converted_names and stage.name not in blocked_names
        if may_be and deciding and deciding.selector and deciding.enabled:
            automatic_stages[stage.name] = deciding.path
    names: dict[str, FieldPath] = {}
    listed_stages = automatic_stages.copy()
    for policy in policies:
        if policy.selector is None or not policy.enabled:
            break
        # A pattern may stay if every Stage that it can match is automatic.
        matching_stages = [stage.name for stage in stages if policy.selector.matches(stage)]
        is_safe = matching_stages and automatic_stages.keys() >= {*matching_stages}
        if policy.selector.pattern and is_safe:
            names.setdefault(policy.selector.pattern, policy.path)
            listed_stages = {
                name: path for name, path in listed_stages.items() if path != policy.path
            }
    for name, path in listed_stages.items():
        names.setdefault(replace_dots(name), path)
    for number, (text, path) in enumerate(names.items()):
        yield TargetField((*_AUTO_PROMOTION_PATH, number), text, path)
    for policy in policies:
        if policy.enabled and policy.selector:
            chosen_names = [name for name, path in listed_stages.items() if path == policy.path]
            yield from _policy_remarks(
                policy, policy.selector, stages, control_flow_stages, chosen_names
            )


def _policy_remarks(
    policy: _AutomationPolicy,
    selector: StageSelector,
    stages: Sequence[KargoObject],
    control_flow_stages: Sequence[KargoObject],
    names: Sequence[str],
) -> Iterator[Remark]:
    matching_control_flow = [stage.name for stage in control_flow_stages if selector.matches(stage)]
    if any(selector.matches(stage) for stage in stages):
        if names and selector.exact_name is None:
            problem = f"it selects {', '.join(names)} of the input; these are now listed by name"
            remedy = "add later ones to spec.autoPromotion.stages"
            yield Remark(policy.path, problem, remedy, is_lost=False)
    elif matching_control_flow:
        problem = (
            f"it selects only control-flow Stages ({', '.join(matching_control_flow)}): nothing"
            " is published in those"
        )
        yield Remark(policy.path, problem, "remove it", is_lost=False)
    else:
        problem = (
            f"there is no Stage {selector.exact_name}"
            if selector.exact_name
            else "it selects no Stage"
        )
        yield Remark(policy.path, f"{problem} in the input", "import the Stages as well")


WINDOWS_PATH: FieldPath = ("spec", "promotionWindows")
_WINDOW_KINDS = {"Allow": "allow", "Deny": "deny"}
_ICALENDAR_TIME = re.compile(r"(?:TZID=([^:\s]+):)?([0-9]{8}T[0-9]{6})(Z?)", re.ASCII)
_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_WRITE_WINDOW_REMEDY = "write it in spec.windows as cron lines"
_MAX_LENGTH_BY_FREQUENCY = {"DAILY": timedelta(days=1), "WEEKLY": timedelta(days=7)}


def convert_windows(
    config: KargoObject, stages: Sequence[KargoObject]
) -> tuple[list[TargetField | Remark], set[str]]:
    """Convert the windows of a ProjectConfig; `stages` are its Project's Stages with targets.

    Return with them the names of Stages where automation must stay off.
    """
    pieces: list[TargetField | Remark] = []
    blocked_names: set[str] = set()
    for index, entry in enumerate(as_list(config.spec, "promotionWindows")):
        path: FieldPath = (*WINDOWS_PATH, index)
        # Until the selector is read, an error has to keep automation off in all Stages.
        bound_names = {stage.name for stage in stages}
        try:
            if (stage_selector := as_mapping(entry).get("stageSelector")) is not None:
                matches = parse_stage_selector(stage_selector).matches
                bound_names = {stage.name for stage in stages if matches(stage)}
            if bound_names != {stage.name for stage in stages}:
                problem = "windows apply to all stages of a policy, and this one selects some"
                raise InvalidValue(problem, "split the policy, and write the window for one part")
            pieces += _convert_window(as_mapping(entry), path)
        except InvalidValue as error:
            blocked_names |= bound_names
            consequence = (
                f"; automation stays off in {', '.join(sorted(bound_names))}" if bound_names else ""
            )
            pieces.append(
                Remark(path, f"{error.problem}{consequence}", error.remedy or _WRITE_WINDOW_REMEDY)
            )
    return pieces, blocked_names


def _convert_window(entry: Mapping[str, Any], path: FieldPath) -> Conversion:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in _WINDOW_KINDS:
        raise InvalidValue(f"{format_value(kind)} is not a kind of window", "write Allow or Deny")
    target_path: FieldPath = ("spec", "windows", path[-1], _WINDOW_KINDS[kind])
    start, zone = _parse_icalendar_time(entry.get("dtstart"), "dtstart")
    end, end_zone = _parse_icalendar_time(entry.get("dtend"), "dtend")
    days, max_length = _convert_recurrence(entry.get("rrule"), start)
    length = end - start
    # A window longer than its period overlaps its next occurrence, which a cron line with a
    # duration cannot express.
    if zone != end_zone or not timedelta() < length <= max_length:
        raise InvalidValue("it does not end before its next start in the same time zone", "")
    if start.second:
        raise InvalidValue("it starts at a second within a minute, which cron cannot express", "")
    line = f"{start.minute} {start.hour} * * {days}"
    yield TargetField((*target_path, "schedule"), line, (*path, "rrule"))
    yield TargetField((*target_path, "duration"), format_duration(length), (*path, "dtend"))
    yield TargetField((*target_path, "timeZone"), zone, (*path, "dtstart"))
    problem = "in Kargo the window starts on this day; here it always applies"
    yield Remark((*path, "dtstart"), problem, is_lost=False)


def _convert_recurrence(rule: Any, start: datetime) -> tuple[str, timedelta]:
    """Return the weekdays of a recurrence rule as a cron field, and a window's maximum."""
    if not rule:
        raise InvalidValue("cron cannot express a window that occurs once", "")
    text = str(rule).upper().removeprefix("RRULE:").rstrip(";")
    parts = dict(part.partition("=")[::2] for part in text.split(";"))
    frequency = parts.pop("FREQ", "")
    if frequency not in _MAX_LENGTH_BY_FREQUENCY or parts.pop("INTERVAL", "1") != "1":
        raise InvalidValue(f"{format_value(rule)} is neither daily nor weekly", "")
    parts.pop("WKST", None)
    weekday_names = parts.pop("BYDAY", "")
    if parts:
        problem = f"{next(iter(parts))} of {format_value(rule)} cannot be expressed in cron"
        raise InvalidValue(problem, "")
    days = weekday_names.split(",") if weekday_names else []
    if not days:
        day = "*" if frequency == "DAILY" else str(start.isoweekday() % 7)
        return day, _MAX_LENGTH_BY_FREQUENCY[frequency]
    if not set(days) <= set(_WEEKDAYS):
        raise InvalidValue(f"BYDAY of {format_value(rule)} cannot be expressed in cron", "")
    numbers = sorted({_WEEKDAYS.index(day) for day in days})
    return ",".join(map(str, numbers)), _MAX_LENGTH_BY_FREQUENCY["WEEKLY"]


def _parse_icalendar_time(value: Any, field: str) -> tuple[datetime, str]:
    """Return a wall time and its zone; without a zone it is in UTC."""
    match = _ICALENDAR_TIME.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is None:
            raise ValueError
        zone = "UTC" if match[3] else match[1] or "UTC"
        return datetime.strptime(match[2], "%Y%m%dT%H%M%S"), zone  # noqa: DTZ007 - a wall time
    except ValueError as error:
        problem = (
            f"{field} is {format_value(value)}, not a time like TZID=Europe/Oslo:20260101T0900"
        )
        raise InvalidValue(f"{problem}00", "") from error
