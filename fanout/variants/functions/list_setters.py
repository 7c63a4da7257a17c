"""list-setters: report the setters with their values, types and number of fields."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fanout.package.field_edits import MISSING, get_value
from fanout.variants.functions.function_config import refuse_settings
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    FunctionResult,
    PackageFacts,
    VisibleObject,
    no_object_changes,
)
from fanout.variants.functions.setter_patterns import (
    derive_values,
    find_setter_patterns,
    single_setter,
)

_TYPES = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


@dataclass(slots=True)
class _Setter:
    value: str
    type: str
    count: int = 0


def _report_setters(
    _config: None, items: Sequence[VisibleObject], _facts: PackageFacts
) -> Iterator[FunctionResult]:
    setters: dict[str, _Setter] = {}
    for item in items:
        for path, pattern in find_setter_patterns(item.text):
            value = get_value(item.value, path)
            if isinstance(value, list):
                texts = (item.text.spelling((*path, at)).text for at in range(len(value)))
                list_text = f"[{', '.join(text for text in texts if text is not None)}]"
                _count_setter(setters, single_setter(pattern), list_text, "array")
            elif value is not MISSING and not isinstance(value, dict):
                kind = _TYPES[type(value)] if single_setter(pattern) else "str"
                text = item.text.spelling(path).text or ""
                for name, part in derive_values(pattern, text).items():
                    _count_setter(setters, name, part, kind)
    for name, setter in sorted(setters.items()):
        yield FunctionResult(
            f"Name: {name}, Value: {setter.value}, Type: {setter.type}, Count: {setter.count}"
        )


def _count_setter(setters: dict[str, _Setter], name: str, value: str, kind: str) -> None:
    if not name:
        return  # a list with several setters is not a setter
    setter = setters.setdefault(name, _Setter(value, kind))
    setter.count += 1
    if setter.type == "str":  # a setter of a complete value has a precise type
        setter.type = kind


LIST_SETTERS = CatalogFunction(
    "list-setters",
    "1",
    refuse_settings,
    no_object_changes,
    includes_local=True,
    report_package=_report_setters,
)
