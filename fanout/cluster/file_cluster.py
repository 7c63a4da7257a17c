"""File mode of the cluster: objects declared by manifests in directories.

`FileCluster` serves a process that runs continuously: it parses a file again only if its content
changed.

The file of `--config` is never searched for: no file in a directory of policies can take its place.
"""

import hashlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.field_errors import FieldError, FieldPath, format_path
from fanout.api.object_meta import DEFAULT_NAMESPACE, KRMObject
from fanout.cluster.manifest_cache import MIN_FILE_SIZE, ManifestCache, compute_cache_key
from fanout.cluster.manifest_discovery import ManifestDiscovery, file_finding
from fanout.cluster.manifest_documents import (
    InvalidFiles,
    ManifestContent,
    SourcePosition,
    find_positions,
    read_content,
)
from fanout.control_characters import escape_unprintable
from fanout.declared.declaration_assembly import assemble_declared, build_finding
from fanout.declared.declared_objects import DeclarationFailure, DeclaredObjects, ObjectKey, key_of
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation, FanoutError, Unavailable
from fanout.package.json_manifest import is_json
from fanout.package.object_reader import ScalarMemo
from fanout.package.yaml_nodes import MAX_OBJECTS
from fanout.selection.cluster_objects import ClusterObjectIndex, ObjectsByKind
from fanout.selection.variant_spec import Object
from fanout.telemetry.error_isolation import BARRIER, run_isolated, run_without_faulty
from fanout.values import Value, field, replace
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


