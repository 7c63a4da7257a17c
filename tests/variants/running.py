"""Functions run on small packages, and what then differs from upstream."""

from variants.builders import KPTFILE, package, spec

from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

LIMITS = RenderLimits()
NOBODY = FunctionResultCache(None)  # no programs, but all schemas
OURS = ("Kptfile", "package-context.yaml")


def kptfile(*entries):
    """A Kptfile with a pipeline of these entries, each as YAML on one line."""
    return KPTFILE + "pipeline:\n  mutators:\n" + "".join(f"  - {entry}\n" for entry in entries)


def configured_by(image, file="config.yaml"):
    return kptfile(f"{{image: {image}, configPath: {file}}}")


def rendered(files, *mutators, objects=(), answering=NOBODY, limits=LIMITS, **fields):
    prepared = prepare_package(package(files), limits)
    variant = spec(mutators=mutators, **fields)
    inputs = resolve_inputs(prepared, variant, ClusterObjectIndex(objects))
    return answering.run_until_answered(
        lambda memo: render_variant(prepared, variant, inputs, memo)
    )


def run(files, *mutators, **fields):
    """Return the differences from upstream, Kptfile and package context aside; None if deleted."""
    result = rendered(files, *mutators, **fields)
    changed_files = {
        path: result.blobs[entry.oid].decode()
        for path, entry in result.entries.items()
        if entry.oid in result.blobs and result.blobs[entry.oid].decode() != files.get(path)
    }
    changed_files |= {path: None for path in files if path not in result.entries}
    return {path: text for path, text in changed_files.items() if path not in OURS}


def after(text, image, **data):
    """The text of a file after one function of the policy."""
    return run({"a.yaml": text}, FunctionSpec(image, config=data)).get("a.yaml", text)
