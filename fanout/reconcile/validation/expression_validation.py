"""Validation of expressions and templates in declared objects, and of their revisions.

`fanout validate` reports all that cannot be parsed or compiled.
"""

import re
from collections.abc import Iterator, Sequence

from fanout.api.scenario import Scenario
from fanout.declared.declared_objects import DeclaredObjects, locate_broken
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.revision import parse_range, parse_tag
from fanout.ports import Sandbox
from fanout.reconcile.selection.policy_resolution import list_declarations
from fanout.reconcile.validation.unknown_variables import (
    ANSWER_FIELDS,
    CHECK_PATTERN,
    DeclaredCode,
    find_unknown,
)

_COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")


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
    broken = [
        Finding(where, *fault)
        for (where, _), fault in zip(located_code, faults, strict=True)
        if fault
    ]
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
            problem = f"{code.text}: {refusal.problem}"
            faults.append((problem, refusal.remedy or "correct it"))
        else:
            faults.append(find_unknown(code, names))
    return faults


def _walk_fields(value: object, path: str) -> Iterator[DeclaredCode]:
    check_match = CHECK_PATTERN.search(path)
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
        if field.endswith(("Expr", "Exprs", "When")) or (check_match and field in ANSWER_FIELDS):
            yield DeclaredCode(path, value)
        elif field.endswith("Template"):
            yield DeclaredCode(path, value, is_template=True)
