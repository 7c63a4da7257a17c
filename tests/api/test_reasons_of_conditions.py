"""The types of conditions are a closed list, which the code that builds conditions keeps to."""

import ast
from pathlib import Path

from kind_pages import CONDITIONS_BY_KIND, STAGE_CONDITIONS

from fanout.api.kind_registry import CUSTOM_RESOURCES
from fanout.api.reasons import Reason

ROOT = Path(__file__).parents[2]
BUILDERS = [
    *sorted((ROOT / "fanout" / "present").rglob("*.py")),
    ROOT / "fanout" / "plan" / "records" / "record_listing.py",
]


def words_of(node, function, module):
    """Return the words that an expression for a type may yield; names are looked up once."""
    match node:
        case ast.Constant(value=str(word)):
            return {word}
        case ast.IfExp():
            return words_of(node.body, None, None) | words_of(node.orelse, None, None)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return words_of(inner, function, module)
        case ast.Attribute(value=ast.Name(id="Reason"), attr=name):
            return {Reason[name].value}
        case ast.Name(id=name):
            scopes = [it for it in (function, module) if it is not None]
            for scope in scopes:
                for it in ast.walk(scope):
                    if isinstance(it, ast.Assign):
                        pairs = pair_targets(it)
                        if name in pairs:
                            return words_of(pairs[name], None, None)
    return set()


def pair_targets(assignment):
    """Return the values of an assignment by the names of its targets."""
    (target,) = assignment.targets
    if isinstance(target, ast.Tuple) and isinstance(assignment.value, ast.Tuple):
        pairs = zip(target.elts, assignment.value.elts, strict=True)
        return {it.id: value for it, value in pairs if isinstance(it, ast.Name)}
    return {target.id: assignment.value} if isinstance(target, ast.Name) else {}


def list_built_types(module):
    """Yield the types of conditions that a module builds: by calls, in dicts and in generators."""
    for function in (it for it in ast.walk(module) if isinstance(it, ast.FunctionDef)):
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id="build_ready")):
                    yield "Ready"
                case ast.Call(func=ast.Name(id="Condition" | "build_true"), args=[word, *_]):
                    yield from words_of(word, function, module)
                case ast.Call(
                    func=ast.Name(id="replace"), keywords=[ast.keyword("type", word), *_]
                ):
                    yield from words_of(word, function, module)
                case ast.Dict():
                    keys = {it.value: i for i, it in enumerate(node.keys) if is_constant(it)}
                    if {"type", "status"} <= keys.keys():
                        yield from words_of(node.values[keys["type"]], function, module)
                case ast.Yield(value=ast.Tuple(elts=[word, *_])) if "conditions" in function.name:
                    yield from words_of(word, function, module)


def is_constant(node):
    return isinstance(node, ast.Constant)


USED = {it for kind in CONDITIONS_BY_KIND.values() for it in kind} | set(STAGE_CONDITIONS)
# Built from the reason of what failed: of the admission check, and of tags.
FROM_REASONS = {Reason.ADMISSION_MISSING, Reason.TAG_MISSING, Reason.TAG_MOVED}


def test_conditions_have_a_type_of_the_list_and_all_types_are_used():
    built = {
        word
        for path in BUILDERS
        for word in list_built_types(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert built | {it.value for it in FROM_REASONS} == USED


def test_each_kind_with_a_status_has_types_of_conditions_and_ready_among_them():
    assert set(CONDITIONS_BY_KIND) == {model.__name__ for model in CUSTOM_RESOURCES}
    assert all("Ready" in kind for kind in CONDITIONS_BY_KIND.values())
