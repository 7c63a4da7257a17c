"""Rules of the kinds in CEL, which the API server applies when an object is written.

They say what `validators.field_rules` and `validators.record_rules` say, as far as a schema can.
Where validation has a table, the rules are built from it. The API server limits what a rule may
cost: its own estimate, times the bounds of all lists around it.
"""

from collections.abc import Callable, Iterator, Mapping

from fanout.api import durations
from fanout.api.kind_registry import field_names_at
from fanout.api.object_meta import KRMObject
from fanout.api.package_variant import RESERVED_KEYS
from fanout.api.record_objects import Record
from fanout.api.text_fields import (
    CONFLICT,
    DEVICE_NAME,
    KEY,
    LABEL_KEY,
    MAX_PATH_BYTES,
    NAME,
    REFUSED_BY_GIT,
    RESERVED_BEGINNINGS,
)
from fanout.api.urls import (
    GIT_AUTHORITY,
    GIT_OPTION,
    HEADER_PATTERN,
    REFUSED_HEADERS,
    SECRET_HEADER,
    SECRET_PARAMETER,
)
from fanout.api.validators.field_rules import (
    CHECK_PATHS,
    EXCLUSIVE_FIELDS,
    INJECTOR_PROBLEM,
    LABEL_SELECTOR_PATHS,
    NOT_FOR_CONTROL_FLOW,
    PROBED_CHECK_TYPES,
    STRATEGY_BY_FIELD,
)
from fanout.api.validators.unsupported_fields import UNSUPPORTED_FIELDS
from fanout.values import Value

# Names of fields that CEL keeps for itself; the API server has them in underscores.
_RESERVED_WORDS = frozenset({"as", "break", "const", "continue", "else", "for", "function", "if"})
_RESERVED_WORDS |= {"import", "in", "let", "loop", "package", "namespace", "return", "var", "void"}

_STAGE, _TEMPLATE = "spec.stages[*]", "spec.targets[*].template"
_READABLE_KIND = "!(self.kind == 'Secret' && !self.apiVersion.contains('/'))"
_INJECTABLE_KIND = (
    "!(has(self.kind) && self.kind == 'Secret' && (!has(self.group) || self.group == ''))"
)
# In a cluster fanout writes these itself; an admission policy refuses them from others.
_SET_BY_FANOUT = ("spec.policyRef", "spec.stage")
_RESERVED_FOR_KPT = f"the keys {' and '.join(RESERVED_KEYS)} are reserved for kpt"
_GIT_RULE = (
    f"!self.matches(r'{REFUSED_BY_GIT}')",
    "Git refuses @{, a segment @ and the ending .lock in a branch name",
)
_MAX_DURATION = durations.format_duration(durations.MAX_DURATION)


class SchemaRule(Value):
    """Rule about the values at a path, in which `self` is one of them.

    `fields` are those that the rule asks for with `has`: a default of the schema would hide
    whether somebody wrote them.
    """

    path: str
    expression: str
    message: str
    fields: tuple[str, ...] = ()


def build_rules(model: type[KRMObject]) -> tuple[SchemaRule, ...]:
    """Return the rules of a kind."""
    kind = model.__name__
    rules: list[SchemaRule] = []
    for row in EXCLUSIVE_FIELDS:
        object_path = tuple(row.path.replace("[*]", "").split("."))
        if row.kind != kind or not {*row.fields} <= {*field_names_at(model, object_path)}:
            continue
        if len(row.fields) == 2:
            first, second = map(_has, row.fields)
            expression = f"{first} != {second}" if row.is_required else f"!({first} && {second})"
        else:
            number = " + ".join(f"({_has(field)} ? 1 : 0)" for field in row.fields)
            expression = f"{number} {'==' if row.is_required else '<='} 1"
        message = f"{'exactly' if row.is_required else 'at most'} one of {', '.join(row.fields)}"
        rules.append(SchemaRule(row.path, expression, message, row.fields))
    for unsupported in UNSUPPORTED_FIELDS:
        is_refused = unsupported.kind == kind and not unsupported.values
        if is_refused and unsupported.path not in _SET_BY_FANOUT:
            path, _, field = unsupported.path.rpartition(".")
            values = [f"self.{_escape(field)} == {it!r}" for it in unsupported.allowed_values]
            expression = " || ".join([f"!{_has(field)}", *values])
            message = f"{field} is not supported yet: {unsupported.explanation}"
            rules.append(SchemaRule(path, expression, message, (field,)))
    rules += _RULES_BY_KIND.get(kind, ())
    if not issubclass(model, Record):
        message = "at most 63 lowercase letters, digits and dashes, a letter or digit at both ends"
        rules.append(SchemaRule("", f"self.metadata.name.matches('{NAME}')", f"name: {message}"))
    return tuple(rules)


