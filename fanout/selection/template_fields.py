"""Template fields: fields with a literal text, or with the value of an expression.

Each is prepared once for an entry of `targets`, and evaluated for every target of it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fanout.selection.variant_spec import ExpressionFailure, TargetFailure
from fanout.values import frozen

Values = Mapping[str, Any]  # result of an expression by target key, maybe an ExpressionFailure
_NO_VALUES: Values = {}
_KINDS = {
    bool: "a boolean",
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
}


class TemplateFailure(Exception):
    """A target gets no variant because a template field is invalid.

    Other targets are not affected.
    """

    def __init__(self, reason: str, problem: str, field: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.field = field

    def to_target_failure(self, policy: str, target: str) -> TargetFailure:
        """Return the failure that the target gets instead of a variant."""
        return TargetFailure(policy, target, self.reason, self.problem, self.field)


class TemplatePair(Protocol):
    """An entry of a template's map: key and value, each a text or an expression."""

    @property
    def key(self) -> str | None: ...
    @property
    def key_expr(self) -> str | None: ...
    @property
    def value(self) -> str | None: ...
    @property
    def value_expr(self) -> str | None: ...


@frozen
class TemplateField:
    """A field for a text or a number. An expression takes precedence over a literal."""

    literal: Any
    expression: str | None
    values: Values
    field: str  # of the policy, with the expression

    def to_text(self, key: str, default: str = "") -> str:
        """Return the text for the target; `default` if nothing is written.

        Raises TemplateFailure.
        """
        if not self.expression:
            return default if self.literal is None else self.literal
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        raise self._type_failure(value, "text is needed; use string(...)")

    def to_number(self, key: str) -> int:
        """Return the whole number for the target; 0 if nothing is written.

        Raises TemplateFailure.
        """
        if not self.expression:
            return self.literal or 0
        value = self.values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self._type_failure(value, "a whole number is needed; use int(...)")

    def _type_failure(self, value: Any, requirement: str) -> TemplateFailure:
        if isinstance(value, ExpressionFailure):
            return TemplateFailure(
                value.reason, f"{self.expression}: {format_failure(value)}", self.field
            )
        sentence = f"{self.expression}: yields {describe_type(value)} where {requirement}"
        return TemplateFailure("ExpressionError", sentence, self.field)


@frozen
class TemplateMap:
    """A map of literals, overlaid by pairs of key and value, as in Porch."""

    literals: Mapping[str, str]
    pairs: tuple[tuple[TemplateField, TemplateField], ...]

    def to_map(self, key: str) -> dict[str, str]:
        """Return the map for the target, in order of its keys. Raises TemplateFailure."""
        result = dict(self.literals)
        for name_field, value_field in self.pairs:
            name = name_field.to_text(key)
            result[name] = value_field.to_text(key)
        return dict(sorted(result.items()))


@frozen
class TemplateFields:
    """Builds the fields of one entry's template from the values of its expressions."""

    entry: int  # index in spec.targets
    values_by_expression: Mapping[str, Values]  # by expression

    def field_path(self, field: str) -> str:
        """Return the path of a template field in the policy."""
        return f"spec.targets[{self.entry}].template.{field}"

    def build_field(self, literal: Any, expression: str | None, field: str) -> TemplateField:
        """Build a field; `field` is the name that it has where an expression is written."""
        values = self.values_by_expression.get(expression, _NO_VALUES) if expression else _NO_VALUES
        return TemplateField(literal, expression, values, self.field_path(field))

    def build_map(
        self, literal: Mapping[str, str], pairs: Iterable[TemplatePair], field: str
    ) -> TemplateMap:
        """Build a map of literals that is overlaid by pairs."""
        return TemplateMap(
            literal,
            tuple(
                (
                    self.build_field(pair.key, pair.key_expr, f"{field}[{index}].keyExpr"),
                    self.build_field(pair.value, pair.value_expr, f"{field}[{index}].valueExpr"),
                )
                for index, pair in enumerate(pairs)
            ),
        )


def format_failure(failure: ExpressionFailure) -> str:
    """Format what is wrong with an expression, and what to do."""
    return f"{failure.problem}; {failure.remedy or 'correct the expression, or the target'}"


def describe_type(value: Any) -> str:
    """Describe the type of a value for messages."""
    return "nothing" if value is None else _KINDS.get(type(value), "another type")
