"""Functions run on small packages, and what then differs from upstream."""

from variants.builders import KPTFILE, package, spec

from fanout.reconcile.answers import Answering
from fanout.reconcile.world import NoWorkshop
from fanout.selection.model import Function
from fanout.selection.objects import ObjectIndex
from fanout.variants.model import Limits
from fanout.variants.prepare import prepare
from fanout.variants.render import render
from fanout.variants.resolve import resolve

LIMITS = Limits()
NOBODY = Answering(NoWorkshop())  # no programs, but all schemas
OURS = ("Kptfile", "package-context.yaml")


def kptfile(*entries):
    """A Kptfile with a pipeline of these entries, each as YAML on one line."""
    return KPTFILE + "pipeline:\n  mutators:\n" + "".join(f"  - {entry}\n" for entry in entries)


def configured_by(image, file="config.yaml"):
    return kptfile(f"{{image: {image}, configPath: {file}}}")


def rendered(files, *mutators, objects=(), answering=NOBODY, limits=LIMITS, **fields):
    prepared = prepare(package(files), limits)
    variant = spec(mutators=mutators, **fields)
    inputs = resolve(prepared, variant, ObjectIndex(objects))
    return answering.through(lambda known: render(prepared, variant, inputs, known))


def run(files, *mutators, **fields):
    """What differs from upstream, Kptfile and package context aside; None for files that went."""
    result = rendered(files, *mutators, **fields)
    found = {
        path: result.blobs[entry.oid].decode()
        for path, entry in result.entries.items()
        if entry.oid in result.blobs and result.blobs[entry.oid].decode() != files.get(path)
    }
    found |= {path: None for path in files if path not in result.entries}
    return {path: text for path, text in found.items() if path not in OURS}


def after(text, image, **data):
    """The text of a file after one function of the policy."""
    return run({"a.yaml": text}, Function(image, config=data)).get("a.yaml", text)