def duration_rule(path: str) -> SchemaRule:
    """Return the rule for a duration: at most ten years."""
    expression = f"duration(self) <= duration('{_MAX_DURATION}')"
    return SchemaRule(path, expression, f"at most {_MAX_DURATION}")


def _has(field: str, parent: str = "self") -> str:
    return f"has({parent}.{_escape(field)})"


def _filled(field: str) -> str:
    return f"({_has(field)} && self.{_escape(field)}.size() > 0)"


def _is_true(field: str) -> str:
    return f"({_has(field)} && self.{field})"


def _escape(field: str) -> str:
    return f"__{field}__" if field in _RESERVED_WORDS else field


def _path_rules(path: str) -> Iterator[SchemaRule]:
    beginnings = " and ".join(RESERVED_BEGINNINGS)
    pattern = f"(?i)^({'|'.join(RESERVED_BEGINNINGS)})(/|$)"
    yield from _rules_at(
        path,
        _GIT_RULE,
        (
            f"!self.matches(r'{pattern}')",
            f"the beginnings {beginnings} are reserved for drafts, in any case",
        ),
        (
            f"!self.matches(r'{DEVICE_NAME}')",
            "a segment has a name that Windows reserves for a device",
        ),
        (f"bytes(self).size() <= {MAX_PATH_BYTES}", f"at most {MAX_PATH_BYTES} bytes in UTF-8"),
    )


def _rules_at(path: str, *rules: tuple[str, str]) -> Iterator[SchemaRule]:
    """Yield the rules about the values at one path, which are expressions with messages."""
    return (SchemaRule(path, expression, message) for expression, message in rules)


def _keys_rule(path: str, pattern: str, message: str) -> SchemaRule:
    """Return the rule for the keys of a map, for which a schema has no keyword."""
    return SchemaRule(path, f"self.all(key, key.matches(r'{pattern}'))", message)


def _label_keys_rule(path: str) -> SchemaRule:
    return _keys_rule(path, LABEL_KEY, "write keys like team or example.com/team")


def _data_keys_rule(path: str) -> SchemaRule:
    return _keys_rule(path, KEY, "write keys of letters, digits, dashes, dots and underscores")


def _check_rules(path: str) -> Iterator[SchemaRule]:
    probed = " || ".join(map(_has, PROBED_CHECK_TYPES))
    is_absent = "(!has(self.{0}) || duration(self.{0}) == duration('0s'))".format
    observed = " || ".join(
        f"({_has(it)} && {_has('observedRevision', f'self.{it}')})" for it in PROBED_CHECK_TYPES
    )
    yield from _rules_at(
        path,
        (f"!({probed}) || !{is_absent('freshFor')}", "freshFor is missing: results are momentary"),
        (
            f"!({probed}) || {observed} || !{is_absent('settle')}",
            "observedRevision or settle is missing: the result may be about the previous revision",
        ),
        (
            "!has(self.approval) || !(has(self.freshFor) || has(self.settle))",
            "freshFor and settle have no effect for an approval",
        ),
        ("!has(self.report) || !has(self.settle)", "settle has no effect for a report"),
    )
    yield SchemaRule(
        f"{path}.http",
        "!has(self.body) || (has(self.method) && self.method == 'POST')",
        "only a POST has a body",
    )
    message = "a policy cannot set this header; name a secret in secretRef for credentials"
    yield from _rules_at(
        f"{path}.http.headers",
        (f"!self.exists(name, name.lowerAscii() in {sorted(REFUSED_HEADERS)})", message),
        (f"!self.exists(name, name.lowerAscii().matches(r'{SECRET_HEADER}'))", message),
    )
    message = "write names of headers of letters, digits and dashes, at most 64"
    yield _keys_rule(f"{path}.http.headers", HEADER_PATTERN, message)
    yield SchemaRule(f"{path}.object", _READABLE_KIND, "a check cannot read a Secret")
    yield SchemaRule(
        f"{path}.commitStatus.context",
        "self != 'fanout' && !self.startsWith('fanout/')",
        "fanout sets this status itself",
    )


