"""What one file declares: fanout's objects with their places, and plain objects without.

Thousands of cluster objects take the fast path; a file that holds any object of fanout's own is
parsed with positions, so that every fault can name its line.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, NamedTuple

from fanout.api.faults import Fault, Path
from fanout.api.kinds import KINDS
from fanout.api.meta import API_VERSION, GROUP, KRMObject
from fanout.api.nearest import nearest
from fanout.api.texts import shown
from fanout.api.validation import is_ours, validate
from fanout.cluster.findings import Finding
from fanout.cluster.times import time_faults
from fanout.errors import Where
from fanout.package.edits import get
from fanout.package.invalid import InvalidManifest
from fanout.package.manifests import Document, Manifest
from fanout.package.objects import load_objects
from fanout.package.plainlines import Texts
from fanout.package.scalars import TRUTHS, resolve, scalar
from fanout.selection.model import Object
from fanout.selection.objects import Kinds, by_kind, group_of
from fanout.values import frozen

RECORDED = {
    "Evidence": "fanout report",
    "Approval": "fanout approve",
    "Decision": "fanout promote, suspend or resume",
}


class ObjectKey(NamedTuple):
    """What no two objects may share."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, data: Object) -> "ObjectKey":
        """The key of an object that is known to have one."""
        meta = data["metadata"]
        return cls(group_of(data["apiVersion"]), data["kind"], meta["namespace"], meta["name"])


@frozen
class Place:
    """Where an object stands: its document, and the way to it through a List."""

    file: str
    document: Document
    prefix: Path = ()

    @property
    def value(self) -> Any:
        """The object's data as it stands in the file."""
        return get(self.document.value, self.prefix)

    def written_key(self, path: Path) -> str:
        """The key of a field as it stands in the text; "" where that is not known."""
        return self.document.written_key((*self.prefix, *path))

    def line(self, path: Path = ()) -> int:
        """The line of a field, or of what is nearest above it when it is not there."""
        return self.document.line_of((*self.prefix, *path))


@frozen
class FileContent:
    """All that a file yielded. What is in `left_out` was declared and cannot be used."""

    ours: tuple[tuple[KRMObject, Place], ...] = ()
    others: Kinds = field(default_factory=dict)
    repeated: tuple[ObjectKey, ...] = ()  # those of `others` that stand in the file more than once
    findings: tuple[Finding, ...] = ()
    left_out: tuple[tuple[ObjectKey, Place], ...] = ()
    unread: bool = False  # what it holds is not known
    nameless: tuple[str, ...] = ()  # where what should be an object cannot be found by a name

    @property
    def plain(self) -> bool:
        """Are there objects of other people's alone, each once, and nothing wrong with any?"""
        told = (self.ours, self.repeated, self.findings, self.left_out, self.nameless)
        return not self.unread and not any(told)


def read_content(data: bytes, file: str, namespace: str, texts: Texts | None = None) -> FileContent:
    """Everything in a file and everything that is wrong with it.

    An object without a namespace is in `namespace`. Documents that are empty are no fault. `texts`
    is shared by files that are read together.
    """
    if f"{GROUP}/".encode() not in data:
        try:
            content = _without_places(load_objects(data, file, texts), namespace)
        except InvalidManifest:
            content = None  # the other reader tells more, and keeps the documents that are right
        if content is not None:
            return content
    try:
        return _with_places(Manifest.parse(data, file), file, namespace)
    except InvalidManifest as error:
        findings = (Finding(item.where, item.problem, item.remedy) for item in error.problems)
        return FileContent(findings=tuple(findings), unread=True)


def places(data: bytes, file: str, namespace: str) -> dict[ObjectKey, list[Place]]:
    """Where the objects of a file stand that was read without positions. Raises InvalidManifest."""
    found: dict[ObjectKey, list[Place]] = {}
    for place, item in _positioned(Manifest.parse(data, file), file):
        if not tuple(_object_faults(item)):
            key = ObjectKey.of(_in_namespace(item, namespace))
            found.setdefault(key, []).append(place)
    return found


def finding(name: str, place: Place, fault: Fault) -> Finding:
    """A fault of the object of this name at its place."""
    where = Where(name, fault.field, place.file, place.line(fault.path))
    return Finding(where, fault.problem, fault.remedy, fault.severity)


def _without_places(items: Iterable[Any], namespace: str) -> FileContent | None:
    """None when positions are needed: something is wrong, or an object is fanout's after all."""
    others = []
    for _, item in _unrolled((), items):
        if any(_object_faults(item)) or not _has_text(item["metadata"]) or _is_meant(item):
            return None
        others.append(_in_namespace(item, namespace))
    kinds, repeated = _keyed(others)
    return FileContent(others=kinds, repeated=repeated)


def _keyed(items: Sequence[Object]) -> tuple[Kinds, tuple[ObjectKey, ...]]:
    """The objects by their keys, and the keys that more than one of them has."""
    kinds = by_kind(items)
    if sum(map(len, kinds.values())) == len(items):
        return kinds, ()
    keys = Counter(map(ObjectKey.of, items))
    return kinds, tuple(key for key, number in keys.items() if number > 1)


