"""The schemas of Kubernetes' own kinds, as they are shipped with fanout: one file for each version.

They are read when a pipeline asks for them and not before. `tools/kubernetes_schemas.py` writes
them from what Kubernetes publishes.
"""

import gzip
import json
from importlib.resources import files

from fanout.variants.questions import Answer, Broken, SchemasOf
from fanout.variants.schemas import Schemas

_SUFFIX = ".json.gz"


def versions() -> tuple[str, ...]:
    """The versions of Kubernetes that there are schemas of, oldest first."""
    names = (item.name for item in files(__package__).joinpath("schemas").iterdir())
    found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return tuple(sorted(found, key=lambda text: [int(part) for part in text.split(".")]))


def read_schemas(question: SchemasOf) -> Answer:
    """The schemas of one version, the newest where none is named; Broken when there is none."""
    known = versions()
    version = question.version or known[-1]
    if version not in known:
        return Broken(
            f"there are no schemas of Kubernetes {version}",
            f"name a version from {known[0]} to {known[-1]}",
        )
    file = files(__package__).joinpath("schemas", f"{version}{_SUFFIX}")
    data = json.loads(gzip.decompress(file.read_bytes()))
    return Schemas(version, data["kinds"], data["definitions"])
