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


def holds_context(manifest: Manifest) -> bool:
    """Whether the file holds the package context; False where other objects have its file name.

    Raises InvalidInput where the context shares the file with others: the variant's edits are made
    in a file that holds it alone.
    """
    found = [_is_context(document.value) for document in manifest.documents]
    if any(found) and len(found) > 1:
        raise InvalidInput(
            f"the package context {CONTEXT_NAME} is not alone in its file",
            reason=Reason.INVALID_PACKAGE,
            remedy="give the other objects another file",
            where=Where(file=CONTEXT, line=1),
        )
    return found == [True]


def _is_context(value: object) -> bool:
    item = mapping(value)
    kind = (item.get("apiVersion"), item.get("kind"))
    return kind == ("v1", "ConfigMap") and mapping(item.get("metadata")).get("name") == CONTEXT_NAME


def refuse_keys(spec: VariantSpec) -> None:
    """Raise InvalidInput where keys are given for a package that has no package context."""
    if spec.context or spec.remove_keys:
        raise InvalidInput(
            f"{CONTEXT} of the package holds no ConfigMap {CONTEXT_NAME}, which keys could go to",
            reason=Reason.RENDER_FAILED,
            remedy="rename the file upstream, or leave packageContext out",
            where=Where(f"PackageVariant/{spec.name}", "packageContext"),
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
