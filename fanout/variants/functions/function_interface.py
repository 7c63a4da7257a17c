"""Interface of functions: a name, a version, configuration, and changes to one object at a time.

A function never edits text. It gets an object as it is at that point of the pipeline and yields
changes; the pipeline applies these to the text. One function thus serves every layout of YAML, and
its changes to an object can be shared by all targets with the same configuration. The few functions
that need several objects at once declare that, and run for every target.

A function is configured by a ConfigMap's data or by fields of an own kind, and by texts alone;
`infer_value` gives such a text the type that it has at its place in an object.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeGuard

from fanout.api.field_errors import suggest_name
from fanout.api.reasons import Reason
from fanout.api.text_fields import PATTERN_MESSAGES
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import canonical_text
from fanout.package.merge.merge_keys import Schemas
from fanout.package.value_spelling import ValueSpelling
from fanout.package.yaml_scalars import dump, format_number, resolve_scalar
from fanout.selection.cluster_objects import group_of
from fanout.values import Value, field
from fanout.variants.function_requests import FunctionRequest, KrmProgram, ProgramRun

Path = tuple[str | int, ...]
# Path and new value; missing maps on the way are created. At the empty path REMOVE removes the
# object from the package, and any other value replaces the object, whose text is kept as far as
# possible. A LineComment is put on the line of the existing value.
Change = tuple[Path, object]
Identity = tuple[str, str, str, str]  # group, kind, namespace, name
Object = Mapping[str, Any]

ERROR = "error"  # the severity of a result that fails the rendering


class LineComment(NamedTuple):
    """A comment for the line of a value, without its `#`."""

    text: str


class UnfitObject(Exception):
    """An object does not fit a function; the pipeline adds file and line."""

    def __init__(
        self, path: Path, problem: str, remedy: str, reason: Reason = Reason.RENDER_FAILED
    ) -> None:
        super().__init__(problem)
        self.reason = reason
        self.path = path
        self.problem = problem
        self.remedy = remedy


def render_error(
    problem: str, remedy: str = "", where: ErrorLocation | None = None
) -> InvalidInput:
    """Build the error for a package that cannot be rendered."""
    return InvalidInput(problem, reason=Reason.RENDER_FAILED, remedy=remedy, where=where)


class FunctionResult(NamedTuple):
    """A message of a function about the package."""

    message: str
    severity: str = "info"  # info | warning | error
    function: str = ""
    where: ErrorLocation = ErrorLocation()

    @property
    def sentence(self) -> str:
        """Return the function, place and message as one line."""
        return ": ".join(filter(None, (self.function, str(self.where), self.message)))


class ObjectFinding(NamedTuple):
    """A problem that a function reports about a value of an object."""

    path: Path
    problem: str
    severity: str = ERROR


class ObjectText(Protocol):
    """Text of an object in its file: comments and spellings of its values."""

    def comments(self) -> Mapping[Path, str]:
        """Return the comments on lines of values by path, including those set by functions."""

    def spelling(self, path: Path) -> ValueSpelling:
        """Return the spelling of an existing value."""


class SizeLimiter(Protocol):
    """Limiter of the bytes that functions add; all methods raise UnfitObject for the path."""

    def count_change(self, file: str, path: Path, old_value: object, new_value: object) -> None:
        """Count that one value replaces another."""

    def substitute(
        self, pattern: re.Pattern[str], text: str, value: Callable[[re.Match[str]], str], path: Path
    ) -> str:
        """Return the text with every match of the pattern replaced by `value(match)`."""

    def join(self, separator: str, parts: Sequence[str], path: Path) -> str:
        """Return the parts joined by the separator."""


class VisibleObject(NamedTuple):
    """One of the objects that a function gets."""

    value: Object
    file: str  # relative to the package of the pipeline
    text: ObjectText
    size_limiter: SizeLimiter


class PackageFacts(Value):
    """Facts about the package around an object, at the time before the function.

    `namespaced` is set only where some object of the package names its dependencies, `survey` and
    `response` where the function uses them. `custom_schemas` is by apiVersion and kind.
    """

    # Whether custom kinds have a namespace, by definitions in the package and declared ones.
    scopes: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    namespaced: frozenset[Identity] = frozenset()
    survey: Any = None
    response: Any = None  # to the function's pending input
    # schemas of the CRDs
    custom_schemas: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    list_schemas: Schemas = field(default_factory=dict)  # of lists in custom kinds


class Matching(Value):
    """Names that a function looks for in the objects, so that it can say which no object has."""

    list_names: Callable[[Any], frozenset[str]]  # names in a configuration
    # Yields the names that an object has, maybe others too, before the function changes it.
    find_names: Callable[[Any, VisibleObject], Iterator[str]]
    describe: Callable[[str], str]  # a sentence about names that no object has


class CatalogFunction(Value):
    """A function of the catalog that runs inside fanout.

    `version` enters the digest: raise it whenever the function yields something else for the same
    package. `configure` parses the configuration object to a hashable value and raises
    InvalidInput. `changes` yields the changes to an object and raises UnfitObject. Without
    `depends_on`, variants are never rendered from a compiled template.
    """

    name: str
    version: str
    configure: Callable[[Object], Hashable]
    changes: Callable[[Any, VisibleObject, PackageFacts], Iterator[Change]]
    includes_local: bool = False  # it gets local-config objects too
    # Collects facts from all its objects together; raises InvalidInput.
    survey: Callable[[Any, Sequence[VisibleObject]], object] | None = None
    # Yields files and objects to add to the package; raises InvalidInput.
    add_objects: Callable[[Any, Sequence[VisibleObject]], Iterator[tuple[str, Object]]] | None = (
        None
    )
    # Yields results about its objects, or about its configuration with a field and no file.
    report_package: (
        Callable[[Any, Sequence[VisibleObject], PackageFacts], Iterator[FunctionResult]] | None
    ) = None
    # Yields findings in one object.
    check_object: Callable[[Any, VisibleObject, PackageFacts], Iterator[ObjectFinding]] | None = (
        None
    )
    # Yields values of configuration and object that decide where `changes` sets something; other
    # texts of the configuration are only passed through, alone or in a text. None: unknown.
    depends_on: Callable[[Any, VisibleObject], Iterator[object]] | None = None
    # Returns whether a setting, by name and text, is only passed through.
    passes_through: Callable[[str, str], bool] = lambda _name, _text: True
    matching: Matching | None = None
    uses_scopes: bool = False  # it depends on the scopes of kinds
    # Returns the request it needs before it runs; the response is in the facts.
    build_request: Callable[[Any], FunctionRequest] | None = None

    @property
    def needs_whole_package(self) -> bool:
        """Return whether the function needs several objects at once."""
        return any((self.survey, self.add_objects, self.report_package))


class ExternalFunction(Value):
    """A function run as an external program; it gets all objects at once, as in kpt."""

    program: KrmProgram
    includes_local: bool = True
    needs_whole_package: bool = True
    matching: Matching | None = None  # it looks for nothing that is known
    uses_scopes: bool = False

    @property
    def name(self) -> str:
        """Return the name used by the pipeline."""
        return self.program.name

    @property
    def version(self) -> str:
        """Return the version of the program; it enters the digest."""
        return self.program.version

    def configure(self, config: Object) -> str:
        """Return the configuration as canonical JSON, which is passed to the program."""
        return canonical_text(config)

    def build_request(self, config: str, resource_list: Mapping[str, Any]) -> FunctionRequest:
        """Return the request to run the program on a ResourceList."""
        del config  # contained in the ResourceList
        return ProgramRun(self.program, dump(resource_list).encode())


# `isinstance` with an abstract class alone is several times slower, and `mapping` is
# called for nearly every field that is read.
_MAPS = (dict, Mapping)  # dict first: it is the fast check


def mapping(value: object) -> Mapping[Any, Any]:
    """Return the value if it is a map, else an empty map."""
    return value if isinstance(value, _MAPS) else {}


def group_kind(item: Object) -> tuple[str, str]:
    """Return group and kind of the object."""
    return group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))


def declared_identity(item: Object) -> Identity:
    """Return the identity that the object states; its namespace may be ""."""
    meta = mapping(item.get("metadata"))
    return *group_kind(item), str(meta.get("namespace") or ""), str(meta.get("name") or "")


def with_annotations(item: Object, annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with these annotations instead of its own."""
    metadata = {
        key: it for key, it in mapping(item.get("metadata")).items() if key != "annotations"
    }
    if annotations:
        metadata["annotations"] = annotations
    return {**item, "metadata": metadata}


