"""Sealed values: objects and texts with a MAC or a signature over themselves.

A part of one side in the other, or a change by a program, would break the seal, and
whoever opens it would refuse all of it. So a sealed value is taken as a whole or left.
"""

import re
from typing import Any, Final

_SOPS: Final = "SOPS"
# SOPS writes both in every format; a tool's own settings named `sops` have neither.
_SOPS_FIELDS: Final = frozenset({"mac", "lastmodified"})
_SIGNATURES: Final = {
    "cosign.sigstore.dev/signature": "Sigstore",  # k8s-manifest-sigstore
    "tekton.dev/signature": "Tekton",  # trusted resources
}
# The MAC of SOPS in YAML and ini, in dotenv, and in JSON, where its object may be on one line.
_SEALED_TEXT: Final = re.compile(
    r"""^[ \t]*["']?(?:mac["']?[ \t]*[:=][ \t]*["']?ENC\[|sops_mac=)|"sops"\s*:\s*\{"""
    r"|^[ \t]*(?:\$ANSIBLE_VAULT;|age-encryption\.org/v1$"
    r"|-----BEGIN (?:AGE ENCRYPTED FILE|PGP MESSAGE|PGP SIGNED MESSAGE)-----)",
    re.MULTILINE,
)


def find_seal(value: Any) -> str:
    """Return the name of what sealed an object or document, "" if nothing did."""
    if not isinstance(value, dict):
        return ""
    sops = value.get("sops")
    if isinstance(sops, dict) and not _SOPS_FIELDS.isdisjoint(sops):
        return _SOPS
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return ""
    return next((tool for name, tool in _SIGNATURES.items() if annotations.get(name)), "")


def is_sealed_text(text: str) -> bool:
    """Return whether a text contains a MAC or a signature over it, as armored messages do."""
    return _SEALED_TEXT.search(text) is not None
