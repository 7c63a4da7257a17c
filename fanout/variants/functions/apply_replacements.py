"""apply-replacements: copies values from one object of the package into others.

What kustomize calls replacements. All of them are made in their order, each on what those before it
left, so one may copy what another has put there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fanout.errors import InvalidInput
from fanout.package.edits import MISSING, BlockedPath, get, with_value
from fanout.package.scalars import scalar
from fanout.variants.functions.fieldpath import Part, find, place, reach
from fanout.variants.functions.function import (
    Change,
    Facts,
    InProcess,
    Object,
    Path,
    Result,
    Room,
    Seen,
    Unfit,
)
from fanout.variants.functions.replacements import Options, Replacement, Target, read

_Config = tuple[Replacement, ...]


@dataclass(slots=True)
class _Draft:
    """One object while the replacements are made."""

    value: Object
    file: str
    room: Room
    changes: list[Change] = field(default_factory=list)
    unfit: Unfit | None = None

    def set(self, path: Path, value: object) -> None:
        self.room.put(self.file, path, get(self.value, path), value)
        try:
            self.value = with_value(self.value, path, value)
        except BlockedPath as blocked:
            raise Unfit(path[: blocked.depth], blocked.sentence, "correct the field path") from None
        self.changes.append((path, value))


@dataclass(slots=True)
class _Survey:
    """What becomes of each object, by its `written`, which nothing else has."""

    drafts: dict[int, _Draft]
    idle: list[Target] = field(default_factory=list)  # select nothing


def _survey(config: _Config, items: Sequence[Seen]) -> _Survey:
    survey = _Survey({id(item.written): _Draft(item.value, item.file, item.room) for item in items})
    drafts = survey.drafts.values()
    for number, replacement in enumerate(config):
        value = _source(replacement, f"replacements[{number}].source", list(drafts))
        for target in replacement.targets:
            found = [draft for draft in drafts if target.fits(draft.value)]
            if not found:
                survey.idle.append(target)
            for draft in found:
                try:
                    _replace(draft, target, value)
                except Unfit as unfit:
                    draft.unfit = unfit
                    return survey
    return survey


def _source(replacement: Replacement, at: str, drafts: Sequence[_Draft]) -> object:
    if replacement.source is None:
        return replacement.value
    found = [draft.value for draft in drafts if replacement.source.fits(draft.value)]
    if len(found) != 1:
        problem = "nothing is" if not found else f"{len(found)} objects are"
        raise InvalidInput(
            f"{at}: {problem} {replacement.source}", remedy="select one object of the package"
        )
    paths = list(find(found[0], replacement.path))
    value = get(found[0], paths[0]) if len(paths) == 1 else None
    if value in (None, "", {}, []):
        raise InvalidInput(
            f"{at}.fieldPath ({replacement.text}) leads to no value in {found[0].get('kind')}/"
            f"{found[0].get('metadata', {}).get('name')}",
            remedy="correct the path",
        )
    options = replacement.options
    if not options.delimiter:
        return value
    parts = _text(value, f"{at}.options").split(options.delimiter)
    if not 0 <= options.index < len(parts):
        raise InvalidInput(
            f"{at}.options.index {options.index}: the value has {len(parts)} parts",
            remedy="count from 0",
        )
    return parts[options.index]


def _text(value: object, at: str) -> str:
    if isinstance(value, dict | list):
        raise InvalidInput(f"{at}.delimiter is for texts", remedy="take it out")
    return value if isinstance(value, str) else "" if value is None else scalar(value)


def _replace(draft: _Draft, target: Target, value: object) -> None:
    """Put the value at the target's fields; raises Unfit, which names the one that is not there."""
    for number, (parts, text) in enumerate(zip(target.paths, target.texts, strict=True)):
        try:
            _put(draft, parts, value, target.options)
        except Unfit as unfit:
            problem = f"{target.at}.fieldPaths[{number}] ({text}): {unfit.problem}"
            raise Unfit(unfit.path, problem, unfit.remedy, unfit.reason) from None


def _put(draft: _Draft, parts: tuple[Part, ...], value: object, options: Options) -> None:
    paths = list(find(draft.value, parts))
    if not paths and not options.create:
        raise Unfit(
            reach(draft.value, parts),
            "the object has no such field",
            "correct the path, or give options.create",
        )
    if not paths:
        *made, (path, _) = place(draft.value, parts)
        for change in made:
            draft.set(*change)
        paths = [path]
    for path in paths:
        draft.set(path, _new(get(draft.value, path), value, path, options, draft.room))


def _new(present: object, value: object, path: Path, options: Options, room: Room) -> object:
    """What the field is from now on. Text stays text, whatever is put there, and stays itself."""
    if options.delimiter:
        if isinstance(present, dict | list) or isinstance(value, dict | list):
            raise Unfit(path, "a delimiter is for texts", "take it out")
        parts = _text("" if present is MISSING else present, "").split(options.delimiter)
        text = _text(value, "")
        if options.index < 0:
            parts.insert(0, text)
        elif options.index >= len(parts):
            parts.append(text)
        else:
            parts[options.index] = text
        return room.joined(options.delimiter, parts, path)
    if isinstance(present, str) and not isinstance(value, dict | list | str):
        return _text(value, "")
    return value


def _changes(_config: _Config, _item: Object, facts: Facts) -> Iterator[Change]:
    draft: _Draft = facts.survey.drafts[id(facts.written)]
    if draft.unfit is not None:
        raise draft.unfit
    yield from draft.changes


def _reports(_config: _Config, _items: Sequence[Seen], facts: Facts) -> Iterator[Result]:
    """Targets that are no object's, which the catalog's function passes over in silence."""
    for target in facts.survey.idle:
        rejected = ", or all of them are rejected" if target.reject else ""
        problem = f"no object is selected by {target.select}{rejected}"
        yield Result(problem, "warning", field=f"{target.at}.select")


APPLY_REPLACEMENTS = InProcess(
    "apply-replacements",
    "1",
    read,
    _changes,
    in_text=True,
    sees_local=True,
    survey=_survey,
    reports=_reports,
)