def is_named_object(item: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the value is an object with apiVersion, kind and name."""
    fields = mapping(item)
    names = (
        fields.get("apiVersion"),
        fields.get("kind"),
        mapping(fields.get("metadata")).get("name"),
    )
    return isinstance(item, dict) and all(isinstance(name, str) and name for name in names)


def kind_values(_config: Any, item: VisibleObject) -> Iterator[object]:
    """Yield apiVersion and kind: `depends_on` of functions that decide by nothing else."""
    yield item.value.get("apiVersion")
    yield item.value.get("kind")


def no_object_changes(_config: Any, _item: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
    """Return no changes, for a function that changes no object."""
    return iter(())


def default_file(item: Object) -> str:
    """Return kpt's path for an object without a file: by namespace, kind and name."""
    meta = mapping(item.get("metadata"))
    file = f"{str(item.get('kind', '')).lower()}_{meta.get('name', '')}.yaml".replace(":", "_")
    namespace = str(meta.get("namespace") or "")
    return f"{namespace}/{file}" if namespace else file


# ---- configuration ------------------------------------------------------------------------------


class UnknownField(InvalidInput):
    """The function has no setting of this name."""


FUNCTION_GROUP = "fn.kpt.dev/"


def is_function_kind(config: Object, kind: str) -> bool:
    """Return whether the configuration is of the function's kind; False for a ConfigMap.

    Raises InvalidInput for other kinds.
    """
    api_version, config_kind = str(config.get("apiVersion", "")), config.get("kind")
    if (api_version, config_kind) == ("v1", "ConfigMap"):
        return False
    if api_version.startswith(FUNCTION_GROUP) and config_kind == kind:
        return True
    raise InvalidInput(
        f"the configuration is of kind {config_kind} ({api_version})",
        remedy=f"use a v1 ConfigMap or a {FUNCTION_GROUP}v1alpha1 {kind}",
    )


def parse_data(config: Object) -> tuple[tuple[str, str], ...]:
    """Return the sorted data of a ConfigMap. Raises InvalidInput for other kinds."""
    api_version, config_kind = config.get("apiVersion"), config.get("kind")
    if (api_version, config_kind) != ("v1", "ConfigMap"):
        raise InvalidInput(
            f"the configuration is of kind {config_kind} ({api_version})",
            remedy="use a v1 ConfigMap",
        )
    return parse_texts(config.get("data"), "data")


def parse_fields(values: object, field: str, known_names: Collection[str]) -> Mapping[str, str]:
    """Return texts by setting name.

    `field` is where they are in the configuration, for errors. Raises UnknownField for
    other names and InvalidInput for values that are not text.
    """
    texts = dict(parse_texts(values, field))
    for key in texts:
        if key not in known_names:
            alternatives = f"use {', '.join(known_names)}" if known_names else "remove it"
            raise UnknownField(
                f"unknown field {field}.{key}",
                remedy=suggest_name(key, list(known_names), alternatives),
            )
    return texts


@contextmanager
def errors_at(field: str) -> Iterator[None]:
    """Put the field of the configuration in front of the errors that are raised here."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{field}: {error.problem}", remedy=error.remedy) from None


def check_words(words: Iterable[str], pattern: str) -> None:
    """Raise InvalidInput for words that Kubernetes would reject at their place.

    `pattern` is one of those with a message in `PATTERN_MESSAGES`.
    """
    problem, remedy = PATTERN_MESSAGES[pattern]
    for word in words:
        if re.fullmatch(pattern, word) is None:
            raise InvalidInput(f"{word!r} {problem}", remedy=remedy)


def check_inline_names(config: Object, known_names: Collection[str]) -> None:
    """Raise InvalidInput for unknown names in a configuration for this function alone.

    A ConfigMap of the package has a name and may serve others too, so its keys are not checked.
    """
    if config.get("kind") == "ConfigMap" and not mapping(config.get("metadata")).get("name"):
        parse_fields(config.get("data"), "data", known_names)


def refuse_settings(config: Object) -> None:
    """Raise InvalidInput for any setting, for a function without settings."""
    check_inline_names(config, ())


def parse_texts(values: object, field: str) -> tuple[tuple[str, str], ...]:
    """Return texts by name, sorted. Raises InvalidInput for what is no map of texts."""
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput(f"{field} is not a map", remedy="write names and values")
    for key, value in mapping(values).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"{field}.{key} is not a string", remedy="put the value in quotes")
    return tuple(sorted(mapping(values).items()))


_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
_CONFIGURATION = frozenset({("v1", "ConfigMap"), ("v1", "Secret")})


def infer_value(text: str, spelling: ValueSpelling, path: Path, item: Object) -> object:
    """Return the value that the text is at this place of the object.

    As in the catalog, a quoted value stays text, and any other becomes what it reads as.
    Labels, annotations and a ConfigMap's data stay text, since Kubernetes requires that,
    and so does a number that would lose a digit (1.20).
    """
    if not text or spelling.quoted:
        return text
    if len(path) > 1:
        kind = (item.get("apiVersion"), item.get("kind"))
        is_data = path[0] in ("data", "stringData") and kind in _CONFIGURATION
        if path[-2] in _TEXT_MAPS or is_data:
            return text
    try:
        value = resolve_scalar(text)
    except ValueError:
        return text
    if isinstance(value, float) and format_number(value) != text:
        return text
    return value
