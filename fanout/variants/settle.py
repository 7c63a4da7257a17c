"""Runs a pipeline over the documents in which targets do not differ, once for all of them."""

from collections import deque
from collections.abc import Iterable, Mapping

from fanout.errors import InvalidInput
from fanout.package.edits import REMOVE, get, show, with_value
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.tree import Entry, blob_id
from fanout.selection.objects import group_of
from fanout.values import replace
from fanout.variants.becoming import become
from fanout.variants.functions.function import (
    External,
    Facts,
    Finding,
    Identity,
    InProcess,
    Result,
    Unfit,
    mapping,
)
from fanout.variants.functions.scope import is_namespaced
from fanout.variants.growth import Growth
from fanout.variants.overlay import UNTOUCHED, Outcome, Overlay
from fanout.variants.own import KEPT
from fanout.variants.pipeline import Step, refused
from fanout.variants.prepared import Found, Place, PreparedPackage, Settled
from fanout.variants.questions import NOTHING_KNOWN, Answers, Broken, answer_to
from fanout.variants.selection import ALL
from fanout.variants.treeform import TreeForm
from fanout.variants.writing import written

NEW_FILE = "100644"


def settled_for(
    prepared: PreparedPackage, steps: tuple[Step, ...], answers: Answers = NOTHING_KNOWN
) -> Settled:
    """The package after these steps, from memory where another target had the same ones.

    Raises InvalidInput with file and line when an object has not the shape that a step needs, and
    Unanswered.
    """
    key = tuple(step.key for step in steps)
    found = prepared.settled.get(key)
    if found is None:
        if len(prepared.settled) >= KEPT:
            prepared.settled.clear()
        found = prepared.settled[key] = _settle(prepared, steps, answers)
    return found


def sees(prepared: PreparedPackage, step: Step, place: Place, overlay: Overlay) -> bool:
    """Is the object one that the function sees (porch.md §8.2)?"""
    return (
        place[0].startswith(step.below)
        and (step.function.sees_local or place not in prepared.local)
        and not overlay.dropped
        and (step.selection is ALL or step.selection.sees(overlay.value))
    )


def run_step(
    step: Step, facts: Facts, file: str, overlay: Overlay, growth: Growth
) -> Iterable[Result]:
    """Let a function change an object that it sees; answers what it finds wrong with it.

    Raises InvalidInput with file and line when the object is not fit for it, or when the package
    would exceed its limits.
    """
    function = step.function
    assert isinstance(function, InProcess), "programs see all objects at once"
    if function.in_text:
        facts = replace(facts, file=file[len(step.below) :], written=overlay, room=growth)
    try:
        changes = function.changes(step.config, overlay.value, facts)
        for path, value in () if step.validates else changes:
            growth.put(file, path, get(overlay.value, path), value)
            if not path and value is not REMOVE:
                become(overlay, value, facts.shapes)
            elif isinstance(value, list) and isinstance(get(overlay.value, path), list):
                become(overlay, with_value(overlay.value, path, value), facts.shapes)
            else:
                overlay.set(path, value)
        if step.validates:
            deque(changes, maxlen=0)  # for what it cannot do its work on
        if function.judges is None:
            return ()
        found = list(function.judges(step.config, overlay.value, facts))
    except Unfit as unfit:
        raise overlay.refused(function.name, unfit) from None
    return [_result(function.name, finding, file, overlay) for finding in found]


def _result(function: str, finding: Finding, file: str, overlay: Overlay) -> Result:
    path, problem, severity = finding
    name = mapping(mapping(overlay.value).get("metadata")).get("name", "")
    item = f"{mapping(overlay.value).get('kind', '')}/{name}"
    return Result(problem, severity, function, item, show(path), file, overlay.line_of(path))


def facts_for(
    prepared: PreparedPackage, step: Step, overlays: Mapping[Place, Overlay], answers: Answers
) -> Facts:
    """What the function may know. Raises Unanswered, and InvalidInput where there is no answer."""
    facts = _facts_of(prepared, overlays)
    function = step.function
    if isinstance(function, External) or function.asks is None:
        return facts
    answer = answer_to(function.asks(step.config), answers)
    if isinstance(answer, Broken):
        problem = InvalidInput(answer.problem, remedy=answer.remedy)
        raise refused(function, problem, step.where)
    return replace(facts, answer=answer)


def put(file: str, data: bytes | None, entries: dict[str, Entry], blobs: dict[str, bytes]) -> None:
    """Record a file's new content; None: it is gone."""
    if data is None:
        entries.pop(file, None)
        return
    oid = blob_id(data)
    there = entries.get(file)
    entries[file] = Entry(there.mode if there else NEW_FILE, oid)
    blobs[oid] = data


def _settle(prepared: PreparedPackage, steps: tuple[Step, ...], answers: Answers) -> Settled:
    overlays = {place: Overlay(place[0], part) for place, part in prepared.objects.items()}
    known: list[tuple[Step, Facts]] = []
    results: list[Found] = []
    growth = prepared.growth()
    for number, step in enumerate(steps):
        facts = facts_for(prepared, step, overlays, answers)
        known.append((step, facts))
        for place, overlay in overlays.items():
            if sees(prepared, step, place, overlay):
                said = run_step(step, facts, place[0], overlay, growth)
                results += [Found(number, place, result) for result in said]
    outcomes = {place: overlay.outcome() for place, overlay in overlays.items()}
    entries = dict(prepared.entries)
    blobs: dict[str, bytes] = {}
    by_file: dict[str, dict[int, Outcome]] = {}
    for (file, number), outcome in outcomes.items():
        if outcome is not UNTOUCHED and file not in prepared.varying:
            by_file.setdefault(file, {})[number] = outcome
    for file, changed in by_file.items():
        put(file, written(prepared.manifests[file], changed), entries, blobs)
    remaining = {place: done for place, done in outcomes.items() if place[0] in prepared.varying}
    varying = {KPTFILE, *prepared.varying}
    nothing = Entry("100644", "0" * 40)  # takes the place of a file that the variant gets
    tree = TreeForm({**dict.fromkeys(varying, nothing), **entries}, varying)
    return Settled(tuple(known), remaining, entries, blobs, tree, tuple(results))


def _facts_of(prepared: PreparedPackage, overlays: Mapping[Place, Overlay]) -> Facts:
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
        if is_namespaced(group, kind, meta.get("namespace"), prepared.facts):
            namespace = str(meta.get("namespace") or "default")
            found.add((group, kind, namespace, str(meta.get("name", ""))))
    return replace(prepared.facts, namespaced=frozenset(found))
