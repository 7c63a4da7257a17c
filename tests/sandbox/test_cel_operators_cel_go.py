"""Random expressions, with valid and invalid operands, have the values that cel-go gives them.

Where cel-go goes beyond the specification (decision 0103), the generator leaves it out, or an error
that is one of these is accepted.
"""

import json
import math
import re
import subprocess
from random import Random

import pytest
from sandbox.cel_cases import CASES, ERROR, REFUSED
from servers.build import cel_go_folder

from fanout.sandbox import cel_operators
from fanout.sandbox.cel_operators import CelType, Duration, Timestamp, from_key, type_of
from fanout.sandbox.cel_worker import CelEngine
from fanout.sandbox.worker_protocol import RefusedError

pytestmark = pytest.mark.cel_go
ENGINE = CelEngine()
NO_ANSWER = "no answer"
EXAMPLES = 1500  # expressions for each seed
# Errors of the specification for which cel-go has a value.
ONLY_ERRORS_HERE = re.compile(
    r"has\(\) cannot ask|cannot be the key|is twice in the map|'-' cannot be applied to a duration"
    r"|a duration cannot be converted by int|a list cannot be conv|a time zone"
)

ROW = {
    "a": {
        "text": "ab",
        "number": 7,
        "fraction": 0.5,
        "truth": True,
        "none": None,
        "list": ["a", "b", "ab"],
        "numbers": [1, 2, 7],
        "mixed": ["a", 1, True, None, 1.5, [1], {"a": 1}],
        "map": {"a": "b"},
    }
}
# Maps have one key: cel-go goes through several in any order.
LEAVES = {
    "text": ["a.text", "'a'", "'ab'", "''", "'7'", "'-12'", "'true'", "'æ\\U0001F600'", "a.map.a"],
    "number": ["a.number", "0", "1", "-3", "7", "9223372036854775807", "-9223372036854775808"],
    "small": ["a.number", "0", "1", "-3", "7"],
    "unsigned": ["0u", "1u", "7u", "18446744073709551615u"],
    "fraction": ["a.fraction", "1.5", "-0.0", "2.0", "1e300", "1e-7", "1234567.0"],
    "truth": ["a.truth", "true", "false"],
    "list": ["a.list", "a.numbers", "a.mixed", "[]", "['a', 1]", "[1, 2.0, 3u]"],
    "map": ["a.map", "{}", "{'a': 'b'}", "{1: 'x'}", "{true: 'y'}", "{2u: 1}"],
    "bytes": ["b'a'", "b'\\xff'", "b''"],
    "duration": ["duration('1h')", "duration('-1.5s')", "duration('0')", "duration('1ms')"],
    "timestamp": ["timestamp(0)", "timestamp('2024-02-29T23:59:58.123Z')", "timestamp(-1)"],
    "type": ["int", "string", "type", "google.protobuf.Duration", "null_type"],
    "error": ["a.gone", "1 / 0", "a.none.x", "nobody", "a.list[9]", "a.map['z']", "int('x')"],
    "none": ["null", "a.none"],
}
# {kind}: an expression of that kind mostly. {x}: a name that a macro binds.
PRODUCTIONS = {
    "text": ["({text} + {text})", "string({any})", "string({duration})", "string({timestamp})",
             "{list}[{small}]", "{map}[{text}]", "({truth} ? {text} : {text})"],
    "number": ["({number} + {number})", "({number} - {number})", "({number} * {number})",
               "({number} / {number})", "({number} % {number})", "-({number})", "size({list})",
               "{text}.size()", "size({map})", "size({bytes})", "int({text})", "int({fraction})",
               "int({unsigned})", "int({timestamp})", "{timestamp}.getFullYear()",
               "{timestamp}.getMonth()", "{timestamp}.getDayOfYear()", "{timestamp}.getDayOfWeek()",
               "{timestamp}.getHours('+02:30')", "{timestamp}.getDate('Europe/Oslo')",
               "{duration}.getHours()", "{duration}.getMinutes()", "{duration}.getSeconds()"],
    "small": ["size({list})", "({small} % 7)"],
    "unsigned": ["({unsigned} + {unsigned})", "({unsigned} - {unsigned})", "uint({small})",
                 "({unsigned} * {unsigned})", "({unsigned} % {unsigned})", "uint({text})"],
    "fraction": ["({fraction} + {fraction})", "({fraction} * {fraction})", "-({fraction})",
                 "({fraction} / {fraction})", "double({text})", "double({small})"],
    "truth": ["({any} == {any})", "({any} != {any})", "({number} < {number})", "({text} <= {text})",
              "({fraction} > {small})", "({unsigned} >= {small})", "({any} < {any})",
              "({truth} && {truth})", "({truth} || {truth})", "!({truth})", "({any} in {list})",
              "({any} in {map})", "({number} == {unsigned})", "({list} == {list})", "bool({text})",
              "({map} == {map})", "({timestamp} < {timestamp})", "({duration} == {duration})",
              "{text}.startsWith({text})", "{text}.endsWith({text})", "{text}.contains({text})",
              "{text}.matches({text})", "has(a.text)", "has(a.gone)", "has(a.gone.x)",
              "has(a.map.a)", "(type({any}) == {type})", "({any} || {truth})", "({truth} && {any})",
              "{list}.all({x}, {body})", "{list}.exists({x}, {body})", "{map}.all({x}, {body})",
              "{list}.exists_one({x}, {body})"],
    "list": ["[{any}, {any}]", "({list} + {list})", "{list}.map({x}, {value})",
             "{list}.filter({x}, {body})", "{map}.map({x}, {x})"],
    "map": ["{{'a': {any}}}", "{{{text}: {any}}}", "{{{small}: {text}}}"],
    "bytes": ["({bytes} + {bytes})", "bytes({text})"],
    "duration": ["({duration} + {duration})", "({timestamp} - {timestamp})", "duration({text})"],
    "timestamp": ["({timestamp} + {duration})", "({timestamp} - {duration})", "timestamp({small})"],
    "type": ["type({any})"],
    "error": ["({truth} + {number})", "{text}.text", "{list}['a']"],
    "none": ["({truth} ? null : {any})"],
}  # fmt: skip
KINDS = [*LEAVES]
FITTING = 0.9  # share of operands of the kind that an operator has a meaning for


