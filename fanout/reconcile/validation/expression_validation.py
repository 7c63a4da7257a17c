"""Validation of what an object says by itself: expressions, revisions, function configuration.

`fanout validate` reports all that cannot be parsed or compiled, and statuses have the errors that
no pass meets: each object is validated once for them.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fanout.api.field_errors import suggest_name
from fanout.api.object_meta import KRMObject
from fanout.api.scenario import Scenario
from fanout.api.text_fields import join_words
from fanout.api.upstream_policy import FunctionTemplate
from fanout.declared.declared_objects import DeclaredObjects, ObjectKey, key_of, locate_broken
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation, InvalidInput
from fanout.groups import group_pairs
from fanout.package.revision import parse_range, parse_tag
from fanout.plan.evidence.check_readings import RESPONSE_VARIABLES as ANSWERS
from fanout.plan.pull_requests.request_content import TEXT_VARIABLES, TITLE_VARIABLES
from fanout.ports import Sandbox
from fanout.reconcile.commit_templates import TEMPLATE_VARIABLES
from fanout.selection.target_selection import VARIABLES as ROLLOUT_VARIABLES
from fanout.selection.template_fields import FIRST_VARIABLES, VARIABLES
from fanout.values import replace
from fanout.variants.function_registry import find_function, find_script_function
from fanout.variants.functions.function_interface import UnknownField

_COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
_LABEL_PATTERN = re.compile(r"(?:labels|annotations)\.[\w.-]+[/-]")
_CONDITION_PATTERN = re.compile(r"\.propagateWhen\[\d+\]")
_CHECK_PATTERN = re.compile(r"\.stages\[\d+\]\.(?:verification|requires)\[\d+\]\.(\w+)\.(\w+)")
_TEMPLATE_VARIABLES = {"titleTemplate": TITLE_VARIABLES, "bodyTemplate": TEXT_VARIABLES}
_ANSWER_FIELDS = frozenset({"cel", "observedRevision"})
_CHECK_VARIABLES = ("target", "upstream", "variant")
_STRING_PATTERN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_FIELD_PATTERN = re.compile(r"(?<![\w.\])])(stage|upstream|variant)\s*\.\s*([A-Za-z_]\w*)")
_PLAIN_TEXT_PATTERN = re.compile(r"[A-Za-z][-/A-Za-z0-9]*")


class DeclaredCode(NamedTuple):
    """Expression or template, and the path of its field."""

    field: str
    text: str
    is_template: bool = False

    @property
    def is_condition(self) -> bool:
        """True if it is an entry of `propagateWhen`."""
        return _CONDITION_PATTERN.search(self.field) is not None

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that it may read."""
        if self.is_template:
            return _TEMPLATE_VARIABLES.get(self.field.rpartition(".")[2], TEMPLATE_VARIABLES)
        if self.is_condition:
            return tuple(ROLLOUT_VARIABLES)
        if check_match := _CHECK_PATTERN.search(self.field):
            answer = (ANSWERS[check_match[1]],) if check_match[2] in _ANSWER_FIELDS else ()
            return (*answer, *_CHECK_VARIABLES)
        return FIRST_VARIABLES if self.field.endswith(".downstream.repositoryExpr") else VARIABLES


def find_unknown(code: DeclaredCode, names: Collection[str]) -> tuple[str, str] | None:
    """Return problem and remedy of code that reads these variables, or None if it may."""
    unknown = sorted(set(names) - set(code.variables))
    if unknown:  # most often the code is text without quotes
        available = f"there are {join_words(code.variables, 'and')}"
        verb_phrase = "is not a variable" if len(unknown) == 1 else "are not variables"
        problem = f"{code.text}: {join_words(unknown, 'and')} {verb_phrase} here"
        remedy = f"{suggest_name(unknown[0], code.variables, '')} {available}".strip()
        if unknown == ["repository"] and not code.is_condition:
            problem, remedy = f"{problem}: this expression chooses the repository", available
        elif _LABEL_PATTERN.search(code.text):
            remedy = f"write such keys in brackets, as labels['a/b']; {available}"
        elif not code.is_template and _PLAIN_TEXT_PATTERN.fullmatch(code.text):
            remedy = f"if it is a string, write \"'{code.text}'\", with both quotes; {available}"
        return problem, remedy
    if not code.is_condition and not _CHECK_PATTERN.search(code.field):
        return None
    # A condition that reads a field which does not exist would hold its variants forever. String
    # literals are blanked first: a text such as 'stage.dev' is no field access.
    for name, member in _FIELD_PATTERN.findall(_STRING_PATTERN.sub("''", code.text)):
        members = sorted(ROLLOUT_VARIABLES[name])
        if member not in members:
            available = f"there are {join_words(members, 'and')}"
            remedy = f"{suggest_name(member, members, '')} {available}".strip()
            return f"{code.text}: {name} has no field {member}", remedy
    return None


