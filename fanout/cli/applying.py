"""What of a package is for a cluster: its manifests, without what only tools read.

The Kptfile and local configuration would be refused by an API server, or would litter it.
"""

from collections.abc import Mapping
from typing import Any

from fanout.package.manifests import Manifest
from fanout.variants.functions.function import LOCAL_CONFIG
from fanout.variants.parts import parts_of
from fanout.variants.writing import without

_SUFFIXES = (".yaml", ".yml", ".json")
_MARK = "---\n"


def for_cluster(path: str, data: bytes) -> str:
    """The objects of a file that a cluster takes, as they are written; "" when it has none.

    Raises InvalidManifest for what cannot be read.
    """
    if not path.endswith(_SUFFIXES):
        return ""
    manifest = Manifest.parse(data, path)
    local = [number for number, it in parts_of(manifest).items() if not _applies(it.value)]
    kept = without(manifest, local)
    if kept is None:
        return ""
    text = kept.decode("utf-8-sig").removeprefix(_MARK)
    return text if text.endswith("\n") else f"{text}\n"


def _applies(value: Any) -> bool:
    if not isinstance(value, Mapping) or not {"apiVersion", "kind"} <= value.keys():
        return False
    meta = value.get("metadata")
    notes = meta.get("annotations") if isinstance(meta, Mapping) else None
    note = notes.get(LOCAL_CONFIG) if isinstance(notes, Mapping) else None
    return value["kind"] != "Kptfile" and str(note).lower() != "true"
