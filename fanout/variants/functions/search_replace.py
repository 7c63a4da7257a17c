"""search-replace: find values by content and place; set other values or comments.

All given conditions must match. In the catalog an expression matches a part of a value; here it
must match the complete value, as the catalog documents (docs/reference/catalog-functions.md). Paths
of fields (`spec.**.image`) and of files (`**/prod-*.yaml`) are patterns. Without a new value or
comment, the matches are reported and stay unchanged.

Expressions come from policies and packages, which many people may write. Python's own matcher can
be made to run for hours; RE2 cannot, at the price of lookaround and back references. Syntax:
https://github.com/google/re2/wiki/Syntax
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.values import Value
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    LineComment,
    Object,
    ObjectFinding,
    PackageFacts,
    Path,
    UnfitObject,
    VisibleObject,
    errors_at,
    infer_value,
    parse_data,
    parse_fields,
)

# RE2 bounds its program and its automaton by the memory limit, but neither the tree that it parses
# first (a class like \pL takes 300 times its text) nor the positions of groups, of which it keeps
# one set per step.
_MEMORY_LIMIT: Final = 1 << 20  # bytes; enough for 7,000 times any one character of Unicode
_MAX_LENGTH: Final = 5_000  # characters
_MAX_GROUPS: Final = 100
_MAX_SHOWN: Final = 60  # characters of an expression in a message
_SYNTAX_REMEDY: Final = "use RE2's syntax"
# The one operator of RE2 that can split a character of UTF-8. Behind \Q it is plain text.
_SINGLE_BYTE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(?:(C)|.)", re.DOTALL)
_LOOKAROUND: Final = ("(?=", "(?!", "(?<=", "(?<!", "(?P")
# RE2's own words and ours; the fragment is the part of the expression that RE2 objects to.
_PROBLEMS: Final[Mapping[str, str]] = {
    "missing )": "a parenthesis is not closed in {fragment}",
    "unexpected )": "a parenthesis is closed that was not opened",
    "missing ]": "a bracket is not closed in {fragment}",
    "no argument for repetition operator": "there is nothing to repeat with {fragment}",
    "bad repetition operator": "a repetition is repeated with {fragment}",
    "invalid repetition size": ("a repetition is too long or runs backward in {fragment}"),
    "invalid character class range": "{fragment} is not a valid character class or range",
    "invalid escape sequence": "{fragment} is not a valid escape",
    "invalid perl operator": "{fragment} is not supported",
    "invalid named capture group": "{fragment} is not a valid group name",
    "trailing \\": "nothing follows the last \\",
}


class Regex(Value):
    """A compiled expression and the number of its groups; made by `compile_regex`."""

    pattern: Any
    groups: int

    def match(self, text: str) -> tuple[str | None, ...] | None:
        """Return the texts of all groups, the complete text first.

        Returns None if the expression does not match the complete text. A group without a part
        in the match is None.
        """
        match = self.pattern.fullmatch(text)
        return None if match is None else (text, *match.groups())


@lru_cache(maxsize=64)
def compile_regex(text: str) -> Regex:
    """Compile an expression. Raises InvalidInput if RE2 refuses it or if it is too large."""
    # Loaded here: only search-replace has patterns, and the library costs every process 2.5 MB.
    import re2  # noqa: PLC0415

    if len(text) > _MAX_LENGTH:
        raise _too_large()
    options = re2.Options()
    options.max_mem = _MEMORY_LIMIT
    options.log_errors = False  # RE2 would write them to standard error
    if any(match[1] for match in _SINGLE_BYTE.finditer(text)):
        raise InvalidInput("\\C is not supported", remedy=_SYNTAX_REMEDY)
    try:
        pattern = re2.compile(text, options)
    except re2.error as error:
        message = error.args[0].decode(errors="replace")
        if message.startswith("pattern too large"):
            raise _too_large() from None
        code, _, fragment = message.partition(": ")
        if code == "invalid perl operator" and fragment in _LOOKAROUND:
            problem = "RE2 has neither lookaround nor backreferences"
        else:
            problem = _PROBLEMS.get(code, f"RE2 refuses the expression: {code}")
            if len(fragment) > _MAX_SHOWN:
                fragment = f"{fragment[:_MAX_SHOWN]}…"
            problem = problem.replace("{fragment}", fragment)
        raise InvalidInput(problem, remedy=_SYNTAX_REMEDY) from None
    if pattern.groups > _MAX_GROUPS:
        raise InvalidInput(
            f"the expression has more than {_MAX_GROUPS} groups", remedy="group with (?:...)"
        )
    return Regex(pattern, pattern.groups)


def _too_large() -> InvalidInput:
    return InvalidInput("the expression is too large", remedy="repeat less in it")


_MAX_PARTS: Final = 100  # of a pattern; values are not nested deeper
_MAX_SPLIT: Final = 1_000  # characters of a key; a longer one is one element
_SPECIAL: Final = frozenset(".+()|^$[]{}*?\\")


def split_path(path: Path) -> list[str]:
    """Split a path into search-replace's elements: `spec`, `containers[0]`, `image`.

    Dots in keys separate elements too, as they do in the pattern.
    """
    path_elements: list[str] = []
    for part in path:
        if isinstance(part, int):
            path_elements[-1:] = [f"{path_elements[-1] if path_elements else ''}[{part}]"]
        else:
            # Each value below a key splits it again.
            path_elements += part.split(".") if len(part) <= _MAX_SPLIT else [part]
    return path_elements


def matches_path(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the path matches the pattern.

    ``*`` matches one element, ``**`` any number of elements, ``a[*]`` any element of a list.
    """
    # All positions are advanced together instead of backtracking, which can take exponential time
    # for patterns with several ``**``; patterns come from packages.
    positions = {0}  # positions in the pattern after the elements so far
    positions = _skip_empty_globs(positions, pattern)
    for element in path:
        next_positions = set()
        for position in positions:
            if position < len(pattern):
                if pattern[position] == "**":
                    next_positions.add(position)
                elif _matches_element(element, pattern[position]):
                    next_positions.add(position + 1)
        if not (positions := _skip_empty_globs(next_positions, pattern)):
            return False
    return len(pattern) in positions


