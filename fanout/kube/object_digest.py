"""Digests of the objects of fanout in a cluster: what is there is compared, and no body kept."""

import json
from hashlib import blake2b
from typing import Any, NamedTuple

from fanout.plan.written_objects import ConditionState

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_DIGEST_SIZE = 12  # bytes


class ObjectDigest(NamedTuple):
    """Digest of an object: of what people or fanout declare, and of its status.

    The conditions of what people declare are kept for their instants.
    """

    generation: int
    policy: str  # that makes the PackageVariant; "": none
    content: bytes
    status: bytes
    conditions: tuple[tuple[str, ConditionState], ...] = ()  # by type; of records: none
    uid: str = ""  # of the object of a record; "": of another kind
    is_recorded: bool = False  # the object says that its record is in Git


def digest_record(item: Any) -> ObjectDigest:
    """Return the digest of the object of a record, which people declare."""
    is_recorded = bool((item.get("status") or {}).get("record"))
    digest = digest_object(item)
    uid = item["metadata"]["uid"]
    return digest._replace(uid=uid, is_recorded=is_recorded, conditions=())


def digest_object(item: Any) -> ObjectDigest:
    """Return the digest of an object as the API server sent it."""
    meta, spec = item["metadata"], item.get("spec") or {}
    policy = (spec.get("policyRef") or {}).get("name", "")
    content, status = b"", item.get("status") or {}
    conditions: tuple[tuple[str, ConditionState], ...] = ()
    # What people declare is compared by others.
    if not policy:
        conditions = tuple(
            (it["type"], ConditionState(it["status"], it.get("lastTransitionTime", "")))
            for it in status.get("conditions") or ()
        )
    else:
        annotations = meta.get("annotations") or {}
        content = digest_value(
            {
                "labels": meta.get("labels"),
                "annotations": {k: it for k, it in annotations.items() if k != _LAST_APPLIED},
                "ownerReferences": meta.get("ownerReferences"),
                "spec": spec,
            }
        )
    return ObjectDigest(
        meta.get("generation", 0), policy, content, digest_value(status), conditions
    )


def without_empty(value: Any) -> Any:
    """Return plain data without empty maps and lists.

    Server-side apply of an empty map over entries of its own stores null, which no schema takes;
    and what is left of a list that is not sent any more is an empty one.
    """
    # Types of JSON alone: instance checks of abstract classes take most of the time here.
    if isinstance(value, dict):
        pairs = ((name, without_empty(it)) for name, it in value.items())
        return {name: it for name, it in pairs if it is not None and it not in ({}, [])}
    if isinstance(value, list):
        return [without_empty(it) for it in value]
    return value


def digest_value(value: Any) -> bytes:
    """Return a digest of plain data without what is empty, whatever the order of its keys."""
    text = json.dumps(without_empty(value), sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_DIGEST_SIZE).digest()
