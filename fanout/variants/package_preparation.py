"""Preparation of an upstream package: parsing and checks, once per revision."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from fanout.api.object_meta import is_secret
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, Path, canonical_text
from fanout.package.ignored_files import find_ignored
from fanout.package.kptfile import KPTFILE, find_kptfile, package_problem
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_keys import read_schemas
from fanout.package.merge.merge_units import is_local_config, is_manifest
from fanout.package.package_limits import ValueCounter, file_sizes, find_unportable_files
from fanout.package.tree_ids import TreeEntry, TreeTemplate
from fanout.selection.cluster_objects import group_of
from fanout.selection.variant_spec import VariantSpec
from fanout.values import KeyedValue, Value, field
from fanout.variants.functions.function_interface import (
    ERROR,
    FunctionResult,
    PackageFacts,
    mapping,
    render_error,
)
from fanout.variants.functions.kind_scopes import CLUSTER_KINDS, NAMESPACED_KINDS, Kind, read_scopes
from fanout.variants.functions.set_namespace import DEPENDS_ON
from fanout.variants.injection_points import InjectionPoint, find_injection_points
from fanout.variants.manifest_objects import (
    ITEMS,
    ListItem,
    ManifestObject,
    find_duplicates,
    find_objects,
    is_expanded_list,
    is_krm_object,
    is_plain_list,
)
from fanout.variants.overlay import ObjectChanges, Overlay
from fanout.variants.package_context import CONTEXT, NEW_CONTEXT, holds_context
from fanout.variants.pipeline_steps import (
    DeclaredFunction,
    FunctionStep,
    Pipeline,
    find_config_files,
    policy_steps,
    read_pipelines,
)
from fanout.variants.render_model import RenderLimits, UpstreamPackage
from fanout.variants.size_accounting import SizeCounter
from fanout.variants.variant_kptfile import clone_kptfile

ObjectPlace = tuple[str, int]  # file, and number of an object in it (`find_objects`)


DeclaredScopes = tuple[tuple[str, str, bool], ...]  # group, kind, whether it has a namespace


class StepResult(NamedTuple):
    """A finding in one object, with the step that reported it."""

    step: int  # its number in the pipeline
    place: ObjectPlace
    result: FunctionResult


class StepMatch(NamedTuple):
    """Names of a function's configuration that an object has when the function runs."""

    step: int
    place: ObjectPlace
    names: frozenset[str]


class SharedRun(Value):
    """Result of one pipeline for the objects that are equal for all targets."""

    steps: tuple[tuple[FunctionStep, PackageFacts], ...]  # each with its facts about the package
    changes: Mapping[ObjectPlace, ObjectChanges]  # of objects in varying files
    entries: Mapping[str, TreeEntry]
    blobs: Mapping[str, bytes]
    tree: TreeTemplate
    results: tuple[StepResult, ...] = ()
    # By step the names that no object outside of varying files has, and those of objects in them.
    unmatched: tuple[frozenset[str], ...] = ()
    matches: tuple[StepMatch, ...] = ()


class PreparedPackage(KeyedValue):
    """An upstream package at one revision, with everything independent of the target."""

    UNCOMPARED: ClassVar = ("manifest_cache", "run_cache", "template_cache")

    upstream: UpstreamPackage
    entries: Mapping[str, TreeEntry]  # of all upstream files
    manifests: Mapping[str, Manifest]  # of the files with objects, and of the package context
    kptfile: Manifest  # with this revision's `upstream` and `upstreamLock`, and the gates
    points: tuple[InjectionPoint, ...]
    injectable_keys: frozenset[str]  # keys of the points that the administrator allows
    has_context: bool  # False: other objects are in the file of the package context
    varying_files: tuple[str, ...]  # files in which targets differ, except the Kptfile
    all_objects: Mapping[ObjectPlace, ManifestObject]  # all documents, and the items of Lists
    objects: Mapping[ObjectPlace, ManifestObject]  # those that functions get
    duplicates: tuple[FunctionResult, ...]  # warnings of objects with one identity
    local_config: frozenset[ObjectPlace]  # local-config objects: most functions skip them
    functions: tuple[DeclaredFunction, ...]  # of the package's own pipeline
    undefined_kinds: frozenset[tuple[str, str]]  # custom (group, kind) not defined in the package
    declared_scopes: DeclaredScopes  # of these kinds, from declared definitions
    facts: PackageFacts
    has_dependencies: bool  # some object has a depends-on annotation
    limits: RenderLimits
    size: int  # of all upstream files
    value_count: int  # YAML and JSON values of all upstream files
    fingerprint: str  # the part of the digest that all variants share
    # Caches by pipeline or shape; not part of the value.
    # Kept on the package and not in a global: they end with the revision that they were built
    # from, and no key has to name it. Packages compare equal whatever their caches contain.
    manifest_cache: dict[object, Manifest] = field(default_factory=dict)
    run_cache: dict[object, SharedRun] = field(default_factory=dict)
    template_cache: dict[object, Any] = field(default_factory=dict)

    def order_pipeline(self, spec: VariantSpec) -> Pipeline:
        """Return the complete pipeline of a variant. Raises InvalidInput.

        In each section the policy's functions come first, but for those of subpackages.
        """
        if not spec.mutators and not spec.validators:
            return self.functions
        root_functions = [item for item in self.functions if not item.directory_prefix]
        return (
            *(item for item in self.functions if item.directory_prefix),
            *policy_steps(spec, "mutators", self.manifests, self.limits.programs),
            *(item for item in root_functions if not item.validates),
            *policy_steps(spec, "validators", self.manifests, self.limits.programs),
            *(item for item in root_functions if item.validates),
        )

    def new_overlays(self) -> dict[ObjectPlace, Overlay]:
        """Return the objects that functions get, without changes yet."""
        return {place: Overlay(place[0], part) for place, part in self.objects.items()}

    def new_size_counter(self) -> SizeCounter:
        """Return a counter for the bytes that one rendering adds."""
        return SizeCounter(self.limits, self.upstream.files, self.size, self.value_count)


