"""The functions that run on a variant: the package's own, and before them those of its policy.

Order is kpt's: the pipelines of subpackages before that of the package around them, each for the
files below its own directory; in the package's own the policy's functions come first. What cannot
be run is an error that names it, never skipped (design §4).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.selection.model import Function, VariantSpec
from fanout.variants.functions.function import InProcess, Object, mapping
from fanout.variants.functions.registry import find
from fanout.variants.selection import ALL, Selection

NOWHERE = Where()


@dataclass(frozen=True, slots=True)
class Step:
    """One function, ready to run on the objects of the files below a directory."""

    function: InProcess
    config: Hashable
    below: str = ""  # "" or a directory with its slash
    selection: Selection = ALL
    where: Where = NOWHERE  # of its entry, for errors


@dataclass(frozen=True, slots=True)
class Declared:
    """A function of the package's own pipeline. Its configuration may be a file of the package,
    which can be other for every target: the package context often is it."""

    function: InProcess
    below: str
    selection: Selection
    where: Where
    config: Object | None  # None: it is in a file
    config_file: str = ""

    def step(self, read: Callable[[str], Object]) -> Step:
        """The step, with its configuration; `read` gives a file's object as the variant has it."""
        config = read(self.config_file) if self.config is None else self.config
        return Step(
            self.function,
            configured(self.function, config, self.where),
            self.below,
            self.selection,
            self.where,
        )


def configured(function: InProcess, config: Object, where: Where) -> Hashable:
    """The function's configuration. Raises InvalidInput with the place of its entry."""
    try:
        return function.configure(config)
    except InvalidInput as problem:
        raise refused(function, problem, where) from None


def refused(function: InProcess, problem: InvalidInput, where: Where) -> InvalidInput:
    """The error as one of this function, at this place."""
    return InvalidInput(
        f"{function.name}: {problem.problem}",
        reason=Reason.RENDER_FAILED,
        remedy=problem.remedy,
        where=where,
    )


def policy_step(function: Function, at: int, spec: VariantSpec) -> Step:
    """A function of the policy as a step. Raises InvalidInput."""
    owner = spec.where.object or f"PackageVariant/{spec.name}"
    where = replace(spec.where, object=owner, field=f"pipeline.mutators[{at}]")
    try:
        step = _ready(function.image, tuple(function.config.items()))
    except InvalidInput as problem:
        raise _at(problem, where) from None
    return replace(step, where=where) if step.function.looks_around else step


@lru_cache(maxsize=1024)
def _ready(image: str, config: tuple[tuple[str, str], ...]) -> Step:
    function = _available(image, Where())
    item = {"apiVersion": "v1", "kind": "ConfigMap", "data": dict(config)}
    return Step(function, configured(function, item, Where()))


def read_pipelines(manifests: Mapping[str, Manifest]) -> tuple[Declared, ...]:
    """The functions of all Kptfiles of the package in the order in which they run.

    Raises InvalidInput for one that is not available, with the line of its entry.
    """
    kptfiles = [file for file in manifests if file.rpartition("/")[2] == KPTFILE]
    deepest_first = sorted(kptfiles, key=lambda file: (-file.count("/"), file))
    return tuple(declared for file in deepest_first for declared in _declared(file, manifests))


def _declared(file: str, manifests: Mapping[str, Manifest]) -> Iterator[Declared]:
    document = manifests[file].documents[0]
    pipeline = mapping(mapping(document.value).get("pipeline"))
    directory = file[: -len(KPTFILE)]
    for field in ("mutators", "validators"):
        entries = pipeline.get(field) or []
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            path = ("pipeline", field, index)
            where = Where(KPTFILE, f"pipeline.{field}[{index}]", file, document.line_of(path))
            if field == "validators" or not isinstance(entry, Mapping) or "image" not in entry:
                fields = mapping(entry)
                raise _unavailable(str(fields.get("image") or fields.get("exec")), where)
            yield _entry(entry, directory, where, manifests)


def _entry(
    entry: Object, directory: str, where: Where, manifests: Mapping[str, Manifest]
) -> Declared:
    function = _available(str(entry["image"]), where)
    try:
        selection = Selection.read(entry)
    except InvalidInput as problem:
        raise _at(problem, where) from None
    if path := entry.get("configPath"):
        file = f"{directory}{path}"
        if file not in manifests or len(manifests[file].documents) != 1:
            raise InvalidInput(
                f"{file}, the configuration of {function.name}, is no file with one object",
                reason=Reason.RENDER_FAILED,
                remedy="correct configPath, or the file",
                where=where,
            )
        return Declared(function, directory, selection, where, None, file)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": mapping(entry.get("configMap"))}
    return Declared(function, directory, selection, where, config)


def _available(image: str, where: Where) -> InProcess:
    function = find(image)
    if function is None:
        raise _unavailable(image, where)
    return function


def _unavailable(image: str, where: Where) -> InvalidInput:
    return InvalidInput(
        f"the function {image} is not available",
        reason=Reason.RENDER_FAILED,
        remedy="take it out of the pipeline, or use one that runs in process",
        where=where,
    )


def _at(problem: InvalidInput, where: Where) -> InvalidInput:
    return InvalidInput(
        problem.problem, reason=Reason.RENDER_FAILED, remedy=problem.remedy, where=where
    )
