"""Run of a pipeline over shared objects once, and over the whole package of one variant.

Functions that look at one object at a time run once per pipeline, and the result is
shared by all variants; the objects in which targets differ are run for each variant.

Functions that copy values between objects, rename what other objects refer to, add
objects, or are configured by a file that an earlier function changes (docs/concepts/functions.md)
need all objects. A pipeline with such a function runs as a whole, once per target.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.control_characters import escape_unprintable
from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, REMOVE, with_value
from fanout.package.kptfile import KPTFILE
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_list
from fanout.package.package_limits import find_package_path_problem, find_unportable_files
from fanout.package.tree_ids import TreeEntry, TreeTemplate, blob_id
from fanout.package.yaml_scalars import dump
from fanout.pending_inputs import Responses, get_response
from fanout.values import replace
from fanout.variants.function_requests import ResponseError
from fanout.variants.functions.function_interface import (
    ERROR,
    CatalogFunction,
    ExternalFunction,
    FunctionResult,
    Identity,
    Object,
    PackageFacts,
    UnfitObject,
    VisibleObject,
    group_kind,
    mapping,
)
from fanout.variants.functions.kind_scopes import is_namespaced
from fanout.variants.manifest_objects import find_objects, is_plain_list
from fanout.variants.overlay import (
    NO_CHANGES,
    ObjectChanges,
    Overlay,
    join_documents,
    replace_object,
    rewrite_manifest,
)
from fanout.variants.package_preparation import (
    ObjectPlace,
    PreparedPackage,
    SharedRun,
    StepMatch,
    StepResult,
)
from fanout.variants.pipeline_steps import (
    ALL_OBJECTS,
    DeclaredFunction,
    FunctionStep,
    function_error,
)
from fanout.variants.program_run import parse_result_path, run_external_function
from fanout.variants.size_accounting import SizeCounter
from fanout.variants.target_edits import CACHE_ENTRIES, TargetEdits, build_overlays

NEW_FILE_MODE = "100644"
MAX_VISITS = 1_000_000  # of objects by functions, half a minute


def shared_run(
    prepared: PreparedPackage, steps: tuple[FunctionStep, ...], responses: Responses
) -> SharedRun:
    """Return the shared run of these steps, cached by what the steps do.

    Raises InvalidInput with file and line when an object does not have the shape that a
    step needs, and InputPending.
    """
    key = tuple(step.key for step in steps)
    run = prepared.run_cache.get(key)
    if run is None:
        # A run holds changes and blobs of the complete package; an unbounded cache would grow with
        # the number of distinct configurations.
        if len(prepared.run_cache) >= CACHE_ENTRIES:
            prepared.run_cache.clear()
        run = prepared.run_cache[key] = _run_shared(prepared, steps, responses)
    return run


def is_visible(
    prepared: PreparedPackage, step: FunctionStep, place: ObjectPlace, overlay: Overlay
) -> bool:
    """Return whether the function of the step gets this object."""
    return (
        place[0].startswith(step.directory_prefix)
        and (step.function.includes_local or place not in prepared.local_config)
        and not overlay.dropped
        and (step.selection is ALL_OBJECTS or step.selection.selects(overlay.value))
    )


def run_step(
    step: FunctionStep, facts: PackageFacts, overlay: Overlay, size_counter: SizeCounter
) -> Iterable[FunctionResult]:
    """Run a function on one visible object and return its findings.

    Raises InvalidInput with file and line when the object does not fit the function, or
    when the package would exceed its size limits.
    """
    function = step.function
    assert isinstance(function, CatalogFunction), "programs see all objects at once"
    item = show_object(step, overlay, size_counter)
    try:
        changes = function.changes(step.config, item, facts)
        # Applied while the function still yields: each change is counted against the size limits
        # before the next one is even computed, so a runaway function is stopped early.
        for path, value in () if step.validates else changes:
            present = overlay.peek(path)
            size_counter.count_change(overlay.file, path, present, value)
            if not path and value is not REMOVE:
                replace_object(overlay, value, facts.list_schemas)
            elif isinstance(value, list) and isinstance(present, list):
                replace_object(overlay, with_value(overlay.value, path, value), facts.list_schemas)
            else:
                overlay.set(path, value)
        if step.validates:
            # A validator's changes are discarded, but its generator must run to raise UnfitObject.
            deque(changes, maxlen=0)
        if function.check_object is None:
            return ()
        item = item._replace(value=overlay.value)
        findings = list(function.check_object(step.config, item, facts))
    except UnfitObject as unfit:
        raise overlay.unfit_error(function.name, unfit) from None
    return [
        FunctionResult(problem, severity, function.name, overlay.locate(path))
        for path, problem, severity in findings
    ]


def show_object(step: FunctionStep, overlay: Overlay, size_counter: SizeCounter) -> VisibleObject:
    """Return the object as the function of the step gets it."""
    file = overlay.file[len(step.directory_prefix) :]
    return VisibleObject(overlay.value, file, overlay, size_counter)


def list_sought(step: FunctionStep) -> frozenset[str]:
    """Return the names that the function looks for in the objects."""
    matching = step.function.matching
    return frozenset() if matching is None or step.validates else matching.list_names(step.config)


def find_sought(step: FunctionStep, overlay: Overlay, size_counter: SizeCounter) -> frozenset[str]:
    """Return the names that an object has, maybe others too, before the function runs on it."""
    matching = step.function.matching
    assert matching is not None, "only a function with names looks for any"
    return frozenset(matching.find_names(step.config, show_object(step, overlay, size_counter)))


def report_unmatched(step: FunctionStep, missing: frozenset[str]) -> FunctionResult:
    """Return the result of the function about names that no object has.

    It is a warning if there are no others. One configuration may serve several packages, so one
    that is used in part is often meant.
    """
    matching = step.function.matching
    assert matching is not None, "only a function with names looks for any"
    severity = "warning" if missing == matching.list_names(step.config) else "info"
    where = replace(step.where, object="", field="")
    message = matching.describe(", ".join(sorted(missing)))
    return FunctionResult(message, severity, step.function.name, where)


def collect_facts(
    prepared: PreparedPackage,
    step: FunctionStep,
    overlays: Mapping[ObjectPlace, Overlay],
    responses: Responses,
) -> PackageFacts:
    """Return the facts that the function may use, with the response to its required input.

    Raises InputPending while the input is missing, and InvalidInput where it cannot be had.
    """
    facts = prepared.facts
    # The set of namespaced objects is computed only where an object declares dependencies, since it
    # costs a walk over all objects per step.
    if prepared.has_dependencies:
        namespaced: set[Identity] = set()
        for place, overlay in overlays.items():
            if place in prepared.local_config or overlay.dropped:
                continue
            meta = mapping(overlay.value.get("metadata"))
            group, kind = group_kind(overlay.value)
            if is_namespaced(group, kind, meta.get("namespace"), prepared.facts):
                namespace = str(meta.get("namespace") or "default")
                namespaced.add((group, kind, namespace, str(meta.get("name", ""))))
        facts = replace(facts, namespaced=frozenset(namespaced))
    function = step.function
    if isinstance(function, ExternalFunction) or function.build_request is None:
        return facts
    response = get_response(function.build_request(step.config), responses)
    if isinstance(response, ResponseError):
        problem = InvalidInput(response.problem, remedy=response.remedy)
        raise function_error(function, problem, step.where)
    return replace(facts, response=response)


def first_object(manifest: Manifest, overlays: Mapping[ObjectPlace, Overlay]) -> Object:
    """Return the first object of a file, with its changes so far."""
    document = manifest.documents[0]
    overlay = overlays.get((manifest.file, document.index))
    value: Object = overlay.value if overlay else document.value
    return value


def put_file(
    file: str, data: bytes | None, entries: dict[str, TreeEntry], blobs: dict[str, bytes]
) -> None:
    """Store a file's new content in `entries` and `blobs`; None removes the file."""
    if data is None:
        entries.pop(file, None)
        return
    oid = blob_id(data)
    present = entries.get(file)
    entries[file] = TreeEntry(present.mode if present else NEW_FILE_MODE, oid)
    blobs[oid] = data


