"""Types of text fields, each with a pattern and the error message for it.

The pattern goes into the schemas, so that editors and the API server check it; people
read the message instead of the pattern.

A package's path becomes part of branch and tag names (docs/concepts/drafts-and-git.md), so it must
be valid in a ref. A path that an expression yields is checked here too, before anything is named
after it.
"""

import re
from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Annotated, Any, TypeVar
from unicodedata import normalize

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, WithJsonSchema

from fanout.api.field_errors import InvalidValue

# Bounds of lists and maps. The API server estimates what its rules cost from the product of the
# bounds of nested lists, and refuses kinds whose rules could cost too much.
MAX_ENTRIES = 64  # lists of objects with rules
MAX_HEADERS = 32
MAX_TARGETS = 500
MAX_TEMPLATE_LABELS = 500
MAX_VALUES = 1_000  # plain lists and maps
MAX_NAMES = 100_000  # variants and trees of a record
MAX_TEXT = 1_048_576  # as a ConfigMap

NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
OPTIONAL_NAME = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"
NAME_PATTERN = r"^[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?$"
RECORD_NAME = r"^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?$"
OBJECT_NAME = r"^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"
LABEL_KEY = (
    r"^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
KEY = r"^[-._a-zA-Z0-9]{1,253}$"
KIND = r"^[A-Z][A-Za-z0-9]{0,62}$"
API_VERSION = r"^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/)?v[0-9][a-z0-9]{0,61}$"
COMMIT = r"^[0-9a-f]{40}$"
REVISION = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$"
# What is in every path of a package, file or branch. Further rules are in `_segment_problem`.
_PATH_CHARACTER = r"[^./\p{C}\p{Z}~^:?*\[\\]"
_PATH_SEGMENT = rf"[^-./\p{{C}}\p{{Z}}~^:?*\[\\](\.?{_PATH_CHARACTER})*"
PATH_PATTERN = rf"^{_PATH_SEGMENT}(/{_PATH_SEGMENT})*$"
FUNCTION_NAME = r"^[A-Za-z0-9][-_A-Za-z0-9]{0,62}$"
LINK = r"^(https?://[^\s/]\S*)?$"
CONFLICT = r"^[0-9a-f]{16}$"

_NAME_MESSAGE = (
    "is not a valid name",
    "write at most 63 lowercase letters, digits and dashes, a letter or digit at both ends",
)
PATTERN_MESSAGES: Mapping[str, tuple[str, str]] = {
    NAME: _NAME_MESSAGE,
    OPTIONAL_NAME: _NAME_MESSAGE,
    NAME_PATTERN: (
        "is not a valid name or pattern",
        "write a name of lowercase letters, digits and dashes; a * stands for any text",
    ),
    RECORD_NAME: (
        "is not a valid name of a record",
        "write lowercase letters, digits, dashes and dots, a letter or digit at both ends",
    ),
    OBJECT_NAME: (
        "is not a valid name of a Kubernetes object",
        "write lowercase letters, digits, dashes and dots, a letter or digit at both ends",
    ),
    LABEL_KEY: ("is not a valid label key", "write it like team or example.com/team"),
    LABEL_VALUE: (
        "is not a valid label value",
        "write at most 63 letters, digits, dashes, dots and underscores",
    ),
    KEY: ("is not a valid ConfigMap key", "write letters, digits, dashes, dots and underscores"),
    KIND: ("is not a valid kind", "write it in CamelCase, like ConfigMap"),
    API_VERSION: ("is not a valid apiVersion", "write it like v1 or example.com/v1alpha1"),
    COMMIT: ("is not a valid full commit or tree id", "write all 40 digits, lowercase"),
    REVISION: ("is not a valid revision", "write it like v3, v1.2.3 or a commit's 40 digits"),
    CONFLICT: ("is not a conflict key", "write the 16 digits that `fanout diff` shows"),
    LINK: ("is not a valid web address", "write one that begins with https:// or http://"),
    FUNCTION_NAME: (
        "is not a valid name of a function",
        "write letters, digits, dashes and underscores, no dots",
    ),
}

Item = TypeVar("Item")


def schema_keywords(**keywords: JsonValue) -> Any:
    """Return an annotation that adds keywords to the schema of a field.

    For what the validation has in another form: a length that a pattern implies, a pattern that
    allows what a validator refuses with a better message.
    """
    return Field(json_schema_extra=dict(keywords))


def list_map(key: str) -> dict[str, JsonValue]:
    """Return the keywords of a list whose entries Kubernetes tells apart by one of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def _check_distinct(values: tuple[Item, ...]) -> tuple[Item, ...]:
    distinct = set()
    for value in values:
        if value in distinct:
            raise InvalidValue(f"{value} is listed twice", "remove one of them")
        distinct.add(value)
    return values


_AS_SET = Field(json_schema_extra={"x-kubernetes-list-type": "set"})
Distinct = Annotated[tuple[Item, ...], AfterValidator(_check_distinct), _AS_SET]
NonEmptyDistinct = Annotated[
    tuple[Item, ...], Field(min_length=1), AfterValidator(_check_distinct), _AS_SET
]

Name = Annotated[str, StringConstraints(pattern=NAME), schema_keywords(maxLength=63)]
OptionalName = Annotated[
    str, StringConstraints(pattern=OPTIONAL_NAME), schema_keywords(maxLength=63)
]
NamePattern = Annotated[str, StringConstraints(pattern=NAME_PATTERN), schema_keywords(maxLength=63)]
RecordName = Annotated[str, StringConstraints(pattern=RECORD_NAME), schema_keywords(maxLength=253)]
ObjectName = Annotated[str, StringConstraints(pattern=OBJECT_NAME), schema_keywords(maxLength=253)]
LabelKey = Annotated[str, StringConstraints(pattern=LABEL_KEY), schema_keywords(maxLength=317)]
LabelValue = Annotated[str, StringConstraints(pattern=LABEL_VALUE), schema_keywords(maxLength=63)]
Key = Annotated[str, StringConstraints(pattern=KEY), schema_keywords(maxLength=253)]
Kind = Annotated[str, StringConstraints(pattern=KIND), schema_keywords(maxLength=63)]
ApiVersion = Annotated[str, StringConstraints(pattern=API_VERSION), schema_keywords(maxLength=317)]
CommitId = Annotated[str, StringConstraints(pattern=COMMIT), schema_keywords(maxLength=40)]
RevisionName = Annotated[str, StringConstraints(pattern=REVISION), schema_keywords(maxLength=128)]
FunctionName = Annotated[
    str, StringConstraints(pattern=FUNCTION_NAME), schema_keywords(maxLength=63)
]
Link = Annotated[str, StringConstraints(pattern=LINK, max_length=2048)]
ConflictKey = Annotated[str, StringConstraints(pattern=CONFLICT), schema_keywords(maxLength=16)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
# The length that the sandbox evaluates.
Expression = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
JinjaText = Annotated[str, StringConstraints(min_length=1, max_length=16384)]
FreeForm = Annotated[
    Mapping[str, JsonValue],
    Field(max_length=MAX_VALUES),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": MAX_VALUES,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    ),
]
LongText = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Labels = Annotated[Mapping[LabelKey, LabelValue], Field(max_length=MAX_VALUES)]
# Fewer where lists are around, because the API server checks every key with a rule.
TemplateLabels = Annotated[Mapping[LabelKey, LabelValue], Field(max_length=MAX_TEMPLATE_LABELS)]
TemplateAnnotations = Annotated[Mapping[LabelKey, LongText], Field(max_length=MAX_TEMPLATE_LABELS)]
SelectorLabels = Annotated[Mapping[LabelKey, LabelValue], Field(max_length=MAX_ENTRIES)]
Annotations = Annotated[Mapping[LabelKey, LongText], Field(max_length=MAX_VALUES)]
Data = Annotated[Mapping[Key, LongText], Field(max_length=MAX_VALUES)]
# Wider than a ConfigMap's keys: set-labels has keys like `team/owner`.
FunctionConfig = Annotated[Mapping[Text, LongText], Field(max_length=MAX_VALUES)]


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 stage`, `2 stages`, `2 statuses`, `2 policies`."""
    if number != 1:
        ends_in_ies = noun.endswith("y") and not noun.endswith(("ay", "ey"))
        noun = f"{noun[:-1]}ies" if ends_in_ies else f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{number} {noun}"


def list_first(words: Sequence[object], limit: int) -> str:
    """List the first words, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(map(str, words[:limit])) + more


def join_words(words: Sequence[str], conjunction: str) -> str:
    """Join words for a sentence: `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def describe_value(value: Any) -> str:
    """Return type and value for a message: ``boolean `true```, ``number `420```, `a list`."""
    match value:
        case bool():
            return f"boolean `{format_value(value)}`"
        case int() | float():
            return f"number `{format_value(value)}`"
        case str():
            return f"string `{value if len(value) <= 60 else value[:57] + '...'}`"
        case _:
            return format_value(value)


def format_value(value: Any) -> str:
    """Format a value as in YAML, shortened to fit into a sentence."""
    match value:
        # Before the numbers: in Python True is an int, and people wrote `true`, not 1.
        case bool():
            return "true" if value else "false"
        case None:
            return "nothing"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case str():
            return value if 0 < len(value) <= 60 else f"{value[:57]!r}..." if value else "''"
        case _:
            return str(value)[:60]


# Names that Windows reserves for a device. RE2 reads the pattern as Python does.
DEVICE_NAME = (
    r"(?i)(?:^|/)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\xb9\xb2\xb3])"
    r" *(?:\.[^/]*)?(?:/|$)"
)
_DEVICE = re.compile(DEVICE_NAME)


def find_reserved_name(path: str) -> str:
    """Return the first name in a path that Windows reserves for a device, or "".

    An extension does not help: `aux.yaml` is a device there too.
    """
    match = _DEVICE.search(path)
    return match[0].strip("/") if match else ""


def fold_path(path: str) -> str:
    """Return the path as a file system sees it that ignores case and Unicode forms."""
    if path.isascii():
        return path.lower()
    # Decomposed first: case folding of a composed letter can differ from that of its parts.
    return normalize("NFC", normalize("NFD", path).casefold())


_REF_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|@\{|\.\.")
_SIMPLE_PATH = re.compile(r"[a-z0-9][a-z0-9-]{0,79}(?:/[a-z0-9][a-z0-9-]{0,79}){0,2}")
MAX_PATH_BYTES = 255


def _segment_problem(segment: str) -> str:
    """Return why a ref, file system or command line cannot carry this segment, or ""."""
    if segment in {"", ".", ".."}:
        return f"has the segment {segment!r}"
    if segment[0] in "-.":
        return f"has the segment {segment!r}, which begins with {segment[0]!r}"
    # In lower case, because on a file system that ignores case `.LOCK` names Git's lock file too.
    if segment.lower().endswith((".", ".lock")) or segment == "@":
        return f"has the segment {segment!r}, which Git refuses in a branch name"
    if match := _REF_FORBIDDEN.search(segment):
        return f"contains {match[0]!r}, which Git refuses in a branch name"
    return ""


# What `_segment_problem` finds and the pattern of paths does not.
REFUSED_BY_GIT = r"(?i)@\{|(?:^|/)@(?:/|$)|\.lock(?:/|$)"
# Below the drafts of an installation, these are no packages.
RESERVED_BEGINNINGS = {
    "_stages": "the drafts of whole stages",
    "_removals": "the drafts that remove packages",
}


def find_path_problem(path: str) -> str:
    """Return the reason why a package path is unusable, as half a sentence, or ""."""
    # Before the fast path below, which `con` and `aux` would pass.
    if reserved := find_reserved_name(path):
        return f"has the name {reserved!r}, which Windows reserves for a device"
    if _SIMPLE_PATH.fullmatch(path):  # fast path for most paths
        return ""
    if path.startswith("/") or path.endswith("/"):
        return "begins or ends with a slash"
    if len(path.encode("utf-8", "replace")) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if not path.isprintable():
        return "contains unprintable characters"
    beginning = path.split("/", maxsplit=1)[0]
    # A file system that ignores case has one directory for both, and refs are files there.
    if use := RESERVED_BEGINNINGS.get(fold_path(beginning)):
        return f"begins with {beginning}, which is reserved for {use}"
    return next(filter(None, map(_segment_problem, path.split("/"))), "")


def check_path(path: str) -> str:
    """Return the path. Raises InvalidValue if no package may be there."""
    if problem := find_path_problem(path):
        problem = f"the path {path!r} {problem}"
        raise InvalidValue(problem, "write a relative path like team/monitoring")
    return path


def check_directory(path: str) -> str:
    """Return the directory, "" for the root. Raises InvalidValue like `check_path`."""
    return check_path(path) if path else path


def normalize_inside(path: str) -> str:
    """Normalize a path relative to the directory that it starts in, as kpt does.

    Returns "" for a path that leads out of that directory, and for the directory itself.
    """
    normalized = normpath(path) if path else ""
    is_outside = normalized.startswith("/") or normalized.partition("/")[0] in ("..", ".")
    return "" if is_outside else normalized


def check_file(path: str) -> str:
    """Return the path of a file. Raises InvalidValue if it leads out of the package."""
    if not normalize_inside(path) or not path.isprintable():
        problem = f"the path {path!r} is outside the package"
        raise InvalidValue(problem, "name a file of the package")
    return path  # unchanged, because it enters digests


def check_executable(path: str) -> str:
    """Return the path. Raises InvalidValue for a relative one, which depends on the start."""
    if not path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        problem = f"{path!r} is not an absolute path"
        raise InvalidValue(problem, "write it from the root: /usr/local/bin/x")
    return path


def check_branch(name: str) -> str:
    """Return the branch name. Raises InvalidValue if Git would refuse it."""
    problem = next(filter(None, map(_segment_problem, name.split("/"))), "")
    if problem or name.startswith("refs/") or name == "HEAD":
        problem = problem or "is not a short name"
        problem = f"the branch {name!r} {problem}"
        raise InvalidValue(problem, "write a branch's short name, like main")
    return name


PackagePath = Annotated[
    str,
    StringConstraints(min_length=1),
    AfterValidator(check_path),
    schema_keywords(maxLength=MAX_PATH_BYTES, pattern=PATH_PATTERN),
]
Directory = Annotated[
    str,
    AfterValidator(check_directory),
    schema_keywords(maxLength=MAX_PATH_BYTES, pattern=f"^$|{PATH_PATTERN}"),
]
PackageFile = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PATH_BYTES),
    AfterValidator(check_file),
    # not absolute, and no `..` in front
    schema_keywords(pattern=r"^([^/.]|\.[^.]|\.\.[^/]).*$"),
]
Executable = Annotated[
    str, StringConstraints(min_length=1, max_length=4096), AfterValidator(check_executable)
]
Branch = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PATH_BYTES),
    AfterValidator(check_branch),
    schema_keywords(pattern=PATH_PATTERN),
]
