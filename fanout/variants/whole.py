"""Runs a pipeline over all objects of one variant together.

Most functions look at one object at a time, and what they make of those that are alike for all
targets is kept (`settle`). Some cannot be had so: they copy values from one object to others,
rename what others refer to, add objects, or are configured by a file that a function before them
changes (porch.md §8.2). A pipeline with such a function runs here, for every target anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.errors import InvalidInput
from fanout.package.dump import dump
from fanout.package.edits import MISSING
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.paths import check_path
from fanout.package.tree import Entry
from fanout.values import replace
from fanout.variants.functions.function import (
    ERROR,
    External,
    InProcess,
    Object,
    Result,
    Seen,
    Unfit,
    mapping,
)
from fanout.variants.functions.resourcelist import field_path
from fanout.variants.growth import Growth
from fanout.variants.overlay import UNTOUCHED, Outcome, Overlay
from fanout.variants.parts import is_any_list, is_plain_list, parts_of
from fanout.variants.pipeline import Declared, Step, refused
from fanout.variants.prepared import Place, PreparedPackage
from fanout.variants.questions import NOTHING_KNOWN, Answers
from fanout.variants.run_program import run_program
from fanout.variants.settle import facts_for, put, run_step, sees
from fanout.variants.writing import joined, written

_SUFFIXES = (".yaml", ".yml")


@dataclass(slots=True)
class Whole:
    """The objects of one variant while its pipeline runs."""

    prepared: PreparedPackage
    forms: Mapping[str, Manifest]  # of the files in which targets differ
    overlays: dict[Place, Overlay]
    fresh: dict[Place, Manifest] = field(default_factory=dict)  # objects that functions added
    results: list[Result] = field(default_factory=list)
    answers: Answers = field(default_factory=lambda: NOTHING_KNOWN)
    growth: Growth = field(default_factory=Growth)

    def run(self, pipeline: Sequence[Step | Declared]) -> None:
        """All functions in their order, up to the first that finds an error.

        Raises InvalidInput, and Unanswered where something must be asked first.
        """
        for item in pipeline:
            step = item if isinstance(item, Step) else item.step(self.read)
            known = len(self.results)
            if isinstance(step.function, External):
                self._external(step, step.function)
            else:
                self._step(step, step.function)
            if any(result.severity == ERROR for result in self.results[known:]):
                return

    def write(self) -> tuple[dict[str, Entry], dict[str, bytes]]:
        """The entries of all files, and the content of those that are not upstream's."""
        entries, blobs = dict(self.prepared.entries), dict[str, bytes]()
        by_file: dict[str, dict[int, Outcome]] = {file: {} for file in self.forms}
        for (file, number), overlay in self.overlays.items():
            outcome = overlay.outcome()
            if outcome is not UNTOUCHED and (file, number) not in self.fresh:
                by_file.setdefault(file, {})[number] = outcome
        for file, outcomes in by_file.items():
            put(file, written(self._manifest(file), outcomes), entries, blobs)
        for file in dict.fromkeys(file for file, _ in self.fresh):
            self._append(file, entries, blobs)
        for file in self.forms:
            there = self.prepared.entries.get(file)
            if there is not None and entries.get(file) == there:
                blobs.pop(there.oid, None)
        return entries, blobs

    def _manifest(self, file: str) -> Manifest:
        return self.forms.get(file) or self.prepared.manifests[file]

    def _append(self, file: str, entries: dict[str, Entry], blobs: dict[str, bytes]) -> None:
        parts = []
        if file in entries:
            known = blobs.get(entries[file].oid)
            parts.append(known if known is not None else self._manifest(file).data)
        for place, manifest in self.fresh.items():
            if place[0] == file:
                data = written(manifest, {0: self.overlays[place].outcome()})
                parts += [data] if data is not None else []
        if parts:
            put(file, joined(parts), entries, blobs)

    def read(self, file: str) -> Object:
        """The first object of a file, as it stands now."""
        document = self._manifest(file).documents[0]
        overlay = self.overlays.get((file, document.index))
        value: Object = overlay.value if overlay else document.value
        return value

    def seen(self, step: Step) -> dict[Place, Overlay]:
        """The objects that the function sees, as they stand now."""
        return {
            place: overlay
            for place, overlay in self.overlays.items()
            if (place in self.prepared.objects or place in self.fresh)
            and sees(self.prepared, step, place, overlay)
        }

    def _step(self, step: Step, function: InProcess) -> None:
        seen = self.seen(step)
        # What a survey makes of the objects is counted by itself: it is put into them afterwards.
        room = self.growth.copy()
        around = tuple(
            Seen(overlay.value, place[0][len(step.below) :], overlay, room)
            for place, overlay in seen.items()
        )
        facts = facts_for(self.prepared, step, self.overlays, self.answers)
        try:
            new = list(function.adds(step.config, around)) if function.adds else []
            if function.survey:
                facts = replace(facts, survey=function.survey(step.config, around))
            if function.reports:
                said = function.reports(step.config, around, facts)
                self.results += (self._placed(step, item) for item in said)
        except InvalidInput as problem:
            raise refused(function, problem, step.where) from None
        for place, overlay in seen.items():
            self.results += run_step(step, facts, place[0], overlay, self.growth)
        if not step.validates:
            for path, item in new:
                self._add(step, f"{step.below}{path}", item)

    def _placed(self, step: Step, result: Result) -> Result:
        """The result with its function, and with the line if it is about the configuration."""
        result = result._replace(function=step.function.name)
        if not result.field or result.file:
            return result
        if not step.config_file:
            return result._replace(file=step.where.file, line=step.where.line)
        document = self._manifest(step.config_file).documents[0]
        return result._replace(
            file=step.config_file, line=document.line_of(field_path(result.field))
        )

    def _external(self, step: Step, function: External) -> None:
        """Show a program what it sees, and take over what it answers."""
        taken = {*self.prepared.objects, *self.overlays}
        schemas = self.prepared.facts.shapes
        # a List that is for tools alone has no name, and so could not be answered
        seen = {place: it for place, it in self.seen(step).items() if not is_any_list(it.value)}
        try:
            new, results = run_program(step, function, seen, taken, self.answers, schemas)
        except InvalidInput as problem:
            raise refused(function, problem, step.where) from None
        self.results += results
        for path, item in new:
            self._add(step, f"{step.below}{path}", item)

    def _add(self, step: Step, file: str, item: Object) -> None:
        problem, remedy = check_path(file), "have it give the object another path"
        if not problem and (not file.endswith(_SUFFIXES) or file.rpartition("/")[2] == KPTFILE):
            problem = f"{file} is no name of a YAML file"
        if not problem and file in self.prepared.entries and file not in self.prepared.manifests:
            problem = f"{file} holds no objects"
        if is_plain_list(item):
            problem, remedy = "a List cannot be added", "have it add the items, each by itself"
        if problem:
            name = mapping(item.get("metadata")).get("name", "")
            found = InvalidInput(f"{item.get('kind', '')}/{name}: {problem}", remedy=remedy)
            raise refused(step.function, found, step.where)
        try:
            self.growth.put(file, (), MISSING, dict(item))
            added = len({name for name, _ in self.fresh} | {file} - self.prepared.entries.keys())
            limits = self.prepared.limits
            if added + len(self.prepared.entries) > limits.files:
                raise refused(step.function, limits.too_many(), step.where)
        except Unfit as unfit:
            kind, name = item.get("kind", ""), mapping(item.get("metadata")).get("name", "")
            problem = f"{file}: {kind}/{name}: {unfit.problem}"
            found = InvalidInput(problem, reason=unfit.reason, remedy=unfit.remedy)
            raise refused(step.function, found, step.where) from None
        manifest = Manifest.parse(dump(item).encode(), file)
        number = max(self._numbers(file), default=-1) + 1
        self.fresh[file, number] = manifest
        self.overlays[file, number] = Overlay(file, manifest.documents[0])

    def _numbers(self, file: str) -> Iterator[int]:
        if file in self.prepared.manifests:
            yield from parts_of(self._manifest(file))
        yield from (number for name, number in self.fresh if name == file)
