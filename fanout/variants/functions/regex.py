"""Regular expressions in linear time, in the syntax of RE2.

Expressions come from policies and packages, which many may write, and Python's own can be made to
run for hours. So there are no back references and no looking around here: an expression becomes a
machine of states (Thompson's), of which all that are possible are followed at once; sets of states
that were met before are looked up.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from fanout.errors import InvalidInput
from fanout.variants.functions.regexsyntax import (
    Assertion,
    Chars,
    Group,
    Node,
    RegexChoice,
    Repeat,
    Series,
    parse,
)

_MOST_STATES: Final = 5_000
_MOST_SETS: Final = 2_000
_MOST_KNOWN: Final = 1_000  # the texts of a package are the same for every target
_LONGEST_KNOWN: Final = 200
_UNKNOWN: Final = object()
_DEAD: Final = frozenset[int]()
Marks = tuple[int, ...]  # where groups begin and end, -1 where they do not


class _State(NamedTuple):
    """One step of the machine: a character, a condition, a mark; then one of the next states."""

    next: tuple[int, ...] = ()  # in order of preference
    chars: Chars | None = None
    condition: str = ""
    mark: int = -1


@dataclass(slots=True)
class Regex:
    """An expression ready to be matched against whole texts; `of` makes it."""

    states: list[_State]
    groups: int
    first: int = 0
    plain: bool = True  # it has no conditions, so what follows depends on the character alone
    _begin: frozenset[int] = _DEAD
    _moves: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)
    _known: dict[str, object] = field(default_factory=dict)

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str) -> "Regex":
        """The expression. Raises InvalidInput."""
        tree, groups = parse(text)
        regex = Regex([_State()], groups)  # state 0 is the end
        regex.first = regex._build(tree, 0)
        regex.plain = not any(state.condition for state in regex.states)
        if regex.plain:
            begin = regex._closure([(regex.first, ())], "", 0)
            regex._begin = frozenset(state for state, _ in begin)
        return regex

    def match(self, text: str) -> tuple[str | None, ...] | None:
        """The texts of all groups, the whole one first; None where the text as a whole is not
        matched. Of several ways it is the one that RE2 prefers."""
        if len(text) > _LONGEST_KNOWN:
            return self._match(text)
        found = self._known.get(text, _UNKNOWN)
        if found is _UNKNOWN:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[text] = self._match(text)
        return found  # type: ignore[return-value]  # no longer unknown

    def _match(self, text: str) -> tuple[str | None, ...] | None:
        if self.plain and not self._fits(text):
            return None
        marks = self._follow(text)
        if marks is None:
            return None
        found = [(marks[2 * n], marks[2 * n + 1]) for n in range(self.groups)]
        return text, *(text[a:b] if a >= 0 <= b else None for a, b in found)

    # ---- building ---------------------------------------------------------------------------

    def _add(self, state: _State) -> int:
        if len(self.states) >= _MOST_STATES:
            raise InvalidInput("the expression is too large", remedy="repeat less in it")
        self.states.append(state)
        return len(self.states) - 1

    def _build(self, node: Node, then: int) -> int:
        """The state with which the node begins; behind it comes `then`."""
        match node:
            case Chars():
                return self._add(_State((then,), chars=node))
            case Assertion(kind):
                return self._add(_State((then,), condition=kind))
            case Group(number, body):
                end = self._add(_State((then,), mark=2 * number - 1))
                return self._add(_State((self._build(body, end),), mark=2 * number - 2))
            case Series(parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case RegexChoice(parts):
                return self._add(_State(tuple(self._build(part, then) for part in parts)))
            case Repeat():
                return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        body, least, most, greedy = node
        if most is None:
            loop = self._add(_State())
            again = self._build(body, loop)
            self.states[loop] = _State((again, then) if greedy else (then, again))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                once = self._build(body, then)
                then = self._add(_State((once, end) if greedy else (end, once)))
        for _ in range(least):
            then = self._build(body, then)
        return then

    # ---- matching ---------------------------------------------------------------------------

    def _fits(self, text: str) -> bool:
        here = self._begin
        for char in text:
            there = self._moves.get((here, char))
            if there is None:
                there = self._move(here, char)
            if there is _DEAD:
                return False
            here = there
        return 0 in here

    def _move(self, here: frozenset[int], char: str) -> frozenset[int]:
        """Where the states lead with this character; remembered."""
        states = map(self.states.__getitem__, here)
        after: list[tuple[int, Marks]] = [
            (state.next[0], ()) for state in states if state.chars and state.chars.has(char)
        ]
        there = frozenset(state for state, _ in self._closure(after, "", 0)) or _DEAD
        if len(self._moves) >= _MOST_SETS:
            self._moves.clear()
        self._moves[here, char] = there
        return there

    def _follow(self, text: str) -> Marks | None:
        threads = self._closure([(self.first, (-1,) * (2 * self.groups))], text, 0)
        for at, char in enumerate(text):
            after = []
            for number, marks in threads:
                state = self.states[number]
                if state.chars and state.chars.has(char):
                    after.append((state.next[0], marks))
            threads = self._closure(after, text, at + 1)
            if not threads:
                return None
        return next((marks for number, marks in threads if number == 0), None)

    def _closure(
        self, begin: list[tuple[int, Marks]], text: str, at: int
    ) -> list[tuple[int, Marks]]:
        """What is reached without a character: states that take one, and the end, best first."""
        found: list[tuple[int, Marks]] = []
        seen: set[int] = set()
        todo = list(reversed(begin))
        while todo:
            number, marks = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self.states[number]
            if state.chars or number == 0:
                found.append((number, marks))
                continue
            if state.condition and not _holds(state.condition, text, at):
                continue
            if state.mark >= 0 and marks:
                marks = (*marks[: state.mark], at, *marks[state.mark + 1 :])
            todo += [(after, marks) for after in reversed(state.next)]
        return found


def _holds(condition: str, text: str, at: int) -> bool:
    match condition:
        case "start":
            return at == 0
        case "end":
            return at == len(text)
        case "linestart":
            return at == 0 or text[at - 1] == "\n"
        case "lineend":
            return at == len(text) or text[at] == "\n"
    before, after = at > 0 and _is_word(text[at - 1]), at < len(text) and _is_word(text[at])
    return (before is not after) is (condition == "word")


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())
