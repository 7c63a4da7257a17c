"""Objects of a manifest: its documents, and the items of a List (docs/concepts/functions.md).

An item lies in its List's document and has no lines of its own, but can be read, changed and
reported like a document. Objects that occur twice in a package are reported here too.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fanout.control_characters import escape_unprintable
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import Path
from fanout.package.kptfile import KPTFILE, find_package, package_directories, package_problem
from fanout.package.manifest import Document, Manifest
from fanout.package.merge.merge_units import (
    Identity,
    format_identity,
    is_list,
    is_local_config,
    object_identity,
)
from fanout.package.value_spelling import ValueSpelling
from fanout.package.yaml_nodes import DocumentRoot
from fanout.values import Value
from fanout.variants.functions.function_interface import FunctionResult, mapping

ITEMS = "items"


class ListItem(Value):
    """An object among the items of a List, with the interface of a `Document`."""

    document: Document
    number: int
    value: Any

    @property
    def path(self) -> Path:
        """Return the object's path in its document."""
        return (ITEMS, self.number)

    @property
    def index(self) -> int:
        """Return the index of its document in the file."""
        return self.document.index

    @property
    def root(self) -> DocumentRoot | None:
        """Return the root node of its document, or None for JSON."""
        return self.document.root

    def spellings(self) -> Mapping[Path, ValueSpelling]:
        """Return the spellings of its values by path inside the object."""
        return self.document.spellings(self.path)

    def document_text(self) -> str | None:
        """Return its lines as a document, or None if it does not have lines of its own."""
        return self.document.element_text(self.path)

    def line_of(self, path: Path) -> int:
        """Return the line, from 1, of the deepest existing value on the path."""
        return self.document.line_of((*self.path, *path))


ManifestObject = Document | ListItem


def find_objects(manifest: Manifest) -> dict[int, ManifestObject]:
    """Return the objects of a file by number, and documents that are not objects.

    The items of a List are numbered like documents, as KRM functions number them. A List
    marked local-config is one object.
    """
    objects: dict[int, ManifestObject] = {}
    extra_numbers = 0
    for document in manifest.documents:
        # kpt's index annotation counts the items of a List as documents of their own, and programs
        # return objects by that index.
        number = document.index + extra_numbers
        if is_expanded_list(document.value):
            items = document.value[ITEMS]
            objects |= {number + at: ListItem(document, at, item) for at, item in enumerate(items)}
            extra_numbers += len(items) - 1
        else:
            objects[number] = document
    return objects


def is_expanded_list(value: Any) -> bool:
    """Return whether the document is a List whose items count as the objects."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or is_local_config(value):
        return False
    if not is_plain_list(value):
        return is_list(value)
    items = value.get(ITEMS)
    return isinstance(items, list) and all(is_krm_object(item) for item in items)


def is_plain_list(value: object) -> bool:
    """Return whether the value is a `v1` List, whose items may be of any kind."""
    fields = mapping(value)
    return fields.get("kind") == "List" and fields.get("apiVersion") == "v1"


def is_krm_object(value: object) -> bool:
    """Return whether the value has a kind and an apiVersion. Other files may hold plain values."""
    fields = mapping(value)
    return bool(fields.get("kind")) and bool(fields.get("apiVersion"))


class DuplicateObject(Value):
    """An object whose identity an earlier object of its package has."""

    where: ErrorLocation
    package: str  # its directory
    first_place: str
    is_build_input: bool  # one of the two is in a directory that kustomize builds

    @property
    def error(self) -> InvalidInput:
        """The duplicate as an error."""
        problem = f"the object is also at {self.first_place}"
        return package_problem(problem, "remove or rename one of the two", self.where)

    @property
    def warning(self) -> FunctionResult:
        """The duplicate as a finding that fails nothing."""
        message = f"the object is also at {self.first_place}"
        return FunctionResult(message, "warning", where=self.where)


def find_duplicates(
    manifests: Mapping[str, Manifest], paths: Collection[str]
) -> Iterator[DuplicateObject]:
    """Yield the objects whose identity an earlier object of their package has.

    `paths` are those of all files, whether they are among the manifests or not: each
    Kptfile begins a package. Local-config objects are compared among themselves: one may
    share its name with the object that it replaces.
    """
    directories = package_directories(paths)
    built = {
        directory
        for directory, _, name in (path.rpartition("/") for path in paths)
        if name in _KUSTOMIZATIONS
    }
    first_places: dict[tuple[str, bool, Identity], tuple[str, int]] = {}
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] == KPTFILE:
            continue
        package = find_package(path, directories)
        for identity, local_config, line in find_identities(manifest):
            place = (path, line)
            first_path, first_line = first_places.setdefault(
                (package, local_config, identity), place
            )
            if (first_path, first_line) != place:
                yield DuplicateObject(
                    ErrorLocation(format_identity(identity), "", path, line),
                    package,
                    f"{escape_unprintable(first_path)}:{first_line}",
                    any(find_package(it, {package, *built}) in built for it in (path, first_path)),
                )


# A patch has the identity of the object that it changes.
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def find_identities(manifest: Manifest) -> Iterator[tuple[Identity, bool, int]]:
    """Yield identity, local-config mark and line of each object of a file."""
    for document in manifest.documents:
        value = document.value
        items: list[tuple[Any, Path]] = [(value, ())]
        if is_list(value):
            items = [(item, ("items", at)) for at, item in enumerate(value["items"])]
        for item, path in items:
            if identity := object_identity(item):
                yield (
                    identity,
                    is_local_config(item) or is_local_config(value),
                    document.line_of(path),
                )
