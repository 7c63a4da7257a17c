"""Import of Kargo objects: one policy per Warehouse, remarks for lost fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from fanout.api.field_errors import FieldPath, as_mapping
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import API_VERSION
from fanout.migrate.field_mapping import (
    Conversion,
    ImportResult,
    ObjectRemark,
    ObjectValidator,
    Remark,
    RemovalUnits,
    SourceKey,
    TargetField,
    assemble_object,
    convert_object,
    duplicate_remark,
    find_mapping,
    read_key,
    read_kind,
    resolve_target_path,
    unconvertible_remark,
)
from fanout.migrate.kargo_fields import (
    KARGO_KINDS,
    KARGO_VERSION,
    PROJECT_CONFIG_MAPPING,
    STAGE_MAPPING,
    WAREHOUSE_MAPPING,
)
from fanout.migrate.kargo_promotion import convert_automation, convert_windows
from fanout.migrate.kargo_stages import (
    REQUESTS_FIELD,
    STEPS_PATH,
    FreightRequest,
    KargoObject,
    find_passing_stages,
    find_requests,
    find_step_targets,
    promotion_steps_of,
    replace_dots,
    sort_requests,
)
from fanout.migrate.kargo_warehouse import (
    PLACEHOLDER,
    RepositoryNames,
    convert_subscription,
    placeholder_upstream,
)
from fanout.values import replace

_NO_STEPS_PROBLEM = "fanout has no promotion steps or tasks"
_FUNCTIONS_REMEDY = "use functions in the template.pipeline of targets instead"
_UNSUPPORTED_KINDS: Mapping[str, tuple[str, str]] = {
    "Freight": (
        "fanout has no freight: a revision is a tag of the package",
        "tag the package, and repeat approvals with `fanout approve`",
    ),
    "Promotion": ("a promotion is an action, not an object", "run `fanout promote`"),
    "PromotionRequest": ("promotions are not objects", "run `fanout promote`"),
    "PromotionTask": (_NO_STEPS_PROBLEM, _FUNCTIONS_REMEDY),
    "ClusterPromotionTask": (_NO_STEPS_PROBLEM, _FUNCTIONS_REMEDY),
    "ClusterConfig": (
        "no object applies to all namespaces",
        "write its windows into a PromotionPolicy of each namespace",
    ),
    "Target": (
        "Kargo's Targets are not read",
        "write spec.targets of the policy with an objectSelector",
    ),
}


def unsupported_kind_remark(item: Any) -> Remark | None:
    """Return the remark about a Kargo kind without a counterpart, or None."""
    version, kind = as_mapping(item).get("apiVersion"), read_kind(item)
    if version != KARGO_VERSION or not isinstance(kind, str):
        return None
    if kind == "Project":
        if as_mapping(item, "spec").get("promotionPolicies"):
            problem = "promotion policies are read from a ProjectConfig"
            return Remark(("spec", "promotionPolicies"), problem, "move them there first")
        return Remark(("kind",), "a Project is a namespace here, and no object", is_lost=False)
    if kind not in _UNSUPPORTED_KINDS:
        return None
    problem, remedy = _UNSUPPORTED_KINDS[kind]
    approved = as_mapping(item, "status", "approvedFor")
    if kind == "Freight" and approved:
        stages = ", ".join(map(str, approved))
        return Remark(("status", "approvedFor"), f"approved for {stages}; {problem}", remedy)
    return Remark(("kind",), problem, remedy)


_CLUSTER_TASK_KIND = "ClusterPromotionTask"
_TASK_KINDS = ("PromotionTask", _CLUSTER_TASK_KIND)


@dataclass
class KargoProject:
    """Objects of one namespace."""

    warehouses: dict[str, KargoObject] = field(default_factory=dict)
    stages: list[KargoObject] = field(default_factory=list)
    configs: list[KargoObject] = field(default_factory=list)
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def repositories(self) -> RepositoryNames:
        """Names of the repositories in its objects; computed once all objects are present."""
        return RepositoryNames(
            step_target
            for stage in self.stages
            for step_target in find_step_targets(stage.data, self.tasks)
        )


def group_by_project(objects: Sequence[Any]) -> tuple[dict[str, KargoProject], list[ObjectRemark]]:
    """Return the objects by namespace, and remarks about objects that are not converted."""
    projects: dict[str, KargoProject] = {}
    remarks: list[ObjectRemark] = []
    seen_keys: set[SourceKey] = set()
    cluster_tasks: dict[str, Mapping[str, Any]] = {}
    for index, data in enumerate(objects):
        mapping = find_mapping(data, KARGO_KINDS)
        project = projects.setdefault(read_key(data)[1], KargoProject())
        if mapping is None:
            kind_remark = unsupported_kind_remark(data)
            remarks.append((index, kind_remark or unconvertible_remark(data, KARGO_KINDS)))
            if kind_remark and read_kind(data) in _TASK_KINDS:
                tasks = cluster_tasks if read_kind(data) == _CLUSTER_TASK_KIND else project.tasks
                tasks.setdefault(read_key(data)[2], as_mapping(data, "spec"))
            continue
        if read_key(data) in seen_keys:
            remarks.append((index, duplicate_remark()))
            continue
        seen_keys.add(read_key(data))
        if as_mapping(data, "metadata").get("deletionTimestamp") is not None:
            problem = "is being deleted and is left out"
            path: FieldPath = ("metadata", "deletionTimestamp")
            remarks.append((index, Remark(path, problem, "import it if it is to stay")))
            continue
        item = KargoObject(index, data)
        match mapping.kind:
            case "Warehouse":
                project.warehouses[item.name] = item
            case "Stage":
                project.stages.append(item)
            case _:
                project.configs.append(item)
    for project in projects.values():
        # A task of the Project takes precedence over a cluster-wide task of the same name.
        project.tasks = {**cluster_tasks, **project.tasks}
    return projects, remarks


_METADATA_UNITS: RemovalUnits = {
    "metadata.labels.*": "the label",
    "metadata.annotations.*": "the annotation",
}
POLICY_UNITS: RemovalUnits = {
    **_METADATA_UNITS,
    "spec.stages.*": "the stage",
    "spec.targets.*": "the target",
}
PROMOTION_UNITS: RemovalUnits = {**_METADATA_UNITS, "spec.autoPromotion.stages.*": "the name"}


def add_source_index(
    item: KargoObject, converted_fields: Iterable[TargetField | Remark], request: int = 0
) -> Conversion:
    """Prefix source paths with the object's index, and restore the request's index."""
    for converted in converted_fields:
        path = converted.source if isinstance(converted, TargetField) else converted.path
        if path[1:3] == (REQUESTS_FIELD, 0):
            path = (*path[:2], request, *path[3:])
        if isinstance(converted, TargetField):
            yield replace(converted, source=(item.index, *path))
        else:
            yield replace(converted, path=(item.index, *path))


def assemble_from_sources(
    kind: str,
    converted_fields: Iterable[TargetField | Remark],
    validate_data: ObjectValidator,
    units: RemovalUnits,
    default_index: int,
) -> ImportResult:
    """Assemble an object and assign its remarks to the source objects that they are about.

    `default_index`: index of the object for remarks without a source field.
    """
    result = assemble_object(KINDS[kind], converted_fields, validate_data, units)
    remarks: list[ObjectRemark] = []
    for remark in result.remarks:
        index, path = default_index, remark.path
        if path and isinstance(path[0], int):
            index, path = path[0], path[1:]
        remarks.append((index, replace(remark, path=path)))
    return ImportResult((result.data,) if result.data is not None else (), tuple(remarks))


def build_policies(project: KargoProject, validate_data: ObjectValidator) -> ImportResult:
    """Build a policy for every Warehouse that a Stage requests.

    `validate_data` returns the errors of an object; fields with errors are removed and reported.
    """
    policies: list[Mapping[str, Any]] = []
    remarks: list[ObjectRemark] = []
    requests_by_warehouse: dict[str, list[FreightRequest]] = {
        name: [] for name in project.warehouses
    }
    path: FieldPath = ("spec", REQUESTS_FIELD)
    for stage in project.stages:
        if not (requests := find_requests(stage)):
            problem = "it requests no Warehouse, so the stage is in no policy"
            remarks.append((stage.index, Remark(path, problem, "set the origin")))
        if len(requests) > 1:
            names = ", ".join(map(replace_dots, requests))
            problem = "a policy has one upstream; the stage becomes a separate stage of each of"
            remedy = "combine what must be released together in one package"
            remarks.append((stage.index, Remark(path, f"{problem} {names}", remedy)))
        for name, request in requests.items():
            requests_by_warehouse.setdefault(name, []).append(request)
    for name, warehouse_requests in requests_by_warehouse.items():
        warehouse = project.warehouses.get(name)
        if warehouse_requests:
            main_object = warehouse or warehouse_requests[0].stage
            fields = _build_policy(name, warehouse, sort_requests(warehouse_requests), project)
            built = assemble_from_sources(
                "UpstreamPolicy", fields, validate_data, POLICY_UNITS, main_object.index
            )
            policies += built.objects
            remarks += built.remarks
        elif warehouse:
            problem = "no Stage of the input requests it, so there is no policy for it"
            remarks.append((warehouse.index, Remark((), problem, "import its Stages as well")))
    return ImportResult(tuple(policies), tuple(remarks))


def _build_policy(
    name: str,
    warehouse: KargoObject | None,
    requests: Sequence[FreightRequest],
    project: KargoProject,
) -> Conversion:
    policy, first = replace_dots(name), requests[0]
    main_object = warehouse or first.stage
    yield TargetField(("apiVersion",), API_VERSION, (main_object.index, "apiVersion"))
    yield TargetField(("kind",), "UpstreamPolicy", (main_object.index, "kind"))
    if warehouse:
        yield from add_source_index(warehouse, convert_object(WAREHOUSE_MAPPING, warehouse.data))
        yield from add_source_index(
            warehouse, convert_subscription(warehouse, project.repositories)
        )
    else:
        origin: FieldPath = ("spec", REQUESTS_FIELD, first.number, "origin", "name")
        fields = [TargetField(("metadata", "name"), policy, origin)]
        if namespace := as_mapping(first.stage.data, "metadata").get("namespace"):
            fields.append(TargetField(("metadata", "namespace"), namespace, origin))
        problem = f"there is no Warehouse {name} in the input"
        remark = Remark(origin, problem, f"import it as well, or replace {PLACEHOLDER}")
        upstream = placeholder_upstream(policy, origin)
        yield from add_source_index(main_object, [*fields, *upstream, remark])
    # A policy has no control-flow stage without `after`; stages behind such a one wait for nothing.
    passing_stages = find_passing_stages(requests)
    remaining_requests = [it for it in requests if it.stage.name not in passing_stages]
    for number, request in enumerate(remaining_requests):
        converted_fields = _build_stage(policy, number, request, passing_stages, project)
        yield from add_source_index(request.stage, converted_fields, request.number)
    for request in requests:
        if request.stage.name in passing_stages:
            problem = "this control-flow stage has no stages before it, so it has no effect"
            remedy = "it is left out, and later stages do not wait for it"
            yield from add_source_index(request.stage, [Remark(STEPS_PATH[:1], problem, remedy)])


def _build_stage(
    policy: str,
    number: int,
    request: FreightRequest,
    passing_stages: frozenset[str],
    project: KargoProject,
) -> Conversion:
    stage_data = request.stage_for_request(passing_stages)

    def resolve_stage_path(pattern: str, path: FieldPath) -> FieldPath:
        """Resolve a target path with the stage's number in the place of the request's number."""
        indices = [
            it for before, it in pairwise(path) if isinstance(it, int) and before != REQUESTS_FIELD
        ]
        return resolve_target_path(pattern, (number, *indices))

    stage_path: FieldPath = ("spec", "stages", number)
    yield from convert_object(STAGE_MAPPING, stage_data, resolve_stage_path)
    # Other values than lists are reported elsewhere.
    has_valid_stages = isinstance(request.sources.get("stages"), list | tuple | None)
    if not request.is_direct and not request.upstream_stages and has_valid_stages:
        sources: FieldPath = ("spec", REQUESTS_FIELD, 0, "sources")
        problem = "it is neither direct nor after a stage, so Kargo lets nothing pass"
        remedy = "list the stages before it, or write direct"
        yield Remark(sources, problem, remedy, invalidates=stage_path)
    if request.is_control_flow:
        yield TargetField((*stage_path, "controlFlow"), True, ("metadata", "name"))
        return
    target_path: FieldPath = ("spec", "targets", number)
    stage = replace_dots(request.stage.name)
    package = f"{stage}/{policy}"
    branch_by_repository: dict[str, str | None] = {}  # with the branch that the Stage writes to
    for step_target in find_step_targets(request.stage.data, project.tasks):
        name, problem = project.repositories.name_repository(step_target.url, step_target.branch)
        if not problem:
            branch_by_repository.setdefault(name, step_target.branch)
    for index, name in enumerate(branch_by_repository or [PLACEHOLDER]):
        path = (*target_path, "repositories", index)
        yield TargetField((*path, "name"), name, STEPS_PATH)
        yield TargetField((*path, "packageNames"), [package], STEPS_PATH)
    yield TargetField((*target_path, "template", "stage"), stage, ("metadata", "name"))
    if not branch_by_repository:
        problem = f"their target is not clear; {PLACEHOLDER} stands for the Repository"
        yield Remark(STEPS_PATH, problem, "name the targets of the stage")
    for name, step_branch in branch_by_repository.items():
        branch, remedy = project.repositories.branch_of(name), f"correct {package} in spec.targets"
        problem = f"they write to {name}; without the path of the package"
        if step_branch not in (None, branch):
            problem = (
                f"they write to branch {step_branch} of {name}, but fanout publishes to {branch}"
            )
            remedy = f"let the cluster read that branch, and {remedy}"
        yield Remark(STEPS_PATH, problem, remedy)


def import_kargo_objects(objects: Sequence[Any], validate_data: ObjectValidator) -> ImportResult:
    """Import all objects that can be converted.

    `validate_data` returns the errors of an object of fanout. Fields with errors are
    removed and reported, so every object of the result passes it.
    """
    projects, remarks = group_by_project(objects)
    converted_objects: list[Mapping[str, Any]] = []
    for project in projects.values():
        policy_result = build_policies(project, validate_data)
        metadata = (as_mapping(it["metadata"]) for it in policy_result.objects)
        namespace = next((it.get("namespace") for it in metadata), None)
        specs = [policy["spec"] for policy in policy_result.objects]
        names = {spec["upstream"]["repository"] for spec in specs}
        for target in (it for spec in specs for it in spec["targets"]):
            names |= {entry["name"] for entry in target["repositories"]}
        repositories = tuple(project.repositories.build_objects(names, namespace))
        stage_names = frozenset(stage["name"] for spec in specs for stage in spec["stages"])
        promotions = [
            _build_promotion_policy(config, project, stage_names, validate_data)
            for config in project.configs
        ]
        for part in (ImportResult(repositories, ()), policy_result, *promotions):
            converted_objects += part.objects
            remarks += part.remarks
    sorted_remarks = sorted(dict.fromkeys(remarks), key=lambda it: it[0])
    return ImportResult(tuple(converted_objects), tuple(sorted_remarks))


def _build_promotion_policy(
    config: KargoObject,
    project: KargoProject,
    stage_names: frozenset[str],
    validate_data: ObjectValidator,
) -> ImportResult:
    """Build the PromotionPolicy of a ProjectConfig, if any setting has a counterpart."""
    stages = [stage for stage in project.stages if promotion_steps_of(stage.data)]
    control_flow_stages = [stage for stage in project.stages if not promotion_steps_of(stage.data)]
    window_fields, blocked_names = convert_windows(config, stages)
    converted_fields = [
        *convert_object(PROJECT_CONFIG_MAPPING, config.data),
        *window_fields,
        *convert_automation(config, stages, control_flow_stages, stage_names, blocked_names),
    ]
    if not any(isinstance(it, TargetField) and it.path[0] == "spec" for it in converted_fields):
        remarks = ((config.index, it) for it in converted_fields if isinstance(it, Remark))
        return ImportResult((), tuple(remarks))
    object_fields = [
        TargetField(("apiVersion",), API_VERSION, ("apiVersion",)),
        TargetField(("kind",), "PromotionPolicy", ("kind",)),
        *converted_fields,
        TargetField(("spec", "policies", 0), "*", ("metadata", "name")),
    ]
    return assemble_from_sources(
        "PromotionPolicy",
        add_source_index(config, object_fields),
        validate_data,
        PROMOTION_UNITS,
        config.index,
    )
