"""Kargo Stages: their fields, freight requests and promotion steps, and the conversion.

Steps are programs and are not run here. The repository that a step pushes to is mostly
written literally or with literal variables, and becomes a target.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from fanout.api.durations import MAX_DURATION, format_duration
from fanout.api.field_errors import FieldPath, as_list, as_mapping
from fanout.api.text_fields import format_value
from fanout.migrate.field_mapping import Conversion, Remark, SourceField, TargetField, read_key
from fanout.values import Value

REQUESTS_FIELD = "requestedFreight"


def replace_dots(name: Any) -> Any:
    """Replace dots in a name, which Kargo allows and fanout does not; other values stay."""
    return name.replace(".", "-") if isinstance(name, str) else name


class KargoObject(Value):
    """Object of the input, with its index there."""

    index: int
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the object, as in Kargo."""
        return read_key(self.data)[2]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Spec of the object, or an empty mapping."""
        return as_mapping(self.data, "spec")

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of the object."""
        return as_mapping(self.data, "metadata", "labels")


def promotion_steps_of(stage: Mapping[str, Any]) -> Sequence[Any]:
    """Return the promotion steps of a Stage; one without any is a control-flow stage."""
    return as_list(stage, "spec", "promotionTemplate", "spec", "steps")


class FreightRequest(Value):
    """Request of a Stage for the freight of one Warehouse."""

    stage: KargoObject
    number: int  # of those in the Stage's list
    sources: Mapping[str, Any]

    @property
    def is_control_flow(self) -> bool:
        """The Stage is a control-flow stage, without promotion steps."""
        return not promotion_steps_of(self.stage.data)

    @property
    def is_direct(self) -> bool:
        """Freight may come from the Warehouse itself. Kargo then ignores other sources."""
        return self.sources.get("direct") is True

    @property
    def upstream_stages(self) -> tuple[str, ...]:
        """Kargo names of the upstream Stages; empty if the request is direct."""
        names = () if self.is_direct else as_list(self.sources, "stages")
        return tuple(name for name in names if isinstance(name, str))

    def stage_for_request(self, passing_stages: frozenset[str]) -> Mapping[str, Any]:
        """Return the Stage with this request alone, without stages that let all pass."""
        data, spec = self.stage.data, self.stage.spec
        request = dict(as_mapping(as_list(spec, REQUESTS_FIELD)[self.number]))
        stages = self.sources.get("stages")
        if isinstance(stages, list | tuple):
            # What is no name is reported elsewhere.
            remaining = [
                None if isinstance(it, str) and it in passing_stages else it for it in stages
            ]
            request["sources"] = {**self.sources, "stages": remaining}
        return {**data, "spec": {**spec, REQUESTS_FIELD: [request]}}


def find_requests(stage: KargoObject) -> Mapping[str, FreightRequest]:
    """Return the requests of a Stage by Warehouse name. The first one for a Warehouse counts."""
    requests: dict[str, FreightRequest] = {}
    for number, entry in enumerate(as_list(stage.spec, REQUESTS_FIELD)):
        origin = as_mapping(entry, "origin")
        name = origin.get("name")
        if isinstance(name, str) and name and origin.get("kind") in (None, "", "Warehouse"):
            requests.setdefault(name, FreightRequest(stage, number, as_mapping(entry, "sources")))
    return requests


def find_passing_stages(requests: Sequence[FreightRequest]) -> frozenset[str]:
    """Return the control-flow stages that let all freight pass."""
    passing_stages: frozenset[str] = frozenset()
    while True:
        extended = frozenset(
            request.stage.name
            for request in requests
            if request.is_control_flow
            and (
                request.is_direct
                or (request.upstream_stages and passing_stages.issuperset(request.upstream_stages))
            )
        )
        if extended == passing_stages:
            return passing_stages
        passing_stages = extended


def sort_requests(requests: Sequence[FreightRequest]) -> list[FreightRequest]:
    """Sort requests so that each comes after its upstream stages; cycles keep their order."""
    remaining, ordered = list(requests), list[FreightRequest]()
    while remaining:
        names = {request.stage.name for request in remaining}
        # In a cycle no request is independent; the rest keeps its order and validation reports
        # the cycle.
        independent = [
            request for request in remaining if not names.intersection(request.upstream_stages)
        ] or remaining
        ordered += independent
        remaining = [request for request in remaining if request not in independent]
    return ordered


STEPS_PATH: FieldPath = ("spec", "promotionTemplate", "spec", "steps")
BUILT_IN_STEPS = frozenset({"git-clone", "git-clear", "git-commit", "git-push", "copy", "delete"})
_FUNCTION_ADVICE = (
    "use a function in the target's template.pipeline, or change the package and tag it"
)
_BUILD_ADVICE = "build upstream before the package is tagged, or let Flux or Argo CD do it"
_MERGE_ADVICE = "drafts are branches; fanout merges them, or a person does"
_CHECK_ADVICE = "add a check to the stage's verification, and let a pipeline report it"
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