def _with_places(manifest: Manifest, file: str, namespace: str) -> FileContent:
    ours: list[tuple[KRMObject, Place]] = []
    others: list[Object] = []
    findings: list[Finding] = []
    left_out: list[tuple[ObjectKey, Place]] = []
    nameless: list[str] = []
    for place, item in _positioned(manifest, file):
        if isinstance(item, Mapping) and _is_meant(item):
            data = _in_namespace(item, namespace)
            answer, faults = validate(data)
            faults = (*faults, *_truths(item, place), *time_faults(answer))
            if answer is not None and answer.kind in RECORDED:
                faults = (_no_record(answer.kind),)
            findings += (finding(_name(item), place, fault) for fault in faults)
            if answer is not None and not faults:
                ours.append((answer, place))
            elif not any(_object_faults(data)):
                left_out.append((ObjectKey.of(data), place))
        elif faults := tuple(_object_faults(item)):
            nameless.append(f"{file}:{place.line()}")
            findings += (finding(_name(item), place, fault) for fault in faults)
        else:
            faults = (*_text_faults(item), *_truths(item["metadata"], place, ("metadata",)))
            findings += (finding(_name(item), place, fault) for fault in faults)
            others.append(_in_namespace(item, namespace))
    return FileContent(
        tuple(ours),
        *_keyed(others),
        tuple(findings),
        tuple(left_out),
        nameless=tuple(nameless),
    )


def _no_record(kind: str) -> Fault:
    return Fault(("kind",), f"{kind} is recorded, not declared", f"use {RECORDED[kind]}")


def _positioned(manifest: Manifest, file: str) -> Iterator[tuple[Place, Any]]:
    for document in manifest.documents:
        for prefix, item in _unrolled((), [document.value]):
            # A document is its own root: the way through a List begins behind its number.
            yield Place(file, document, prefix[1:]), item


def _unrolled(prefix: Path, items: Iterable[Any]) -> Iterator[tuple[Path, Any]]:
    """Each object with its way; those of a `List` (of a `ConfigMapList`, ...) in its place."""
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and isinstance(item.get("items"), list) and _is_list(item):
            yield from _unrolled((*prefix, index, "items"), item["items"])
        else:
            yield (*prefix, index), item


def _is_list(item: Mapping[str, Any]) -> bool:
    kind = item.get("kind")
    return isinstance(kind, str) and kind.endswith("List")


def _object_faults(item: Any) -> Iterator[Fault]:
    """Why this is no object that could be found by its name."""
    if not isinstance(item, Mapping):
        yield Fault((), "is no object", "write apiVersion, kind and metadata, or remove it")
        return
    for key in ("apiVersion", "kind"):
        if not isinstance(item.get(key), str) or not item[key]:
            known = key == "apiVersion" and str(item.get("kind")) in KINDS
            remedy = f"write {API_VERSION}" if known else f"write the object's {key}"
            yield Fault((key,), "is missing or no text", remedy)
    meta = item.get("metadata")
    if not isinstance(meta, Mapping):
        yield Fault(("metadata",), "is missing or no mapping", "write the object's metadata.name")
        return
    if not isinstance(meta.get("name"), str) or not meta["name"]:
        yield Fault(("metadata", "name"), "is missing or no text", "write the object's name")
    if not isinstance(meta.get("namespace"), str | None):
        yield Fault(("metadata", "namespace"), "is no text", "write a name, or remove it")


def _has_text(meta: Mapping[str, Any]) -> bool:
    """Are the labels and annotations text without doubt?"""
    for texts in (meta.get("labels"), meta.get("annotations")):
        if texts and not (isinstance(texts, dict) and TRUTHS.isdisjoint(texts)):
            return False
        if texts and not all(value.__class__ is str for value in texts.values()):
            return False
    return True


def _text_faults(item: Mapping[str, Any]) -> Iterator[Fault]:
    """Labels and annotations that are no text, which no API server takes.

    The object is there all the same: whoever selects by such a label is told so, target by target.
    """
    for part in ("labels", "annotations"):
        texts = item["metadata"].get(part) or {}
        if not isinstance(texts, Mapping):
            yield Fault(("metadata", part), "must be an object", "write names and their values")
            continue
        for key, value in texts.items():
            path = ("metadata", part, key)
            if value is None:
                yield Fault(path, "has no value", "give it one, or remove the key")
            elif not isinstance(value, str):
                problem = f"must be text, and {shown(value)} is none to YAML"
                yield Fault(path, problem, "put it in quotes")


def _truths(data: Any, place: Place, path: Path = ()) -> Iterator[Fault]:
    """Keys that were written as on, yes or off, which the API server has as true or false."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            spelling = place.written_key((*path, key)) if key in TRUTHS else ""
            if spelling and spelling[0] not in "\"'":
                problem = f"the key {spelling} is {scalar(resolve(key))} to YAML"
                yield Fault((*path, key), problem, "put it in quotes")
            yield from _truths(value, place, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _truths(value, place, (*path, index))


def _is_meant(item: Mapping[str, Any]) -> bool:
    """Is it for fanout, be it under a misspelt group? Other groups have some of these kinds."""
    version = item.get("apiVersion")
    return isinstance(version, str) and _names_ours(version, str(item.get("kind")))


@lru_cache(maxsize=256)
def _names_ours(version: str, kind: str) -> bool:
    if is_ours({"apiVersion": version}) or kind not in KINDS:
        return is_ours({"apiVersion": version})
    return "/" not in version or nearest(group_of(version), (GROUP,)) == GROUP


def _in_namespace(item: Mapping[str, Any], namespace: str) -> Object:
    """The object with a namespace; a copy, since YAML's aliases share parts between objects."""
    meta = item.get("metadata")
    if not isinstance(meta, Mapping) or meta.get("namespace"):
        return item
    return {**item, "metadata": {**meta, "namespace": namespace}}


def _name(item: Any) -> str:
    """`Kind/name` as far as it can be said."""
    if not isinstance(item, Mapping):
        return ""
    meta = item.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    return "/".join(part for part in (item.get("kind"), name) if isinstance(part, str) and part)