def validate_expressions(declared: DeclaredObjects, sandbox: Sandbox) -> tuple[Finding, ...]:
    """Return a finding for every invalid expression, template, version range, tag and pin."""
    located_code: list[tuple[ErrorLocation, DeclaredCode]] = []
    for declaration in (*declared.policies, *declared.promotions, *declared.scenarios):
        spec = declaration.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
        is_scenario = isinstance(declaration, Scenario)
        located_code += [
            (declared.where(declaration, code.field), code)
            for code in _walk_fields(spec, "spec")
            # Further fields of scenarios are data.
            if not is_scenario or code.field.startswith("spec.stages[")
        ]
    reported_fields = {(fault.where.object, fault.where.field) for fault in declared.faults}
    for key, place in declared.broken:  # faulty objects
        for code in _walk_fields(place.value.get("spec"), "spec"):
            where = locate_broken(key, place, code.field)
            if (where.object, where.field) not in reported_fields:
                located_code.append((where, code))
    faults = find_code_faults([code for _, code in located_code], sandbox)
    located_faults = zip(located_code, faults, strict=True)
    findings = [Finding(where, *fault) for (where, _), fault in located_faults if fault]
    for declaration in declared.declarations:
        try:
            if semver := declaration.spec.upstream.revision.semver:
                parse_range(semver)
        except InvalidInput as error:
            where = declared.where(declaration, "spec.upstream.revision.semver")
            findings.append(Finding(where, error.problem, error.remedy))
    remedy = "write a version such as v3 or v1.2.3"
    for declaration in declared.declarations:
        upstream = declaration.spec.upstream
        tag = upstream.revision.tag
        if tag and not (parse_tag(tag, "") or parse_tag(tag, upstream.package)):
            where = declared.where(declaration, "spec.upstream.revision.tag")
            findings.append(Finding(where, f"{tag} is not a revision", remedy))
    for policy in declared.policies:
        for index, stage in enumerate(policy.spec.stages):
            if (pin := stage.pin) and not (parse_tag(pin, "") or _COMMIT_PATTERN.fullmatch(pin)):
                where = declared.where(policy, f"spec.stages[{index}].pin")
                by_commit = f"{remedy}, or the 40 digits of a commit"
                findings.append(Finding(where, f"{pin} is not a revision", by_commit))
    return tuple(findings)


def find_code_faults(
    codes: Sequence[DeclaredCode], sandbox: Sandbox
) -> list[tuple[str, str] | None]:
    """Return problem and remedy of each code, or None where it is valid."""
    expressions = [code.text for code in codes if not code.is_template]
    templates = [code.text for code in codes if code.is_template]
    broken = sandbox.compile(expressions, templates)
    of_expressions, of_templates = map(iter, sandbox.free_variables(expressions, templates))
    faults: list[tuple[str, str] | None] = []
    for code in codes:
        names = next(of_templates if code.is_template else of_expressions)
        if code.text in broken:
            refusal = broken[code.text]
            faults.append((f"{code.text}: {refusal.problem}", refusal.remedy or "correct it"))
        else:
            faults.append(find_unknown(code, names))
    return faults