def _context_rules(context: str) -> Iterator[SchemaRule]:
    keys = list(RESERVED_KEYS)
    for field in ("data", "removeKeys"):
        expression = f"!has(self.{field}) || !{keys}.exists(key, key in self.{field})"
        yield SchemaRule(context, expression, _RESERVED_FOR_KPT)


def _function_name_rules(pipeline: str) -> Iterator[SchemaRule]:
    for section in ("mutators", "validators"):
        yield SchemaRule(
            f"{pipeline}.{section}",
            "[self.filter(entry, has(entry.name)).map(entry, entry.name)].all(names,"
            " names.all(name, names.indexOf(name) == names.lastIndexOf(name)))",
            "two functions have the same name",
        )


_TESTS: Mapping[str, Callable[[str], str]] = {"suspend": _is_true, "rollout": _has, "pin": _has}
_HAS_CONTENT = " || ".join(_TESTS.get(it, _filled)(it) for it in NOT_FOR_CONTROL_FLOW)
# A list of one list is what CEL has for a variable: its entries are computed once, and a search in
# them is estimated at a fraction of a comparison with each field.
_POLICY_RULES = (
    SchemaRule(
        "spec",
        "[self.stages.map(stage, stage.name)].all(names, self.stages.all(stage,"
        " !has(stage.after) || stage.after.stages.all(name, name in names)))",
        "stages[*].after.stages: no stage has this name",
    ),
    SchemaRule(
        "spec",
        "self.targets.all(target, !has(target.template) || !has(target.template.stage) ||"
        " self.stages.exists(stage, stage.name == target.template.stage"
        " && !(has(stage.controlFlow) && stage.controlFlow)))",
        "targets[*].template.stage: no stage with targets has this name",
    ),
    SchemaRule(
        _STAGE,
        "!has(self.after) || !(self.name in self.after.stages)",
        "a stage cannot come after itself",
    ),
    SchemaRule(
        _STAGE,
        "!has(self.requires) || !has(self.verification) || [self.verification.map(check,"
        " check.name)].all(names, self.requires.all(check, !(check.name in names)))",
        "requires and verification have checks of the same name",
    ),
    SchemaRule(
        _STAGE,
        f"!{_is_true('controlFlow')} || has(self.after)",
        "a controlFlow stage needs stages to join: add after",
    ),
    SchemaRule(
        _STAGE,
        f"!{_is_true('controlFlow')} || !({_HAS_CONTENT})",
        f"no effect in a controlFlow stage: {', '.join(NOT_FOR_CONTROL_FLOW)}",
    ),
    SchemaRule(
        _STAGE,
        f"!has(self.rollout) || !has(self.rollout.progressDeadline) || {_filled('verification')}",
        "rollout.progressDeadline has no effect without verification",
    ),
    *(
        SchemaRule(
            f"{_STAGE}.rollout",
            f"!{_has(field)} || (has(self.strategy) && self.strategy == '{strategy}')",
            f"{field} has no effect without strategy {strategy}",
            (field,),
        )
        for field, strategy in STRATEGY_BY_FIELD.items()
    ),
    SchemaRule(
        f"{_STAGE}.rollout.groups",
        "self.all(group, self.exists_one(other, other == group))",
        "two groups have the same selector",
    ),
    SchemaRule(
        f"{_STAGE}.rollout.groups[*]",
        f"{_filled('matchLabels')} || {_filled('matchExpressions')}",
        "the selector is empty and matches all remaining variants",
    ),
    *(rule for path in CHECK_PATHS for rule in _check_rules(path)),
    SchemaRule("spec.targets[*].objectSelector", _READABLE_KIND, "a target cannot be a Secret"),
    SchemaRule(f"{_TEMPLATE}.injectors[*]", _INJECTABLE_KIND, INJECTOR_PROBLEM),
    *_context_rules(f"{_TEMPLATE}.packageContext"),
    SchemaRule(
        f"{_TEMPLATE}.packageContext.dataExprs[*]",
        f"!has(self.key) || !(self.key in {list(RESERVED_KEYS)})",
        _RESERVED_FOR_KPT,
    ),
    *(
        rule
        for selector in LABEL_SELECTOR_PATHS
        for rule in (
            SchemaRule(
                f"{selector}.matchExpressions[*]",
                f"(self.operator in ['In', 'NotIn']) == {_filled('values')}",
                "In and NotIn need values, Exists and DoesNotExist take none",
            ),
            _label_keys_rule(f"{selector}.matchLabels"),
        )
    ),
    _label_keys_rule(f"{_TEMPLATE}.labels"),
    _label_keys_rule(f"{_TEMPLATE}.annotations"),
    _data_keys_rule(f"{_TEMPLATE}.packageContext.data"),
    *_function_name_rules(f"{_TEMPLATE}.pipeline"),
    *_path_rules("spec.upstream.package"),
    *_path_rules(f"{_TEMPLATE}.downstream.package"),
)
_VARIANT_RULES = (
    *_path_rules("spec.upstream.package"),
    *_path_rules("spec.downstream.package"),
    SchemaRule("spec.injectors[*]", _INJECTABLE_KIND, INJECTOR_PROBLEM),
    *_context_rules("spec.packageContext"),
    _data_keys_rule("spec.packageContext.data"),
    _label_keys_rule("spec.labels"),
    _label_keys_rule("spec.annotations"),
    SchemaRule(
        "spec",
        "self.upstream.repository != self.downstream.repository"
        " || self.upstream.__package__ != self.downstream.__package__",
        "the variant would overwrite its own upstream package",
    ),
    SchemaRule(
        "spec.dependsOn",
        "self.all(dependency, self.exists_one(other, other == dependency))",
        "two entries are the same",
    ),
    SchemaRule("spec.dependsOn[*]", "has(self.policy) == has(self.target)", "policy needs target"),
    SchemaRule(
        "",
        "!has(self.spec.dependsOn) || self.spec.dependsOn.all(dependency,"
        " !has(dependency.variant) || dependency.variant != self.metadata.name)",
        "spec.dependsOn: the variant depends on itself",
    ),
    *_function_name_rules("spec.pipeline"),
    *(
        SchemaRule(
            f"spec.pipeline.{section}[*].configMap",
            "self.all(key, key.size() >= 1 && key.size() <= 1024)",
            "write keys of 1 to 1024 characters",
        )
        for section in ("mutators", "validators")
    ),
)
_PROMOTION_RULES = (
    *_rules_at(
        "spec",
        (
            f"{_filled('policies')} || {_filled('variants')}",
            "policies and variants are both empty, so the object has no effect",
        ),
        *(
            (f"!{_has(field)} || has(self.schedule)", f"{field} needs a schedule")
            for field in ("startingDeadlineSeconds", "jitter")
        ),
        (
            f"!has(self.timeZone) || has(self.schedule) || {_filled('windows')}",
            "timeZone needs a schedule or windows",
        ),
        (
            f"!has(self.atClose) || self.atClose == 'Hold' || {_filled('windows')}",
            "atClose has no effect without windows",
        ),
    ),
    *(
        SchemaRule(
            f"spec.windows[*].{field}",
            "!has(self.duration) || duration(self.duration) > duration('0s')",
            "the duration is zero",
        )
        for field in ("allow", "deny")
    ),
)
_REPOSITORY_RULES = (
    *_rules_at(
        "spec.url",
        ("!self.startsWith('-')", "the URL begins with a dash"),
        (r"!self.matches('[\\p{C}\\p{Z}]')", "the URL has spaces or control characters"),
        ("!self.matches('^[A-Za-z0-9+.-]+::')", "a transport that runs programs"),
        (
            "!self.contains('://') || self.matches('^(file:///|(https?|ssh)://[^/])')",
            "write a path, or a URL that begins with file:///, https://, http:// or ssh://",
        ),
        (
            "!self.matches('^https?://[^/]*@') && !self.matches('^([a-z]+://)?[^/@]*:[^/@]*@')",
            "the URL carries a user name or a password; name a secret in secretRef",
        ),
        (
            f"!self.matches('^(https?|ssh)://') || self.matches(r'{GIT_AUTHORITY}')",
            "the host or the port cannot be read",
        ),
        (f"!self.matches(r'{GIT_OPTION}')", "user, host or path begin with a dash"),
        (
            f"!self.matches(r'{SECRET_PARAMETER}')",
            "the URL carries a secret in its query; name a secret in secretRef",
        ),
    ),
    *_path_rules("spec.directory"),
    *_rules_at(
        "spec.branch",
        _GIT_RULE,
        ("self != 'HEAD' && !self.startsWith('refs/')", "write a branch's short name"),
    ),
)
_SUBJECT_RULES = tuple(
    _rules_at(
        "spec",
        (f"{_filled('policy')} || {_filled('variants')}", "policy and variants are both empty"),
        (f"!{_filled('stage')} || {_filled('policy')}", "a stage needs a policy"),
    )
)
_STAGE_PRESENT = SchemaRule(
    "spec", f"!{_filled('policy')} || {_filled('stage')}", "the stage is missing"
)
_ROLLS_BACK_IN_WINDOW = "(self.action == 'Rollback' && self.overrides.all(gate, gate == 'window'))"
_IS_REASONED = "self.action in ['Publish', 'Rollback', 'Skip', 'Retry']"
_DECISION_RULES = (
    *_SUBJECT_RULES,
    *(
        SchemaRule("spec", f"!({condition}) || {requirement}", message)
        for condition, requirement, message in (
            (
                _IS_REASONED,
                "(has(self.reason) && self.reason.trim() != '')",
                "this action needs a reason",
            ),
            (_IS_REASONED, f"({_STAGE_PRESENT.expression})", _STAGE_PRESENT.message),
            (_IS_REASONED, _filled("revision"), "this action needs a revision"),
            (
                "self.action in ['Skip', 'ConfirmRemoval']",
                _filled("variants"),
                "this action needs variants",
            ),
            (
                _filled("overrides"),
                f"(self.action == 'Publish' || {_ROLLS_BACK_IN_WINDOW})",
                "only Publish can override gates, and Rollback the window",
            ),
            (
                _filled("trees"),
                "(self.action in ['Publish', 'ConfirmRemoval'])",
                "only Publish and ConfirmRemoval can have trees",
            ),
            (_filled("choices"), "(self.action == 'Resolve')", "only Resolve can have choices"),
            (
                _is_true("acceptConflicts"),
                f"(self.action == 'Publish' && {_filled('variants')} && {_filled('trees')})",
                "acceptConflicts needs Publish, variants and trees",
            ),
        )
    ),
    _keys_rule("spec.choices", CONFLICT, "write the 16 digits that `fanout diff` shows"),
    SchemaRule(
        "spec",
        f"(self.action == 'Withdraw') == {_filled('withdraws')}",
        "withdraws is for Withdraw, which requires it",
    ),
)
_RULES_BY_KIND: dict[str, tuple[SchemaRule, ...]] = {
    "Repository": _REPOSITORY_RULES,
    "UpstreamPolicy": _POLICY_RULES,
    "PackageVariant": _VARIANT_RULES,
    "PromotionPolicy": _PROMOTION_RULES,
    "Evidence": (*_SUBJECT_RULES, _STAGE_PRESENT),
    "Approval": (
        *_SUBJECT_RULES,
        _STAGE_PRESENT,
        SchemaRule("spec", f"{_filled('trees')} || {_filled('revokes')}", "trees is empty"),
        SchemaRule(
            "spec",
            f"{_has('revision')} || !{_filled('variants')}",
            "an approval of some variants needs a revision",
        ),
    ),
    "Decision": _DECISION_RULES,
}
