"""Expressions of a policy's templates, and the variables of their evaluation.

Expressions are never evaluated here: they are listed in batches, the sandbox evaluates
them, and the variant builder goes on with the results as plain values. There are two
rounds, since `repository` is known only once `repositoryExpr` has a value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fanout.api.target_spec import TargetEntry
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.target_selection import VariantTarget
from fanout.selection.variant_spec import Object
from fanout.values import frozen

FIRST_VARIABLES = ("packageDefault", "repoDefault", "target", "upstream")
VARIABLES = ("packageDefault", "repoDefault", "repository", "target", "upstream")


@frozen
class ExpressionBatch:
    """Expressions of one entry of `targets`, to be evaluated for each of its targets."""

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
    return _build_batches(policy, targets, _repository_expressions, {})


def list_variant_batches(
    policy: UpstreamPolicy, targets: Sequence[VariantTarget], repositories: Mapping[str, Object]
) -> list[ExpressionBatch]:
    """List all other batches; `repositories` has the downstream repository by target key."""
    return _build_batches(policy, targets, _other_expressions, repositories)


def _build_batches(
    policy: UpstreamPolicy,
    targets: Sequence[VariantTarget],
    expressions_of: Callable[[TargetEntry], Iterator[str]],
    repositories: Mapping[str, Object],
) -> list[ExpressionBatch]:
    upstream = policy.spec.upstream
    common = {"upstream": {"repository": upstream.repository, "package": upstream.package}}
    batches = []
    for entry, target_entry in enumerate(policy.spec.targets):
        expressions = tuple(dict.fromkeys(expressions_of(target_entry)))
        entry_targets = tuple(target for target in targets if target.entry == entry)
        if not expressions or not entry_targets:
            continue
        rows = tuple(_build_variables(target, common, repositories) for target in entry_targets)
        batches.append(ExpressionBatch(entry, expressions, entry_targets, rows))
    return batches


def _build_variables(
    target: VariantTarget, common: Mapping[str, Any], repositories: Mapping[str, Object]
) -> Mapping[str, Any]:
    row = {
        **common,
        "target": target.object,
        "repoDefault": target.repository,
        "packageDefault": target.package,
    }
    if target.key in repositories:
        row["repository"] = repositories[target.key]
    return row


def _repository_expressions(entry: TargetEntry) -> Iterator[str]:
    if entry.template.downstream.repository_expr:
        yield entry.template.downstream.repository_expr


def _other_expressions(entry: TargetEntry) -> Iterator[str]:
    template = entry.template
    single = (
        entry.offline_when,
        template.downstream.package_expr,
        template.stage_expr,
        template.priority_expr,
    )
    yield from filter(None, single)
    yield from filter(None, (injector.name_expr for injector in template.injectors))
    yield from template.package_context.remove_key_exprs
    pairs = [
        *template.package_context.data_exprs,
        *template.label_exprs,
        *template.annotation_exprs,
    ]
    functions = (*template.pipeline.mutators, *template.pipeline.validators)
    pairs += [pair for function in functions for pair in function.config_map_exprs]
    for pair in pairs:
        yield from filter(None, (pair.key_expr, pair.value_expr))
