"""The functions that run on a variant: the package's own, and before them those of its policy.

Order is kpt's: the pipelines of subpackages before that of the package around them, each for the
files below its own directory, in each the mutators before the validators; in the package's own
sections the policy's functions come first. What cannot be run is an error that names it, never
skipped (design §4).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache

from fanout.api.paths import path_inside
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.kptfile_rules import pipeline_faults
from fanout.package.manifests import Manifest
from fanout.selection.model import Function, VariantSpec
from fanout.values import frozen, replace
from fanout.variants.available import available
from fanout.variants.functions.function import External, InProcess, Object, mapping
from fanout.variants.functions.registry import find
from fanout.variants.questions import NO_PROGRAMS, Programs
from fanout.variants.selection import ALL, Selection

NOWHERE = Where()
_MUTATORS, _VALIDATORS = _SECTIONS = ("mutators", "validators")
_Files = Mapping[str, Manifest]


@frozen
class Step:
    """One function, ready to run on the objects of the files below a directory."""

    function: InProcess | External
    config: Hashable
    below: str = ""  # "" or a directory with its slash
    selection: Selection = ALL
    where: Where = NOWHERE  # of its entry, for errors
    validates: bool = False  # it only judges: what it changes is forgotten
    config_file: str = ""  # "": its configuration is in its entry

    @property
    def key(self) -> Hashable:
        """Equal for steps that do the same."""
        return (
            self.function.name,
            self.config,
            self.below,
            self.selection.key,
            self.validates,
        )


@frozen
class Declared:
    """A function whose configuration may be a file of the package, which can be other for every
    target: the package context often is it."""

    function: InProcess | External
    below: str
    selection: Selection
    where: Where
    config: Object | None  # None: it is in a file
    config_file: str = ""
    validates: bool = False

    def step(self, read: Callable[[str], Object]) -> Step:
        """The step, with its configuration; `read` gives a file's object as the variant has it."""
        config = read(self.config_file) if self.config is None else self.config
        return Step(
            self.function,
            configured(self.function, config, self.where),
            self.below,
            self.selection,
            self.where,
            self.validates,
            self.config_file,
        )


Pipeline = tuple[Step | Declared, ...]


def configured(function: InProcess | External, config: Object, where: Where) -> Hashable:
    """The function's configuration. Raises InvalidInput with the place of its entry."""
    try:
        return function.configure(config)
    except InvalidInput as problem:
        raise refused(function, problem, where) from None


def refused(function: InProcess | External, problem: InvalidInput, where: Where) -> InvalidInput:
    """The error as one of this function, at this place."""
    limited = problem.reason == Reason.LIMIT_EXCEEDED
    return InvalidInput(
        f"{function.name}: {problem.problem}",
        reason=problem.reason if limited else Reason.RENDER_FAILED,
        remedy=problem.remedy,
        where=where,
    )


def policy_functions(
    spec: VariantSpec, section: str, files: _Files, programs: Programs
) -> Iterator[Step | Declared]:
    """The policy's functions of a section. Raises InvalidInput with the entry's field."""
    functions: Sequence[Function] = getattr(spec, section)
    for at, function in enumerate(functions):
        try:
            if not function.config_path and find(function.image) is not None:
                yield _policy_step(function, spec, section, at)
            else:
                entry = {"image": function.image, **function.further()}
                entry["configMap"] = function.config
                yield _entry(entry, section, "", _place(spec, section, at), files, programs)
        except InvalidInput as problem:
            raise _at(problem, _place(spec, section, at)) from None


def _place(spec: VariantSpec, section: str, at: int) -> Where:
    """The field of a policy's function."""
    owner = spec.where.object or f"PackageVariant/{spec.name}"
    return replace(spec.where, object=owner, field=f"pipeline.{section}[{at}]")