def _walk_fields(value: object, path: str) -> Iterator[DeclaredCode]:
    if (check_match := _CHECK_PATTERN.search(path)) and check_match[2] in ("headers", "body"):
        return  # sent as written, never evaluated
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _walk_fields(child, f"{path}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk_fields(child, f"{path}[{index}]")
    elif isinstance(value, str):
        field = path.rpartition(".")[2].partition("[")[0]
        if field.endswith(("Expr", "Exprs", "When")) or (check_match and field in _ANSWER_FIELDS):
            yield DeclaredCode(path, value)
        elif field.endswith("Template"):
            yield DeclaredCode(path, value, is_template=True)


def find_function_findings(declared: DeclaredObjects) -> tuple[Finding, ...]:
    """Return a finding for every configuration that its function would refuse.

    Values of expressions are not available; of such a configuration only the keys are
    validated.
    """
    policy_pipelines = [
        (policy, f"spec.targets[{index}].template.pipeline", entry.template.pipeline)
        for policy in declared.policies
        for index, entry in enumerate(policy.spec.targets)
    ]
    variant_pipelines = [
        (variant, "spec.pipeline", variant.spec.pipeline) for variant in declared.variants
    ]
    functions = (
        (declaration, f"{pipeline_path}.{section}[{index}].configMap", function)
        for declaration, pipeline_path, pipeline in (*policy_pipelines, *variant_pipelines)
        for section in ("mutators", "validators")
        for index, function in enumerate(getattr(pipeline, section))
    )
    findings: list[Finding] = []
    for declaration, field_path, function in functions:
        implementation = find_function(function.image) or find_script_function(function.image)
        if implementation is None or function.config_path:
            continue
        exprs = function.config_map_exprs if isinstance(function, FunctionTemplate) else ()
        data: dict[str, str] = {**function.config_map}
        data |= {pair.key: pair.value or "x" for pair in exprs if pair.key}
        try:
            implementation.configure({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
        except InvalidInput as error:
            if not exprs or isinstance(error, UnknownField):
                # `configMap` has the keys of the ConfigMap's data.
                problem = error.problem.removeprefix("data.").replace(" data.", " ", 1)
                sentence = f"{implementation.name}: {problem}"
                findings.append(
                    Finding(declared.where(declaration, field_path), sentence, error.remedy)
                )
    return tuple(findings)


ErrorsByObject = Mapping[str, tuple[str, ...]]
"""Sentences by `Kind/namespace/name`."""


@dataclass(slots=True)
class ObjectFindings:
    """Errors of the objects that are declared now; those of an unchanged object are kept."""

    sandbox: Sandbox  # its thread is that of the caller
    _declared: DeclaredObjects = field(default_factory=DeclaredObjects)
    _errors: ErrorsByObject = field(default_factory=dict)
    # An object that says the same is the same one.
    _validated: dict[ObjectKey, tuple[KRMObject, tuple[Finding, ...]]] = field(default_factory=dict)

    def find_errors(self, declared: DeclaredObjects) -> ErrorsByObject:
        """Return the errors of usable objects; those of the others are what makes them unusable."""
        if declared is self._declared:
            return self._errors
        items = {
            key_of(it): it for it in (*declared.policies, *declared.variants, *declared.promotions)
        }
        # Only the objects that have changed are validated, and those that are gone are forgotten.
        earlier = self._validated.items()
        validated = {key: pair for key, pair in earlier if items.get(key) is pair[0]}
        changed = {key: item for key, item in items.items() if key not in validated}
        if changed:
            subset = replace(
                declared,
                policies=tuple(it for it in declared.policies if key_of(it) in changed),
                variants=tuple(it for it in declared.variants if key_of(it) in changed),
                promotions=tuple(it for it in declared.promotions if key_of(it) in changed),
                scenarios=(),
                broken=(),
            )
            of_expressions = validate_expressions(subset, self.sandbox)
            new_findings = (*of_expressions, *find_function_findings(subset))
            findings = group_pairs((it.where.object, it) for it in new_findings)
            for key, item in changed.items():
                validated[key] = item, tuple(findings.get(declared.where(item).object, ()))
        self._validated = validated
        sentences: dict[str, dict[str, None]] = {}
        for finding in (*declared.faults, *(it for _, own in validated.values() for it in own)):
            if finding.severity == "error":
                sentences.setdefault(finding.where.object, {})[str(finding)] = None
        for left_out in declared.left_out:
            sentences.pop(f"{left_out.kind}/{left_out.namespace}/{left_out.name}", None)
        self._errors = {name: tuple(own) for name, own in sentences.items()}
        self._declared = declared
        return self._errors
