"""The blanks of a template: fields with a text of their own, or with what an expression answers.

Each is prepared once for an entry of `targets`, and filled for every target of it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fanout.selection.model import Broken, TargetFailure
from fanout.values import frozen

Values = Mapping[str, Any]  # what an expression answers, by target key; may be `Broken`
_NO_VALUES: Values = {}
_KINDS = {
    bool: "a boolean",
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
}


class NoVariant(Exception):
    """This target gets no variant; the others are not affected."""

    def __init__(self, reason: str, problem: str, field: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.field = field

    def failure(self, policy: str, target: str) -> TargetFailure:
        """As what the target gets instead of a variant."""
        return TargetFailure(policy, target, self.reason, self.problem, self.field)


class Pair(Protocol):
    """An entry of a map as a template has it: key and value, each a text or an expression."""

    @property
    def key(self) -> str | None: ...
    @property
    def key_expr(self) -> str | None: ...
    @property
    def value(self) -> str | None: ...
    @property
    def value_expr(self) -> str | None: ...


@frozen
class Blank:
    """A field for a text or a number. An expression wins over what is written."""

    written: Any
    expression: str | None
    values: Values
    field: str  # where the expression stands in the policy

    def text(self, key: str, default: str = "") -> str:
        """What it holds for the target; what is not written is `default`. Raises NoVariant."""
        if not self.expression:
            return default if self.written is None else self.written
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        raise self._unfit(value, "text is needed; use string(...)")

    def number(self, key: str) -> int:
        """The same for a whole number, 0 by default. Raises NoVariant."""
        if not self.expression:
            return self.written or 0
        value = self.values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self._unfit(value, "a whole number is needed; use int(...)")

    def _unfit(self, value: Any, needed: str) -> NoVariant:
        if isinstance(value, Broken):
            return NoVariant(value.reason, f"{self.expression}: {what_helps(value)}", self.field)
        sentence = f"{self.expression}: yields {kind_of(value)} where {needed}"
        return NoVariant("ExpressionError", sentence, self.field)


@frozen
class BlankMap:
    """A map, overlaid by pairs of key and value, as in Porch."""

    written: Mapping[str, str]
    pairs: tuple[tuple[Blank, Blank], ...]

    def filled(self, key: str) -> dict[str, str]:
        """What it holds for the target, in order of its keys. Raises NoVariant."""
        result = dict(self.written)
        for name_blank, value_blank in self.pairs:
            name = name_blank.text(key)
            result[name] = value_blank.text(key)
        return dict(sorted(result.items()))


@frozen
class Blanks:
    """Makes the blanks of one entry's template of the answers to its expressions."""

    entry: int  # index in spec.targets
    answers: Mapping[str, Values]  # by expression

    def place(self, field: str) -> str:
        """Where a field of the template stands in the policy."""
        return f"spec.targets[{self.entry}].template.{field}"

    def blank(self, written: Any, expression: str | None, field: str) -> Blank:
        """A field; `field` is the name that it has where an expression is written."""
        values = self.answers.get(expression, _NO_VALUES) if expression else _NO_VALUES
        return Blank(written, expression, values, self.place(field))

    def map(self, written: Mapping[str, str], pairs: Iterable[Pair], field: str) -> BlankMap:
        """A map that is overlaid by pairs."""
        return BlankMap(
            written,
            tuple(
                (
                    self.blank(pair.key, pair.key_expr, f"{field}[{index}].keyExpr"),
                    self.blank(pair.value, pair.value_expr, f"{field}[{index}].valueExpr"),
                )
                for index, pair in enumerate(pairs)
            ),
        )


def what_helps(broken: Broken) -> str:
    """What is wrong with an expression, and what to do."""
    return f"{broken.problem}; {broken.remedy or 'correct the expression, or the target'}"


def kind_of(value: Any) -> str:
    """What a value is, for people."""
    return "nothing" if value is None else _KINDS.get(type(value), "another type")
