"""Difference of two sides of a package in objects and files, for people who read no patch yet.

It is computed from the objects before and after: images of containers, replicas, and the labels
that name versions. Everything else is a number. A value is named only where its place tells what
it is; a file that cannot be read as objects counts as a file.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from fanout.package.kptfile import KPTFILE
from fanout.package.merge.merge_units import is_manifest
from fanout.package.object_reader import load_objects
from fanout.package.tree_ids import Files
from fanout.package.yaml_nodes import InvalidManifest
from fanout.values import Value
from fanout.variants.package_context import CONTEXT

METADATA_FILES: Final = frozenset({KPTFILE, CONTEXT})  # they change with each revision
_MAX_FIELDS: Final = 12
_MAX_DEPTH: Final = 12  # of the place of containers in an object
_CONTAINER_LISTS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_NUMBERS: Final = ("replicas", "minReplicas", "maxReplicas")  # of the spec of any object
_LABELS: Final = {"app.kubernetes.io/version": "version", "helm.sh/chart": "chart"}
_IMAGE: Final = "image"
_ORDER: Final = (_IMAGE, *_LABELS.values(), *_NUMBERS)
_DIGEST_LENGTH: Final = len("sha256:") + 12  # characters that tell digests apart

_ObjectKey = tuple[str, str, str, str]  # group, kind, namespace, name
_Objects = Mapping[_ObjectKey, Mapping[str, Any]]
_FieldKey = tuple[str, str, str]  # label, old and new value


class FieldChange(Value):
    """Change of a field that objects have alike.

    `subjects` are the names of the images or objects where the package has several such changes.
    A value that is absent on a side is "".
    """

    label: str  # "image", "replicas"
    old: str
    new: str
    subjects: tuple[str, ...] = ()


class ChangeCounts(Value):
    """Number of files or objects that are added, removed and changed."""

    noun: str
    added: int = 0
    removed: int = 0
    changed: int = 0


class PackageDifference(Value):
    """Changes of the fields that people ask about, and numbers of files and objects.

    Without any of them only the Kptfile or the context of the package changes.
    """

    fields: tuple[FieldChange, ...] = ()
    omitted_fields: int = 0
    counts: tuple[ChangeCounts, ...] = ()


def compare_packages(
    old_paths: Collection[str], new_paths: Collection[str], before: Files, after: Files
) -> PackageDifference:
    """Return what changes between two sides of a package.

    `old_paths` and `new_paths` are all files of the sides that the other side lacks or has
    otherwise. `before` and `after` have the content of those that are compared as objects.
    """
    old_files, new_files = set(old_paths) - METADATA_FILES, set(new_paths) - METADATA_FILES
    old_objects: dict[_ObjectKey, Mapping[str, Any]] = {}
    new_objects: dict[_ObjectKey, Mapping[str, Any]] = {}
    for path in sorted((before.keys() | after.keys()) - METADATA_FILES):
        if not is_manifest(path):
            continue
        try:
            sides = [_read_objects(path, side) for side in (before, after)]
        except InvalidManifest:
            continue  # objects of one side alone would look removed or added
        old_objects |= sides[0]
        new_objects |= sides[1]
    fields = _find_fields(old_objects, new_objects)
    shared = old_objects.keys() & new_objects.keys()
    changed = sum(old_objects[key] != new_objects[key] for key in shared)
    counts = (
        ChangeCounts(
            "file",
            len(new_files - old_files),
            len(old_files - new_files),
            len(old_files & new_files),
        ),
        ChangeCounts(
            "object",
            len(new_objects.keys() - shared),
            len(old_objects.keys() - shared),
            changed,
        ),
    )
    return PackageDifference(
        fields[:_MAX_FIELDS],
        max(0, len(fields) - _MAX_FIELDS),
        tuple(it for it in counts if it.added or it.removed or it.changed),
    )


def _read_objects(path: str, side: Files) -> _Objects:
    """Return the objects of a file that have a kind and a name. Raises InvalidManifest."""
    objects: dict[_ObjectKey, Mapping[str, Any]] = {}
    if path not in side:
        return objects
    for item in load_objects(side[path][1], path):
        metadata = item.get("metadata")
        fields = metadata if isinstance(metadata, Mapping) else {}
        kind, name = item.get("kind"), fields.get("name")
        if isinstance(kind, str) and isinstance(name, str):
            group, slash, _ = str(item.get("apiVersion")).rpartition("/")
            key = group if slash else "", kind, str(fields.get("namespace") or ""), name
            objects[key] = item
    return objects


def _find_fields(old: _Objects, new: _Objects) -> tuple[FieldChange, ...]:
    """Return the changed fields of objects that both sides have, equal changes once."""
    subjects: dict[_FieldKey, dict[str, None]] = {}
    for key in sorted(old.keys() & new.keys()):
        if old[key] == new[key]:
            continue
        before, after = _read_fields(old[key]), _read_fields(new[key])
        for label, place in sorted(before.keys() | after.keys()):
            sides = before.get((label, place), ""), after.get((label, place), "")
            if sides[0] == sides[1] or (label in _LABELS.values() and "" in sides):
                continue
            field, subject = (label, *sides), key[-1]
            if label == _IMAGE:
                field, subject = _compare_images(*sides)
            subjects.setdefault(field, {})[subject] = None
    # A label that says what an image says is left out.
    images = {_versions(field) for field in subjects if field[0] == _IMAGE}
    fields = [it for it in subjects if it[0] not in _LABELS.values() or _versions(it) not in images]
    fields.sort(key=lambda it: _ORDER.index(it[0]))
    numbers = Counter(label for label, _, _ in fields)
    return tuple(
        FieldChange(*it, tuple(subjects[it]) if numbers[it[0]] > 1 else ()) for it in fields
    )


def _read_fields(item: Mapping[str, Any]) -> Mapping[tuple[str, tuple[str, ...]], str]:
    """Return the fields of an object that are named, by label and place."""
    fields = {(_IMAGE, place): image for place, image in _find_images(item, ())}
    metadata, spec = item.get("metadata"), item.get("spec")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    for key, label in _LABELS.items():
        value = labels.get(key) if isinstance(labels, Mapping) else None
        if isinstance(value, str):
            fields[label, ()] = value
    for label in _NUMBERS:
        number = spec.get(label) if isinstance(spec, Mapping) else None
        if type(number) is int:
            fields[label, ()] = str(number)
    return fields


def _versions(field: _FieldKey) -> tuple[str, ...]:
    return tuple(it.removeprefix("v") for it in field[1:])


def _find_images(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield place and image of all containers in an object, which are known by their names."""
    if len(place) > _MAX_DEPTH or not isinstance(value, Mapping):
        return
    for key, child in value.items():
        if key in _CONTAINER_LISTS and isinstance(child, list):
            for item in child:
                fields = item if isinstance(item, Mapping) else {}
                name, image = fields.get("name"), fields.get("image")
                if isinstance(name, str) and isinstance(image, str):
                    yield (*place, key, name), image
        elif isinstance(key, str):
            yield from _find_images(child, (*place, key))


def _compare_images(old: str, new: str) -> tuple[_FieldKey, str]:
    """Return the change of an image with the parts that differ, and its name; "": absent."""
    parts: list[tuple[str, str, str]] = []
    for image in (old, new):
        reference, _, digest = image.partition("@")
        directory, slash, last = reference.rpartition("/")  # a host may have a port
        last, _, tag = last.partition(":")
        parts.append((f"{directory}{slash}{last}", tag, digest))
    (old_name, old_tag, old_digest), (name, tag, digest) = parts
    sides = old, new
    if old_name == name and old_tag != tag:
        sides = old_tag or "no tag", tag or "no tag"
    elif old_name == name:
        digests = (it[:_DIGEST_LENGTH] or "no digest" for it in (old_digest, digest))
        sides = next(digests), next(digests)
    return (_IMAGE, *sides), (name or old_name).rpartition("/")[2]
