"""Reads an upstream package once per revision; what follows is done for every variant."""

from collections.abc import Iterable, Mapping
from typing import Any

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, Path
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.kptfile import kptfile_of
from fanout.package.manifests import Manifest
from fanout.package.merge.keys import schemas_of
from fanout.package.portable import file_faults
from fanout.selection.objects import group_of
from fanout.variants.canonical import canonical
from fanout.variants.cloning import cloned_kptfile
from fanout.variants.context import CONTEXT, holds_context, new_context
from fanout.variants.functions.function import Facts, InProcess, is_local, mapping
from fanout.variants.functions.scope import CLUSTER_KINDS, NAMESPACED_KINDS, Kind, scopes_of
from fanout.variants.functions.set_namespace import DEPENDS_ON
from fanout.variants.model import Limits, UpstreamPackage
from fanout.variants.parts import (
    ITEMS,
    Item,
    Part,
    is_object,
    is_plain_list,
    is_split,
    parts_of,
)
from fanout.variants.pipeline import Declared, read_pipelines
from fanout.variants.points import find_points, may_be_filled
from fanout.variants.prepared import DeclaredScopes, Place, PreparedPackage

_SUFFIXES = (".yaml", ".yml", ".json")
_REGULAR = ("100644", "100755")
_SYMLINK = "120000"
NO_SCOPES: Mapping[Kind, bool] = {}


def prepare(
    package: UpstreamPackage, limits: Limits, declared: Mapping[Kind, bool] = NO_SCOPES
) -> PreparedPackage:
    """Parse and check the package; `declared` are scopes of kinds by declared definitions.

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
    has_context = holds_context(manifests.setdefault(CONTEXT, new_context()))
    functions = read_pipelines(manifests, limits.programs)
    configuring = frozenset(item.config_file for item in functions if item.config_file)
    parts = _parts(manifests, configuring)
    points = find_points((*place, part) for place, part in parts.items())
    objects = _objects(parts, configuring)
    local = frozenset(place for place, part in objects.items() if is_local(part.value))
    others = {place: part for place, part in objects.items() if place not in local}
    scopes, unknown = _scopes(others, declared)
    declared_scopes = tuple(sorted((*kind, scopes[kind]) for kind in unknown & scopes.keys()))
    return PreparedPackage(
        upstream=package,
        entries={path: entry for path, (entry, _) in package.files.items()},
        manifests=manifests,
        kptfile=cloned_kptfile(package, manifests[KPTFILE], points),
        points=points,
        fillable=frozenset(it.key for it in points if may_be_filled(it, limits.injectable)),
        has_context=has_context,
        varying=tuple(dict.fromkeys([CONTEXT] * has_context + [it.file for it in points])),
        parts=parts,
        objects=objects,
        local=local,
        functions=functions,
        configuring=configuring,
        programs=limits.programs,
        unknown=unknown,
        declared_scopes=declared_scopes,
        policy_at=sum(1 for function in functions if function.below),
        facts=Facts(
            scopes,
            custom=_custom_schemas(others),
            shapes=schemas_of(part.value for part in others.values()),
        ),
        limits=limits,
        size=sum(len(data) for _, data in package.files.values()),
        waits=any(_waits(part.value) for part in others.values()),
        fingerprint=_fingerprint(package, functions, declared_scopes),
    )


def _fingerprint(
    package: UpstreamPackage, functions: Iterable[Declared], scopes: DeclaredScopes
) -> str:
    """The part of the digest that all variants share."""
    return canonical(
        [
            package.repository,
            package.directory,
            package.tree,
            package.revision.name,
            package.revision.commit,
            [_version(item, scopes) for item in functions],
        ]
    )


def _version(item: Declared, scopes: DeclaredScopes) -> list[object]:
    """What of a function enters the digest."""
    function = item.function
    by_scope = isinstance(function, InProcess) and function.by_scope and scopes
    return [function.name, function.version, *([scopes] if by_scope else [])]


def _check_files(package: UpstreamPackage, limits: Limits) -> None:
    limits.check_sizes({path: len(data) for path, (_, data) in package.files.items()})
    for path, (entry, _) in sorted(package.files.items()):
        if entry.mode not in _REGULAR:
            kind = "a symbolic link" if entry.mode == _SYMLINK else "a submodule"
            raise _refused(f"is {kind}, which a package may not have", "use a file", path)
    for path, problem in file_faults(package.files):
        raise _refused(problem, "rename the file", path)


def _check_kptfile(package: UpstreamPackage, manifests: Mapping[str, Manifest]) -> None:
    if KPTFILE not in manifests:
        raise _refused(
            f"there is no Kptfile in {package.directory or 'the root'} at {package.revision.name}",
            "name a directory that is a package, or make it one with `kpt pkg init`",
        )
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] == KPTFILE:
            kptfile_of(manifest)


def _parts(manifests: Mapping[str, Manifest], configuring: frozenset[str]) -> dict[Place, Part]:
    """All documents and items of Lists, but those of Lists that configure a function."""
    return {
        (file, number): part
        for file, manifest in manifests.items()
        for number, part in parts_of(manifest).items()
        if file not in configuring or not isinstance(part, Item)
    }


def _objects(parts: Mapping[Place, Part], configuring: frozenset[str]) -> dict[Place, Part]:
    """The objects that functions see: all but Kptfiles, and Lists that configure a function."""
    found: dict[Place, Part] = {}
    for place, part in parts.items():
        if not is_object(part.value):
            continue  # a file of values or the like, no object
        if is_plain_list(part.value) or (isinstance(part, Item) and is_split(part.value)):
            if place[0] in configuring:
                continue
            if isinstance(part, Item) or not is_local(part.value):
                _check_list(place[0], part)
        if part.value["kind"] != KPTFILE:
            found[place] = part
    return found


def _check_list(file: str, part: Part) -> None:
    """Raise InvalidInput: the List's items cannot be taken as objects."""
    items = part.value.get(ITEMS, MISSING)
    path: Path = (ITEMS,)
    if isinstance(part, Item):
        path, problem, remedy = ("kind",), "a List in a List", "put its items into the outer one"
    elif items is MISSING:
        path, problem, remedy = ("kind",), "a List without items", "give it items, or []"
    elif items is None:
        return  # nothing is in it yet
    elif not isinstance(items, list):
        problem, remedy = "the List's items are no list", "list the objects"
    else:
        at = next(at for at, item in enumerate(items) if not is_object(item))
        path, problem = (ITEMS, at), f"items[{at}] of the List is no object"
        remedy = "give it an apiVersion and a kind, or take it out"
    raise _refused(problem, remedy, file, part.line_of(path))


def _scopes(
    objects: Mapping[Place, Part], declared: Mapping[Kind, bool]
) -> tuple[dict[Kind, bool], frozenset[Kind]]:
    """Scopes of custom kinds in the package, and those kinds that the package does not define.

    A definition in the package comes before a declared one: it is what will be applied.
    """
    own = scopes_of(part.value for part in objects.values())
    kinds = {(group_of(it.value["apiVersion"]), it.value["kind"]) for it in objects.values()}
    unknown = kinds - own.keys() - NAMESPACED_KINDS - CLUSTER_KINDS
    found = {kind: declared[kind] for kind in unknown & declared.keys()}
    return {**found, **own}, frozenset(unknown)


def _custom_schemas(objects: Mapping[Place, Part]) -> dict[tuple[str, str], Any]:
    """Schemas of custom resources by apiVersion and kind, where the package defines them."""
    found = {}
    for part in objects.values():
        item: Any = part.value
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
