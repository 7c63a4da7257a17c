"""Runs a pipeline over the documents in which targets do not differ, once for all of them."""

from collections.abc import Mapping
from dataclasses import replace

from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.tree import Entry, blob_id
from fanout.selection.objects import group_of
from fanout.variants.functions.function import Facts, Identity, Unfit, mapping
from fanout.variants.functions.scope import is_namespaced
from fanout.variants.overlay import UNTOUCHED, Outcome, Overlay
from fanout.variants.pipeline import Step
from fanout.variants.prepared import Place, PreparedPackage, Settled
from fanout.variants.selection import ALL
from fanout.variants.treeform import TreeForm
from fanout.variants.writing import written

NEW_FILE = "100644"
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


def sees(prepared: PreparedPackage, step: Step, place: Place, overlay: Overlay) -> bool:
    """Is the document one that the function sees (porch.md §8.2)?"""
    return (
        place[0].startswith(step.below)
        and (step.function.sees_local or place not in prepared.local)
        and not overlay.dropped
        and (step.selection is ALL or step.selection.sees(overlay.value))
    )


def run_step(step: Step, facts: Facts, file: str, overlay: Overlay) -> None:
    """Let a function change a document that it sees.

    Raises InvalidInput with file and line when the object is not fit for it.
    """
    if step.function.in_text:
        facts = replace(facts, file=file[len(step.below) :], written=overlay)
    try:
        for path, value in step.function.changes(step.config, overlay.value, facts):
            overlay.set(path, value)
    except Unfit as unfit:
        raise overlay.refused(step.function.name, unfit) from None


def put(file: str, data: bytes | None, entries: dict[str, Entry], blobs: dict[str, bytes]) -> None:
    """Record a file's new content; None: it is gone."""
    if data is None:
        entries.pop(file, None)
        return
    oid = blob_id(data)
    there = entries.get(file)
    entries[file] = Entry(there.mode if there else NEW_FILE, oid)
    blobs[oid] = data


def _settle(prepared: PreparedPackage, steps: tuple[Step, ...]) -> Settled:
    overlays = {place: Overlay(place[0], document) for place, document in prepared.objects.items()}
    known: list[tuple[Step, Facts]] = []
    for step in steps:
        facts = facts_of(prepared, overlays)
        known.append((step, facts))
        for place, overlay in overlays.items():
            if sees(prepared, step, place, overlay):
                run_step(step, facts, place[0], overlay)
    outcomes = {place: overlay.outcome() for place, overlay in overlays.items()}
    entries = dict(prepared.entries)
    blobs: dict[str, bytes] = {}
    by_file: dict[str, dict[int, Outcome]] = {}
    for (file, index), outcome in outcomes.items():
        if outcome is not UNTOUCHED and file not in prepared.varying:
            by_file.setdefault(file, {})[index] = outcome
    for file, changed in by_file.items():
        put(file, written(prepared.manifests[file], changed), entries, blobs)
    remaining = {place: done for place, done in outcomes.items() if place[0] in prepared.varying}
    varying = {KPTFILE, *prepared.varying}
    nothing = Entry("100644", "0" * 40)  # takes the place of a file that the variant gets
    tree = TreeForm({**dict.fromkeys(varying, nothing), **entries}, varying)
    return Settled(tuple(known), remaining, entries, blobs, tree)


def facts_of(prepared: PreparedPackage, overlays: Mapping[Place, Overlay]) -> Facts:
    """What functions may know of the package as it stands."""
    if not prepared.waits:
        return prepared.facts
    found: set[Identity] = set()
    for place, overlay in overlays.items():
        if place in prepared.local or overlay.dropped:
            continue
        item = overlay.value
        meta = mapping(item.get("metadata"))
        group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
        if is_namespaced(group, kind, prepared.facts):
            namespace = str(meta.get("namespace") or "default")
            found.add((group, kind, namespace, str(meta.get("name", ""))))
    return Facts(prepared.facts.cluster_kinds, frozenset(found))