def _policy_step(function: Function, spec: VariantSpec, section: str, at: int) -> Step:
    """One that is configured by texts, the same for many targets."""
    step = _ready(function.image, tuple(function.config.items()))
    if function.selectors or function.exclude:
        step = replace(step, selection=Selection.read(function.further()))
    if section == _VALIDATORS:
        step = replace(step, validates=True)
    return replace(step, where=_place(spec, section, at)) if _needs_place(step) else step


def _needs_place(step: Step) -> bool:
    """Can it fail where no object is at fault?"""
    return step.function.looks_around or step.validates


@lru_cache(maxsize=1024)
def _ready(image: str, config: tuple[tuple[str, str], ...]) -> Step:
    function = available({"image": image}, NO_PROGRAMS, NOWHERE)
    item = {"apiVersion": "v1", "kind": "ConfigMap", "data": dict(config)}
    return Step(function, configured(function, item, NOWHERE))


def read_pipelines(manifests: _Files, programs: Programs = NO_PROGRAMS) -> tuple[Declared, ...]:
    """The functions of all Kptfiles of the package in the order in which they run.

    Raises InvalidInput for one that is not available, with the line of its entry, and for a
    pipeline of which kpt's rules do not say what it means.
    """
    kptfiles = [file for file in manifests if file.rpartition("/")[2] == KPTFILE]
    deepest_first = sorted(kptfiles, key=lambda file: (-file.count("/"), file))
    return tuple(
        declared for file in deepest_first for declared in _declared(file, manifests, programs)
    )


def _declared(file: str, manifests: _Files, programs: Programs) -> Iterator[Declared]:
    document = manifests[file].documents[0]
    for fault in pipeline_faults(document):
        raise fault
    pipeline = mapping(mapping(document.value).get("pipeline"))
    directory = file[: -len(KPTFILE)]
    for section in _SECTIONS:
        entries = pipeline.get(section) or []
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            path = ("pipeline", section, index)
            where = Where(KPTFILE, f"pipeline.{section}[{index}]", file, document.line_of(path))
            yield _entry(mapping(entry), section, directory, where, manifests, programs)


def _entry(
    entry: Object,
    section: str,
    directory: str,
    where: Where,
    files: _Files,
    programs: Programs,
) -> Declared:
    function = available(entry, programs, where)
    validates = section == _VALIDATORS
    try:
        selection = Selection.read(entry)
    except InvalidInput as problem:
        raise _at(problem, where) from None
    if path := entry.get("configPath"):
        file = f"{directory}{path_inside(str(path)) or path}"
        if file not in files or not _is_one_object(files[file]):
            raise InvalidInput(
                f"{file}, the configuration of {function.name}, is no file with one object",
                reason=Reason.RENDER_FAILED,
                remedy="correct configPath, or the file",
                where=where,
            )
        return Declared(function, directory, selection, where, None, file, validates)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": mapping(entry.get("configMap"))}
    return Declared(function, directory, selection, where, config, validates=validates)


def _is_one_object(manifest: Manifest) -> bool:
    return [type(document.value) for document in manifest.documents] == [dict]


def _at(problem: InvalidInput, where: Where) -> InvalidInput:
    reason = problem.reason if problem.reason != "Error" else Reason.RENDER_FAILED
    return InvalidInput(problem.problem, reason=reason, remedy=problem.remedy, where=where)


def in_order(
    prepared: Sequence[Declared], own: int, spec: VariantSpec, files: _Files, programs: Programs
) -> Pipeline:
    """The whole pipeline of a variant; `own` is where the package's own functions begin in the
    prepared ones, behind those of subpackages. Raises InvalidInput."""
    if not spec.mutators and not spec.validators:
        return tuple(prepared)
    mine = prepared[own:]
    return (
        *prepared[:own],
        *policy_functions(spec, _MUTATORS, files, programs),
        *(item for item in mine if not item.validates),
        *policy_functions(spec, _VALIDATORS, files, programs),
        *(item for item in mine if item.validates),
    )
