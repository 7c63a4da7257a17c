"""Reads an upstream package once per revision; what follows is done for every variant."""

from collections.abc import Mapping
from typing import Any

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.kptfile import kptfile_of
from fanout.package.manifests import Document, Manifest
from fanout.package.merge.keys import schemas_of
from fanout.selection.objects import group_of
from fanout.variants.canonical import canonical
from fanout.variants.cloning import cloned_kptfile
from fanout.variants.context import CONTEXT, check_context, new_context
from fanout.variants.functions.function import Facts, is_local, mapping
from fanout.variants.functions.set_namespace import DEPENDS_ON
from fanout.variants.model import Limits, UpstreamPackage
from fanout.variants.pipeline import read_pipelines
from fanout.variants.points import find_points
from fanout.variants.prepared import Place, PreparedPackage

_SUFFIXES = (".yaml", ".yml", ".json")
_REGULAR = ("100644", "100755")
_SYMLINK = "120000"


def prepare(package: UpstreamPackage, limits: Limits) -> PreparedPackage:
    """Parse and check the package.

    Raises InvalidInput, with file and line where there are any, for a package that is too large,
    has no Kptfile, a symlink or a submodule, a file that cannot be parsed, a malformed injection
    point, or a function that is not available. Two objects of one identity are let through, as kpt
    does.
    """
    _check_files(package, limits)
    manifests = {
        path: Manifest.parse(package.files[path][1], path)
        for path in sorted(package.files)
        if path.endswith(_SUFFIXES) or path.rpartition("/")[2] == KPTFILE
    }
    _check_kptfile(package, manifests)
    points = find_points(manifests)
    if CONTEXT in manifests:
        check_context(manifests[CONTEXT])
    else:
        manifests[CONTEXT] = new_context()
    functions = read_pipelines(manifests, limits.programs)
    configuring = frozenset(item.config_file for item in functions if item.config_file)
    objects = _objects(manifests, configuring)
    local = frozenset(place for place, document in objects.items() if is_local(document.value))
    others = {place: document for place, document in objects.items() if place not in local}
    return PreparedPackage(
        upstream=package,
        entries={path: entry for path, (entry, _) in package.files.items()},
        manifests=manifests,
        kptfile=cloned_kptfile(package, manifests[KPTFILE], points),
        points=points,
        injectable=limits.injectable,
        varying=tuple(dict.fromkeys((CONTEXT, *(point.file for point in points)))),
        objects=objects,
        local=local,
        functions=functions,
        configuring=configuring,
        programs=limits.programs,
        policy_at=sum(1 for function in functions if function.below),
        facts=Facts(
            _cluster_kinds(others),
            custom=_custom_schemas(others),
            shapes=schemas_of(document.value for document in others.values()),
        ),
        waits=any(_waits(document.value) for document in others.values()),
        fingerprint=canonical(
            [
                package.repository,
                package.directory,
                package.tree,
                package.revision.name,
                package.revision.commit,
                [[item.function.name, item.function.version] for item in functions],
            ]
        ),
    )


def _check_files(package: UpstreamPackage, limits: Limits) -> None:
    if len(package.files) > limits.files:
        raise _refused(
            f"the package has {len(package.files):,} files, more than {limits.files:,}",
            "split the package",
        )
    size = sum(len(data) for _, data in package.files.values())
    if size > limits.size:
        raise _refused(
            f"the package has {size:,} bytes, more than {limits.size:,}", "split the package"
        )
    for path, (entry, _) in sorted(package.files.items()):
        if entry.mode not in _REGULAR:
            kind = "a symbolic link" if entry.mode == _SYMLINK else "a submodule"
            raise _refused(f"is {kind}, which a package may not have", "use a file", path)


def _check_kptfile(package: UpstreamPackage, manifests: Mapping[str, Manifest]) -> None:
    if KPTFILE not in manifests:
        raise _refused(
            f"there is no Kptfile in {package.directory or 'the root'} at {package.revision.name}",
            "name a directory that is a package, or make it one with `kpt pkg init`",
        )
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] == KPTFILE:
            kptfile_of(manifest)


def _objects(
    manifests: Mapping[str, Manifest], configuring: frozenset[str]
) -> dict[Place, Document]:
    """The objects that functions see: all but Kptfiles, and Lists that configure a function."""
    found: dict[Place, Document] = {}
    for file, manifest in manifests.items():
        for document in manifest.documents:
            item = mapping(document.value)
            if not item.get("kind") or not item.get("apiVersion"):
                continue  # a file of values or the like, no object
            if item["kind"] == "List" and item["apiVersion"] == "v1":
                if file in configuring:
                    continue
                raise _refused(
                    "a List of objects is not supported yet",
                    "write its items as documents of their own",
                    file,
                    document.line_of(("kind",)),
                )
            if item["kind"] != KPTFILE:
                found[file, document.index] = document
    return found


def _cluster_kinds(objects: Mapping[Place, Document]) -> frozenset[tuple[str, str]]:
    """Kinds without a namespace, by the definitions that the package brings along."""
    found = set()
    for document in objects.values():
        item: Any = document.value
        if item["kind"] == "CustomResourceDefinition" and group_of(item["apiVersion"]):
            spec = mapping(item.get("spec"))
            if spec.get("scope") == "Cluster":
                kind = mapping(spec.get("names")).get("kind")
                found.add((str(spec.get("group", "")), str(kind)))
    return frozenset(found)


def _custom_schemas(objects: Mapping[Place, Document]) -> dict[tuple[str, str], Any]:
    """Schemas of custom resources by apiVersion and kind, where the package defines them."""
    found = {}
    for document in objects.values():
        item: Any = document.value
        spec = mapping(item.get("spec"))
        versions = spec.get("versions")
        if item["kind"] != "CustomResourceDefinition" or not isinstance(versions, list):
            continue
        kind = str(mapping(spec.get("names")).get("kind"))
        for version in map(mapping, versions):
            schema = mapping(version.get("schema")).get("openAPIV3Schema")
            if isinstance(schema, dict):
                found[f"{spec.get('group')}/{version.get('name')}", kind] = schema
    return found


def _waits(item: Any) -> bool:
    return DEPENDS_ON in mapping(mapping(item.get("metadata")).get("annotations"))


def _refused(problem: str, remedy: str, file: str = "", line: int = 0) -> InvalidInput:
    return InvalidInput(
        problem, reason=Reason.INVALID_PACKAGE, remedy=remedy, where=Where(file=file, line=line)
    )
