"""File format of policy state: records and status as bytes, and back.

One file per record, `records/<time>-<hash>.json`. The status is in 256 files of lines,
so that a pass which changes one variant of ten thousand writes forty lines (design §3).
"""

import hashlib
import json
import re
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any

from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.api.validators.object_validation import validate_object
from fanout.package.package_limits import SizeLimits
from fanout.plan.records.policy_records import RecordsKey

RECORDS_DIRECTORY = "records"
STATUS_DIRECTORY = "status"
RECORD_KINDS = ("Evidence", "Approval", "Decision")
# Not configurable: lower limits would make existing records unreadable.
STATE_LIMITS = SizeLimits(files=500_000, size=1 << 30, depth=1, file_size=16 << 20)
NO_POLICY = "_"  # not a valid object name
_COUNT_SUFFIX = re.compile(r"(?<=-[0-9a-f]{12})-[0-9]+$")


class UnreadableStateError(Exception):
    """A file is unreadable; the text ends a message that begins with the file's path."""


def branch_ref(install: str, key: RecordsKey) -> str:
    """Return the full ref name of the branch of a policy's state."""
    return f"refs/heads/fanout/{install}/{key.namespace}/{key.policy or NO_POLICY}"


def branch_pattern(install: str) -> re.Pattern[str]:
    """Return the pattern of all state branches.

    The branches of the sweep log and of renderings do not match.
    """
    return re.compile(f"{re.escape(branch_prefix(install))}([^_/][^/]*)/([^/]+)")


def branch_prefix(install: str) -> str:
    """Return the ref prefix of the state branches of an installation."""
    return f"refs/heads/fanout/{install}/"


def parse_branch_ref(install: str, ref: str) -> RecordsKey | None:
    """Return the policy whose state the branch has; None for any other branch."""
    match = branch_pattern(install).fullmatch(ref)
    return RecordsKey(match[1], "" if match[2] == NO_POLICY else match[2]) if match else None


def encode_canonical(value: Mapping[str, Any]) -> bytes:
    """Encode a value canonically: JSON, sorted, compact, UTF-8, terminated by a newline."""
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode() + b"\n"


# ---- records -----------------------------------------------------------------------------------


def build_record_name(
    data: bytes, by: str, at: datetime, existing: Container[str] = frozenset()
) -> str:
    """Build a name that sorts by time and is not in `existing`.

    It is a valid object name, so that an approval can be revoked by it. The author `by`
    (`name <email>`) is part of the hash: two people who approve the same in one second are
    two approvals. Repetitions by one person in one second are numbered: `-2`, `-3`.
    """
    name = f"{at.astimezone(UTC):%Y%m%dt%H%M%Sz}-{_compute_hash(data, by)}"
    numbered = (f"{name}-{number}" for number in count(2))
    return next(candidate for candidate in chain([name], numbered) if candidate not in existing)


def is_record_name_of(name: str, data: bytes, by: str) -> bool:
    """Return whether the name was built for this content and author.

    If so, neither was changed since.
    """
    return _COUNT_SUFFIX.sub("", name).endswith(f"-{_compute_hash(data, by)}")


def _compute_hash(data: bytes, by: str) -> str:
    return hashlib.sha256(f"{by}\n".encode() + data).hexdigest()[:12]


def record_path(name: str) -> str:
    """Return the path of the record's file in its branch."""
    return f"{RECORDS_DIRECTORY}/{name}.json"


def parse_record(data: bytes, key: RecordsKey) -> tuple[str, Mapping[str, Any]]:
    """Parse a record of this policy into kind and spec. Raises UnreadableStateError."""
    return check_record(_parse_json(data), key)


def check_record(record: Any, key: RecordsKey) -> tuple[str, Mapping[str, Any]]:
    """Return kind and spec of a record given as plain data.

    Raises UnreadableStateError if it is invalid, not of a recorded kind, or of another
    policy.
    """
    if not isinstance(record, dict) or record.get("kind") not in RECORD_KINDS:
        raise UnreadableStateError(f"is none of {', '.join(RECORD_KINDS)}")
    _, faults = validate_object(record)
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise UnreadableStateError(
            "is not valid: " + "; ".join(f"{fault.field}: {fault.problem}" for fault in errors)
        )
    spec = record["spec"]
    namespace = record.get("metadata", {}).get("namespace", DEFAULT_NAMESPACE)
    if (namespace, spec.get("policy") or "") != (key.namespace, key.policy):
        raise UnreadableStateError(f"is about policy {namespace}/{spec.get('policy') or NO_POLICY}")
    return record["kind"], spec


# ---- status ------------------------------------------------------------------------------------


def shard_path(key: str) -> str:
    """Return the path of the status file with the key's line."""
    return f"{STATUS_DIRECTORY}/{hashlib.sha256(key.encode()).hexdigest()[:2]}.jsonl"


def parse_shard(data: bytes, path: str) -> Mapping[str, Mapping[str, Any]]:
    """Parse the lines of a status file by key. Raises UnreadableStateError."""
    lines: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        value = _parse_json(line, f"in line {number} ")
        key = value.pop("key", None) if isinstance(value, dict) else None
        if not isinstance(key, str):
            raise UnreadableStateError(f"has no key in line {number}")
        # A line in the wrong file would survive the removal of its key in the right one.
        if key in lines or shard_path(key) != path:
            raise UnreadableStateError(
                f"has {key!r} twice or where it does not belong (line {number})"
            )
        lines[key] = value
    return lines


def encode_shard(lines: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Encode the lines of a status file, sorted by key."""
    return b"".join(encode_canonical({**value, "key": key}) for key, value in sorted(lines.items()))


def _parse_json(data: bytes, prefix: str = "") -> Any:
    try:
        return json.loads(data, object_pairs_hook=_reject_duplicate_keys)
    except (ValueError, RecursionError) as error:
        raise UnreadableStateError(f"{prefix}is not JSON: {error}") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value
