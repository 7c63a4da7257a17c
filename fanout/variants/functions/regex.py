"""Regular expressions of RE2, matched against complete texts in linear time.

Expressions come from policies and packages, which many people may write. Python's own matcher can
be made to run for hours; RE2 cannot, at the price of lookaround and back references. Syntax:
https://github.com/google/re2/wiki/Syntax
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from fanout.errors import InvalidInput
from fanout.values import Value

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
_PROBLEMS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)


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