def read_configuration(path: Path) -> tuple[FanoutConfiguration, SourcePosition]:
    """Read the one configuration in the file, and its position.

    Raises InvalidFiles with every error.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InvalidFiles([file_finding(path, problem, "correct --config")]) from error
    content = read_content(data, str(path))
    configurations = [
        (item, position)
        for item, position in content.own_objects
        if isinstance(item, FanoutConfiguration)
    ]
    findings = list(content.findings)
    if not findings and (
        len(configurations) != 1 or len(content.own_objects) > 1 or content.plain_objects
    ):
        problem = "must contain exactly one FanoutConfiguration"
        findings.append(file_finding(path, problem, "remove all other objects"))
    if findings:
        raise InvalidFiles(findings)
    return configurations[0]


# A file that changed so recently could change again with equal time stamps.
_SETTLED_NS = 2_000_000_000
_STDIN = "-"  # name of standard input in messages


class _ReadFile(Value):
    """A file as last read; `stamp` is None while it cannot be trusted to detect a change."""

    stamp: tuple[int, ...] | None
    digest: bytes
    content: ManifestContent


class _SharedTexts(Value):
    """Strings that many files have in common, shared during one reading."""

    parsed: ScalarMemo = field(default_factory=ScalarMemo)
    cached: dict[Any, Any] = field(default_factory=dict)


class FileCluster:
    """Declared objects of files that are read repeatedly, by one thread at a time."""

    def __init__(
        self,
        paths: Sequence[Path],
        stdin: bytes | None = None,
        cache: ManifestCache | None = None,
        *,
        keep_valid: bool = False,
    ) -> None:
        """Read `paths` and `stdin`, the content of standard input if it was given.

        `cache` has files parsed by earlier processes. `keep_valid`: take the valid documents of
        files that have invalid ones, too. A pass must not: what is missing may restrict what is
        there.
        """
        self._paths = tuple(paths)
        self._stdin = stdin
        self._cache = cache
        self._keep_valid = keep_valid
        self._files: dict[Path, _ReadFile] = {}
        self._findings: tuple[Finding, ...] = ()
        self._declared = DeclaredObjects()
        self._stdin_files: dict[Path, _ReadFile] = {}
        if stdin is not None:
            content = run_isolated(partial(read_content, stdin, _STDIN, keep_valid=keep_valid))
            if isinstance(content, FanoutError):
                content = _unread_content(Path(_STDIN), content)
            self._stdin_files = {Path(_STDIN): _ReadFile(None, b"", content)}

    def read(self) -> DeclaredObjects:
        """Return what the files declare now, with `faults`; the same value if nothing changed."""
        discovery, texts = ManifestDiscovery(self._paths), _SharedTexts()
        findings = list(discovery.findings)
        files = dict(self._stdin_files)
        for path, status in discovery.files.items():
            file = run_isolated(partial(self._read_file, path, status, texts))
            if isinstance(file, FanoutError):
                # Not skipped, as the file may declare anything. The same failure is the same value,
                # so that it does not count as a change.
                content, previous = _unread_content(path, file), self._files.get(path)
                if previous is None or previous.content != content:
                    previous = _ReadFile(None, b"", content)
                file = previous
            files[path] = file
        self._declared = self._merge_files(files, findings)
        self._files, self._findings = files, tuple(findings)
        return self._declared

    def _merge_files(
        self, files: Mapping[Path, _ReadFile], findings: Sequence[Finding]
    ) -> DeclaredObjects:
        """Merge the files into what was declared before; all of them only if necessary."""
        if [*files] == [*self._files] and tuple(findings) == self._findings:
            # Compared by identity: an unchanged file keeps its content object, and comparing
            # values would cost as much as merging them.
            contents = ((self._files[path].content, file.content) for path, file in files.items())
            changes = [pair for pair in contents if pair[0] is not pair[1]]
            if not changes:
                return self._declared
            merged = run_isolated(partial(merge_changes, self._declared, changes))
            # After an internal error, merging all files tells which one causes it.
            if isinstance(merged, DeclaredObjects):
                return merged

        def merge(named: Sequence[tuple[str, ManifestContent]]) -> DeclaredObjects:
            merged_objects = merge_objects(dict(named), self._declared.objects)
            return merge_declared(dict(named), findings, merged_objects, self._locate)

        all_contents = {str(path): file.content for path, file in files.items()}
        # A file that makes merging fail counts as unread.
        declared, faulty = run_without_faulty(merge, [*all_contents.items()])
        if not faulty:
            return declared
        names = [*all_contents]
        failed = {names[index]: error for index, error in faulty.items()}
        unread = {name: _unread_content(Path(name), error) for name, error in failed.items()}
        with_unread = run_isolated(partial(merge, [*{**all_contents, **unread}.items()]))
        if not isinstance(with_unread, FanoutError):
            return with_unread
        # Merging fails even with the mere names of these files, so findings about other files that
        # depend on them may be missing.
        faults = (it for content in unread.values() for it in content.findings)
        all_unread = (*declared.unread, *map(DeclarationFailure, unread))
        return replace(declared, faults=(*declared.faults, *faults), unread=all_unread)

    def require(
        self,
        injected: Mapping[ObjectKey, Collection[tuple[str, str]]],  # noqa: ARG002 as of the port
    ) -> bool:
        """Return False: files are read with all their kinds."""
        return False

    def digest(self) -> str:
        """Return a digest of all files as they are now, unparsed; "" if one is unreadable."""
        discovery = ManifestDiscovery(self._paths)
        try:
            digests = {path: hashlib.sha256(path.read_bytes()).digest() for path in discovery.files}
        except OSError:
            return ""
        return self._compute_digest(digests, discovery.findings)

    def last_digest(self) -> str:
        """Return the digest of the files as last read; "" if one was unreadable."""
        return self._compute_digest(
            {path: it.digest for path, it in self._files.items()}, self._findings
        )

    def locate_object(self, key: ObjectKey) -> str:
        """Return `file:line` of an object as last read; "" if no file declares it."""
        for path, file in self._files.items():
            kind = file.content.plain_objects.get((key.group, key.kind), {})
            # Positions of cluster-scoped objects have the default, too.
            in_file = key._replace(namespace=key.namespace or DEFAULT_NAMESPACE)
            if (in_file.namespace, in_file.name) in kind:
                for position in self._locate(str(path)).get(in_file, ()):
                    return f"{position.file}:{position.line(('metadata', 'name'))}"
        if (own := self._declared.positions.get(key)) is None:
            return ""
        where = own.locate("", ("metadata", "name"))
        return f"{where.file}:{where.line}"

    def _compute_digest(self, digests: Mapping[Path, bytes], findings: Sequence[Finding]) -> str:
        # No digest without certainty: an unreadable file or standard input may differ next time.
        if findings or self._stdin is not None or not all(digests.values()):
            return ""
        total = hashlib.sha256()
        for path, digest in sorted(digests.items()):
            total.update(b"%s\0%s" % (os.fsencode(path.absolute()), digest))
        return total.hexdigest()

    def _read_file(self, path: Path, status: os.stat_result, texts: _SharedTexts) -> _ReadFile:
        """Read a file of this status; parse it only if its bytes changed. Raises Unavailable."""
        if (previous := self._files.get(path)) is not None and previous.stamp == _stamp(status):
            return previous
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                # One byte more than allowed: parsing then reports the file as too large.
                data = file.read(MAX_OBJECTS + 1)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            raise Unavailable(problem, remedy="make it readable") from error
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        stamp = _stamp(status) if time.time_ns() - changed > _SETTLED_NS else None
        digest = hashlib.sha256(data).digest()
        if previous is not None and previous.digest == digest:
            return replace(previous, stamp=stamp)
        # Plain objects of a large file may be in the cache.
        cache = self._cache if len(data) >= MIN_FILE_SIZE else None
        if cache is not None:
            key = compute_cache_key(digest, as_json=is_json(str(path)))
            if (kinds := cache.find(key, texts.cached)) is not None:
                return _ReadFile(stamp, digest, ManifestContent(plain_objects=kinds))
        content = read_content(data, str(path), texts.parsed, keep_valid=self._keep_valid)
        if cache is not None and content.is_plain:
            cache.store(key, content.plain_objects)
        return _ReadFile(stamp, digest, content)

    def _locate(self, file: str) -> Mapping[ObjectKey, Sequence[SourcePosition]]:
        """Return the positions of the objects in a file; none if it changed or has an error."""
        try:
            data = self._stdin if file == _STDIN else None
            data = Path(file).read_bytes() if data is None else data
            with BARRIER:
                return find_positions(data, file)
        except (FanoutError, OSError):
            return {}


def _unread_content(path: Path, error: FanoutError) -> ManifestContent:
    return ManifestContent(findings=(file_finding(path, error.problem, error.remedy),), unread=True)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    identity = status.st_dev, status.st_ino
    return *identity, status.st_size, status.st_mtime_ns, status.st_ctime_ns
