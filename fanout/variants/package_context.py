"""Package context: the ConfigMap that tells a package its own name (docs/concepts/variants.md)."""

from collections.abc import Iterator

from fanout.api.package_variant import RESERVED_KEYS
from fanout.errors import ErrorLocation
from fanout.package.field_edits import REMOVE
from fanout.package.kptfile import package_problem
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.selection.variant_spec import VariantSpec
from fanout.variants.functions.function_interface import Change, mapping, render_error
from fanout.variants.functions.set_namespace import CONTEXT_NAME

CONTEXT = "package-context.yaml"
# The context of a package without one, as kpt creates it.
NEW_CONTEXT = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {CONTEXT_NAME}
  annotations:
    {LOCAL_CONFIG}: "true"
data:
  name: example
""".encode()


def holds_context(manifest: Manifest) -> bool:
    """Return whether the file is the package context, not another file of its name.

    Raises InvalidInput where the context shares its file with other objects: the
    variant's edits address the file's first document.
    """
    is_context_by_document = []
    for item in (mapping(document.value) for document in manifest.documents):
        kind = (item.get("apiVersion"), item.get("kind"))
        name = mapping(item.get("metadata")).get("name")
        is_context_by_document.append(kind == ("v1", "ConfigMap") and name == CONTEXT_NAME)
    if any(is_context_by_document) and len(is_context_by_document) > 1:
        problem = f"the package context {CONTEXT_NAME} shares its file with other objects"
        remedy = "move the other objects to another file"
        raise package_problem(problem, remedy, ErrorLocation(file=CONTEXT, line=1))
    return is_context_by_document == [True]


def refuse_context_keys(spec: VariantSpec) -> None:
    """Raise InvalidInput if the variant sets context keys. The package has no package context."""
    if spec.context or spec.remove_keys:
        raise render_error(
            f"{CONTEXT} of the package has no ConfigMap {CONTEXT_NAME} for the keys of"
            " packageContext",
            "rename the file upstream, or remove packageContext",
            ErrorLocation(f"PackageVariant/{spec.name}", "packageContext"),
        )


def context_edits(spec: VariantSpec) -> Iterator[Change]:
    """Yield the edits of the context: name, path, the variant's keys, then removals.

    Keys of upstream stay. Raises InvalidInput for reserved keys.
    """
    for key in RESERVED_KEYS:
        if key in spec.context or key in spec.remove_keys:
            where = ErrorLocation(f"PackageVariant/{spec.name}", f"packageContext.{key}")
            problem = f"the key {key} of the package context is reserved"
            raise render_error(problem, "use another key", where)
    yield ("data", "name"), spec.package
    yield ("data", "package-path"), spec.path
    for key, value in sorted(spec.context.items()):
        yield ("data", key), value
    for key in sorted(spec.remove_keys):
        yield ("data", key), REMOVE
