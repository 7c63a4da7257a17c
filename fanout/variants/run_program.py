"""Shows the objects of a package to a program, and makes them what the program has returned.

Objects are matched by the file and the index that they were sent with. Only what differs is set, so
that everything else keeps its bytes; an object that does not come back is taken out, and one from
nowhere is new.
"""

from collections.abc import Collection, Mapping, Sequence

from fanout.errors import InvalidInput
from fanout.package.edits import REMOVE
from fanout.package.merge.keys import Schemas
from fanout.variants.becoming import become
from fanout.variants.functions.arrivals import file_of
from fanout.variants.functions.function import External, Object, Result, mapping
from fanout.variants.functions.resourcelist import (
    Returned,
    Said,
    field_path,
    read_answer,
    resource_list,
)
from fanout.variants.overlay import Overlay
from fanout.variants.pipeline import Step
from fanout.variants.prepared import Place
from fanout.variants.questions import Answers, answer_to

_Added = list[tuple[str, Object]]  # files below the pipeline's directory, and their new objects


def run_program(
    step: Step,
    function: External,
    seen: Mapping[Place, Overlay],
    taken: Collection[Place],
    answers: Answers,
    schemas: Schemas,
) -> tuple[_Added, list[Result]]:
    """Change the documents that it sees; answers what is new and what it says.

    `taken` are the places of all objects, `schemas` are of kinds that the package defines. Raises
    Unanswered while it has not run, and InvalidInput.
    """
    cut = len(step.below)
    shown = {(file[cut:], index): overlay for (file, index), overlay in seen.items()}
    items = [(place, overlay.value) for place, overlay in shown.items()]
    config = str(step.config)
    question = function.question(config, resource_list(items, config))
    output = read_answer(answer_to(question, answers))
    results = [_placed(said, function.name, step.below, shown) for said in output.results]
    if step.validates:
        return [], results
    others = {(file[cut:], index) for file, index in taken if file.startswith(step.below)}
    return _take(output.items, shown, others - shown.keys(), schemas), results


def _take(
    items: Sequence[Returned],
    shown: Mapping[Place, Overlay],
    others: Collection[Place],
    schemas: Schemas,
) -> _Added:
    returned: set[Place] = set()
    new: _Added = []
    for item in items:
        file = item.file or file_of(item.value)
        place = (file, -1 if item.number is None else item.number)
        if place in returned or place in others:
            problem = "two objects" if place in returned else "another object than is there"
            raise InvalidInput(f"it returns {problem} at {file}, index {place[1]}")
        if item.number is not None:
            returned.add(place)
        if place not in shown:
            new.append((file, item.value))
            continue
        become(shown[place], item.value, schemas)
    for place, overlay in shown.items():
        if place not in returned:
            overlay.set((), REMOVE)
    return new


def _placed(said: Said, function: str, below: str, shown: Mapping[Place, Overlay]) -> Result:
    """The result with the line that it is about."""
    place = said.place if said.place in shown else None
    if place is None and said.reference[2]:
        place = next((at for at, it in shown.items() if _reference(it) == said.reference), None)
    result = said.result._replace(function=function)
    if place is None:
        return result._replace(file=f"{below}{result.file}" if result.file else "")
    line = shown[place].line_of(field_path(result.field))
    return result._replace(file=f"{below}{place[0]}", line=line)


def _reference(overlay: Overlay) -> tuple[str, str, str]:
    meta = mapping(overlay.value.get("metadata"))
    return (
        str(overlay.value.get("kind")),
        str(meta.get("namespace") or ""),
        str(meta.get("name")),
    )
