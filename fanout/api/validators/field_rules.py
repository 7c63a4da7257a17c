"""Rules about several fields of one object or stage, as tables and error generators.

They are checked on the data as written: see `fanout.api.field_errors`. The rules of records are in
`record_rules`, those of references between stages in `stage_references`.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from fanout.api.approver_names import check_subject
from fanout.api.durations import parse_duration
from fanout.api.field_errors import (
    FieldError,
    FieldPath,
    InvalidValue,
    Rule,
    as_list,
    as_mapping,
    check_unique,
    find_fields,
)
from fanout.api.function_catalog import check_functions
from fanout.api.object_meta import is_secret
from fanout.api.package_variant import RESERVED_KEYS
from fanout.api.text_fields import join_words
from fanout.api.validators.record_rules import RECORD_RULES
from fanout.api.validators.stage_references import check_stage_graph, find_target_stages
from fanout.api.validators.unsupported_fields import is_unsupported
from fanout.values import Value, replace

NOT_FOR_CONTROL_FLOW = ("verification", "requires", "rollout", "propagateWhen", "suspend", "pin")
STRATEGY_BY_FIELD = {"step": "Linear", "factor": "Exponential"}


def check_stage_fields(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for fields without effect in the stages of an UpstreamPolicy.

    An author who writes `step` without `Linear`, or `controlFlow` beside checks, expects
    something that would not happen (docs/concepts/rollouts.md).
    """
    control_flow_stages: set[str] = set()
    for path, stage_data in find_fields(data, "spec.stages[*]"):
        stage = as_mapping(stage_data)
        if stage.get("controlFlow") is not True:
            yield from _check_rollout(stage, (*path, "rollout"))
            continue
        control_flow_stages.add(str(stage.get("name")))
        if "after" not in stage:
            problem = "a controlFlow stage needs stages to join"
            yield FieldError((*path, "after"), problem, "add after, or remove controlFlow")
        for field in NOT_FOR_CONTROL_FLOW:
            if stage.get(field):
                problem = f"{field} has no effect in a controlFlow stage, which has no targets"
                yield FieldError((*path, field), problem, "remove it, or remove controlFlow")
    for path, name in find_target_stages(data):
        if name in control_flow_stages:
            problem = f"stage {name} is a controlFlow stage, which has no targets"
            yield FieldError(path, problem, "choose another stage, or remove its controlFlow")