class StepTarget(Value):
    """Repository that a Stage writes to, with the branch if it is literal."""

    url: str
    branch: str | None


class _ResolvedStep(NamedTuple):
    uses: Any
    config: Mapping[str, Any]  # filled with variables


def convert_steps(source: SourceField) -> Conversion:
    """Yield a remark for each step that fanout does not perform itself."""
    if not isinstance(source.value, list | tuple):
        yield Remark(source.path, f"must be a list, got {format_value(source.value)}", "correct it")
        return
    for index, step in enumerate(source.value):
        uses, path = as_mapping(step).get("uses"), (*source.path, index)
        if as_mapping(step).get("task"):
            problem = "fanout has no promotion steps or tasks"
            yield Remark((*path, "task"), problem, _FUNCTION_ADVICE)
        elif not isinstance(uses, str) or uses not in BUILT_IN_STEPS:
            problem = f"there are no promotion steps: {format_value(uses)} has no counterpart"
            yield Remark((*path, "uses"), problem, ADVICE_BY_STEP.get(str(uses), _FUNCTION_ADVICE))


def find_step_targets(
    stage: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]
) -> list[StepTarget]:
    """Return the literal repositories that a Stage writes to; `tasks` are specs by name."""
    spec = as_mapping(stage, "spec")
    template, meta = as_mapping(spec, "promotionTemplate", "spec"), as_mapping(stage, "metadata")
    variables = {"ctx.stage": meta.get("name"), "ctx.project": meta.get("namespace")}
    for declared in (spec.get("vars"), template.get("vars")):
        variables |= _read_variables(declared, variables)
    steps = [*_resolve_steps(as_list(template, "steps"), variables, tasks)]
    if pushed := list(dict.fromkeys(_find_pushed(steps))):
        return pushed
    # The first cloned repository, for steps whose push cannot be followed.
    for step in steps:
        url = _literal_text(step.config.get("repoURL"))
        if step.uses == "git-clone" and url:
            created = [it for _, it in _checkouts(step) if it.get("create") is True]
            return [StepTarget(url, _literal_text(created[-1].get("branch")) if created else None)]
    return []


def _resolve_steps(
    steps: Sequence[Any], variables: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[_ResolvedStep]:
    """Yield the steps with variables substituted and tasks replaced by their steps."""
    for step in map(as_mapping, steps):
        step_variables = {**variables, **_read_variables(step.get("vars"), variables)}
        name = as_mapping(step, "task").get("name")
        task = as_mapping(tasks.get(name)) if isinstance(name, str) else {}
        if task:
            # Variables that the step sets take precedence over the defaults of the task.
            step_variables = {**_read_variables(task.get("vars"), variables), **step_variables}
            # No tasks inside tasks: Kargo does not allow them, and a cycle of tasks would not end.
            yield from _resolve_steps(as_list(task, "steps"), step_variables, {})
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
    for entry in map(as_mapping, as_list(step.config, "checkout")):
        yield posixpath.normpath(str(entry.get("path") or ".")), entry


def _find_pushed(steps: Sequence[_ResolvedStep]) -> Iterator[StepTarget]:
    for position, step in enumerate(steps):
        if step.uses != _PUSH_STEP:
            continue
        directory = posixpath.normpath(str(step.config.get("path") or "."))
        # The branch of the push, or the base branch of the pull request that follows it.
        requests = [it for it in steps[position:] if it.uses == "git-open-pr"]
        branch = _literal_text((requests[0] if requests else step).config.get("targetBranch"))
        # Backwards: a later clone into the same directory replaces an earlier one.
        for clone in reversed([it for it in steps[:position] if it.uses == "git-clone"]):
            url = _literal_text(clone.config.get("repoURL"))
            branches = [entry for path, entry in _checkouts(clone) if path == directory]
            if url and branches:
                yield StepTarget(url, branch or _literal_text(branches[-1].get("branch")))
                break


_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|m|s)", re.ASCII)
_SECONDS_PER_UNIT = {"h": 3600, "m": 60, "s": 1}
_AVAILABILITY_STRATEGIES = ("All", "OneOf", "")
_IGNORED_PREFIXES = ("kargo.akuity.io/", "kubectl.kubernetes.io/")


def convert_name(source: SourceField) -> Conversion:
    """Copy a name with dashes for dots."""
    name = replace_dots(source.value)
    yield TargetField(source.target, name, source.path)
    if name != source.value:
        problem = f"names must not contain dots here; the new name is {name}"
        yield Remark(source.path, problem, is_lost=False)


