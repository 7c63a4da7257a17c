"""Manifests: the objects that a file declares, and findings about them.

Thousands of cluster objects take the fast path; a file with any object of fanout's own
is parsed with positions, so that every error names its line.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, find_similar_name, format_path
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import API_VERSION, DEFAULT_NAMESPACE, GROUP, KRMObject
from fanout.api.text_fields import describe_value
from fanout.api.validators.object_validation import is_fanout_object, validate_object
from fanout.declared.declaration_assembly import build_finding
from fanout.declared.declared_objects import DeclarationFailure, ObjectKey
from fanout.declared.finding import Finding
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import ErrorLocation, InvalidInput
from fanout.groups import group_pairs
from fanout.package.field_edits import get_value
from fanout.package.manifest import Document, Manifest
from fanout.package.object_reader import ScalarMemo, load_objects
from fanout.package.yaml_nodes import InvalidManifest
from fanout.package.yaml_scalars import BOOLEAN_WORDS
from fanout.selection.cluster_objects import ObjectsByKind, group_by_kind, group_of
from fanout.selection.variant_spec import Object
from fanout.values import Value, field, replace


class InvalidFiles(InvalidInput):
    """A file that is needed as a whole is invalid; has every finding."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(
            first.problem, reason="InvalidObject", remedy=first.remedy, where=first.where
        )

    def __str__(self) -> str:
        """Format one line per finding."""
        return "\n".join(map(str, self.findings))


_MISSING_TEXT = "is missing or not a string"
_NAME_REMEDY = "set metadata.name"
RECORDING_COMMANDS = {
    "Evidence": "fanout report",
    "Approval": "fanout approve",
    "Decision": "fanout promote, suspend or resume",
}


class SourcePosition(Value):
    """Position of an object: file, document, and path to it through a List."""

    file: str
    document: Document
    prefix: FieldPath = ()

    @property
    def value(self) -> Any:
        """The object's data as written in the file."""
        return get_value(self.document.value, self.prefix)

    def written_key(self, path: FieldPath) -> str:
        """Return the key of a field as written in the text; "" if it is not available."""
        return self.document.written_key((*self.prefix, *path))

    def line(self, path: FieldPath = ()) -> int:
        """Return the line of a field, or of its nearest parent if the field is absent."""
        return self.document.line_of((*self.prefix, *path))

    def locate(self, identity: str, path: FieldPath) -> ErrorLocation:
        """Return the location of a field of the object, which messages call `identity`."""
        return ErrorLocation(identity, format_path(path), self.file, self.line(path))


class ManifestContent(Value):
    """Content of one file. Objects in `left_out` were declared and cannot be used."""

    own_objects: tuple[tuple[KRMObject, SourcePosition], ...] = ()
    plain_objects: ObjectsByKind = field(default_factory=dict)
    repeated: tuple[ObjectKey, ...] = ()  # plain objects declared more than once in the file
    findings: tuple[Finding, ...] = ()
    left_out: tuple[tuple[ObjectKey, SourcePosition], ...] = ()
    unread: bool = False  # its content is unknown
    nameless: tuple[DeclarationFailure, ...] = ()  # objects without a name

    @property
    def is_plain(self) -> bool:
        """True if the file has plain objects only, each declared once, without any error."""
        exceptions = (self.own_objects, self.repeated, self.findings, self.left_out, self.nameless)
        return not self.unread and not any(exceptions)


def read_content(
    data: bytes, file: str, texts: ScalarMemo | None = None, *, keep_valid: bool = False
) -> ManifestContent:
    """Parse a file into its objects and all errors.

    Objects without a namespace are in the default one. Empty documents are allowed. `texts` is
    shared by files that are read together. `keep_valid`: a file with an invalid document
    counts as unread, and the result has the objects of its other documents all the same.
    """
    # A search in the bytes decides the fast path: objects of fanout's own must name the group.
    # Misspelt groups are detected in the parsed objects.
    if f"{GROUP}/".encode() not in data:
        try:
            content = _content_without_positions(load_objects(data, file, texts))
        except InvalidManifest:
            content = None  # the reader with positions reports all errors and keeps valid documents
        if content is not None:
            return content
    try:
        return _content_with_positions(Manifest.parse(data, file), file)
    except InvalidManifest as error:
        findings = tuple(Finding(it.where, it.problem, it.remedy) for it in error.problems)
        content = ManifestContent()
        if keep_valid:
            with suppress(InvalidManifest):
                content = _content_with_positions(Manifest.parse_valid(data, file), file)
        return replace(content, findings=(*findings, *content.findings), unread=True)


