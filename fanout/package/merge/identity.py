"""What makes two objects one: group, kind, namespace and name, or what `kpt-merge` says.

The file is no part of it (design §4). The comment `# kpt-merge: ns/name` on the line of `metadata`
names the object that this one was upstream, whatever it is called here.
"""

import re
from typing import Any, Final

from fanout.package.merge.sides import Value, line_end

Identity = tuple[str, str, str, str]  # group, kind, namespace, name
_COMMENT: Final = re.compile(r"#.*?\bkpt-merge:\s*([^\s/]*)/([^\s/]+)\s*$")


def identity_of(data: Any) -> Identity | None:
    """The identity of an object, None for what has no kind or no name."""
    if not isinstance(data, dict):
        return None
    version, kind, metadata = data.get("apiVersion"), data.get("kind"), data.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str):
        return None
    group = version.rpartition("/")[0]
    return group, kind, namespace if isinstance(namespace, str) else "", name


def merge_identity(value: Value) -> Identity | None:
    """The identity of an object in a file; its comment goes before its name."""
    identity = identity_of(value.data)
    if identity is None or value.leaf:
        return identity
    metadata = value.children["metadata"]
    if metadata.slot is None:
        return identity
    line = value.text[metadata.slot.mark : line_end(value.text, metadata.slot.mark)]
    match = _COMMENT.search(line)
    return (*identity[:2], match[1], match[2]) if match else identity


def is_list(data: Any) -> bool:
    """Is it a List, whose items are the objects?"""
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        return False
    kind = data.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or identity_of(data):
        return False
    return all(identity_of(item) for item in data["items"])


def shown(identity: Identity) -> str:
    """`Deployment/shop/web`, without the namespace where there is none."""
    _, kind, namespace, name = identity
    return "/".join(part for part in (kind, namespace, name) if part)
