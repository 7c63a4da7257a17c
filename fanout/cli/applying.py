"""What of a package is for a cluster: its manifests, without what only tools read.

The Kptfile and local configuration would be refused by an API server, or would litter it.
"""

from collections.abc import Mapping
from typing import Any

from fanout.package.jsontext import is_json
from fanout.package.manifests import Manifest
from fanout.variants.functions.function import LOCAL_CONFIG

_SUFFIXES = (".yaml", ".yml", ".json")
_MARK = "---\n"


def for_cluster(path: str, data: bytes) -> str:
    """The objects of a file that a cluster takes, as they are written; "" when it has none.

    Raises InvalidManifest for what cannot be read.
    """
    if not path.endswith(_SUFFIXES):
        return ""
    manifest = Manifest.parse(data, path)
    local = {it.index for it in manifest.documents if not _applies(it.value)}
    if len(local) == len(manifest.documents):
        return ""
    kept = data if is_json(path) else manifest.without(local) or b""
    text = kept.decode("utf-8-sig").removeprefix(_MARK)
    return text if text.endswith("\n") else f"{text}\n"


def _applies(value: Any) -> bool:
    if not isinstance(value, Mapping) or not {"apiVersion", "kind"} <= value.keys():
        return False
    meta = value.get("metadata")
    notes = meta.get("annotations") if isinstance(meta, Mapping) else None
    note = notes.get(LOCAL_CONFIG) if isinstance(notes, Mapping) else None
    return value["kind"] != "Kptfile" and str(note).lower() != "true"
