"""Which expressions a policy's templates ask, over which variables.

Expressions are never evaluated here: they are listed as questions, the sandbox answers them, and
`fanout.selection.assemble` goes on with the answers as plain values. There are two rounds, since
`repository` is known only when `repositoryExpr` has been answered.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fanout.api.targets import TargetEntry
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.model import Object
from fanout.selection.targets import Target
from fanout.values import frozen

FIRST_VARIABLES = ("packageDefault", "repoDefault", "target", "upstream")
VARIABLES = ("packageDefault", "repoDefault", "repository", "target", "upstream")


@frozen
class Question:
    """Expressions of one entry of `targets`, to be evaluated for each of its targets."""

    entry: int
    expressions: tuple[str, ...]
    targets: tuple[Target, ...]  # row by row
    rows: tuple[Mapping[str, Any], ...]


Answers = Mapping[tuple[int, str], Mapping[str, Any]]
"""Value by (entry, expression) and target key; a value may be a `Broken`."""


def first_round(policy: UpstreamPolicy, targets: Sequence[Target]) -> list[Question]:
    """The questions for the downstream repositories."""
    return _ask(policy, targets, _repository_expressions, {})


def second_round(
    policy: UpstreamPolicy, targets: Sequence[Target], repositories: Mapping[str, Object]
) -> list[Question]:
    """All other questions; `repositories` has the downstream repository by target key."""
    return _ask(policy, targets, _other_expressions, repositories)


def _ask(
    policy: UpstreamPolicy,
    targets: Sequence[Target],
    expressions_of: Callable[[TargetEntry], Iterator[str]],
    repositories: Mapping[str, Object],
) -> list[Question]:
    upstream = policy.spec.upstream
    common = {"upstream": {"repository": upstream.repository, "package": upstream.package}}
    questions = []
    for entry, written in enumerate(policy.spec.targets):
        expressions = tuple(dict.fromkeys(expressions_of(written)))
        mine = tuple(target for target in targets if target.entry == entry)
        if not expressions or not mine:
            continue
        rows = tuple(_variables(target, common, repositories) for target in mine)
        questions.append(Question(entry, expressions, mine, rows))
    return questions


def _variables(
    target: Target, common: Mapping[str, Any], repositories: Mapping[str, Object]
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