def find_positions(data: bytes, file: str) -> dict[ObjectKey, list[SourcePosition]]:
    """Find the positions of the objects of a file that was read without. Raises InvalidManifest."""
    return group_pairs(
        (ObjectKey.of(_in_namespace(item)), position)
        for position, item in _iterate_positions(Manifest.parse(data, file), file)
        if not any(_object_faults(item))
    )


def _content_without_positions(items: Iterable[Any]) -> ManifestContent | None:
    """Build the content; None if an error or an object of fanout needs positions."""
    plain_objects = []
    for _, item in _flatten_lists((), items):
        if any(_object_faults(item)) or _is_for_fanout(item) or not _has_plain_texts(item):
            return None
        # Reached only for objects without any error; the first error restarts with positions.
        plain_objects.append(_in_namespace(item))
    kinds, repeated = _index_objects(plain_objects)
    return ManifestContent(plain_objects=kinds, repeated=repeated)


def _index_objects(items: Sequence[Object]) -> tuple[ObjectsByKind, tuple[ObjectKey, ...]]:
    """Return the objects by key, and the keys that several objects share."""
    kinds = group_by_kind(items)
    if sum(map(len, kinds.values())) == len(items):
        return kinds, ()
    keys = Counter(map(ObjectKey.of, items))
    return kinds, tuple(key for key, number in keys.items() if number > 1)


def _content_with_positions(manifest: Manifest, file: str) -> ManifestContent:
    own_objects: list[tuple[KRMObject, SourcePosition]] = []
    plain_objects: list[Object] = []
    findings: list[Finding] = []
    left_out: list[tuple[ObjectKey, SourcePosition]] = []
    nameless: list[DeclarationFailure] = []
    for position, item in _iterate_positions(manifest, file):
        if isinstance(item, Mapping) and _is_for_fanout(item):
            data = _in_namespace(item)
            parsed, faults = validate_object(data)
            faults = (*faults, *_boolean_key_faults(item, position), *find_schedule_errors(parsed))
            if parsed is not None and parsed.kind in RECORDING_COMMANDS:
                problem = f"{parsed.kind} is a record and cannot be declared in a file"
                faults = (FieldError(("kind",), problem, f"use {RECORDING_COMMANDS[parsed.kind]}"),)
            if parsed is not None and not faults:
                own_objects.append((parsed, position))
            elif not any(_object_faults(data)):
                left_out.append((ObjectKey.of(data), position))
            else:
                nameless.append(_describe_nameless(item, position))
        elif faults := tuple(_object_faults(item)):
            nameless.append(_describe_nameless(item, position))
        else:
            faults = (
                *_text_faults(item),
                *_boolean_key_faults(item["metadata"], position, ("metadata",)),
            )
            plain_objects.append(_in_namespace(item))
        if faults:
            names = (get_value(item, ("kind",)), get_value(item, ("metadata", "name")))
            identity = "/".join(it for it in names if isinstance(it, str) and it)
            findings += (build_finding(identity, position, fault) for fault in faults)
    return ManifestContent(
        tuple(own_objects),
        *_index_objects(plain_objects),
        tuple(findings),
        tuple(left_out),
        nameless=tuple(nameless),
    )


def _describe_nameless(item: Any, position: SourcePosition) -> DeclarationFailure:
    """Describe an object without a name by its kind and namespace, as far as it has them."""
    source = f"{position.file}:{position.line()}"
    if not isinstance(item, Mapping):
        return DeclarationFailure(source)
    api_version, kind, meta = (item.get(key) for key in ("apiVersion", "kind", "metadata"))
    written = meta.get("namespace") if isinstance(meta, Mapping) else None
    namespace = (written or DEFAULT_NAMESPACE) if isinstance(written, str | None) else ""
    if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
        return DeclarationFailure(source, namespace=namespace)
    if _is_for_fanout(item):  # a misspelled kind counts as any, a misspelled group as ours
        return DeclarationFailure(source, (GROUP, kind) if kind in KINDS else None, namespace)
    return DeclarationFailure(source, (group_of(api_version), kind), namespace)


def _iterate_positions(manifest: Manifest, file: str) -> Iterator[tuple[SourcePosition, Any]]:
    for document in manifest.documents:
        for prefix, item in _flatten_lists((), [document.value]):
            # A document is its own root: the way through a List begins behind its number.
            yield SourcePosition(file, document, prefix[1:]), item


