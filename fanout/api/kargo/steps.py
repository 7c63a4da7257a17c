"""What promotion steps say: what has no counterpart, and where they write.

Steps are programs, and are not run here. But where one pushes to is mostly written plainly, or by
variables that are, and that is a target.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fanout.api.faults import Path
from fanout.api.foreign.pieces import Found, Put, Remark
from fanout.api.places import fields, items
from fanout.api.texts import shown
from fanout.values import frozen

STEPS: Path = ("spec", "promotionTemplate", "spec", "steps")
OURS = frozenset({"git-clone", "git-clear", "git-commit", "git-push", "copy", "delete"})
_FUNCTION = "use a function in the target's template.pipeline, or change the package and tag it"
_BUILT = "build upstream before the package is tagged, or let Flux or Argo CD do it"
_MERGED = "drafts are branches; fanout merges them, or a person does"
_ASKED = "ask by a check of the stage's verification, and let a pipeline report"
ADVICE: Mapping[str, str] = {
    "kustomize-set-image": "use the function set-image in the target's template.pipeline",
    "helm-update-image": _FUNCTION,
    "helm-update-chart": _FUNCTION,
    "yaml-update": "use apply-setters or search-replace in the target's template.pipeline",
    "json-update": "use apply-setters or search-replace in the target's template.pipeline",
    "yaml-merge": _FUNCTION,
    "set-metadata": _FUNCTION,
    "kustomize-build": _BUILT,
    "helm-template": _BUILT,
    "git-open-pr": _MERGED,
    "git-wait-for-pr": _MERGED,
    "git-merge-pr": _MERGED,
    "argocd-update": "let Argo CD follow the branch, and report its health to a check",
    "http": _ASKED,
    "wait-for-approval": "ask for approvals: requires, with approval",
}
_VARIABLE = re.compile(r"\$\{\{\s*(vars|ctx)\.(\w+)\s*\}\}", re.ASCII)
_PUSH = "git-push"


@frozen
class Place:
    """A repository that a Stage writes to, and the branch, if that is plain."""

    url: str
    branch: str | None


class _Step(NamedTuple):
    uses: Any
    config: Mapping[str, Any]  # filled with variables


def steps(found: Found) -> Iterator[Put | Remark]:
    """A remark on each step that fanout does not do itself."""
    if not isinstance(found.value, list | tuple):
        yield Remark(found.path, f"must be a list and is {shown(found.value)}", "correct it")
        return
    for index, step in enumerate(found.value):
        uses, path = fields(step).get("uses"), (*found.path, index)
        if fields(step).get("task"):
            problem = "there are no promotion steps, nor tasks of them"
            yield Remark((*path, "task"), problem, _FUNCTION)
        elif not isinstance(uses, str) or uses not in OURS:
            problem = f"there are no promotion steps: {shown(uses)} has no counterpart"
            advice = ADVICE.get(str(uses), _FUNCTION)
            yield Remark((*path, "uses"), problem, advice)


def places(stage: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> list[Place]:
    """Where the Stage writes, as far as that is plain; `tasks` are PromotionTasks by name."""
    spec = fields(stage.get("spec"))
    template = fields(fields(spec.get("promotionTemplate")).get("spec"))
    meta = fields(stage.get("metadata"))
    known = {"ctx.stage": meta.get("name"), "ctx.project": meta.get("namespace")}
    for declared in (spec.get("vars"), template.get("vars")):
        known |= _variables(declared, known)
    flat = list(_flat(items(template.get("steps")), known, tasks))
    return list(dict.fromkeys(filter(None, _pushed(flat)))) or list(_cloned(flat))


def _flat(
    listed: Sequence[Any], known: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Step]:
    """The steps, with those of tasks instead of the tasks."""
    for step in map(fields, listed):
        own = {**known, **_variables(step.get("vars"), known)}
        name = fields(step.get("task")).get("name")
        task = fields(tasks.get(name)) if isinstance(name, str) else {}
        if task:
            own = {**_variables(task.get("vars"), known), **own}
            yield from _flat(items(task.get("steps")), own, {})
        else:
            yield _Step(step.get("uses"), fields(_filled(step.get("config"), own)))


def _variables(declared: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in map(fields, items(declared)):
        if "value" in entry:
            value = _filled(entry["value"], {**known, **found})
            found[f"vars.{entry.get('name')}"] = value
    return found


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    """The value with its plain variables filled in; other expressions stay."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, known) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, known) for inner in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        found = known.get(f"{match[1]}.{match[2]}")
        return found if isinstance(found, str) and len(found) < 2048 else match[0]

    return _VARIABLE.sub(fill, value) if len(value) < 2048 else value


def _plain(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "${{" not in value else None


def _checkouts(step: _Step) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Which branches a git-clone has in which directories."""
    for entry in map(fields, items(step.config.get("checkout"))):
        yield posixpath.normpath(str(entry.get("path") or ".")), entry


def _pushed(flat: Sequence[_Step]) -> Iterator[Place | None]:
    for at, step in enumerate(flat):
        if step.uses != _PUSH:
            continue
        directory = posixpath.normpath(str(step.config.get("path") or "."))
        for clone in reversed([one for one in flat[:at] if one.uses == "git-clone"]):
            url = _plain(clone.config.get("repoURL"))
            branches = [entry for path, entry in _checkouts(clone) if path == directory]
            if url and branches:
                yield Place(url, _target(step, flat[at:]) or _plain(branches[-1].get("branch")))
                break


def _target(push: _Step, after: Sequence[_Step]) -> str | None:
    """The branch that a push names, or that the pull request for it is to be merged into."""
    requests = [step.config.get("targetBranch") for step in after if step.uses == "git-open-pr"]
    return _plain(requests[0] if requests else push.config.get("targetBranch"))


def _cloned(flat: Sequence[_Step]) -> Iterator[Place]:
    """Without a push that can be followed: what is cloned first, and a branch that is made."""
    for step in flat:
        url = _plain(step.config.get("repoURL"))
        if step.uses == "git-clone" and url:
            made = [it for _, it in _checkouts(step) if it.get("create") is True]
            yield Place(url, _plain(made[-1].get("branch")) if made else None)
            return
