"""Evaluation of the expressions of stages for the targets that are in them.

A condition or a check whose expression fails for a target holds that target's variant in every
pass, and the pass reports it only once the variant is that far.
"""

from collections.abc import Iterator

from fanout.api.field_errors import Severity
from fanout.api.reasons import Reason
from fanout.api.results import NO_AGGREGATES
from fanout.api.stages import Check, Stage
from fanout.api.text_fields import format_value
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.ports import Sandbox
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.variant_spec import ExpressionFailure, TargetFailure
from fanout.values import as_data, replace

_CONDITION = "propagateWhen"


class TargetProblem(TargetFailure):
    """Problem of one target, at a field of its policy."""

    severity: Severity = "error"


def find_stage_expression_failures(
    resolved_policy: ResolvedPolicy, sandbox: Sandbox
) -> Iterator[TargetProblem]:
    """Yield a problem for each expression of a stage and each target for which it fails.

    Only expressions that read `target`, and conditions that read the counts of their stage as
    they are before a rollout: the revision and the answer to a check are known in a pass only.
    """
    policy, budget = resolved_policy.upstream_policy, EvaluationBudget()
    for index, stage in enumerate(policy.spec.stages if policy is not None else ()):
        variants = [
            it
            for it in resolved_policy.variants
            if it.stage == stage.name and it.name in resolved_policy.expression_variables
        ]
        if not variants:
            continue
        counts = as_data(replace(NO_AGGREGATES, total=len(variants)))
        rows = [
            {"target": resolved_policy.expression_variables[it.name]["target"], "stage": counts}
            for it in variants
        ]
        expressions, counting = _select_evaluable(dict(_find_expressions(stage)), sandbox)
        values = sandbox.evaluate(list(expressions.values()), rows, budget) if expressions else []
        for (field, text), row_values in zip(expressions.items(), values, strict=True):
            is_condition = field.startswith(_CONDITION)
            reads_counts = field in counting
            for variant, value in zip(variants, row_values, strict=True):
                # One that fails for these counts may not for others.
                if reads_counts and isinstance(value, ExpressionFailure):
                    continue
                if problem := _describe_failure(value, is_condition=is_condition):
                    yield TargetProblem(
                        variant.target,
                        Reason.EXPRESSION_ERROR,
                        f"{text}: {problem}",
                        f"spec.stages[{index}].{field}",
                    )


def _find_expressions(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield field path within the stage and text of conditions and of addresses of checks."""
    for number, text in enumerate(stage.propagate_when):
        yield f"propagateWhen[{number}]", text
    for section, checks in (("requires", stage.requires), ("verification", stage.verification)):
        for number, check in enumerate(checks):
            for field, text in _find_check_expressions(check):
                yield f"{section}[{number}].{check.method.value}.{field}", text


def _find_check_expressions(check: Check) -> Iterator[tuple[str, str]]:
    for name in ("name_expr", "address_expr", "query_expr", "url_expr"):
        if text := getattr(check.machine_check, name, None):
            yield f"{name.removesuffix('_expr')}Expr", text


def _select_evaluable(
    texts: dict[str, str], sandbox: Sandbox
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the expressions that compile and read only `target` and `stage`, by field.

    With them the fields of those that read `stage`.
    """
    broken = sandbox.compile(list(texts.values()), [])
    free_variables, _ = sandbox.free_variables(list(texts.values()), [])
    names_by_field = dict(zip(texts, free_variables, strict=True))
    evaluable = {
        field: text
        for field, text in texts.items()
        if text not in broken
        and names_by_field[field]
        <= ({"target", "stage"} if field.startswith(_CONDITION) else {"target"})
    }
    counting = (field for field in evaluable if "stage" in names_by_field[field])
    return evaluable, frozenset(counting)


def _describe_failure(value: object, *, is_condition: bool) -> str:
    if isinstance(value, ExpressionFailure):
        return f"{value.problem}; {value.remedy or 'correct the expression, or the target'}"
    if is_condition:
        is_usable, wanted = isinstance(value, bool), "true or false"
    else:
        is_usable, wanted = isinstance(value, str) and value != "", "a string that is not empty"
    return "" if is_usable else f"yields {format_value(value)}, expected {wanted}"