def _flatten_lists(prefix: FieldPath, items: Iterable[Any]) -> Iterator[tuple[FieldPath, Any]]:
    """Yield each object with its path; items of a `List`, `ConfigMapList` etc. one by one."""
    for index, item in enumerate(items):
        is_list = isinstance(item, Mapping) and isinstance(item.get("items"), list)
        if is_list and isinstance(item.get("kind"), str) and item["kind"].endswith("List"):
            yield from _flatten_lists((*prefix, index, "items"), item["items"])
        else:
            yield (*prefix, index), item


def _object_faults(item: Any) -> Iterator[FieldError]:
    """Yield the errors that keep an object from being identified by kind and name."""
    if not isinstance(item, Mapping):
        remedy = "write apiVersion, kind and metadata, or remove it"
        yield FieldError((), "is not an object", remedy)
        return
    for key in ("apiVersion", "kind"):
        if not isinstance(item.get(key), str) or not item[key]:
            is_fanout_kind = key == "apiVersion" and str(item.get("kind")) in KINDS
            remedy = f"write {API_VERSION}" if is_fanout_kind else f"set {key}"
            yield FieldError((key,), _MISSING_TEXT, remedy)
    meta = item.get("metadata")
    if not isinstance(meta, Mapping):
        yield FieldError(("metadata",), "is missing or not an object", _NAME_REMEDY)
        return
    if not isinstance(meta.get("name"), str) or not meta["name"]:
        yield FieldError(("metadata", "name"), _MISSING_TEXT, _NAME_REMEDY)
    if not isinstance(meta.get("namespace"), str | None):
        yield FieldError(("metadata", "namespace"), "is not a string", "use a string, or remove it")


def _has_plain_texts(item: Mapping[str, Any]) -> bool:
    """Return whether labels, annotations and values of a ConfigMap are certainly strings."""
    meta = item["metadata"]
    data = item.get("data") if _is_config_map(item) else None
    return all(
        isinstance(texts, dict)
        and BOOLEAN_WORDS.isdisjoint(texts)
        and all(value.__class__ is str for value in texts.values())
        for texts in (meta.get("labels"), meta.get("annotations"), data)
        if texts
    )


def _is_config_map(item: Mapping[str, Any]) -> bool:
    return (item["kind"], item["apiVersion"]) == ("ConfigMap", "v1")


def _text_faults(item: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield an error for each label, annotation and value of a ConfigMap that is no string.

    The object is used all the same: each target that selects by such a label is reported.
    """
    fields: list[tuple[FieldPath, Any]] = [
        (("metadata", part), item["metadata"].get(part)) for part in ("labels", "annotations")
    ]
    # YAML reads 0644 as 420 and 1e3 as 1000.0: the value would reach the packages changed.
    if _is_config_map(item):
        fields.append((("data",), item.get("data")))
    for parent, texts in fields:
        if not texts:
            continue
        if not isinstance(texts, Mapping):
            yield FieldError(parent, "expected an object", "write keys and values")
            continue
        for key, value in texts.items():
            path = (*parent, key)
            if value is None:
                yield FieldError(path, "has no value", "set a value, or remove the key")
            elif not isinstance(value, str):
                problem = f"expected a string, got {describe_value(value)}"
                yield FieldError(path, problem, "quote it")


def _boolean_key_faults(
    data: Any, position: SourcePosition, path: FieldPath = ()
) -> Iterator[FieldError]:
    """Yield an error for unquoted keys that YAML reads as booleans, such as on or yes."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            spelling = position.written_key((*path, key)) if key in BOOLEAN_WORDS else ""
            if spelling and spelling[0] not in "\"'":
                problem = f"expected a string as key, got boolean `{spelling}`"
                yield FieldError((*path, key), problem, "quote it")
            yield from _boolean_key_faults(value, position, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _boolean_key_faults(value, position, (*path, index))


def _is_for_fanout(item: Mapping[str, Any]) -> bool:
    """Return whether the object is meant for fanout, possibly with a misspelt group."""
    version = item.get("apiVersion")
    if not isinstance(version, str) or str(item.get("kind")) not in KINDS:
        return is_fanout_object(item)
    return "/" not in version or find_similar_name(group_of(version), (GROUP,)) == GROUP


def _in_namespace(item: Mapping[str, Any]) -> Object:
    """Return the object with a namespace. A copy, since YAML aliases share parts of objects."""
    meta = item.get("metadata")
    if not isinstance(meta, Mapping) or meta.get("namespace"):
        return item
    return {**item, "metadata": {**meta, "namespace": DEFAULT_NAMESPACE}}
