"""Names for shell completion that only a pass knows: variants of policies, and revisions.

Each pass leaves them in one file of the state directory, so that a completion reads no repository.
The file may be deleted at any time; then these names are not offered until the next pass.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fanout.disk_cache import read_cache_file, write_cache_file
from fanout.values import Value

_FORMAT = "completion, 1"
_MAX_NAMES = 20_000  # variants of one policy; a shell shows far fewer


class VariantNames(Value):
    """Names of one variant: its own, the short name of its target, and its stage."""

    name: str
    target: str
    stage: str


class PolicyNames(Value):
    """Names of one policy: its variants, and its revisions, oldest first."""

    variants: tuple[VariantNames, ...] = ()
    revisions: tuple[str, ...] = ()


def read_index(state_dir: Path) -> Mapping[str, PolicyNames]:
    """Return the names by policy, as the last pass left them; empty if there is no usable file."""
    content = read_cache_file(_index_path(state_dir), _FORMAT)
    return {
        policy: PolicyNames(
            tuple(VariantNames(*it) for it in entry["variants"]), tuple(entry["revisions"])
        )
        for policy, entry in (json.loads(content) if content else {}).items()
    }


def update_index(state_dir: Path, observed: Mapping[str, PolicyNames], *, is_all: bool) -> None:
    """Store the names of these policies, and keep those of others unless these are all.

    Nothing is written if nothing changed.
    """
    path = _index_path(state_dir)
    before = read_cache_file(path, _FORMAT)
    entries: dict[str, Any] = json.loads(before) if before and not is_all else {}
    entries |= {policy: _serialize(names) for policy, names in observed.items()}
    content = json.dumps(entries, sort_keys=True).encode()
    if content != before:
        write_cache_file(path, content, _FORMAT)


def _serialize(names: PolicyNames) -> Mapping[str, Any]:
    variants = names.variants[:_MAX_NAMES]
    return {
        "variants": [[it.name, it.target, it.stage] for it in variants],
        "revisions": list(names.revisions),
    }


def _index_path(state_dir: Path) -> Path:
    return state_dir / "completion.json"
