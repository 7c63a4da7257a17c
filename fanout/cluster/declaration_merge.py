"""Merging of the contents of files into the declared objects."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fanout.api.field_errors import FieldError, FieldPath, format_path
from fanout.api.object_meta import KRMObject
from fanout.cluster.manifest_documents import ManifestContent, SourcePosition
from fanout.control_characters import escape_unprintable
from fanout.declared.declaration_assembly import assemble_declared, build_finding
from fanout.declared.declared_objects import (
    DeclarationFailure,
    DeclaredObjects,
    Finding,
    ObjectKey,
    key_of,
)
from fanout.errors import ErrorLocation
from fanout.selection.cluster_objects import ClusterObjectIndex, ObjectsByKind
from fanout.selection.variant_spec import Object
from fanout.values import Value, replace
from fanout.variants.functions.kind_scopes import CLUSTER_KINDS, CRD_KIND, read_scopes


class MergedObjects(Value):
    """Index of the objects declared once, and the files of those declared more than once."""

    index: ClusterObjectIndex
    duplicates: Mapping[ObjectKey, Sequence[str]]
    cluster_kinds: frozenset[tuple[str, str]]  # group and kind of the cluster-scoped ones


def merge_objects(
    contents: Mapping[str, ManifestContent], previous: ClusterObjectIndex
) -> MergedObjects:
    """Merge the plain objects of all files, given by file name.

    Objects declared more than once are not in the index, because it is undecidable which of them is
    meant. The versions of contents that `previous` has are not computed again. A cluster-scoped
    object has no namespace: a kind is one if Kubernetes or a CustomResourceDefinition in the files
    says so.
    """
    kinds: defaultdict[tuple[str, str], dict[tuple[str, str], Object]] = defaultdict(dict)
    for content in contents.values():
        for kind, names in content.plain_objects.items():
            kinds[kind].update(names)
    duplicates = _find_duplicate_objects(contents, kinds)
    for key in duplicates:
        del kinds[key.group, key.kind][key.namespace, key.name]
    scopes = read_scopes(kinds.get(CRD_KIND, {}).values())
    cluster_kinds = CLUSTER_KINDS | {kind for kind, namespaced in scopes.items() if not namespaced}
    for kind in cluster_kinds & kinds.keys():
        kinds[kind] = {
            ("", name): {
                **item,
                "metadata": {key: it for key, it in item["metadata"].items() if key != "namespace"},
            }
            for (_, name), item in kinds[kind].items()
        }
    in_order = {
        kind: {name: items[name] for name in sorted(items)} for kind, items in kinds.items()
    }
    return MergedObjects(previous.with_objects(in_order), duplicates, cluster_kinds)


def _find_duplicate_objects(
    contents: Mapping[str, ManifestContent], merged: ObjectsByKind
) -> Mapping[ObjectKey, Sequence[str]]:
    """Find the files of each object that is declared more than once."""
    declared = Counter[tuple[str, str]]()
    for content in contents.values():
        declared.update({kind: len(names) for kind, names in content.plain_objects.items()})
    kinds_with_duplicates = {kind for kind, items in merged.items() if len(items) < declared[kind]}
    files: defaultdict[ObjectKey, dict[str, None]] = defaultdict(dict)
    repeated = {key for content in contents.values() for key in content.repeated}
    for file, content in contents.items():
        for key in content.repeated:
            files[key][file] = None
        for kind in kinds_with_duplicates & content.plain_objects.keys():
            for name in content.plain_objects[kind]:
                files[ObjectKey(*kind, *name)][file] = None
    return {
        key: tuple(sources) for key, sources in files.items() if len(sources) > 1 or key in repeated
    }


Locate = Callable[[str], Mapping[ObjectKey, Sequence[SourcePosition]]]
_NAME_PATH: FieldPath = ("metadata", "name")
_DUPLICATE_REMEDY = "rename or remove one of them"


def merge_declared(
    contents: Mapping[str, ManifestContent],
    discovery_findings: Iterable[Finding],
    merged: MergedObjects,
    locate: Locate,
) -> DeclaredObjects:
    """Merge the contents of all files, by file name, into the declared objects.

    `discovery_findings` are errors from looking for files. `merged` are the plain objects of the
    same files; `locate` finds the positions in a file that was read without.
    """
    own_objects: dict[ObjectKey, tuple[KRMObject, SourcePosition]] = {}
    positions: defaultdict[ObjectKey, list[SourcePosition]] = defaultdict(list)
    for content in contents.values():
        for item, position in content.own_objects:
            # Duplicates overwrite each other; they are removed below, so no order decides.
            own_objects[key_of(item)] = item, position
            positions[key_of(item)].append(position)
    broken = tuple(pair for content in contents.values() for pair in content.left_out)
    for key, position in broken:
        positions[key].append(position)
    duplicates = {key: locations for key, locations in positions.items() if len(locations) > 1}
    # Of duplicates among plain objects only the files are known.
    files = {file for names in merged.duplicates.values() for file in names}
    located = {file: locate(file) for file in sorted(files)}
    plain_duplicates = {
        key: [position for file in names for position in located[file].get(key, ())]
        for key, names in merged.duplicates.items()
    }
    usable = {key: pair for key, pair in own_objects.items() if key not in duplicates}
    discovery_findings = tuple(discovery_findings)
    unread = [DeclarationFailure(content.where.file) for content in discovery_findings]
    unread += (DeclarationFailure(at) for at, content in contents.items() if content.unread)
    # Plain objects that would be a target.
    unusable = [failure for content in contents.values() for failure in content.nameless]
    for key, places in plain_duplicates.items():
        often = f"{len(places)} times" if len(places) > 1 else "more than once"
        source = f"{key.identity}, which is declared {often}"
        unusable.append(DeclarationFailure(source, (key.group, key.kind), key.namespace))
    read = DeclaredObjects(
        objects=merged.index,
        faults=(
            *discovery_findings,
            *(fault for content in contents.values() for fault in content.findings),
            *_duplicate_findings({**duplicates, **plain_duplicates}, merged.duplicates),
        ),
        broken=broken,
        unread=tuple(unread),
        unusable=tuple(
            replace(it, namespace="") if it.kind in merged.cluster_kinds else it for it in unusable
        ),
    )
    return assemble_declared(usable, duplicates, read)


def merge_changes(
    declared: DeclaredObjects, changes: Iterable[tuple[ManifestContent, ManifestContent]]
) -> DeclaredObjects | None:
    """Return the declared objects after changes of files, given by previous and present content.

    None if all files have to be merged: not only the content of plain objects declared once
    changed.
    """
    objects: defaultdict[tuple[str, str], dict[tuple[str, str], Object]] = defaultdict(dict)
    for previous, present in changes:
        if not previous.is_plain or not present.is_plain:
            return None
        if previous.plain_objects.keys() != present.plain_objects.keys():
            return None
        for kind, names in present.plain_objects.items():
            if names.keys() != previous.plain_objects[kind].keys():
                return None
            # One that other files declare, too, is not in the index. A cluster-scoped one, like a
            # definition that tells which kinds these are, has no namespace there.
            if not names.keys() <= declared.objects.of_kind(*kind).keys():
                return None
            objects[kind].update(names)
    return replace(declared, objects=declared.objects.with_changes(objects))


def _duplicate_findings(
    positions: Mapping[ObjectKey, Sequence[SourcePosition]],
    files_by_key: Mapping[ObjectKey, Sequence[str]],
) -> Iterator[Finding]:
    """Yield findings for each further declaration; `files_by_key` are of those without position."""
    for key, locations in positions.items():
        for position in locations[1:]:
            problem = (
                f"is already declared in namespace {key.namespace} at"
                f" {escape_unprintable(str(locations[0].file))}:{locations[0].line(_NAME_PATH)};"
                " none of them is used"
            )
            yield build_finding(
                key.identity, position, FieldError(_NAME_PATH, problem, _DUPLICATE_REMEDY)
            )
    for key, files in files_by_key.items():
        if len(positions.get(key, ())) < 2:
            also = f", also in {', '.join(map(escape_unprintable, files[1:]))}" if files[1:] else ""
            problem = (
                f"is declared more than once in namespace {key.namespace}{also}; none of them is"
                " used"
            )
            where = ErrorLocation(key.identity, format_path(_NAME_PATH), files[0])
            yield Finding(where, problem, _DUPLICATE_REMEDY)