def _skip_empty_globs(positions: set[int], pattern: Sequence[str]) -> set[int]:
    """Return the positions, and those reached when ``**`` matches no element."""
    reachable = set(positions)
    for start in positions:
        position = start
        while pattern[position : position + 1] == ["**"] and position + 1 not in reachable:
            position += 1
            reachable.add(position)
    return reachable


def _matches_element(element: str, pattern: str) -> bool:
    if pattern in ("*", element):
        return True
    name, bracket, index = element.partition("[")
    pattern_name, _, pattern_index = pattern.partition("[")
    return (
        bool(bracket and pattern_index)
        and pattern_name in ("*", name)
        and pattern_index in ("*]", index)
    )


def is_literal(pattern: Sequence[str]) -> bool:
    """Return whether the pattern names exactly one field, which can then be created."""
    return all(part and "*" not in part and "[" not in part for part in pattern)


def compile_glob(text: str) -> Regex:
    """Compile a pattern of file names to a regular expression. Raises InvalidInput."""
    expression, position, depth = "", 0, 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            expression += _escape(text[position])
            position += 1
        elif char == "*":
            piece, position = _translate_stars(text, position)
            expression += piece
        elif char == "?":
            expression += "[^/]"
        elif char == "[":
            if (end := text.find("]", position + 2)) < 0:
                raise InvalidInput(f"in {text!r} a [ is not closed", remedy="close it")
            char_class = text[position:end]
            negated = char_class[0] in "^!"
            expression += f"[{'^/' if negated else ''}{char_class[negated:]}]"
            position = end + 1
        elif char == "{":
            expression += "(?:"
            depth += 1
        elif char == "}" and depth:
            expression += ")"
            depth -= 1
        elif char == "," and depth:
            expression += "|"
        else:
            expression += _escape(char)
    if depth:
        raise InvalidInput(f"in {text!r} a {{ is not closed", remedy="close it")
    return compile_regex(expression)


def _translate_stars(text: str, position: int) -> tuple[str, int]:
    """Translate stars: ``*`` stops at a slash, ``**`` as a complete element does not.

    Returns the expression and the position after the stars.
    """
    before = text[position - 2 : position - 1]
    is_double_star = text[position : position + 1] == "*" and before in ("", "/")
    next_char = text[position + 1 : position + 2]
    if is_double_star and next_char == "/":
        return "(?:.*/)?", position + 2
    if is_double_star and not next_char:
        return ".*", position + 1
    while text[position : position + 1] == "*":
        position += 1
    return "[^/]*", position


def _escape(char: str) -> str:
    return f"\\{char}" if char in _SPECIAL else char


_SEARCH_SETTINGS = ("by-value", "by-value-regex", "by-path", "by-file-path")
_PUT_SETTINGS = ("put-value", "put-comment")
_GROUP_REFERENCE = re.compile(r"\$\{([0-9]+)\}")


