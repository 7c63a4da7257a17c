"""The mirror's own refs, read and written as files instead of by git processes.

All are below `refs/fanout/`: `seen/` is the remote as last listed, which leases are
compared with; `out/` and `keep/` are what a push sends, and are empty at other times.
Thousands of refs cost one file, packed-refs.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from fanout.errors import ErrorLocation, InvalidInput
from fanout.git.git_errors import DamagedMirrorError

LISTED_PREFIX = "refs/fanout/seen/"
OUTGOING_PREFIX = "refs/fanout/out/"
KEEP_PREFIX = "refs/fanout/keep/"

_HEADER = "# pack-refs with: sorted \n"
_OID = re.compile(r"[0-9a-f]{40}")
_REF_LINES = re.compile(r"(?:[0-9a-f]{40}[ \t][^\n]+\n)*+")
_HEADER_OR_PEELED = re.compile(r"^[#^].*\n", re.MULTILINE)
# forbidden anywhere in a ref, or in one of its components
FORBIDDEN_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/[.-]|\.lock(?:/|\Z)|[./]\Z")


def check_ref(ref: str) -> str:
    """Return a full branch or tag name; raise InvalidInput if git-check-ref-format(1) refuses."""
    has_prefix = ref.startswith(("refs/heads/", "refs/tags/")) and ref.isprintable()
    if not has_prefix or FORBIDDEN_IN_REF.search(ref):
        raise InvalidInput(
            f"{ref!r} is not a valid branch or tag name",
            reason="InvalidRefName",
            remedy="use package paths and names without spaces, '..' and the characters ~^:?*[\\",
            where=ErrorLocation(object=ref),
        )
    return ref


def select_refs(refs: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the refs with these full names, or with prefixes that end with ``/*``, and their ids.

    Raises InvalidInput for a pattern that names neither branches nor tags.
    """
    names: set[str] = set()
    prefixes: tuple[str, ...] = ()
    for pattern in patterns:
        prefix = pattern.removesuffix("*") if pattern.endswith("/*") else ""
        check_ref(f"{prefix}x" if prefix else pattern)
        prefixes += (prefix,) if prefix else ()
        names.add(pattern)
    # A name that is not UTF-8 was decoded with backslashes, which no valid ref contains.
    matching = (ref for ref in refs if ref in names or ref.startswith(prefixes))
    return {ref: refs[ref] for ref in matching if "\\" not in ref}


def listed_name(ref: str) -> str:
    """Return the name of a remote ref in the mirror: `refs/fanout/seen/heads/main`."""
    return LISTED_PREFIX + ref.removeprefix("refs/")


def parse_refs(text: str) -> dict[str, str]:
    """Parse lines `<id> <name>` into ids by name. Raises ValueError for any other line.

    The text is matched as a whole, because a repository may have a hundred thousand refs.
    """
    if not _REF_LINES.fullmatch(text):
        raise ValueError("these are no refs")
    # Not splitlines: a name may contain a character that Unicode defines as a line end.
    return {line[41:]: line[:40] for line in text.split("\n") if line}


def read_refs(mirror: Path, under: str, replacement: str = "") -> dict[str, str]:
    """Read the refs below the prefix `under`, which is replaced. Raises DamagedMirrorError.

    A loose file has precedence over the packed line.
    """
    refs_by_name: dict[str, str] = {}
    packed = mirror / "packed-refs"
    if packed.exists():
        try:
            refs = parse_refs(_HEADER_OR_PEELED.sub("", os.fsdecode(packed.read_bytes())))
        except ValueError as error:
            raise _damaged(packed) from error
        prefix_length = len(under)
        refs_by_name = {
            replacement + name[prefix_length:]: oid
            for name, oid in refs.items()
            if name.startswith(under)
        }
    for folder, _, files in os.walk(os.fsencode(mirror / under)):
        for file in files:
            path = Path(os.fsdecode(os.path.join(folder, file)))  # noqa: PTH118 bytes
            if path.name.endswith(".lock"):
                continue
            oid = os.fsdecode(path.read_bytes()).strip()
            if not _OID.fullmatch(oid):
                raise _damaged(path)
            refs_by_name[replacement + path.relative_to(mirror / under).as_posix()] = oid
    return refs_by_name


def read_listed_refs(mirror: Path) -> dict[str, str]:
    """Read the remote's refs as last listed, by full name."""
    return read_refs(mirror, LISTED_PREFIX, "refs/")


def write_refs(
    mirror: Path, refs: Mapping[str, str], loose: Mapping[str, str] | None = None
) -> None:
    """Replace all refs of the mirror by `refs`; the caller holds the mirror's lock.

    `loose` are written as files, because git rewrites all packed refs for each one that it deletes.
    """
    lines = [f"{refs[name]} {name}\n" for name in sorted(refs, key=os.fsencode)]
    content = os.fsencode("".join([_HEADER, *lines]))
    target = mirror / "packed-refs"
    lock = mirror / "packed-refs.lock"
    # Unchanged refs keep their file: its time stamp is part of the mirror's state, by which
    # memoized listings are reused.
    if not target.exists() or target.read_bytes() != content:
        lock.write_bytes(content)
        # Renamed over the old file like git does, so that a reader never sees half of it.
        lock.replace(target)
    shutil.rmtree(mirror / "refs" / "fanout", ignore_errors=True)
    for name, oid in (loose or {}).items():
        path = mirror / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{oid}\n", encoding="ascii")


def _damaged(path: Path) -> DamagedMirrorError:
    return DamagedMirrorError(f"{path.name} of the mirror is damaged", reason="MirrorDamaged")
