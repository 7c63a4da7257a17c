"""Porch's expressions in fanout's terms.

Porch shows an expression only the name, namespace, labels and annotations of an object, and those
side by side (`target.name`); fanout shows the object whole (`target.metadata.name`). The
translation works on tokens and does not parse: what it does not know by sight is refused, since an
expression that means something else is worse than one that somebody has to write anew.
"""

import re
from collections.abc import Iterator, Sequence

from fanout.api.faults import BadValue

_STRING = r"""
    (?:[rR][bB]?|[bB][rR])(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*')
  | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
          |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
"""
_TOKEN = re.compile(
    rf"(?P<blank>\s+|//[^\n]*)|(?P<string>{_STRING})|(?P<name>[A-Za-z_]\w*)|(?P<number>\d\w*)"
    r"|(?P<other>[\s\S])",
    re.VERBOSE,
)
_OBJECTS = ("target", "repository")
_PLAIN = ("name", "namespace")
_MAPS = ("labels", "annotations")
_BY_HAND = "write it anew for the whole object, as in target.metadata.name"


def whole_objects(expression: str, *, target_is_object: bool) -> str:
    """The expression as fanout needs it; it yields the same, and fails where Porch's failed.

    `target_is_object`: the target was chosen by a selector. Else it is `{repo, package}`, which
    both programs show alike. Raises BadValue for what has no translation by sight.
    """
    tokens = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(expression)]
    places = [index for index, (kind, _) in enumerate(tokens) if kind != "blank"]
    words = [tokens[index] for index in places]
    texts = [text for _, text in tokens]
    for first, last, text in _replacements(words, target_is_object):
        texts[places[first]] = text
        for index in range(places[first] + 1, places[last] + 1):
            texts[index] = ""
    return "".join(texts)


def _replacements(
    words: Sequence[tuple[str, str]], target_is_object: bool
) -> Iterator[tuple[int, int, str]]:
    """Which words, from the first to the last, become what."""
    for place, (kind, text) in enumerate(words):
        if kind == "other" and text in ("'", '"'):
            raise BadValue("a string in it has no end", "close it")
        if kind != "name" or text not in (*_OBJECTS, "upstream") or _is_field(words, place):
            continue
        if text == "upstream":
            raise BadValue(
                "upstream is a PackageRevision to Porch, which fanout does not have",
                "write it anew; here upstream is {repository, package}",
            )
        if text == "repository" or target_is_object:
            yield _replacement(words, place, text)


def _is_field(words: Sequence[tuple[str, str]], place: int) -> bool:
    """Is the name one of a field (`x.target`), not of the variable?"""
    if _text(words, place - 1) != ".":
        return False
    kind, before = words[place - 2] if place > 1 else ("", "")
    if kind not in ("name", "string") and before not in (")", "]", "}"):
        raise BadValue("a name in it begins with a dot", _BY_HAND)
    return True


def _replacement(
    words: Sequence[tuple[str, str]], place: int, variable: str
) -> tuple[int, int, str]:
    field, after = _field(words, place, variable)
    if field in _PLAIN:
        return place, place, f"{variable}.metadata"
    whole = f"{variable}.metadata.{field}"
    following = _text(words, after)
    if (_text(words, place - 2), _text(words, place - 1)) == ("has", "("):
        return _asked(words, place, after, whole)
    if following == "[" or (following == "." and _text(words, after + 2) != "("):
        return place, after - 1, whole  # the key is missing in both, or in none
    # Porch's map is always there, if need be empty
    return place, after - 1, f"(has({whole}) ? {whole} : {{}})"


def _asked(
    words: Sequence[tuple[str, str]], place: int, after: int, whole: str
) -> tuple[int, int, str]:
    """`has(target.labels)` and `has(target.labels.tier)`."""
    if _text(words, place + 1) == ".":
        if _text(words, after) == ")":
            return place - 2, after, "true"
        key = _text(words, after + 1)
        if _text(words, after) == "." and _text(words, after + 2) == ")":
            return place - 2, after + 2, f"(has({whole}) && has({whole}.{key}))"
    raise BadValue("what has() asks for in it cannot be told", _BY_HAND)


def _field(words: Sequence[tuple[str, str]], place: int, variable: str) -> tuple[str, int]:
    """The field that is read of the variable, and the place of the word after it."""
    if _text(words, place + 1) == ".":
        name, after = _text(words, place + 2), place + 3
    elif _text(words, place + 1) == "[" and _text(words, place + 3) == "]":
        name, after = _text(words, place + 2).strip("\"'"), place + 4
    else:
        raise BadValue(f"it uses {variable} as a whole, which has another shape here", _BY_HAND)
    if name not in (*_PLAIN, *_MAPS):
        known = ", ".join((*_PLAIN, *_MAPS))
        raise BadValue(f"Porch shows no {name} of {variable}, only {known}", _BY_HAND)
    return name, after


def _text(words: Sequence[tuple[str, str]], place: int) -> str:
    return words[place][1] if 0 <= place < len(words) else ""
