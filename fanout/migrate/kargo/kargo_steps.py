"""Promotion steps of Stages: steps without a counterpart, and push targets.

Steps are programs and are not run here. The repository that a step pushes to is mostly
written literally or with literal variables, and becomes a target.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fanout.api.field_errors import FieldPath
from fanout.api.field_paths import as_list, as_mapping
from fanout.api.text_fields import format_value
from fanout.migrate.field_conversion import Remark, SourceField, TargetField
from fanout.values import frozen

STEPS_PATH: FieldPath = ("spec", "promotionTemplate", "spec", "steps")
BUILT_IN_STEPS = frozenset({"git-clone", "git-clear", "git-commit", "git-push", "copy", "delete"})
_FUNCTION_ADVICE = (
    "use a function in the target's template.pipeline, or change the package and tag it"
)
_BUILD_ADVICE = "build upstream before the package is tagged, or let Flux or Argo CD do it"
_MERGE_ADVICE = "drafts are branches; fanout merges them, or a person does"
_CHECK_ADVICE = "ask by a check of the stage's verification, and let a pipeline report"
ADVICE_BY_STEP: Mapping[str, str] = {
    "kustomize-set-image": "use the function set-image in the target's template.pipeline",
    "helm-update-image": _FUNCTION_ADVICE,
    "helm-update-chart": _FUNCTION_ADVICE,
    "yaml-update": "use apply-setters or search-replace in the target's template.pipeline",
    "json-update": "use apply-setters or search-replace in the target's template.pipeline",
    "yaml-merge": _FUNCTION_ADVICE,
    "set-metadata": _FUNCTION_ADVICE,
    "kustomize-build": _BUILD_ADVICE,
    "helm-template": _BUILD_ADVICE,
    "git-open-pr": _MERGE_ADVICE,
    "git-wait-for-pr": _MERGE_ADVICE,
    "git-merge-pr": _MERGE_ADVICE,
    "argocd-update": "let Argo CD follow the branch, and report its health to a check",
    "http": _CHECK_ADVICE,
    "wait-for-approval": "ask for approvals: requires, with approval",
}
_VARIABLE = re.compile(r"\$\{\{\s*(vars|ctx)\.(\w+)\s*\}\}", re.ASCII)
_PUSH_STEP = "git-push"


@frozen
class StepTarget:
    """Repository that a Stage writes to, with the branch if it is literal."""

    url: str
    branch: str | None


class _ResolvedStep(NamedTuple):
    uses: Any
    config: Mapping[str, Any]  # filled with variables


def convert_steps(source: SourceField) -> Iterator[TargetField | Remark]:
    """Yield a remark for each step that fanout does not perform itself."""
    if not isinstance(source.value, list | tuple):
        yield Remark(
            source.path, f"must be a list and is {format_value(source.value)}", "correct it"
        )
        return
    for index, step in enumerate(source.value):
        uses, path = as_mapping(step).get("uses"), (*source.path, index)
        if as_mapping(step).get("task"):
            problem = "there are no promotion steps, nor tasks of them"
            yield Remark((*path, "task"), problem, _FUNCTION_ADVICE)
        elif not isinstance(uses, str) or uses not in BUILT_IN_STEPS:
            problem = f"there are no promotion steps: {format_value(uses)} has no counterpart"
            advice = ADVICE_BY_STEP.get(str(uses), _FUNCTION_ADVICE)
            yield Remark((*path, "uses"), problem, advice)


def find_step_targets(
    stage: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]
) -> list[StepTarget]:
    """Return the repositories that the Stage writes to, as far as they are literal.

    `tasks`: specs of PromotionTasks by name.
    """
    spec = as_mapping(stage.get("spec"))
    template = as_mapping(as_mapping(spec.get("promotionTemplate")).get("spec"))
    meta = as_mapping(stage.get("metadata"))
    variables = {"ctx.stage": meta.get("name"), "ctx.project": meta.get("namespace")}
    for declared in (spec.get("vars"), template.get("vars")):
        variables |= _read_variables(declared, variables)
    resolved_steps = list(_resolve_steps(as_list(template.get("steps")), variables, tasks))
    return list(dict.fromkeys(filter(None, _find_pushed(resolved_steps)))) or list(
        _find_cloned(resolved_steps)
    )


def _resolve_steps(
    steps: Sequence[Any], variables: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[_ResolvedStep]:
    """Yield the steps with variables substituted and tasks replaced by their steps."""
    for step in map(as_mapping, steps):
        step_variables = {**variables, **_read_variables(step.get("vars"), variables)}
        name = as_mapping(step.get("task")).get("name")
        task = as_mapping(tasks.get(name)) if isinstance(name, str) else {}
        if task:
            # Variables that the step sets take precedence over the defaults of the task.
            step_variables = {**_read_variables(task.get("vars"), variables), **step_variables}
            # No tasks inside tasks: Kargo does not allow them, and a cycle of tasks would not end.
            yield from _resolve_steps(as_list(task.get("steps")), step_variables, {})
        else:
            yield _ResolvedStep(
                step.get("uses"), as_mapping(_substitute(step.get("config"), step_variables))
            )


def _read_variables(declared: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    declared_variables: dict[str, Any] = {}
    for entry in map(as_mapping, as_list(declared)):
        if "value" in entry:
            value = _substitute(entry["value"], {**variables, **declared_variables})
            declared_variables[f"vars.{entry.get('name')}"] = value
    return declared_variables


def _substitute(value: Any, variables: Mapping[str, Any]) -> Any:
    """Substitute literal variables in a value; other expressions stay."""
    if isinstance(value, Mapping):
        return {key: _substitute(inner, variables) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_substitute(inner, variables) for inner in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        value = variables.get(f"{match[1]}.{match[2]}")
        return value if isinstance(value, str) and len(value) < 2048 else match[0]

    return _VARIABLE.sub(fill, value) if len(value) < 2048 else value


def _literal_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "${{" not in value else None


def _checkouts(step: _ResolvedStep) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (directory, checkout entry) for the branches that a git-clone step checks out."""
    for entry in map(as_mapping, as_list(step.config.get("checkout"))):
        yield posixpath.normpath(str(entry.get("path") or ".")), entry