_REGULAR = ("100644", "100755")
_SYMLINK = "120000"
NO_SCOPES: Mapping[Kind, bool] = {}


def prepare_package(
    package: UpstreamPackage,
    limits: RenderLimits,
    declared_definitions: Mapping[Kind, bool] = NO_SCOPES,
) -> PreparedPackage:
    """Parse and check the package.

    `declared_definitions` tell which custom kinds are namespaced, from declared
    CustomResourceDefinitions. Raises InvalidInput, with file and line where there are
    any, for a package that exceeds a limit, has no Kptfile, contains a symlink or a
    submodule, an unparsable file, a malformed injection point or an unavailable function.
    Two objects of one identity are a warning: kpt accepts them.
    """
    sizes = file_sizes(package.files)
    limits.check_sizes(sizes)
    for path, (entry, _) in sorted(package.files.items()):
        if entry.mode not in _REGULAR:
            kind = "a symbolic link" if entry.mode == _SYMLINK else "a submodule"
            raise _refused(f"is {kind}, which packages must not contain", "use a file", path)
    for path, problem in find_unportable_files(package.files):
        raise _refused(problem, "rename the file", path)
    counter = ValueCounter(limits.values)
    ignored = find_ignored(package.files) - {CONTEXT}
    manifests = _parse_manifests(package, ignored, counter)
    # Added before the pipelines are read: a function may name the context as its configuration file
    # even where upstream does not ship one.
    if CONTEXT not in manifests:
        manifests[CONTEXT] = Manifest.parse(NEW_CONTEXT, CONTEXT)
    has_context = holds_context(manifests[CONTEXT])
    functions = read_pipelines(manifests, limits.programs)
    config_files = frozenset(item.config_file for item in functions if item.config_file)
    # All documents and List items, except in Lists that configure a function.
    all_objects = {
        (file, number): manifest_object
        for file, manifest in manifests.items()
        if file not in ignored
        for number, manifest_object in find_objects(manifest).items()
        if file not in config_files or not isinstance(manifest_object, ListItem)
    }
    points = find_injection_points((*place, part) for place, part in all_objects.items())
    objects = _function_objects(all_objects, config_files)
    local_config = frozenset(
        place for place, part in objects.items() if is_local_config(part.value)
    )
    # Those that are applied to a cluster.
    items = [part.value for place, part in objects.items() if place not in local_config]
    kinds = {(group_of(item["apiVersion"]), item["kind"]) for item in items}
    defined = read_scopes(items)
    # A definition in the package precedes a declared one, because it is the one that will be
    # applied.
    undefined_kinds = frozenset(kinds - defined.keys() - NAMESPACED_KINDS - CLUSTER_KINDS)
    declared = {
        kind: declared_definitions[kind] for kind in undefined_kinds & declared_definitions.keys()
    }
    declared_scopes = tuple(sorted((*kind, scope) for kind, scope in declared.items()))
    return PreparedPackage(
        upstream=package,
        entries={path: entry for path, (entry, _) in package.files.items()},
        manifests=manifests,
        kptfile=clone_kptfile(package, manifests[KPTFILE], points),
        points=points,
        # Beside the administrator's rules, as no configuration may make Secrets injectable.
        injectable_keys=frozenset(
            it.key
            for it in points
            if not is_secret(it.group, it.kind)
            and limits.injectable.allows(it.group, it.kind, it.field)
        ),
        has_context=has_context,
        varying_files=tuple(dict.fromkeys([CONTEXT] * has_context + [it.file for it in points])),
        all_objects=all_objects,
        objects=objects,
        duplicates=tuple(it.warning for it in find_duplicates(manifests, package.files)),
        local_config=local_config,
        functions=functions,
        undefined_kinds=undefined_kinds,
        declared_scopes=declared_scopes,
        facts=PackageFacts(
            {**declared, **defined},
            custom_schemas=_custom_schemas(items),
            list_schemas=read_schemas(items),
        ),
        limits=limits,
        size=sum(sizes.values()),
        value_count=counter.count,
        has_dependencies=any(
            DEPENDS_ON in mapping(mapping(item.get("metadata")).get("annotations"))
            for item in items
        ),
        fingerprint=_compute_fingerprint(package, functions, declared_scopes),
    )


