"""Runs a pipeline over the documents in which targets do not differ, once for all of them."""

from collections.abc import Mapping

from fanout.package.edits import Edit
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.tree import Entry, blob_id
from fanout.selection.objects import group_of
from fanout.variants.functions.function import Facts, Identity, mapping
from fanout.variants.functions.scope import is_namespaced
from fanout.variants.overlay import Overlay
from fanout.variants.pipeline import Step
from fanout.variants.prepared import Place, PreparedPackage, Settled
from fanout.variants.selection import ALL
from fanout.variants.treeform import TreeForm

KEPT = 64  # pipelines; where every target has its own, keeping more would only cost memory


def settled_for(prepared: PreparedPackage, steps: tuple[Step, ...]) -> Settled:
    """The package after these steps, from memory where another target had the same ones.

    Raises InvalidInput with file and line when an object has not the shape that a step needs.
    """
    key = tuple((step.function.name, step.config) for step in steps)
    found = prepared.settled.get(key)
    if found is None:
        if len(prepared.settled) >= KEPT:
            prepared.settled.clear()
        found = prepared.settled[key] = _settle(prepared, steps)
    return found


def run_step(step: Step, facts: Facts, file: str, overlay: Overlay) -> None:
    """Let a function change the document if it is one that the function sees."""
    if not file.startswith(step.below):
        return
    if step.selection is not ALL and not step.selection.sees(overlay.value):
        return
    for path, value in step.function.changes(step.config, overlay.value, facts):
        overlay.set(path, value)


def put(
    file: str, data: bytes, mode: str, entries: dict[str, Entry], blobs: dict[str, bytes]
) -> None:
    """Record a file's new content."""
    oid = blob_id(data)
    entries[file] = Entry(mode, oid)
    blobs[oid] = data


def _settle(prepared: PreparedPackage, steps: tuple[Step, ...]) -> Settled:
    overlays = {place: Overlay(place[0], document) for place, document in prepared.objects.items()}
    known: list[tuple[Step, Facts]] = []
    for step in steps:
        facts = _facts(prepared, overlays)
        known.append((step, facts))
        for (file, _), overlay in overlays.items():
            run_step(step, facts, file, overlay)
    edits = {place: tuple(overlay.edits()) for place, overlay in overlays.items()}
    entries = dict(prepared.entries)
    blobs: dict[str, bytes] = {}
    by_file: dict[str, list[Edit]] = {}
    for (file, _), changes in edits.items():
        if changes and file not in prepared.varying:
            by_file.setdefault(file, []).extend(changes)
    for file, changed in by_file.items():
        put(file, prepared.manifests[file].edited(changed), entries[file].mode, entries, blobs)
    remaining = {place: done for place, done in edits.items() if place[0] in prepared.varying}
    varying = {KPTFILE, *prepared.varying}
    nothing = Entry("100644", "0" * 40)  # takes the place of a file that the variant gets
    tree = TreeForm({**dict.fromkeys(varying, nothing), **entries}, varying)
    return Settled(tuple(known), remaining, entries, blobs, tree)


def _facts(prepared: PreparedPackage, overlays: Mapping[Place, Overlay]) -> Facts:
    if not prepared.waits:
        return prepared.facts
    found: set[Identity] = set()
    for overlay in overlays.values():
        item = overlay.value
        meta = mapping(item.get("metadata"))
        group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
        if is_namespaced(group, kind, prepared.facts):
            namespace = str(meta.get("namespace") or "default")
            found.add((group, kind, namespace, str(meta.get("name", ""))))
    return Facts(prepared.facts.cluster_kinds, frozenset(found))