class _Config(Value):
    value: str
    expression: str
    path: str
    files: str
    put_value: str
    put_comment: str

    @property
    def searches_values(self) -> bool:
        return bool(self.value or self.expression)

    def changes(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
        if not self.put_value and not self.put_comment:
            return
        pattern = self.path.split(".") if self.path else None
        create_missing = pattern is not None and not self.searches_values and is_literal(pattern)
        if create_missing and self.files and compile_glob(self.files).match(item.file) is None:
            return
        for path, value, groups in self.find_matches(item):
            create_missing = False
            if isinstance(value, list):
                if self.put_comment:
                    yield path, LineComment(self.put_comment)
                continue
            spelling = item.text.spelling(path)
            if self.put_value:
                text = self.insert_groups(self.put_value, groups, item, path)
                yield path, infer_value(text, spelling, path, item.value)
            if self.put_comment:
                if not spelling.has_comment_room:
                    raise UnfitObject(
                        path, "a comment does not fit here", "write the value on its own line"
                    )
                yield path, LineComment(self.insert_groups(self.put_comment, groups, item, path))
        if create_missing and self.put_value and pattern is not None:
            yield from self.create_field(item, tuple(pattern))

    def check_object(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[ObjectFinding]:
        """Report matches if nothing is to be set; values of Secrets are not shown."""
        if self.put_value or self.put_comment:
            return
        for path, value, groups in self.find_matches(item):
            if isinstance(value, list):
                description = f"a list of {len(value)}"
            else:
                description = (
                    "a value" if item.value.get("kind") == "Secret" else f"the value {groups[0]!r}"
                )
            yield ObjectFinding(path, f"{description} is found", "info")

    def find_matches(
        self, item: VisibleObject
    ) -> Iterator[tuple[Path, object, tuple[str | None, ...]]]:
        """Yield path, value and groups of each match; group 0 is the complete text.

        A list has no text and is matched by its path alone.
        """
        if self.files and compile_glob(self.files).match(item.file) is None:
            return
        pattern = self.path.split(".") if self.path else None
        for path, value in _walk_values(item.value, ()):
            if pattern is not None and not matches_path(split_path(path), pattern):
                continue
            if isinstance(value, list):
                if not self.searches_values:
                    yield path, value, ()
                continue
            text = item.text.spelling(path).text or ""
            if self.value and self.value != text:
                continue
            groups: tuple[str | None, ...] | None = (text,)
            if self.expression:
                groups = compile_regex(self.expression).match(text) if text else None
            if groups is not None:
                yield path, value, groups

    def create_field(self, item: VisibleObject, path: Path) -> Iterator[Change]:
        """Yield the changes that create the field in an object without it."""
        value: object = item.value
        for at, part in enumerate(path):
            if value is not None and not isinstance(value, dict):
                raise UnfitObject(
                    path[:at], "by-path passes a value that is not a map", "correct by-path"
                )
            value = (value or {}).get(part)
        if isinstance(value, dict):
            raise UnfitObject(path, "by-path leads to a map", "correct by-path")
        spelling = item.text.spelling(path)._replace(quoted=False)
        yield path, infer_value(self.put_value, spelling, path, item.value)
        if self.put_comment:
            yield path, LineComment(self.put_comment)

    def insert_groups(
        self, text: str, groups: tuple[str | None, ...], item: VisibleObject, path: Path
    ) -> str:
        if not self.expression:
            return text
        return item.size_limiter.substitute(
            _GROUP_REFERENCE, text, lambda match: groups[int(match[1])] or "", path
        )


def _configure(config: Object) -> _Config:
    values = parse_fields(dict(parse_data(config)), "data", (*_SEARCH_SETTINGS, *_PUT_SETTINGS))
    parsed = _Config(*(values.get(key, "") for key in (*_SEARCH_SETTINGS, *_PUT_SETTINGS)))
    if parsed.value and parsed.expression:
        raise InvalidInput(
            "by-value and by-value-regex exclude each other", remedy="keep one of them"
        )
    if not parsed.searches_values and not parsed.path:
        raise InvalidInput(
            "data has no search condition", remedy="add by-value, by-value-regex or by-path"
        )
    if parsed.path.count(".") >= _MAX_PARTS:
        raise InvalidInput(
            f"data.by-path has more than {_MAX_PARTS} parts",
            reason=Reason.LIMIT_EXCEEDED,
            remedy="match several elements with **",
        )
    if any(ord(char) < 32 for char in parsed.put_comment):
        raise InvalidInput("data.put-comment has several lines", remedy="write one line")
    with errors_at("data.by-value-regex"):
        regex = compile_regex(parsed.expression)
    with errors_at("data.by-file-path"):
        compile_glob(parsed.files)
    for key in _PUT_SETTINGS if parsed.expression else ():
        if any(
            int(number) not in range(1, regex.groups + 1)
            for number in _GROUP_REFERENCE.findall(values.get(key, ""))
        ):
            raise InvalidInput(
                f"data.{key} refers to a group that by-value-regex does not have",
                remedy="groups are numbered from 1",
            )
    return parsed


def _walk_values(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield path and value of all scalars and lists in the object."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk_values(child, (*path, key))
        return
    yield path, value
    if isinstance(value, list):
        for at, child in enumerate(value):
            yield from _walk_values(child, (*path, at))


SEARCH_REPLACE = CatalogFunction(
    "search-replace",
    "3",
    _configure,
    _Config.changes,
    includes_local=True,
    check_object=_Config.check_object,
)
