"""Names for shell completion that only a pass knows: variants of policies, and revisions.

Each pass leaves them in one file of the state directory, so that a completion reads no repository.
The file may be deleted at any time; then these names are not offered until the next pass.
"""

from collections.abc import Mapping
from pathlib import Path

from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.values import Value, replace, write_json

_FILE, _FORMAT = "completion.json", "completion, 1"
_MAX_NAMES = 20_000  # variants of one policy; a shell shows far fewer


class VariantNames(Value, array_like=True):
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
    return read_cache_value(state_dir / _FILE, _FORMAT, dict[str, PolicyNames]) or {}


def update_index(state_dir: Path, observed: Mapping[str, PolicyNames], *, is_all: bool) -> None:
    """Store the names of these policies if they changed, and keep others unless these are all."""
    before = read_index(state_dir)
    entries = {} if is_all else dict(before)
    entries |= {
        policy: replace(names, variants=names.variants[:_MAX_NAMES])
        for policy, names in observed.items()
    }
    if entries != before:
        write_cache_file(state_dir / _FILE, write_json(entries, order="deterministic"), _FORMAT)
