"""The package context: a ConfigMap in which a package finds its own name (porch.md §1.4)."""

from collections.abc import Iterator

from fanout.api.pipeline import RESERVED_KEYS
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import REMOVE
from fanout.package.manifests import Manifest
from fanout.selection.model import VariantSpec
from fanout.variants.functions.function import LOCAL_CONFIG, Change, mapping
from fanout.variants.functions.set_namespace import CONTEXT_NAME

CONTEXT = "package-context.yaml"
_NEW = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {CONTEXT_NAME}
  annotations:
    {LOCAL_CONFIG}: "true"
data:
  name: example
""".encode()


def new_context() -> Manifest:
    """The context of a package that has none yet, as kpt would make it."""
    return Manifest.parse(_NEW, CONTEXT)


def check_context(manifest: Manifest) -> None:
    """Raises InvalidInput when the file is something else than a package context."""
    found = mapping(manifest.documents[0].value) if len(manifest.documents) == 1 else {}
    kind = (found.get("apiVersion"), found.get("kind"))
    name = mapping(found.get("metadata")).get("name")
    if kind != ("v1", "ConfigMap") or name != CONTEXT_NAME:
        raise InvalidInput(
            f"is no package context: a v1 ConfigMap named {CONTEXT_NAME}, alone in its file",
            reason=Reason.INVALID_PACKAGE,
            remedy="correct the file, or give what is in it another file name",
            where=Where(object=f"{kind[1]}/{name}", file=CONTEXT, line=1),
        )


def context_changes(spec: VariantSpec) -> Iterator[Change]:
    """The variant's own name and path, its keys, then without those to be removed.

    Upstream's keys stay. Raises InvalidInput for keys that are not the variant's to choose.
    """
    for key in RESERVED_KEYS:
        if key in spec.context or key in spec.remove_keys:
            raise InvalidInput(
                f"the key {key} of the package context is reserved",
                reason=Reason.RENDER_FAILED,
                remedy="use another key",
                where=Where(f"PackageVariant/{spec.name}", f"packageContext.{key}"),
            )
    yield ("data", "name"), spec.package
    yield ("data", "package-path"), spec.path
    for key, value in sorted(spec.context.items()):
        yield ("data", key), value
    for key in sorted(spec.remove_keys):
        yield ("data", key), REMOVE