def _check_rollout(stage: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    rollout = as_mapping(stage, "rollout")
    strategy = rollout.get("strategy", "AllAtOnce")
    for field, required in STRATEGY_BY_FIELD.items():
        # An unknown strategy is reported by the model; which fields belong to it is unknown.
        others = {"AllAtOnce", *STRATEGY_BY_FIELD.values()} - {required}
        if field in rollout and strategy in others:
            problem = f"{field} has no effect with strategy {strategy}"
            yield FieldError((*path, field), problem, f"remove it, or write strategy: {required}")
    if "progressDeadline" in rollout and not stage.get("verification"):
        problem = "progressDeadline has no effect in a stage without verification"
        yield FieldError((*path, "progressDeadline"), problem, "add verification, or remove it")
    # Variants belong to the first group that matches.
    first_indices: dict[str, int] = {}
    for index, group in enumerate(as_list(rollout, "groups")):
        if not isinstance(group, Mapping):
            continue
        group_path = (*path, "groups", index)
        if not any(group.get(field) for field in ("matchLabels", "matchExpressions")):
            problem = "the selector is empty and matches all remaining variants"
            yield FieldError(group_path, problem, "remove it: variants without a group are last")
            continue
        # By text, because selectors are mappings with lists and have no hash.
        if (first_index := first_indices.setdefault(repr(group), index)) != index:
            problem = f"groups[{first_index}] has the same selector, so this group is always empty"
            yield FieldError(group_path, problem, "remove one of them")


class ExclusiveFields(Value):
    """Fields at `path` that exclude each other; one must be present if `is_required`."""

    kind: str
    path: str
    fields: tuple[str, ...]
    is_required: bool = False


_POLICY, _VARIANT, _PROMOTION = "UpstreamPolicy", "PackageVariant", "PromotionPolicy"
_TEMPLATE_PATH = "spec.targets[*].template"
_FUNCTION_ENTRIES = tuple(
    (kind, f"{path}.{section}[*]")
    for kind, path in ((_POLICY, f"{_TEMPLATE_PATH}.pipeline"), (_VARIANT, "spec.pipeline"))
    for section in ("mutators", "validators")
)
_MAP_EXPRESSIONS = (
    f"{_TEMPLATE_PATH}.packageContext.dataExprs[*]",
    f"{_TEMPLATE_PATH}.labelExprs[*]",
    f"{_TEMPLATE_PATH}.annotationExprs[*]",
    *(f"{path}.configMapExprs[*]" for kind, path in _FUNCTION_ENTRIES if kind == _POLICY),
)
_REVISION_FIELDS = ("tag", "semver", "latest", "commit")
_TARGET_FIELDS = ("repositories", "repositorySelector", "objectSelector")
_CHECK_TYPES = ("report", "approval", "commitStatus", "object", "prometheus", "http")
CHECK_PATHS = ("spec.stages[*].verification[*]", "spec.stages[*].requires[*]")
# Fields that have a twin that ends in `Expr`.
_CHECK_FIELDS = ("object.name", "prometheus.address", "prometheus.query", "http.url")
_TEMPLATE_FIELDS = ("stage", "priority", "downstream.repository", "downstream.package")


def _pair_with_expression(path: str, *, is_required: bool = True) -> ExclusiveFields:
    parent, _, field = path.rpartition(".")
    return ExclusiveFields(_POLICY, parent, (field, f"{field}Expr"), is_required)


EXCLUSIVE_FIELDS: tuple[ExclusiveFields, ...] = (
    ExclusiveFields(_POLICY, "spec.upstream.revision", _REVISION_FIELDS, is_required=True),
    ExclusiveFields(_VARIANT, "spec.upstream.revision", _REVISION_FIELDS, is_required=True),
    ExclusiveFields(_POLICY, "spec.targets[*]", _TARGET_FIELDS, is_required=True),
    _pair_with_expression(f"{_TEMPLATE_PATH}.injectors[*].name"),
    *(
        _pair_with_expression(f"{path}.{field}")
        for path in _MAP_EXPRESSIONS
        for field in ("key", "value")
    ),
    *(ExclusiveFields(*entry, ("image", "exec"), is_required=True) for entry in _FUNCTION_ENTRIES),
    ExclusiveFields(_VARIANT, "spec.dependsOn[*]", ("policy", "variant"), is_required=True),
    *(ExclusiveFields(_POLICY, path, _CHECK_TYPES, is_required=True) for path in CHECK_PATHS),
    *(_pair_with_expression(f"{path}.{it}") for path in CHECK_PATHS for it in _CHECK_FIELDS),
    ExclusiveFields(_PROMOTION, "spec.windows[*]", ("allow", "deny"), is_required=True),
    *(
        ExclusiveFields(_PROMOTION, path, ("duration", "until"), is_required=True)
        for path in ("spec.windows[*].allow", "spec.windows[*].deny")
    ),
    ExclusiveFields("Evidence", "spec", ("revision", "commit"), is_required=True),
    *(
        _pair_with_expression(f"{_TEMPLATE_PATH}.{field}", is_required=False)
        for field in _TEMPLATE_FIELDS
    ),
    *(
        ExclusiveFields(*entry, (field, "configPath"))
        for entry in _FUNCTION_ENTRIES
        for field in ("configMap", "configMapExprs")
    ),
    ExclusiveFields(_POLICY, "spec.stages[*].after", ("require", "atLeast")),
)


def check_exclusive_fields(kind: str, data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for exclusive fields that are both present, or of which none is."""
    for choice in EXCLUSIVE_FIELDS:
        if choice.kind != kind:
            continue
        for path, value in find_fields(data, choice.path):
            present = [name for name in choice.fields if name in as_mapping(value)]
            if len(present) > 1:
                problem = f"{join_words(present, 'and')} exclude each other"
                yield FieldError(path, problem, "keep one of them")
            elif choice.is_required and not present and isinstance(value, Mapping):
                supported = [
                    name for name in choice.fields if not is_unsupported(kind, (*path, name))
                ]
                yield FieldError(path, f"{join_words(supported, 'or')} is missing", "add it")


PROBED_CHECK_TYPES = ("object", "prometheus", "http")
"""The ways whose answers carry no commit."""

_INEFFECTIVE_FIELDS = {
    ("approval", "freshFor"): ("freshFor has no effect for an approval", "use expires"),
    ("approval", "settle"): ("settle has no effect for an approval", "remove it"),
    ("report", "settle"): ("settle has no effect for a report", "remove it"),
}


def check_checks(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of a policy's checks: repeated names, and fields that do not go together."""
    for stage_path, stage in find_fields(data, "spec.stages[*]"):
        names: set[str] = set()  # by which evidence refers to checks
        for group in ("verification", "requires"):
            for path, entry in find_fields(stage, f"{group}[*]"):
                check, check_path = as_mapping(entry), (*stage_path, *path)
                yield from _check_one_check(check_path, check)
                if "name" in check:
                    name = check["name"]
                    if isinstance(name, str) and name in names:
                        problem = f"duplicate check name {name}"
                        yield FieldError((*check_path, "name"), problem, "rename one of them")
                    names.add(str(name))


def _check_one_check(path: FieldPath, check: Mapping[str, Any]) -> Iterator[FieldError]:
    for check_type in PROBED_CHECK_TYPES:
        if check_type not in check:
            continue
        # The result may be about an earlier state (docs/concepts/checks.md).
        if _is_absent_duration(check.get("freshFor")):
            problem = f"check type {check_type} needs freshFor: results are momentary"
            remedy = "set how long a result is valid, like 10m"
            yield FieldError((*path, "freshFor"), problem, remedy)
        observes = as_mapping(check.get(check_type)).get("observedRevision")
        if _is_absent_duration(check.get("settle")) and not observes:
            problem = (
                f"check type {check_type} needs observedRevision or settle: the result may be about"
                " the previous revision"
            )
            remedy = "set one of them; settle is the delay of the first query after publication"
            yield FieldError((*path, "settle"), problem, remedy)
    for (check_type, field), (problem, remedy) in _INEFFECTIVE_FIELDS.items():
        if check_type in check and field in check:
            yield FieldError((*path, field), problem, remedy)
    http = as_mapping(check, "http")
    if "body" in http and http.get("method", "GET") != "POST":
        yield FieldError((*path, "http", "body"), "only a POST has a body", "add method: POST")
    object_reference = as_mapping(check, "object")
    yield from _refuse_secret((*path, "object"), object_reference, "a check cannot read a Secret")


INJECTOR_PROBLEM = "a Secret cannot be injected"
_INJECTOR_REMEDY = "use another kind, or name the group of a custom resource"
_INJECTOR_PATHS = {
    "spec.injectors[*]": _INJECTOR_REMEDY,
    f"{_TEMPLATE_PATH}.injectors[*]": _INJECTOR_REMEDY,
    "injection.kinds[*]": "remove the entry",
}


def _refuse_secret(
    path: FieldPath, reference: Mapping[str, Any], problem: str
) -> Iterator[FieldError]:
    """Yield an error if a reference to objects names Secrets, in whatever version.

    In files one content of an object answers for every version of its kind.
    """
    api_version, kind = reference.get("apiVersion"), reference.get("kind")
    if isinstance(api_version, str) and isinstance(kind, str):
        group = api_version.partition("/")[0] if "/" in api_version else ""
        if is_secret(group, kind):
            yield FieldError((*path, "kind"), problem, "use another object")


def _check_injected_kinds(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Refuse injectors of Secrets, which a rendering would leave out, and rules for them."""
    for pattern, remedy in _INJECTOR_PATHS.items():
        for path, entry in find_fields(data, pattern):
            fields = as_mapping(entry)
            # Without a group it is for any, and that of a custom resource can be named.
            if is_secret(fields.get("group") or "", fields.get("kind") or ""):
                yield FieldError((*path, "kind"), INJECTOR_PROBLEM, remedy)


def _is_absent_duration(value: object) -> bool:
    """Return whether the duration is missing or zero, which means the same."""
    # An invalid duration is reported by the model; a second error about its absence would mislead.
    if not isinstance(value, str):
        return value is None
    try:
        return parse_duration(value) == timedelta(0)
    except InvalidValue:
        return False


def check_rules(kind: str, data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of an object of this kind that concern several fields."""
    yield from check_exclusive_fields(kind, data)
    for rule in _RULES_BY_KIND.get(kind, ()):
        yield from rule(data)


def _check_reserved_context_keys(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Refuse `name` and `package-path`: kpt writes these itself (as in Porch)."""
    for context_path in ("spec.packageContext", "spec.targets[*].template.packageContext"):
        context_keys: list[tuple[FieldPath, Any]] = [
            ((*path, key), key)
            for path, value in find_fields(data, f"{context_path}.data")
            for key in as_mapping(value)
        ]
        context_keys += find_fields(data, f"{context_path}.removeKeys[*]")
        context_keys += find_fields(data, f"{context_path}.dataExprs[*].key")
        for path, key in context_keys:
            if key in RESERVED_KEYS:
                yield FieldError(path, f"the key {key} is reserved for kpt", "choose another key")


LABEL_SELECTOR_PATHS = (
    "spec.targets[*].repositorySelector",
    "spec.targets[*].objectSelector",
    "spec.stages[*].rollout.groups[*]",
)


def check_selectors(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for targets that are Secrets, and for values that an operator cannot have."""
    for path, selector in find_fields(data, "spec.targets[*].objectSelector"):
        # Expressions over Secrets would write their content to Git.
        yield from _refuse_secret(path, as_mapping(selector), "a target cannot be a Secret")
    for pattern in LABEL_SELECTOR_PATHS:
        for path, entry in find_fields(data, f"{pattern}.matchExpressions[*]"):
            operator = as_mapping(entry).get("operator")
            values = as_list(entry, "values")
            # The model reports the wrong type; "needs values" beside it would mislead.
            if "values" in as_mapping(entry) and not isinstance(entry["values"], list):
                continue
            if operator in ("In", "NotIn") and not values:
                yield FieldError((*path, "values"), f"{operator} needs values", "add at least one")
            if operator in ("Exists", "DoesNotExist") and values:
                yield FieldError((*path, "values"), f"{operator} takes no values", "remove them")


def _check_function_names(data: Mapping[str, Any]) -> Iterator[FieldError]:
    for section in ("mutators", "validators"):
        yield from check_unique(data, f"spec.pipeline.{section}[*].name", "function")
        for entry_path, entry in find_fields(data, "spec.targets[*]"):
            names = f"template.pipeline.{section}[*].name"
            for error in check_unique(as_mapping(entry), names, "function"):
                yield replace(error, path=(*entry_path, *error.path))


def check_variant_fields(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Check that a variant is not its own upstream, and each entry of its dependencies."""
    spec = as_mapping(data, "spec")
    upstream, downstream = as_mapping(spec, "upstream"), as_mapping(spec, "downstream")
    locations = [(side.get("repository"), side.get("package")) for side in (upstream, downstream)]
    if all(locations[0]) and locations[0] == locations[1]:
        problem = "the variant would overwrite its own upstream package"
        yield FieldError(("spec", "downstream"), problem, "choose another repository or package")
    own_name = as_mapping(data, "metadata").get("name")
    first_paths: dict[str, FieldPath] = {}
    for path, entry in find_fields(data, "spec.dependsOn[*]"):
        dependency = as_mapping(entry)
        if "policy" in dependency and "target" not in dependency:
            problem = f"a dependency on policy {dependency['policy']} needs a target"
            remedy = "add the target's key, as `fanout get targets` shows it"
            yield FieldError((*path, "target"), problem, remedy)
        if "target" in dependency and "policy" not in dependency:
            remedy = "add the name of the policy"
            yield FieldError((*path, "policy"), "a target needs a policy", remedy)
        if dependency and own_name and dependency.get("variant") == own_name:
            yield FieldError((*path, "variant"), "the variant depends on itself", "remove it")
        if first_paths.setdefault(repr(sorted(dependency.items(), key=str)), path) != path:
            yield FieldError(path, "duplicate entry", "remove one of them")


def _check_approvers(data: Mapping[str, Any], pattern: str) -> Iterator[FieldError]:
    for path, subject in find_fields(data, pattern):
        if isinstance(subject, str) and subject:
            try:
                check_subject(subject)
            except InvalidValue as error:
                yield FieldError(path, error.problem, error.remedy)


def check_promotion_fields(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Refuse an object without subjects, and fields for a schedule or windows that are absent."""
    spec = as_mapping(data, "spec")
    if not spec.get("policies") and not spec.get("variants"):
        problem = "policies and variants are both empty, so the object has no effect"
        yield FieldError(("spec", "policies"), problem, 'list some, or write ["*"]')
    has_windows = bool(as_list(spec, "windows"))
    has_schedule = "schedule" in spec
    for field in ("startingDeadlineSeconds", "jitter"):
        if field in spec and not has_schedule:
            problem = "has no effect without a schedule"
            yield FieldError(("spec", field), problem, "add spec.schedule")
    if "timeZone" in spec and not has_schedule and not has_windows:
        problem = "has no effect without a schedule or windows"
        yield FieldError(("spec", "timeZone"), problem, "add spec.schedule or spec.windows")
    if spec.get("atClose", "Hold") != "Hold" and not has_windows:
        yield FieldError(("spec", "atClose"), "has no effect without windows", "add spec.windows")


def check_scenario_source(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield an error unless a scenario has exactly one of `policy` and `stages`."""
    spec = data.get("spec")
    if not isinstance(spec, Mapping):
        return
    if "policy" in spec and "stages" in spec:
        yield FieldError(("spec",), "policy and stages exclude each other", "keep one of them")
    if "policy" not in spec and not spec.get("stages"):
        yield FieldError(("spec",), "policy or stages is missing", "add it")


_RULES_BY_KIND: Mapping[str, tuple[Rule, ...]] = {
    "UpstreamPolicy": (
        check_stage_graph,
        check_stage_fields,
        check_checks,
        _check_injected_kinds,
        _check_reserved_context_keys,
        check_selectors,
        _check_function_names,
        check_functions,
    ),
    "PackageVariant": (
        check_variant_fields,
        _check_injected_kinds,
        _check_reserved_context_keys,
        _check_function_names,
        check_functions,
    ),
    "PromotionPolicy": (
        check_promotion_fields,
        partial(check_unique, pattern="spec.approvers[*].group", noun="group"),
        partial(_check_approvers, pattern="spec.approvers[*].subjects[*]"),
    ),
    "FanoutConfiguration": (
        partial(check_unique, pattern="checkSecrets[*].name", noun="secret"),
        partial(check_unique, pattern="forges[*].host", noun="host"),
        _check_injected_kinds,
    ),
    **RECORD_RULES,
    "Scenario": (
        check_scenario_source,
        partial(_check_approvers, pattern="spec.promotion.approvers[*].subjects[*]"),
    ),
}