class ExpressionGenerator:
    """Generator of expressions, whose operands are of a fitting kind mostly."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def expression(self, kind: str = "any", depth: int = 3, names: tuple[str, ...] = ()) -> str:
        """Return an expression so many operators deep."""
        if kind == "any" or self._random.random() > FITTING:
            kind = self._random.choice(KINDS)
        if names and self._random.random() < 0.2:
            return self._random.choice(names)
        if not depth or self._random.random() < 0.15:
            return self._random.choice(LEAVES[kind])
        production = self._random.choice(PRODUCTIONS[kind])
        name = f"x{len(names)}"
        if "{x}" in production and len(names) == 2:  # macros are nested twice at most
            return self._random.choice(LEAVES[kind])

        def fill(match: re.Match[str]) -> str:
            part = match[1]
            if part == "x":
                return name
            if part in ("body", "value"):
                kind = "truth" if part == "body" else "any"
                return self.expression(kind, depth - 1, (*names, name))
            return self.expression(part, depth - 1, names)

        filled = re.sub(r"(?<!\{)\{([a-z]+)\}", fill, production.replace("{{{", "{{ {"))
        return filled.replace("{{", "{").replace("}}", "}") if "{{" in production else filled


def ask_cel_go(texts: list[str], rows: list[dict]) -> list:
    """Return what cel-go answers: the type and value, or that it is an error."""
    lines = [json.dumps({"text": text, "row": row}) for text, row in zip(texts, rows, strict=True)]
    done = subprocess.run(
        [str(cel_go_folder() / "celgo")],
        input="".join(f"{line}\n" for line in lines),
        text=True,
        capture_output=True,
        check=True,
    )
    return [normal(json.loads(line)) for line in done.stdout.splitlines()]


def normal(encoded: list) -> object:
    """Bring an answer of cel-go into one form: keys of maps have no order."""
    kind, value = encoded
    if kind == "error" and not value.startswith("internal error"):
        return "error"
    if kind in ("error", "syntax"):  # it fails by itself, or refuses what is not evaluated
        return NO_ANSWER
    if kind == "list":
        return [kind, [normal(item) for item in value]]
    if kind == "map":
        return [kind, sorted([[normal(key), normal(item)] for key, item in value], key=repr)]
    return [kind, repr(float(value))] if kind == "double" else [kind, value]


def encode(value: object) -> object:
    """Return a value as the program encodes it."""
    match value:
        case None:
            return ["null_type", ""]
        case bool() | str():
            return [type_of(value).name, value]
        case int():
            return [type_of(value).name, str(int(value))]
        case float():
            return ["double", "nan" if math.isnan(value) else repr(value)]
        case bytes():
            return ["bytes", value.hex()]
        case Duration():
            return ["duration", str(value.nanoseconds)]
        case Timestamp():
            seconds, rest = divmod(value.nanoseconds, 10**9)
            return ["timestamp", f"{seconds} {rest}"]
        case CelType():
            return ["type", value.name]
        case list():
            return ["list", [encode(item) for item in value]]
        case dict():
            pairs = [[encode(from_key(key)), encode(item)] for key, item in value.items()]
            return ["map", sorted(pairs, key=repr)]
    raise AssertionError(value)


def answer(text: str, row: dict) -> object:
    try:
        return encode(ENGINE.compute(text, row))
    except RefusedError as refusal:
        assert refusal.reason in ("ExpressionError", "LimitExceeded"), refusal
        return "error"


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_have_the_values_of_cel_go(seed, monkeypatch):
    problems: list[str] = []
    error_init = cel_operators.EvaluationError.__init__

    def note(error, problem):
        problems.append(problem)
        error_init(error, problem)

    monkeypatch.setattr(cel_operators.EvaluationError, "__init__", note)
    generator = ExpressionGenerator(seed)
    texts = [text for text in (generator.expression() for _ in range(EXAMPLES)) if is_taken(text)]
    assert len(texts) > EXAMPLES / 2
    different, values = [], 0
    for text, theirs in zip(texts, ask_cel_go(texts, [ROW] * len(texts)), strict=True):
        problems.clear()
        ours = answer(text, ROW)
        values += ours != "error"
        # An error that && or || absorbed may be the one that cel-go has not.
        is_known = ours == "error" and any(map(ONLY_ERRORS_HERE.search, problems))
        if ours != theirs and not is_known and theirs != NO_ANSWER:
            different.append((text, ours, theirs, problems[-1:]))
    assert sorted(different, key=lambda it: len(it[0]))[:5] == []
    assert values > EXAMPLES / 5


def is_taken(text: str) -> bool:
    """Whether fanout takes the text; cel-go reads what follows has() as part of its argument."""
    if re.search(r"has\([a-z.]*\)[.\[]", text):
        return False
    try:
        ENGINE.find_free_variables(text)
    except RefusedError:
        return False
    return True


# Expressions of the table for which cel-go has another answer than the specification.
BEYOND = re.compile(
    r"has\(|\{(1\.0|null|\[\]|b'a'|'a': 1, 'a'|1: 1, 1u): ?|9007199254740993|int\(duration"
    r"|-duration|getMilliseconds|\+01:00'\)\)"
)


def test_cel_go_agrees_with_the_table():
    cases = [it for it in CASES if it[2] is not REFUSED and not BEYOND.search(it[1])]
    answers = ask_cel_go([text for _, text, _, _ in cases], [row for *_, row in cases])
    assert [
        (text, value, theirs)
        for (_, text, value, _), theirs in zip(cases, answers, strict=True)
        if theirs not in ("error" if value is ERROR else encode(value), NO_ANSWER)
    ] == []
