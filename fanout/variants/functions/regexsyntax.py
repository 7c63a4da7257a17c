"""What a regular expression says: RE2's syntax as a tree."""

from typing import Final, NamedTuple

from fanout.errors import InvalidInput
from fanout.values import frozen, replace

Range = tuple[int, int]

_DIGITS: Final[tuple[Range, ...]] = ((48, 57),)
_WORD: Final[tuple[Range, ...]] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[tuple[Range, ...]] = ((9, 10), (12, 13), (32, 32))
_LAST: Final = 0x10FFFF
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_NAMED: Final[dict[str, tuple[Range, ...]]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ASSERTIONS: Final = {"A": "start", "z": "end", "b": "word", "B": "noword"}
MOST_REPEATS: Final = 1000  # RE2's own limit
_DEEPEST: Final = 100


class Chars(NamedTuple):
    """One character of these ranges."""

    ranges: tuple[Range, ...]
    fold: bool = False  # in upper or lower case

    def has(self, char: str) -> bool:
        """Is it one of them?"""
        return any(
            low <= ord(one) <= high
            for one in ({char, char.lower(), char.upper()} if self.fold else char)
            if len(one) == 1
            for low, high in self.ranges
        )


class Assertion(NamedTuple):
    """start, end, linestart, lineend, word or noword: takes no character."""

    kind: str


class Group(NamedTuple):
    """A part whose text can be referred to by its number."""

    number: int
    body: "Node"


class Repeat(NamedTuple):
    """A part several times; most is None for any number."""

    body: "Node"
    least: int
    most: int | None
    greedy: bool


class Series(NamedTuple):
    """Parts one behind the other."""

    parts: tuple["Node", ...]


class RegexChoice(NamedTuple):
    """One of these, an earlier one rather than a later."""

    parts: tuple["Node", ...]


Node = Chars | Assertion | Group | Repeat | Series | RegexChoice


@frozen
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


def parse(text: str) -> tuple[Node, int]:
    """The tree, and how many groups there are. Raises InvalidInput for what RE2 has not."""
    parser = _Parser(text)
    tree = parser.choice(_Flags(), 0)
    if parser.at < len(text):
        raise parser.wrong("a parenthesis is closed that was not opened")
    return tree, parser.groups


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0

    def wrong(self, problem: str) -> InvalidInput:
        where = f"at character {self.at + 1} of the expression"
        return InvalidInput(f"{problem} {where}", remedy="use RE2's syntax")

    def ahead(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def skip(self, text: str) -> bool:
        found = self.ahead(text)
        if found:
            self.at += len(text)
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.wrong("something is missing")
        self.at += 1
        return self.text[self.at - 1]

    def until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise self.wrong(f"{end} is missing")
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    # ---- parts ------------------------------------------------------------------------------

    def choice(self, flags: _Flags, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.wrong("parentheses are too deep")
        choices: list[Node] = []
        parts: list[Node] = []
        while self.at < len(self.text) and not self.ahead(")"):
            if self.skip("|"):
                choices.append(Series(tuple(parts)))
                parts = []
            elif self.ahead("(?") and (changed := self.flags_alone(flags)) is not None:
                flags = changed
            else:
                parts += self.repeated(flags, depth)
        choices.append(Series(tuple(parts)))
        return choices[0] if len(choices) == 1 else RegexChoice(tuple(choices))

    def flags_alone(self, flags: _Flags) -> _Flags | None:
        """`(?i)`: from here to the end of the group."""
        end = self.text.find(")", self.at)
        inside = self.text[self.at + 2 : end] if end > 0 else ""
        if not inside or not set(inside) <= set("imsU-"):
            return None
        self.at = end + 1
        return self.changed(flags, inside)

    def changed(self, flags: _Flags, letters: str) -> _Flags:
        names = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}
        on = True
        for letter in letters:
            if letter == "-":
                on = False
            elif letter in names:
                flags = replace(flags, **{names[letter]: on})
            else:
                raise self.wrong(f"there is no (?{letter}")
        return flags

    def repeated(self, flags: _Flags, depth: int) -> list[Node]:
        nodes = self.literal(flags) if self.skip("\\Q") else [self.atom(flags, depth)]
        counts = self.counts() if nodes else None
        if counts is not None:
            lazy = self.skip("?") is not flags.lazy
            nodes[-1] = Repeat(nodes[-1], *counts, greedy=not lazy)
            if self.at < len(self.text) and self.text[self.at] in "*+?":
                raise self.wrong("a repetition is repeated")
        return nodes

    def literal(self, flags: _Flags) -> list[Node]:
        """What stands between \\Q and \\E, or the end."""
        stop = self.text.find("\\E", self.at)
        text = self.text[self.at : stop if stop >= 0 else None]
        self.at = stop + 2 if stop >= 0 else len(self.text)
        return [_one(char, flags) for char in text]

    def counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.skip(sign):
                return counts
        if not self.ahead("{"):
            return None
        least, comma, most = self.text[self.at + 1 : self.text.find("}", self.at)].partition(",")
        if not least.isdecimal() or (most and not most.isdecimal()):
            return None  # a brace like any character
        self.until("}")
        found = int(least), (int(most) if most else None) if comma else int(least)
        if max(found[0], found[1] or 0) > MOST_REPEATS or (found[1] or found[0]) < found[0]:
            raise self.wrong("a repetition is too long or the wrong way round")
        return found

    def atom(self, flags: _Flags, depth: int) -> Node:
        char = self.next()
        match char:
            case "(":
                return self.group(flags, depth)
            case "[":
                return self.bracket(flags)
            case ".":
                return Chars(((0, _LAST),) if flags.dot_all else ((0, 9), (11, _LAST)))
            case "^":
                return Assertion("linestart" if flags.lines else "start")
            case "$":
                return Assertion("lineend" if flags.lines else "end")
            case "\\":
                return self.escape(flags)
            case "*" | "+" | "?":
                raise self.wrong("there is nothing to repeat")
        return _one(char, flags)

    def group(self, flags: _Flags, depth: int) -> Node:
        number = 0
        if self.skip("?P<") or (self.ahead("?<") and not self.ahead("?<=") and
                                not self.ahead("?<!") and self.skip("?<")):  # fmt: skip
            self.until(">")
            number = self.groups = self.groups + 1
        elif self.skip("?"):
            if any(map(self.ahead, ("=", "!", "<", "P", "#", ">"))):
                raise self.wrong("RE2 neither looks around nor refers back")
            flags = self.changed(flags, self.until(":"))
        else:
            number = self.groups = self.groups + 1
        body = self.choice(flags, depth + 1)
        if not self.skip(")"):
            raise self.wrong("a parenthesis is not closed")
        return Group(number, body) if number else body

    def escape(self, flags: _Flags) -> Node:
        char = self.next()
        if char in _ASSERTIONS:
            return Assertion(_ASSERTIONS[char])
        if char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]
            return Chars(_others(ranges) if char.isupper() else ranges)
        return _one(chr(self.escaped(char)), flags)

    def escaped(self, char: str) -> int:
        """The character that an escape stands for."""
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            digits = self.until("}") if self.skip("{") else self.next() + self.next()
            try:
                code = int(digits, 16)
            except ValueError:
                code = _LAST + 1
            if code > _LAST:
                raise self.wrong(f"\\x{digits} is no character")
            return code
        if char.isalnum():
            raise self.wrong(f"\\{char} is not understood")
        return ord(char)

    def bracket(self, flags: _Flags) -> Node:
        negated = self.skip("^")
        ranges: list[Range] = []
        first = True
        while first or not self.ahead("]"):
            first = False
            ranges += self.item()
        self.at += 1
        if flags.fold:
            ranges += [(ord(c), ord(c)) for low, high in ranges for c in _folded(low, high)]
        found = tuple(sorted(ranges))
        return Chars(_others(found) if negated else found)

    def item(self) -> list[Range]:
        if self.skip("[:"):
            name = self.until(":]")
            ranges = _NAMED.get(name.removeprefix("^"))
            if ranges is None:
                raise self.wrong(f"there is no [:{name}:]")
            return list(_others(ranges) if name.startswith("^") else ranges)
        char = self.next()
        if char == "\\":
            char = self.next()
            if char.lower() in _CLASSES:
                ranges = _CLASSES[char.lower()]
                return list(_others(ranges) if char.isupper() else ranges)
            low = self.escaped(char)
        else:
            low = ord(char)
        if not self.ahead("-") or self.ahead("-]"):
            return [(low, low)]
        self.at += 1
        char = self.next()
        high = self.escaped(self.next()) if char == "\\" else ord(char)
        if high < low:
            raise self.wrong("a range is the wrong way round")
        return [(low, high)]


def _one(char: str, flags: _Flags) -> Chars:
    return Chars(((ord(char), ord(char)),), flags.fold and char.upper() != char.lower())


def _folded(low: int, high: int) -> list[str]:
    """The letters of a range in their other case; of the alphabets that have cases."""
    letters = map(chr, range(low, min(high, 0x24FF) + 1))
    return [o for c in letters for o in (c.lower(), c.upper()) if o != c and len(o) == 1]


def _others(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """All characters that are in none of the ranges."""
    found, begin = [], 0
    for low, high in sorted(ranges):
        if low > begin:
            found.append((begin, low - 1))
        begin = max(begin, high + 1)
    if begin <= _LAST:
        found.append((begin, _LAST))
    return tuple(found)
