"""Which expressions and templates of the declared objects do not compile: for `fanout validate`."""

from collections.abc import Iterator

from fanout.api.meta import KRMObject
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.ports import Sandbox


def uncompilable(declared: Declared, sandbox: Sandbox) -> tuple[Finding, ...]:
    """A finding for every expression and template that is not one, at its field."""
    found = [
        (item, field, text, is_template)
        for item in (*declared.policies, *declared.promotions)
        for field, text, is_template in _texts(item)
    ]
    problems = sandbox.compile(
        [text for _, _, text, is_template in found if not is_template],
        [text for _, _, text, is_template in found if is_template],
    )
    return tuple(
        Finding(declared.where(item, field), problems[text].problem, "correct it")
        for item, field, text, _ in found
        if text in problems
    )


def _texts(item: KRMObject) -> Iterator[tuple[str, str, bool]]:
    """Field path, text, and whether it is a template, of all in the spec of an object."""
    spec = item.model_dump(mode="json", by_alias=True, exclude_unset=True).get("spec", {})
    yield from _walk(spec, "spec")


def _walk(value: object, path: str) -> Iterator[tuple[str, str, bool]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        field = path.rpartition(".")[2].partition("[")[0]
        if field.endswith(("Expr", "Exprs")):
            yield path, value, False
        elif field.endswith("Template"):
            yield path, value, True
