"""Validation of expressions and templates in declared objects, and of their revisions.

`fanout validate` reports all that cannot be parsed or compiled.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from fanout.api.field_errors import suggest_name
from fanout.api.scenario import Scenario
from fanout.api.text_fields import join_words
from fanout.declared.declared_objects import DeclaredObjects, Finding, locate_broken
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.revision import parse_range, parse_tag
from fanout.plan.evidence.check_readings import RESPONSE_VARIABLES as ANSWERS
from fanout.plan.pull_requests.request_content import TEXT_VARIABLES, TITLE_VARIABLES
from fanout.ports import Sandbox
from fanout.reconcile.rendering.commit_templates import TEMPLATE_VARIABLES
from fanout.reconcile.selection.policy_resolution import list_declarations
from fanout.selection.target_selection import VARIABLES as ROLLOUT_VARIABLES
from fanout.selection.template_fields import FIRST_VARIABLES, VARIABLES

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
        first = self.field.endswith(".downstream.repositoryExpr")
        return FIRST_VARIABLES if first else VARIABLES


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
    for name, field in _FIELD_PATTERN.findall(_STRING_PATTERN.sub("''", code.text)):
        known_fields = ROLLOUT_VARIABLES[name]
        if field not in known_fields:
            available = f"there are {join_words(sorted(known_fields), 'and')}"
            remedy = f"{suggest_name(field, sorted(known_fields), '')} {available}".strip()
            return f"{code.text}: {name} has no field {field}", remedy
    return None


def validate_expressions(declared: DeclaredObjects, sandbox: Sandbox) -> tuple[Finding, ...]:
    """Return a finding for every invalid expression, template and version range."""
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
    broken = [Finding(where, *fault) for (where, _), fault in located_faults if fault]
    return (*broken, *_validate_revisions(declared))


def _validate_revisions(declared: DeclaredObjects) -> Iterator[Finding]:
    """Yield a finding for every invalid version range, and tag or pin that is no revision."""
    for declaration in list_declarations(declared):
        try:
            if semver := declaration.spec.upstream.revision.semver:
                parse_range(semver)
        except InvalidInput as error:
            where = declared.where(declaration, "spec.upstream.revision.semver")
            yield Finding(where, error.problem, error.remedy)
    remedy = "write a version such as v3 or v1.2.3"
    for declaration in list_declarations(declared):
        upstream = declaration.spec.upstream
        tag = upstream.revision.tag
        if tag and not (parse_tag(tag, "") or parse_tag(tag, upstream.package)):
            where = declared.where(declaration, "spec.upstream.revision.tag")
            yield Finding(where, f"{tag} is not a revision", remedy)
    for policy in declared.policies:
        for index, stage in enumerate(policy.spec.stages):
            if (pin := stage.pin) and not (parse_tag(pin, "") or _COMMIT_PATTERN.fullmatch(pin)):
                where = declared.where(policy, f"spec.stages[{index}].pin")
                by_commit = f"{remedy}, or the 40 digits of a commit"
                yield Finding(where, f"{pin} is not a revision", by_commit)


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
    check_match = _CHECK_PATTERN.search(path)
    if check_match and check_match[2] in ("headers", "body"):
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
