"""Field paths of kustomize's replacements: `spec.containers.[name=app].env.*.value`."""

from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.edits import MISSING, get
from fanout.values import frozen
from fanout.variants.functions.function import Path, Unfit

ANY = "*"


@frozen
class Match:
    """The element of a list in which a key has a value."""

    key: str
    value: str

    def fits(self, element: object) -> bool:
        """Is it this element? With an empty key the element itself has the value."""
        found = get(element, (self.key,)) if self.key else element
        return found is not MISSING and _text(found) == self.value


Part = str | Match


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a path: dots part them, but for those behind a backslash and in brackets.

    Raises InvalidInput.
    """
    parts: list[Part] = []
    part, bracket, escaped = "", False, False
    for char in f"{text}.":
        if escaped:
            part += char if char in ".\\" else f"\\{char}"
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "." and not bracket:
            parts.append(_part(part, text))
            part = ""
        else:
            bracket = char == "[" if not bracket else char != "]"
            part += char
    if bracket or escaped:
        raise InvalidInput(f"the field path {text} does not end", remedy="close the bracket")
    return tuple(parts)


def _part(text: str, path: str) -> Part:
    if text.startswith("[") and text.endswith("]"):
        key, equals, value = text[1:-1].partition("=")
        if equals:
            return Match(key, value)
        text = key
    if not text:
        raise InvalidInput(f"the field path {path} has an empty part", remedy="take it out")
    return text


def find(value: object, parts: tuple[Part, ...], path: Path = ()) -> Iterator[Path]:
    """The places of what is there at the path."""
    if not parts:
        yield path
        return
    for part in _here(value, parts[0]):
        yield from find(get(value, (part,)), parts[1:], (*path, part))


def reach(value: object, parts: tuple[Part, ...]) -> Path:
    """How far the path leads: to the deepest value on it that is there."""
    path: Path = ()
    for part in parts:
        here = _here(value, part)
        if not here:
            break
        path = (*path, here[0])
        value = get(value, (here[0],))
    return path


def _here(value: object, part: Part) -> list[str | int]:
    if isinstance(value, dict):
        if part == ANY:
            return list(value)
        return [part] if isinstance(part, str) and part in value else []
    if not isinstance(value, list):
        return []
    if part == ANY:
        return list(range(len(value)))
    if isinstance(part, Match):
        return [at for at, element in enumerate(value) if part.fits(element)]
    return [int(part)] if part.isdecimal() and int(part) < len(value) else []


def place(value: object, parts: tuple[Part, ...]) -> Iterator[tuple[Path, object]]:
    """Where something is to be put that need not be there: the path, and changes that make the
    elements of lists on the way, if any. Raises Unfit where that is not one place."""
    path: Path = ()
    for at, part in enumerate(parts):
        if part == ANY:
            raise Unfit(path, "what every element is cannot be made", "name one element")
        here = _here(value, part)
        if here:
            path = (*path, here[0])
            value = get(value, (here[0],))
            continue
        if isinstance(part, Match):
            if not part.key or not (value is MISSING or value is None or isinstance(value, list)):
                raise Unfit(path, f"there is no list for [{part.key}={part.value}]", "make one")
            path = (*path, len(value) if isinstance(value, list) else 0)
            yield path, {part.key: part.value}
            value = {part.key: part.value}
            continue
        if isinstance(value, list) or (at and isinstance(value, str | int | float | bool)):
            raise Unfit(path, f"there is no {part} in what is there", "correct the field path")
        path = (*path, part)
        value = MISSING
    yield path, MISSING


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