def _find_pushed(steps: Sequence[_ResolvedStep]) -> Iterator[StepTarget | None]:
    for position, step in enumerate(steps):
        if step.uses != _PUSH_STEP:
            continue
        directory = posixpath.normpath(str(step.config.get("path") or "."))
        # Backwards: a later clone into the same directory replaces an earlier one.
        for clone in reversed(
            [earlier_step for earlier_step in steps[:position] if earlier_step.uses == "git-clone"]
        ):
            url = _literal_text(clone.config.get("repoURL"))
            branches = [entry for path, entry in _checkouts(clone) if path == directory]
            if url and branches:
                yield StepTarget(
                    url,
                    _push_branch(step, steps[position:])
                    or _literal_text(branches[-1].get("branch")),
                )
                break


def _push_branch(push: _ResolvedStep, later_steps: Sequence[_ResolvedStep]) -> str | None:
    """Return the branch of a push, or the base branch of the pull request that follows it."""
    requests = [
        step.config.get("targetBranch") for step in later_steps if step.uses == "git-open-pr"
    ]
    return _literal_text(requests[0] if requests else push.config.get("targetBranch"))


def _find_cloned(steps: Sequence[_ResolvedStep]) -> Iterator[StepTarget]:
    """Yield the first cloned repository, for steps whose push cannot be followed."""
    for step in steps:
        url = _literal_text(step.config.get("repoURL"))
        if step.uses == "git-clone" and url:
            created_branches = [
                checkout for _, checkout in _checkouts(step) if checkout.get("create") is True
            ]
            yield StepTarget(
                url, _literal_text(created_branches[-1].get("branch")) if created_branches else None
            )
            return