def _run_shared(
    prepared: PreparedPackage, steps: tuple[FunctionStep, ...], responses: Responses
) -> SharedRun:
    overlays = prepared.new_overlays()
    if len(steps) * len(overlays) > MAX_VISITS:
        raise InvalidInput(
            f"{len(steps):,} functions would visit {len(overlays):,} objects, more than"
            f" {MAX_VISITS:,} times together",
            reason=Reason.LIMIT_EXCEEDED,
            remedy="combine functions, or split the package",
        )
    steps_with_facts: list[tuple[FunctionStep, PackageFacts]] = []
    results: list[StepResult] = []
    unmatched: list[frozenset[str]] = []
    matches: list[StepMatch] = []
    size_counter = prepared.new_size_counter()
    for number, step in enumerate(steps):
        missing = list_sought(step)
        # Anew for every step: facts name the objects of the package, which earlier steps may have
        # renamed or moved to another namespace.
        facts = collect_facts(prepared, step, overlays, responses)
        steps_with_facts.append((step, facts))
        for place, overlay in overlays.items():
            if is_visible(prepared, step, place, overlay):
                if missing and (names := find_sought(step, overlay, size_counter)):
                    if place[0] in prepared.varying_files:
                        matches.append(StepMatch(number, place, names))
                    else:
                        missing -= names
                step_results = run_step(step, facts, overlay, size_counter)
                results += [StepResult(number, place, result) for result in step_results]
        unmatched.append(missing)
    changes_by_place = {place: overlay.collect_changes() for place, overlay in overlays.items()}
    entries = dict(prepared.entries)
    blobs: dict[str, bytes] = {}
    changes_by_file: dict[str, dict[int, ObjectChanges]] = {}
    for (file, number), object_changes in changes_by_place.items():
        if object_changes is not NO_CHANGES and file not in prepared.varying_files:
            changes_by_file.setdefault(file, {})[number] = object_changes
    for file, file_changes in changes_by_file.items():
        put_file(file, rewrite_manifest(prepared.manifests[file], file_changes), entries, blobs)
    varying_changes = {
        place: changes
        for place, changes in changes_by_place.items()
        if place[0] in prepared.varying_files
    }
    varying = {KPTFILE, *prepared.varying_files}
    # The tree template needs a row for every varying file, also for one that upstream does not have
    # (the package context that is added).
    no_entry = TreeEntry("100644", "0" * 40)  # stands for a file of the variant
    return SharedRun(
        tuple(steps_with_facts),
        varying_changes,
        entries,
        blobs,
        TreeTemplate({**dict.fromkeys(varying, no_entry), **entries}, varying),
        tuple(results),
        tuple(unmatched),
        tuple(matches),
    )


