"""Names that are the lock: a rerun finds its own work because it computes the same names."""

import hashlib
import re

LIMIT = 63  # of a Kubernetes object's name where it is also used as a label's value

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def variant_name(namespace: str, policy: str, target: str, readable: str) -> str:
    """`<policy>-<target, cut>-<10 hex>`; injective but for SHA-256. (Design §3.)

    `target` is the target's key, which alone makes the name unique; `readable` is for people.
    """
    digest = variant_digest(namespace, policy, target)
    room = LIMIT - len(digest) - 2
    readable = _NOT_IN_A_NAME.sub("-", readable.lower()).strip("-")
    head = policy[: max(room // 2, room - len(readable) - 1)].rstrip("-.")
    cut = readable[: room - len(head)].strip("-")
    return "-".join([part for part in (head, cut, digest) if part])


def variant_digest(namespace: str, policy: str, target: str) -> str:
    """The last part of a variant's name: its identity, whatever the target is called."""
    identity = "\0".join(("UpstreamPolicy", namespace, policy, target))
    return hashlib.sha256(identity.encode()).hexdigest()[:10]


def draft_ref(install: str, path: str, owner: str) -> str:
    """The branch of a variant's draft; `owner` is the policy, or the variant written by hand."""
    return f"refs/heads/drafts/{install}/{path}/{owner}"


def drafts_under(install: str) -> str:
    """The prefix of all drafts of this installation: the only refs fanout ever removes."""
    return f"refs/heads/drafts/{install}/"


def install_of(draft: str) -> str:
    """The installation that a draft's ref belongs to."""
    return draft.removeprefix("refs/heads/drafts/").partition("/")[0]


def vendor_ref(install: str) -> str:
    """The branch with the pristine renderings. (Design §4, "The base".)"""
    return f"refs/heads/fanout/{install}/rendered"


def tag_ref(path: str, number: int) -> str:
    """The tag of a published variant, as kpt and Porch read it."""
    return f"refs/tags/{path}/v{number}"
