"""Template fields: fields with a literal text, or with the value of an expression.

A field is prepared once for an entry of `targets`, and evaluated for every target of it.

Expressions are never evaluated here: they are requested in batches as pending inputs, and
the variant builder goes on with the results as plain values. There are two rounds, since
`repository` is known only once `repositoryExpr` has a value.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from fanout.api.upstream_policy import MapExpression, UpstreamPolicy
from fanout.pending_inputs import Responses, get_responses
from fanout.selection.target_selection import VariantTarget
from fanout.selection.variant_spec import ExpressionFailure, Object, TargetFailure
from fanout.values import KeyedValue, Value

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


def describe_unusable(expression: str | None, value: Any, requirement: str) -> str:
    """Say why the result of an expression cannot be used: its error, or its type.

    `requirement` is the type that is needed, and how to get it.
    """
    if isinstance(value, ExpressionFailure):
        remedy = value.remedy or "correct the expression, or the target"
        return f"{expression}: {value.problem}; {remedy}"
    kind = "nothing" if value is None else _KINDS.get(type(value), "another type")
    return f"{expression}: yields {kind} where {requirement}"


class TemplateFailure(Exception):
    """A target gets no variant because a template field is invalid; others are not affected."""

    def __init__(self, reason: str, problem: str, field: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.field = field

    def to_target_failure(self, target: str) -> TargetFailure:
        """Return the failure that the target gets instead of a variant."""
        return TargetFailure(target, self.reason, self.problem, self.field)


class TemplateField(Value):
    """A field for a text or a number. An expression takes precedence over a literal."""

    literal: Any
    expression: str | None
    values: Values
    field: str  # of the policy, with the expression

    def to_text(self, key: str, default: str = "") -> str:
        """Return the text for the target, `default` if none is written. Raises TemplateFailure."""
        if not self.expression:
            return default if self.literal is None else self.literal
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        raise self._type_failure(value, "a string is needed; use string(...)")

    def to_number(self, key: str) -> int:
        """Return the number for the target, 0 if nothing is written. Raises TemplateFailure."""
        if not self.expression:
            return self.literal or 0
        value = self.values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self._type_failure(value, "a whole number is needed; use int(...)")

    def _type_failure(self, value: Any, requirement: str) -> TemplateFailure:
        reason = value.reason if isinstance(value, ExpressionFailure) else "ExpressionError"
        sentence = describe_unusable(self.expression, value, requirement)
        return TemplateFailure(reason, sentence, self.field)


class TemplateMap(Value):
    """A map of literals, overlaid by pairs of key and value, as in Porch."""

    literals: Mapping[str, str]
    pairs: tuple[tuple[TemplateField, TemplateField], ...]

    def to_map(self, key: str) -> dict[str, str]:
        """Return the map for the target, in order of its keys. Raises TemplateFailure."""
        result = dict(self.literals)
        for name_field, value_field in self.pairs:
            result[name_field.to_text(key)] = value_field.to_text(key)
        return dict(sorted(result.items()))


class TemplateFields(Value):
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
        self, literal: Mapping[str, str], pairs: Iterable[MapExpression], field: str
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


FIRST_VARIABLES = ("packageDefault", "repoDefault", "target", "upstream")
VARIABLES = ("packageDefault", "repoDefault", "repository", "target", "upstream")


class ExpressionBatch(KeyedValue):
    """Request for the values of an entry's expressions for each of its targets.

    The response is a list of values by row, for each expression. Batches of one round are
    distinct by entry, so nothing else is compared.
    """

    UNCOMPARED: ClassVar = ("targets", "rows")

    entry: int
    expressions: tuple[str, ...]
    targets: tuple[VariantTarget, ...]  # one per row
    rows: tuple[Mapping[str, Any], ...]


ExpressionValues = Mapping[tuple[int, str], Mapping[str, Any]]
"""Value by (entry, expression) and target key; a value may be an `ExpressionFailure`."""


def list_repository_batches(
    policy: UpstreamPolicy, targets: Sequence[VariantTarget]
) -> list[ExpressionBatch]:
    """List the batches whose values name the downstream repositories."""
    expressions = [[it.template.downstream.repository_expr] for it in policy.spec.targets]
    return _build_batches(policy, targets, expressions, {})


def list_variant_batches(
    policy: UpstreamPolicy, targets: Sequence[VariantTarget], repositories: Mapping[str, Object]
) -> list[ExpressionBatch]:
    """List all other batches; `repositories` has the downstream repository by target key."""
    expressions: list[list[str | None]] = []
    for entry in policy.spec.targets:
        template = entry.template
        functions = (*template.pipeline.mutators, *template.pipeline.validators)
        pairs = [
            *template.package_context.data_exprs,
            *template.label_exprs,
            *template.annotation_exprs,
            *(pair for function in functions for pair in function.config_map_exprs),
        ]
        expressions.append(
            [
                entry.offline_when,
                template.downstream.package_expr,
                template.stage_expr,
                template.priority_expr,
                *(injector.name_expr for injector in template.injectors),
                *template.package_context.remove_key_exprs,
                *(it for pair in pairs for it in (pair.key_expr, pair.value_expr)),
            ]
        )
    return _build_batches(policy, targets, expressions, repositories)


def collect_values(batches: Sequence[ExpressionBatch], responses: Responses) -> ExpressionValues:
    """Return the values of the expressions. Raises InputPending with batches that lack."""
    values = {}
    for batch, columns in zip(batches, get_responses(batches, responses), strict=True):
        keys = [target.key for target in batch.targets]
        for expression, column in zip(batch.expressions, columns, strict=True):
            values[batch.entry, expression] = dict(zip(keys, column, strict=True))
    return values


def _build_batches(
    policy: UpstreamPolicy,
    targets: Sequence[VariantTarget],
    expressions_by_entry: Sequence[Sequence[str | None]],
    repositories: Mapping[str, Object],
) -> list[ExpressionBatch]:
    upstream = policy.spec.upstream
    common = {"upstream": {"repository": upstream.repository, "package": upstream.package}}
    batches = []
    for entry, all_expressions in enumerate(expressions_by_entry):
        expressions = tuple(dict.fromkeys(filter(None, all_expressions)))
        entry_targets = tuple(target for target in targets if target.entry == entry)
        if not expressions or not entry_targets:
            continue
        rows = []
        for target in entry_targets:
            row: dict[str, Any] = {
                **common,
                "target": target.object,
                "repoDefault": target.repository,
                "packageDefault": target.package,
            }
            if target.key in repositories:
                row["repository"] = repositories[target.key]
            rows.append(row)
        batches.append(ExpressionBatch(entry, expressions, entry_targets, tuple(rows)))
    return batches