def _parse_manifests(
    package: UpstreamPackage, ignored: Collection[str], counter: ValueCounter
) -> dict[str, Manifest]:
    """Parse the files of objects, and those that are ignored but configure a function."""

    def parse(paths: Iterable[str]) -> dict[str, Manifest]:
        return {path: Manifest.parse(package.files[path][1], path, counter) for path in paths}

    paths = [path for path in sorted(package.files) if is_manifest(path)]
    manifests = parse(path for path in paths if path not in ignored)
    config_files = find_config_files(manifests)
    manifests |= parse(path for path in paths if path in config_files and path in ignored)
    if KPTFILE not in manifests:
        raise _refused(
            f"there is no Kptfile in {package.directory or 'the root'} at {package.revision.name}",
            "use the directory of a package, or create one with `kpt pkg init`",
        )
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] == KPTFILE:
            find_kptfile(manifest)
    return manifests


def _compute_fingerprint(
    package: UpstreamPackage, functions: Iterable[DeclaredFunction], scopes: DeclaredScopes
) -> str:
    """Return the part of the digest that all variants share."""
    versions: list[list[object]] = []
    for item in functions:
        function = item.function
        versions.append([function.name, function.version])
        # Declared definitions enter only where a function uses them, so that a new definition in
        # the cluster does not redraft every package.
        if function.uses_scopes and scopes:
            versions[-1].append(scopes)
    revision = package.revision
    source = [package.repository, package.directory, package.tree, revision.name, revision.commit]
    return canonical_text([*source, versions])


def _function_objects(
    all_objects: Mapping[ObjectPlace, ManifestObject], config_files: frozenset[str]
) -> dict[ObjectPlace, ManifestObject]:
    """Return the objects for functions: all but Kptfiles and Lists for configuration."""
    objects: dict[ObjectPlace, ManifestObject] = {}
    for place, manifest_object in all_objects.items():
        if not is_krm_object(manifest_object.value):
            continue  # plain values, not an object
        for key in ("apiVersion", "kind"):
            if not isinstance(manifest_object.value[key], str):
                line = manifest_object.line_of((key,))
                raise _refused(f"{key} is not text", "write it as text", place[0], line)
        if is_plain_list(manifest_object.value) or (
            isinstance(manifest_object, ListItem) and is_expanded_list(manifest_object.value)
        ):
            if place[0] in config_files:
                continue
            if isinstance(manifest_object, ListItem) or not is_local_config(manifest_object.value):
                _refuse_list(place[0], manifest_object)
        if manifest_object.value["kind"] != KPTFILE:
            objects[place] = manifest_object
    return objects


def _refuse_list(file: str, manifest_object: ManifestObject) -> None:
    """Raise InvalidInput for a List, unless empty, whose items cannot be taken as objects."""
    items = manifest_object.value.get(ITEMS, MISSING)
    path: Path = (ITEMS,)
    if isinstance(manifest_object, ListItem):
        path, problem, remedy = ("kind",), "a List in a List", "move its items to the outer one"
    elif items is MISSING:
        path, problem, remedy = ("kind",), "a List without items", "add items, or write items: []"
    elif items is None:
        return  # an empty List
    elif not isinstance(items, list):
        problem, remedy = "items of the List is not a list", "list the objects"
    else:
        at = next(at for at, item in enumerate(items) if not is_krm_object(item))
        path, problem = (ITEMS, at), f"items[{at}] of the List is not an object"
        remedy = "add apiVersion and kind, or remove it"
    raise _refused(problem, remedy, file, manifest_object.line_of(path))


def _custom_schemas(items: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Return the schemas that the package defines, by apiVersion and kind."""
    schemas = {}
    for item in items:
        spec = mapping(item.get("spec"))
        versions = spec.get("versions")
        if item["kind"] != "CustomResourceDefinition" or not isinstance(versions, list):
            continue
        kind = str(mapping(spec.get("names")).get("kind"))
        for version in map(mapping, versions):
            schema = mapping(version.get("schema")).get("openAPIV3Schema")
            if isinstance(schema, dict):
                schemas[f"{spec.get('group')}/{version.get('name')}", kind] = schema
    return schemas


def _refused(problem: str, remedy: str, file: str = "", line: int = 0) -> InvalidInput:
    return package_problem(problem, remedy, ErrorLocation(file=file, line=line))


_MAX_SHOWN = 5  # errors in one message


def find_errors(results: Iterable[FunctionResult]) -> list[FunctionResult]:
    """Return the results that fail a rendering."""
    return [result for result in results if result.severity == ERROR]


def refuse_errors(results: Iterable[FunctionResult]) -> None:
    """Raise InvalidInput with the first errors if any function reported one."""
    if errors := find_errors(results):
        more = f"; and {len(errors) - _MAX_SHOWN} more" if len(errors) > _MAX_SHOWN else ""
        sentences = "; ".join(result.sentence for result in errors[:_MAX_SHOWN])
        raise render_error(f"{sentences}{more}")