def convert_stage_annotations(source: SourceField) -> Conversion:
    """Report the annotations of a Stage, except those of Kargo and kubectl."""
    keys = [str(key) for key in as_mapping(source.value)]
    if unsupported := [key for key in keys if not key.startswith(_IGNORED_PREFIXES)]:
        problem = f"a stage has no annotations: {', '.join(unsupported)} are left out"
        yield Remark(source.path, problem, is_lost=False)


def convert_upstream_stages(source: SourceField) -> Conversion:
    """Convert the upstream stages and the number of them that must pass. Kargo's default is one."""
    sources = _sources(source)
    if not isinstance(source.value, list | tuple):
        yield TargetField(source.target, source.value, source.path)
        return
    if sources.get("direct") is True:
        if source.value:
            problem = "Kargo ignores the stages beside `direct`; this stage waits for none"
            yield Remark(source.path, problem, "remove `direct` if it should wait", is_lost=False)
        return
    names: list[Any] = []
    for index, name in enumerate(map(replace_dots, source.value)):
        if name is not None and name not in names:
            yield TargetField((*source.target, len(names)), name, (*source.path, index))
            names.append(name)
    if len(names) < 2:
        return
    strategy = sources.get("availabilityStrategy")
    path = (*source.path[:-1], "availabilityStrategy") if strategy else source.path
    yield TargetField((*source.target[:-1], "require"), "All" if strategy == "All" else "Any", path)
    if not strategy:
        problem = "without a strategy, Kargo needs one of them, so `Any` is written"
        yield Remark(path, problem, "All is the default here", is_lost=False)


def convert_availability_strategy(source: SourceField) -> Conversion:
    """Reject an unknown strategy: guessing could open or close the gate without a reason."""
    if source.value not in _AVAILABILITY_STRATEGIES:
        problem = f"{format_value(source.value)} is not a known strategy"
        yield Remark(source.path, problem, "write All or OneOf", invalidates=source.target)


def convert_soak(source: SourceField) -> Conversion:
    """Convert the required soak time. Go's durations have fractions and any order of units."""
    value = source.value
    parts = _DURATION_PART.findall(value) if isinstance(value, str) else []
    total = sum(Fraction(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    error = ("", "")
    if not parts or "".join(number + unit for number, unit in parts) != value:
        error = "is not a duration", "write hours, minutes, seconds: 24h"
    elif total > MAX_DURATION.total_seconds():
        error = "is longer than ten years", "write at most 87600h"
    if any(error):
        problem = f"{format_value(value)} {error[0]}"
        yield Remark(source.path, problem, error[1], invalidates=source.target)
        return
    # Rounded up, because a soak must never become shorter than Kargo's; exact, hence no float.
    seconds = -(-total.numerator // total.denominator)
    sources = _sources(source)
    if not seconds:
        return
    if sources.get("direct") is True:
        problem = "Kargo ignores the soak beside `direct`; this stage does not wait"
        yield Remark(source.path, problem, "remove `direct` if it should wait", is_lost=False)
    elif not any(as_list(sources, "stages")):
        problem = "no stage is left for the soak, so Kargo lets nothing pass"
        remedy = "list the stages before it, or remove it"
        yield Remark(source.path, problem, remedy, invalidates=source.target)
    else:
        yield TargetField(source.target, format_duration(timedelta(seconds=seconds)), source.path)
        problem = "starts when all checks have passed; in Kargo it starts when freight arrives"
        yield Remark(source.path, problem, is_lost=False)


def convert_selection_policy(source: SourceField) -> Conversion:
    """Report a policy for automatic promotion other than the newest freight."""
    if source.value not in ("", "NewestFreight"):
        problem = "has no counterpart; the newest revision that passes is promoted"
        problem = f"{format_value(source.value)} {problem}"
        yield Remark(source.path, problem, "promote by hand, or `inFlight: Serialize`")


def convert_verification(source: SourceField) -> Conversion:
    """Convert an AnalysisTemplate to a check that is answered by `fanout report`."""
    if not promotion_steps_of(source.source_object):
        problem = "neither Kargo nor fanout verifies a control-flow stage"
        yield Remark(source.path, problem, is_lost=False)
        return
    templates = as_list(source.source_object, "spec", "verification", "analysisTemplates")
    earlier = templates[: int(source.path[-2])]
    if any(as_mapping(entry).get("name") == source.value for entry in earlier):
        return
    name = replace_dots(source.value)
    yield TargetField(source.target, name, source.path)
    yield TargetField((*source.target[:-1], "report"), {}, source.path)
    problem = f"Kargo runs the analysis; here its result is reported as check {format_value(name)}"
    remedy = f"run it in a pipeline that calls `fanout report --check {format_value(name)}`"
    yield Remark(source.path, problem, remedy, is_lost=False)


def _sources(source: SourceField) -> Mapping[str, Any]:
    requests = as_list(source.source_object, "spec", REQUESTS_FIELD)
    return as_mapping(requests[0], "sources") if requests else {}
