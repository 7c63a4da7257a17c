"""The mirror's own refs, read and written as files: thousands of them cost one file.

All are below `refs/fanout/`: `seen/` is the remote as last listed, what leases are judged by;
`out/` and `keep/` are what a push takes up, and are empty at all other times.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from fanout.errors import InvalidInput, Where
from fanout.git.failures import DamagedMirrorError

SEEN = "refs/fanout/seen/"
OUT = "refs/fanout/out/"
KEEP = "refs/fanout/keep/"
SCRATCH = "refs/fanout/scratch"

_HEADER = "# pack-refs with: sorted \n"
_OID = re.compile(r"[0-9a-f]{40}")
_LINES = re.compile(r"(?:[0-9a-f]{40}[ \t][^\n]+\n)*+")
_REMARK = re.compile(r"^[#^].*\n", re.MULTILINE)
_FORBIDDEN = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/[.-]|\.lock(?:/|\Z)|[./]\Z"  # anywhere, or in a part
)


def check_ref(ref: str) -> str:
    """A full branch or tag name that git takes (git-check-ref-format(1)), else InvalidInput."""
    named = ref.startswith(("refs/heads/", "refs/tags/")) and ref.isprintable()
    if not named or _FORBIDDEN.search(ref):
        raise InvalidInput(
            f"{ref!r} is no name that git takes for a branch or tag",
            reason="InvalidRefName",
            remedy="choose package paths and names without spaces, '..' and the signs ~^:?*[\\",
            where=Where(object=ref),
        )
    return ref


class Patterns:
    """Which refs are asked for: by full name, or all below a prefix that ends with ``/*``."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises InvalidInput for a pattern that names no branches or tags."""
        self.names: set[str] = set()
        prefixes: set[str] = set()
        for pattern in patterns:
            if pattern.endswith("/*"):
                check_ref(f"{pattern[:-1]}x")
                prefixes.add(pattern[:-1])
            else:
                self.names.add(check_ref(pattern))
        self.prefixes = tuple(sorted(prefixes))

    def __contains__(self, ref: str) -> bool:
        # A name that is no UTF-8 was read with backslashes, which no ref has; it is none of ours.
        return (ref in self.names or ref.startswith(self.prefixes)) and "\\" not in ref

    def of(self, refs: Mapping[str, str]) -> dict[str, str]:
        """Those of the refs that are asked for."""
        return {ref: oid for ref, oid in refs.items() if ref in self}


def seen_name(ref: str) -> str:
    """`refs/heads/main` → `refs/fanout/seen/heads/main`."""
    return SEEN + ref.removeprefix("refs/")


def parse_refs(text: str) -> dict[str, str]:
    """Ids by name, of lines `<id> <name>`; all at once, for there may be a hundred thousand.

    Raises ValueError when a line is anything else.
    """
    if not _LINES.fullmatch(text):
        raise ValueError("these are no refs")
    # Not splitlines: a name may have what Unicode takes for the end of a line.
    return {line[41:]: line[:40] for line in text.split("\n") if line}


def read_refs(mirror: Path, under: str, shown: str = "") -> dict[str, str]:
    """Refs below `under`, by `shown` and the rest of their name.

    A loose file beats the packed line. Raises DamagedMirrorError.
    """
    found: dict[str, str] = {}
    packed = mirror / "packed-refs"
    if packed.exists():
        try:
            refs = parse_refs(_REMARK.sub("", _text(packed)))
        except ValueError as error:
            raise _damaged(packed) from error
        cut = len(under)
        found = {shown + name[cut:]: oid for name, oid in refs.items() if name.startswith(under)}
    for folder, _, files in os.walk(os.fsencode(mirror / under)):
        for file in files:
            path = Path(os.fsdecode(os.path.join(folder, file)))  # noqa: PTH118 bytes
            if path.name.endswith(".lock"):
                continue
            oid = _text(path).strip()
            if not _OID.fullmatch(oid):
                raise _damaged(path)
            found[shown + path.relative_to(mirror / under).as_posix()] = oid
    return found


def seen_refs(mirror: Path) -> dict[str, str]:
    """The remote's refs as they were last seen, by full name."""
    return read_refs(mirror, SEEN, "refs/")


def write_refs(
    mirror: Path, refs: Mapping[str, str], loose: Mapping[str, str] | None = None
) -> None:
    """Make these the mirror's refs and no others; the caller holds the mirror's lock.

    `loose` become files of their own: git rewrites all packed refs for each one it deletes.
    """
    lines = [f"{refs[name]} {name}\n" for name in sorted(refs, key=os.fsencode)]
    content = os.fsencode("".join([_HEADER, *lines]))
    target = mirror / "packed-refs"
    lock = mirror / "packed-refs.lock"
    if not target.exists() or target.read_bytes() != content:
        lock.write_bytes(content)
        lock.replace(target)
    shutil.rmtree(mirror / "refs" / "fanout", ignore_errors=True)
    for name, oid in (loose or {}).items():
        path = mirror / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{oid}\n", encoding="ascii")


def _text(path: Path) -> str:
    return os.fsdecode(path.read_bytes())


def _damaged(path: Path) -> DamagedMirrorError:
    return DamagedMirrorError(f"{path.name} of the mirror is damaged", reason="MirrorDamaged")
