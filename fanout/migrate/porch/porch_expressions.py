"""Translation of Porch's CEL expressions.

Porch shows an expression only the name, namespace, labels and annotations of an object,
side by side (`target.name`); fanout shows the whole object (`target.metadata.name`).
The translation works on tokens without parsing and refuses what it does not recognize:
an expression with another meaning is worse than one that somebody has to rewrite.
"""

import re
from collections.abc import Iterator, Sequence

from fanout.api.field_errors import InvalidValue

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
_OBJECT_VARIABLES = ("target", "repository")
_SCALAR_FIELDS = ("name", "namespace")
_MAP_FIELDS = ("labels", "annotations")
_REWRITE_REMEDY = "write it anew for the whole object, as in target.metadata.name"


def translate_expression(expression: str, *, target_is_object: bool) -> str:
    """Translate an expression; the result yields the same and fails where Porch's failed.

    `target_is_object`: the target was chosen by a selector; otherwise it is `{repo,
    package}`, which both programs show alike. Raises InvalidValue for an expression that is
    not recognized.
    """
    tokens = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(expression)]
    token_positions = [index for index, (kind, _) in enumerate(tokens) if kind != "blank"]
    words = [tokens[index] for index in token_positions]
    texts = [text for _, text in tokens]
    for first, last, text in _find_replacements(words, target_is_object):
        texts[token_positions[first]] = text
        # Spaces and comments inside the replaced words go too; those between other words stay.
        for index in range(token_positions[first] + 1, token_positions[last] + 1):
            texts[index] = ""
    return "".join(texts)


def _find_replacements(
    words: Sequence[tuple[str, str]], target_is_object: bool
) -> Iterator[tuple[int, int, str]]:
    """Yield (first word, last word, new text) of every replacement."""
    for position, (kind, text) in enumerate(words):
        if kind == "other" and text in ("'", '"'):
            raise InvalidValue("a string in it has no end", "close it")
        if (
            kind != "name"
            or text not in (*_OBJECT_VARIABLES, "upstream")
            or _is_field_name(words, position)
        ):
            continue
        if text == "upstream":
            raise InvalidValue(
                "upstream is a PackageRevision to Porch, which fanout does not have",
                "write it anew; here upstream is {repository, package}",
            )
        # A target of {repo, package} looks the same in both programs and stays.
        if text == "repository" or target_is_object:
            yield _build_replacement(words, position, text)


def _is_field_name(words: Sequence[tuple[str, str]], position: int) -> bool:
    """Return whether the name is a field (`x.target`) and not the variable."""
    if _text_at(words, position - 1) != ".":
        return False
    kind, previous_text = words[position - 2] if position > 1 else ("", "")
    if kind not in ("name", "string") and previous_text not in (")", "]", "}"):
        raise InvalidValue("a name in it begins with a dot", _REWRITE_REMEDY)
    return True


def _build_replacement(
    words: Sequence[tuple[str, str]], position: int, variable: str
) -> tuple[int, int, str]:
    field, next_position = _read_field(words, position, variable)
    if field in _SCALAR_FIELDS:
        return position, position, f"{variable}.metadata"
    full_path = f"{variable}.metadata.{field}"
    next_text = _text_at(words, next_position)
    if (_text_at(words, position - 2), _text_at(words, position - 1)) == ("has", "("):
        return _replace_has(words, position, next_position, full_path)
    if next_text == "[" or (next_text == "." and _text_at(words, next_position + 2) != "("):
        return position, next_position - 1, full_path  # both have the key, or neither has
    # Porch's map always exists, possibly empty
    return position, next_position - 1, f"(has({full_path}) ? {full_path} : {{}})"


def _replace_has(
    words: Sequence[tuple[str, str]], position: int, next_position: int, full_path: str
) -> tuple[int, int, str]:
    """Replace `has(target.labels)` and `has(target.labels.tier)`."""
    if _text_at(words, position + 1) == ".":
        if _text_at(words, next_position) == ")":
            return position - 2, next_position, "true"
        key = _text_at(words, next_position + 1)
        if _text_at(words, next_position) == "." and _text_at(words, next_position + 2) == ")":
            return position - 2, next_position + 2, f"(has({full_path}) && has({full_path}.{key}))"
    raise InvalidValue("what has() asks for in it cannot be told", _REWRITE_REMEDY)


def _read_field(words: Sequence[tuple[str, str]], position: int, variable: str) -> tuple[str, int]:
    """Return the field that is read of the variable, and the next word's position."""
    if _text_at(words, position + 1) == ".":
        name, next_position = _text_at(words, position + 2), position + 3
    elif _text_at(words, position + 1) == "[" and _text_at(words, position + 3) == "]":
        name, next_position = _text_at(words, position + 2).strip("\"'"), position + 4
    else:
        raise InvalidValue(
            f"it uses {variable} as a whole, which has another shape here", _REWRITE_REMEDY
        )
    if name not in (*_SCALAR_FIELDS, *_MAP_FIELDS):
        supported_fields = ", ".join((*_SCALAR_FIELDS, *_MAP_FIELDS))
        raise InvalidValue(
            f"Porch shows no {name} of {variable}, only {supported_fields}", _REWRITE_REMEDY
        )
    return name, next_position


def _text_at(words: Sequence[tuple[str, str]], position: int) -> str:
    return words[position][1] if 0 <= position < len(words) else ""