_SUFFIXES = (".yaml", ".yml")


@dataclass(slots=True)
class WholePackageRun:
    """The objects of one variant while its pipeline runs."""

    prepared: PreparedPackage
    manifests: Mapping[str, Manifest]  # of varying files
    overlays: dict[ObjectPlace, Overlay]
    size_counter: SizeCounter
    responses: Responses
    added: dict[ObjectPlace, Manifest] = field(default_factory=dict)  # added objects, by place
    # the first step that adds an object to each file
    adding_steps: dict[str, FunctionStep] = field(default_factory=dict)
    results: list[FunctionResult] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        prepared: PreparedPackage,
        manifests: Mapping[str, Manifest],
        target_edits: TargetEdits,
        responses: Responses,
    ) -> "WholePackageRun":
        """Start from the objects with the edits of the target. Raises InvalidInput."""
        size_counter = prepared.new_size_counter()
        overlays = prepared.new_overlays() | build_overlays(manifests, target_edits, size_counter)
        return cls(prepared, manifests, overlays, size_counter, responses)

    def run(self, pipeline: Sequence[FunctionStep | DeclaredFunction]) -> None:
        """Run all functions in order, up to the first that reports an error.

        Raises InvalidInput, and InputPending while a required input is missing.
        """
        for item in pipeline:
            step = item if isinstance(item, FunctionStep) else item.build_step(self.read)
            result_count = len(self.results)
            if isinstance(step.function, ExternalFunction):
                self._run_external(step, step.function)
            else:
                self._run_catalog_function(step, step.function)
            # kpt stops at the first failing function; going on would report errors that only follow
            # from it.
            if any(result.severity == ERROR for result in self.results[result_count:]):
                return

    def write(self) -> tuple[dict[str, TreeEntry], dict[str, bytes]]:
        """Return the entries of all files by path, and the content of new blobs by id."""
        entries, blobs = dict(self.prepared.entries), dict[str, bytes]()
        # Prepared manifests are written even without changes: their text already differs from
        # upstream's by the empty fields that were put in.
        changes_by_file: dict[str, dict[int, ObjectChanges]] = {file: {} for file in self.manifests}
        for (file, number), overlay in self.overlays.items():
            changes = overlay.collect_changes()
            if changes is not NO_CHANGES and (file, number) not in self.added:
                changes_by_file.setdefault(file, {})[number] = changes
        for file, file_changes in changes_by_file.items():
            put_file(file, rewrite_manifest(self._manifest(file), file_changes), entries, blobs)
        for file in self.adding_steps:
            parts = []
            if file in entries:
                rewritten = blobs.get(entries[file].oid)
                parts.append(rewritten if rewritten is not None else self._manifest(file).data)
            for place, manifest in self.added.items():
                if place[0] == file:
                    data = rewrite_manifest(manifest, {0: self.overlays[place].collect_changes()})
                    parts += [data] if data is not None else []
            if parts:
                put_file(file, join_documents(parts), entries, blobs)
        # A file may be added that some system cannot store beside the others. Upstream's own files
        # were checked, so one of the two is new.
        new_files = (self.adding_steps.keys() & entries.keys()) - self.prepared.entries.keys()
        for file, problem in find_unportable_files(entries) if new_files else ():
            step = self.adding_steps[file if file in new_files else min(new_files)]
            sentence = f"{escape_unprintable(file)} {problem}"
            remedy = "change the function so that it uses another path"
            raise function_error(step.function, InvalidInput(sentence, remedy=remedy), step.where)
        for file in self.manifests:
            upstream_entry = self.prepared.entries.get(file)
            if upstream_entry is not None and entries.get(file) == upstream_entry:
                blobs.pop(upstream_entry.oid, None)
        return entries, blobs

    def _manifest(self, file: str) -> Manifest:
        return self.manifests.get(file) or self.prepared.manifests[file]

    def read(self, file: str) -> Object:
        """Return the first object of a file at this point of the run."""
        return first_object(self._manifest(file), self.overlays)

    def visible_objects(self, step: FunctionStep) -> dict[ObjectPlace, Overlay]:
        """Return the objects that the function gets, at this point of the run."""
        return {
            place: overlay
            for place, overlay in self.overlays.items()
            if (place in self.prepared.objects or place in self.added)
            and is_visible(self.prepared, step, place, overlay)
        }

    def _run_catalog_function(self, step: FunctionStep, function: CatalogFunction) -> None:
        visible = self.visible_objects(step)
        # The survey counts on a copy, since applying the changes counts them again.
        survey_counter = self.size_counter.copy()
        objects = tuple(show_object(step, it, survey_counter) for it in visible.values())
        facts = collect_facts(self.prepared, step, self.overlays, self.responses)
        try:
            added_objects = (
                list(function.add_objects(step.config, objects)) if function.add_objects else []
            )
            if function.survey:
                facts = replace(facts, survey=function.survey(step.config, objects))
            if function.report_package:
                for unlocated in function.report_package(step.config, objects, facts):
                    result = unlocated._replace(function=function.name)
                    # With the line if the configuration is meant.
                    if result.where.field and not result.where.file:
                        file, line = step.where.file, step.where.line
                        if step.config_file:
                            file = step.config_file
                            document = self._manifest(file).documents[0]
                            line = document.line_of(parse_result_path(result.where.field))
                        result = result._replace(where=replace(result.where, file=file, line=line))
                    self.results.append(result)
        except InvalidInput as problem:
            raise function_error(function, problem, step.where) from None
        missing = list_sought(step)
        for overlay in visible.values():
            if missing:
                missing -= find_sought(step, overlay, self.size_counter)
            self.results += run_step(step, facts, overlay, self.size_counter)
        if missing:
            self.results.append(report_unmatched(step, missing))
        if not step.validates:
            for path, item in added_objects:
                self._add_object(step, f"{step.directory_prefix}{path}", item)

    def _run_external(self, step: FunctionStep, function: ExternalFunction) -> None:
        """Send the visible objects to a program and take over the objects that it returns."""
        occupied = {*self.prepared.objects, *self.overlays}
        schemas = self.prepared.facts.list_schemas
        # A local-config List has no name, and programs must return objects with one.
        visible = {
            place: it
            for place, it in self.visible_objects(step).items()
            if not is_plain_list(it.value) and not is_list(it.value)
        }
        try:
            added_objects, results = run_external_function(
                step, function, visible, occupied, self.responses, schemas
            )
        except InvalidInput as problem:
            raise function_error(function, problem, step.where) from None
        self.results += results
        for path, item in added_objects:
            self._add_object(step, f"{step.directory_prefix}{path}", item)

    def _add_object(self, step: FunctionStep, file: str, item: Object) -> None:
        problem = find_package_path_problem(file)
        remedy = "change the function so that it uses another path"
        if not problem and (not file.endswith(_SUFFIXES) or file.rpartition("/")[2] == KPTFILE):
            problem = f"{file} is not the name of a YAML file"
        if not problem and file in self.prepared.entries and file not in self.prepared.manifests:
            problem = f"{file} exists and has no objects"
        if is_plain_list(item):
            problem = "a List cannot be added"
            remedy = "change the function so that it adds the items one by one"
        identity = f"{item.get('kind', '')}/{mapping(item.get('metadata')).get('name', '')}"
        if problem:
            error = InvalidInput(f"{identity}: {problem}", remedy=remedy)
            raise function_error(step.function, error, step.where)
        try:
            # Counted before the object is written as YAML, which is where the memory would go.
            self.size_counter.count_change(file, (), MISSING, dict(item))
            new_file_count = len(
                {name for name, _ in self.added} | {file} - self.prepared.entries.keys()
            )
            limits = self.prepared.limits
            if new_file_count + len(self.prepared.entries) > limits.files:
                raise function_error(step.function, limits.too_many_error(), step.where)
        except UnfitObject as unfit:
            problem = f"{file}: {identity}: {unfit.problem}"
            error = InvalidInput(problem, reason=unfit.reason, remedy=unfit.remedy)
            raise function_error(step.function, error, step.where) from None
        manifest = Manifest.parse(dump(item).encode(), file)
        numbers = [number for name, number in self.added if name == file]
        if file in self.prepared.manifests:
            numbers += find_objects(self._manifest(file))
        number = max(numbers, default=-1) + 1
        self.added[file, number] = manifest
        self.adding_steps.setdefault(file, step)
        self.overlays[file, number] = Overlay(file, manifest.documents[0])
