"""What in the declared objects is in a language of its own and cannot be read: expressions,
templates and version ranges. `fanout validate` names them all.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fanout.api.meta import KRMObject
from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.texts import listed
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cluster.declared import Declared, where_broken
from fanout.cluster.findings import Finding
from fanout.errors import InvalidInput, Where
from fanout.package.revision import parse_range
from fanout.plan.asking import VARIABLES as ANSWERS
from fanout.ports import Sandbox
from fanout.reconcile.messages import VARIABLES as TEMPLATE_VARIABLES
from fanout.selection.questions import FIRST_VARIABLES, VARIABLES
from fanout.selection.rollout import VARIABLES as ROLLOUT_VARIABLES

_LABEL = re.compile(r"(?:labels|annotations)\.[\w.-]+[/-]")
_CONDITION = re.compile(r"\.propagateWhen\[\d+\]")
_CHECK = re.compile(r"\.stages\[\d+\]\.(?:verification|requires)\[\d+\]\.(\w+)\.(\w+)")
_OF_ANSWERS = frozenset({"cel", "observedRevision"})
_OF_CHECKS = ("target", "upstream", "variant")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_FIELD = re.compile(r"(?<![\w.\])])(stage|upstream|variant)\s*\.\s*([A-Za-z_]\w*)")
_PLAIN = re.compile(r"[A-Za-z][-/A-Za-z0-9]*")


class Code(NamedTuple):
    """An expression or a template, and the field that it stands in."""

    field: str
    text: str
    is_template: bool = False

    @property
    def is_condition(self) -> bool:
        """Is it asked whether a variant may be released?"""
        return _CONDITION.search(self.field) is not None

    @property
    def is_of_check(self) -> bool:
        """Is it part of a check?"""
        return _CHECK.search(self.field) is not None

    @property
    def variables(self) -> tuple[str, ...]:
        """What it may read."""
        if self.is_template:
            return TEMPLATE_VARIABLES
        if self.is_condition:
            return tuple(ROLLOUT_VARIABLES)
        if found := _CHECK.search(self.field):
            answer = (ANSWERS[found[1]],) if found[2] in _OF_ANSWERS else ()
            return (*answer, *_OF_CHECKS)
        first = self.field.endswith(".downstream.repositoryExpr")
        return FIRST_VARIABLES if first else VARIABLES


def uncompilable(declared: Declared, sandbox: Sandbox) -> tuple[Finding, ...]:
    """A finding for every expression and template that can give nothing, at its field."""
    found = list(_found(declared))
    faults = code_faults([code for _, code in found], sandbox)
    broken = [
        Finding(where, *fault) for (where, _), fault in zip(found, faults, strict=True) if fault
    ]
    return (*broken, *_unreadable(declared))


def _found(declared: Declared) -> Iterator[tuple[Where, Code]]:
    """All code with its place; also of objects that have other faults, to tell all in one run."""
    for item in (*declared.policies, *declared.promotions):
        for code in _codes(item):
            yield declared.where(item, code.field), code
    for scenario in declared.scenarios:
        for code in _codes(scenario):
            if code.field.startswith("spec.stages["):  # the rest is data, whatever it is called
                yield declared.where(scenario, code.field), code
    told = {(fault.where.object, fault.where.field) for fault in declared.faults}
    for key, place in declared.broken:
        for code in _walk(place.value.get("spec"), "spec"):
            where = where_broken(key, place, code.field)
            if (where.object, where.field) not in told:
                yield where, code


def code_faults(codes: Sequence[Code], sandbox: Sandbox) -> list[tuple[str, str] | None]:
    """Problem and remedy of each that does not compile or names what it cannot see, or None."""
    expressions = [code.text for code in codes if not code.is_template]
    templates = [code.text for code in codes if code.is_template]
    broken = sandbox.compile(expressions, templates)
    of_expressions, of_templates = map(iter, sandbox.names(expressions, templates))
    result: list[tuple[str, str] | None] = []
    for code in codes:
        names = next(of_templates if code.is_template else of_expressions)
        if code.text in broken:
            refusal = broken[code.text]
            result.append((f"{code.text}: {refusal.problem}", refusal.remedy or "correct it"))
        else:
            unknown = sorted(names - set(code.variables))
            result.append(_unknown(code, unknown) if unknown else _no_such_field(code))
    return result


def _no_such_field(code: Code) -> tuple[str, str] | None:
    """What reads a field of `stage` or `variant` that none has would hold for ever."""
    if not code.is_condition and not code.is_of_check:
        return None
    for name, field in _FIELD.findall(_STRING.sub("''", code.text)):
        known = ROLLOUT_VARIABLES[name]
        if field not in known:
            there = f"there are {listed(sorted(known), 'and')}"
            remedy = f"{suggestion(field, sorted(known), '')} {there}".strip()
            return f"{code.text}: {name} has no field {field}", remedy
    return None


def _unknown(code: Code, names: Sequence[str]) -> tuple[str, str]:
    """An expression that names what it cannot see; most often it is text without its quotes."""
    there = f"there are {listed(code.variables, 'and')}"
    what = "is no variable" if len(names) == 1 else "are no variables"
    problem = f"{code.text}: {listed(names, 'and')} {what} here"
    if names == ["repository"] and not code.is_condition:
        return f"{problem}: this expression is what chooses it", there
    if _LABEL.search(code.text):
        return problem, f"keys that are no names stand in brackets: labels['a/b']; {there}"
    if not code.is_template and _PLAIN.fullmatch(code.text):
        return problem, f"if it is text, write \"'{code.text}'\", with both quotes; {there}"
    return problem, f"{suggestion(names[0], code.variables, '')} {there}".strip()


def _unreadable(declared: Declared) -> Iterator[Finding]:
    """Version ranges of what has an upstream."""
    with_upstream: tuple[UpstreamPolicy | PackageVariant, ...] = (
        *declared.policies,
        *declared.variants,
    )
    for item in with_upstream:
        try:
            if semver := item.spec.upstream.revision.semver:
                parse_range(semver)
        except InvalidInput as error:
            where = declared.where(item, "spec.upstream.revision.semver")
            yield Finding(where, error.problem, error.remedy)


def _codes(item: KRMObject) -> Iterator[Code]:
    """All expressions and templates in the spec of an object."""
    spec = item.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
    yield from _walk(spec, "spec")


def _walk(value: object, path: str) -> Iterator[Code]:
    found = _CHECK.search(path)
    if found and found[2] in ("headers", "body"):
        return  # whatever they are called, they are sent as they are
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        field = path.rpartition(".")[2].partition("[")[0]
        if field.endswith(("Expr", "Exprs", "When")) or (found and field in _OF_ANSWERS):
            yield Code(path, value)
        elif field.endswith("Template"):
            yield Code(path, value, is_template=True)
