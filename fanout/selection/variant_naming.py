"""Names of variants, derived from their identity, so that a rerun finds its own work."""

import hashlib
import re

LIMIT = 63  # characters of a name that is also a label's value

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def build_variant_name(namespace: str, policy: str, target: str, readable: str) -> str:
    """Build `<policy>-<target, cut>-<10 hex>`; injective but for SHA-256.

    `target` is the target's key, which alone makes the name unique; `readable` is for
    people.
    """
    digest = variant_digest(namespace, policy, target)
    available = LIMIT - len(digest) - 2
    readable = _NOT_IN_A_NAME.sub("-", readable.lower()).strip("-")
    # The policy's name gets what the target leaves, and at least half, so both stay recognizable.
    head = policy[: max(available // 2, available - len(readable) - 1)].rstrip("-.")
    target_part = readable[: available - len(head)].strip("-")
    return "-".join([part for part in (head, target_part, digest) if part])


def variant_digest(namespace: str, policy: str, target: str) -> str:
    """Compute the hash of a variant's identity, the last part of its name."""
    identity = "\0".join(("UpstreamPolicy", namespace, policy, target))
    return hashlib.sha256(identity.encode()).hexdigest()[:10]
