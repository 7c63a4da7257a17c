"""How records and status are written down as files, and read back: bytes in, values out.

One file per record, `records/<time>-<hash>.json`; status in 256 files of lines, so that a pass
which changes one variant of ten thousand writes forty lines and not ten thousand. (Design §3.)
"""

import hashlib
import json
import re
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any

from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.api.validation import validate
from fanout.package.limits import SizeLimits
from fanout.plan.book import BookKey

RECORDS = "records"
STATUS = "status"
KINDS = ("Evidence", "Approval", "Decision")
# Nobody sets these: whoever lowered them would make records unreadable that are there already.
LIMITS = SizeLimits(files=500_000, size=1 << 30, depth=1, file_size=16 << 20)
NO_POLICY = "_"  # no object can be called so
_COUNT = re.compile(r"(?<=-[0-9a-f]{12})-[0-9]+$")


class UnreadableError(Exception):
    """What is wrong with a file, as the end of a sentence that begins with its path."""


def branch(install: str, key: BookKey) -> str:
    """The full ref name of a book's branch."""
    return f"refs/heads/fanout/{install}/{key.namespace}/{key.policy or NO_POLICY}"


def branches(install: str) -> re.Pattern[str]:
    """The branches of all books; neither the log of sweeps nor the renderings are one."""
    return re.compile(f"{re.escape(branches_under(install))}([^_/][^/]*)/([^/]+)")


def branches_under(install: str) -> str:
    """What the branches of all books begin with."""
    return f"refs/heads/fanout/{install}/"


def key_of(install: str, ref: str) -> BookKey | None:
    """Whose book the branch is; None: it is none."""
    found = branches(install).fullmatch(ref)
    return BookKey(found[1], "" if found[2] == NO_POLICY else found[2]) if found else None


def canonical(value: Mapping[str, Any]) -> bytes:
    """The one way in which a value is written: sorted, compact, UTF-8, ended by a newline."""
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode() + b"\n"


# ---- records -----------------------------------------------------------------------------------


def record_name(data: bytes, by: str, at: datetime, taken: Container[str] = frozenset()) -> str:
    """A name that sorts by time, and that is none of those taken.

    It is a valid name of an object, so that an approval can be revoked by it. The person, as
    `name <email>`, is in the hash: two who approve the same in one second are two approvals. What
    the same person says again in the same second is counted: `-2`, `-3`.
    """
    name = f"{at.astimezone(UTC):%Y%m%dt%H%M%Sz}-{_hash(data, by)}"
    counted = (f"{name}-{number}" for number in count(2))
    return next(one for one in chain([name], counted) if one not in taken)


def is_name_of(name: str, data: bytes, by: str) -> bool:
    """Was the name made for this content and person? Proves that neither was changed since."""
    return _COUNT.sub("", name).endswith(f"-{_hash(data, by)}")


def _hash(data: bytes, by: str) -> str:
    return hashlib.sha256(f"{by}\n".encode() + data).hexdigest()[:12]


def record_path(name: str) -> str:
    """Where the record is in its branch."""
    return f"{RECORDS}/{name}.json"


def read_record(data: bytes, key: BookKey) -> tuple[str, Mapping[str, Any]]:
    """Kind and spec of a record in this book. Raises UnreadableError."""
    return check_record(_load(data), key)


def check_record(record: Any, key: BookKey) -> tuple[str, Mapping[str, Any]]:
    """The same for a record as plain data: it is valid, of a recorded kind, and of this book."""
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise UnreadableError(f"is none of {', '.join(KINDS)}")
    _, faults = validate(record)
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise UnreadableError(
            "is not valid: " + "; ".join(f"{fault.field}: {fault.problem}" for fault in errors)
        )
    spec = record["spec"]
    namespace = record.get("metadata", {}).get("namespace", DEFAULT_NAMESPACE)
    if (namespace, spec.get("policy") or "") != (key.namespace, key.policy):
        raise UnreadableError(f"is about policy {namespace}/{spec.get('policy') or NO_POLICY}")
    return record["kind"], spec


# ---- status ------------------------------------------------------------------------------------


def shard_of(key: str) -> str:
    """The path of the file that holds the key's line."""
    return f"{STATUS}/{hashlib.sha256(key.encode()).hexdigest()[:2]}.jsonl"


def read_shard(data: bytes, path: str) -> Mapping[str, Mapping[str, Any]]:
    """The lines of a status file, by key. Raises UnreadableError."""
    lines: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        value = _load(line, f"in line {number} ")
        key = value.pop("key", None) if isinstance(value, dict) else None
        if not isinstance(key, str):
            raise UnreadableError(f"has no key in line {number}")
        if key in lines or shard_of(key) != path:
            raise UnreadableError(f"has {key!r} twice or where it does not belong (line {number})")
        lines[key] = value
    return lines


def write_shard(lines: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The content of a status file."""
    return b"".join(canonical({**value, "key": key}) for key, value in sorted(lines.items()))


def _load(data: bytes, place: str = "") -> Any:
    try:
        return json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{place}is not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value
