"""Simple expressions as closures that compute in process what a worker would.

A closure takes the values that the expression reads from a row, its activation, once,
and computes from these alone, with the operators that a worker has (`cel_operators`). Each
node is called at most once, none reads or builds a text or list beyond a fixed size, and
none recurses into data. So the cost is bounded by the text (1,024 characters) and the size
of the activation. Where the cost would not be bounded, and for every error, the result is
`ASK` and a worker evaluates the expression, whose error messages are used.

A worker converts all values that an expression reads before it evaluates, needed or not.
So a value that cannot be converted, or that is too large or unusual to be judged quickly,
makes the result of the whole expression `ASK`.

`EvaluationError` is an error of CEL, after which `&&` and `||` may continue;
`UncertainAnswerError` ends the closure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fanout.sandbox import cel_operators
from fanout.sandbox.cel_operators import INT_LIMIT, EvaluationError, no_overload
from fanout.sandbox.free_variables import METADATA, METADATA_MAPS, FreeVariables, complete_value
from fanout.selection.variant_spec import ASK

FieldPath = tuple[str, ...]
# Characters of a text, and of all texts in a list or map: so that no evaluation takes longer than
# what a budget does not count (`FREE_STEPS`), which nobody counts here.
MAX_TEXT_LENGTH = 1 << 12
MAX_COMPARED = 16  # items of a list that are compared one by one


class UncertainAnswerError(Exception):
    """The result is not computed here; a worker must evaluate the expression."""


def add(left: Any, right: Any) -> Any:
    """Add as CEL does; lists and long texts are left to a worker."""
    kind = left.__class__
    if kind is list or (
        kind is str is right.__class__ and len(left) + len(right) > MAX_TEXT_LENGTH
    ):
        raise UncertainAnswerError
    return cel_operators.add(left, right)


def is_equal(left: Any, right: Any) -> bool:
    """Compare as CEL does; two lists or maps of one size may be deep."""
    kind = left.__class__
    if (kind is list or kind is dict) and kind is right.__class__ and left and right:
        raise UncertainAnswerError
    return cel_operators.is_equal(left, right)


def is_in(item: Any, container: Any) -> bool:
    """Return whether a scalar is in a list or the key of a map (`in`)."""
    if (kind := item.__class__) is list or kind is dict:
        raise UncertainAnswerError
    if kind is str and container.__class__ is list:
        return item in container
    if container.__class__ is list and len(container) > MAX_COMPARED:
        raise UncertainAnswerError
    return cel_operators.is_in(item, container)


BINARY_OPERATORS = cel_operators.BINARY_OPERATORS | {
    "+": add,
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "in": is_in,
    "field": cel_operators.get_field,
}
UNARY_OPERATORS = cel_operators.UNARY_OPERATORS


MAX_DEPTH = 20  # levels of a list or map that is read as a whole
ITEM_WEIGHT = 16  # least number of characters that an item of it counts as
MISSING: Any = object()  # in place of a field that its map lacks
NO_MAP: Any = object()  # in place of a field of what is no map, or does not exist


def read_path(row: Mapping[str, Any], name: str, field_path: FieldPath) -> Any:
    """Return the value of a variable, or of a field path below it.

    `MISSING` or `NO_MAP` if there is none. Raises UncertainAnswerError.
    """
    if name not in row:
        return NO_MAP
    value = row[name]
    for number, step in enumerate(field_path, start=1):
        if value.__class__ is not dict:
            # Only for its error: a worker would convert this value too, although the field is
            # missing.
            normalize_value(value)
            return NO_MAP
        if (value := value.get(step, MISSING)) is None or value is MISSING:
            if step in METADATA_MAPS and field_path[: number - 1] == METADATA:
                value = {}
            elif value is MISSING:
                return MISSING if number == len(field_path) else NO_MAP
    if value.__class__ is str and len(value) <= MAX_TEXT_LENGTH and value.isascii():
        return value  # fast path for most values
    return normalize_value(complete_value(value, field_path))


def normalize_value(value: Any) -> Any:
    """Return the value as CEL has it: 3 for `3.0` in a file. Raises UncertainAnswerError."""
    if (kind := value.__class__) is str:
        return _check_text(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        if -INT_LIMIT <= value < INT_LIMIT:
            return value
        raise UncertainAnswerError
    if kind is float:
        if not math.isfinite(value):
            raise UncertainAnswerError
        return int(value) if value.is_integer() and abs(value) < INT_LIMIT else value
    if kind is dict or kind is list:
        _check_container(value)
        return value
    raise UncertainAnswerError


def _check_text(text: str) -> str:
    """Return the text if it is short enough and can be encoded. Raises UncertainAnswerError."""
    if len(text) > MAX_TEXT_LENGTH:
        raise UncertainAnswerError
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UncertainAnswerError from None
    return text


def _check_container(container: Any) -> None:
    """Raise UncertainAnswerError if a container needs conversion, or is too large or too deep."""
    remaining = MAX_TEXT_LENGTH  # characters, as which items count, too
    level = [container]
    # Level by level and not by recursion: deep data must not exhaust the parent's stack.
    for _ in range(MAX_DEPTH):
        nested: list[Any] = []
        for collection in level:
            remaining -= ITEM_WEIGHT * len(collection)
            if remaining < 0:
                raise UncertainAnswerError
            items = collection
            if collection.__class__ is dict:
                if any(key.__class__ is not str for key in collection):
                    raise UncertainAnswerError
                remaining -= sum(len(_check_text(key)) for key in collection)
                items = collection.values()
            for item in items:
                if (kind := item.__class__) is dict or kind is list:
                    nested.append(item)
                elif kind is float:  # an integral float would have to become an int
                    raise UncertainAnswerError
                elif kind is str:
                    remaining -= len(_check_text(item))
                else:
                    normalize_value(item)
        if remaining < 0:
            raise UncertainAnswerError
        if not nested:
            return
        level = nested
    raise UncertainAnswerError


ClosureNode = Callable[[Sequence[Any]], Any]  # over the values that the expression reads


def build_closure(
    ast: Sequence[Any], free_variables: FreeVariables
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function from a row of variables to plain data or `ASK`."""
    paths = _leaf_paths(free_variables)
    # Most expressions are one path: without the general machinery they take a fraction of the time.
    if ast[0] == "path" and paths == [tuple(ast[1:])]:
        name, field_path = paths[0][0], paths[0][1:]

        def read_row(row: Mapping[str, Any]) -> Any:
            try:
                value = read_path(row, name, field_path)
            except UncertainAnswerError:
                return ASK
            return ASK if value is MISSING or value is NO_MAP else value

        return read_row
    node = _build_node(ast, {path: number for number, path in enumerate(paths)})
    variable_paths = [(path[0], path[1:]) for path in paths]

    def evaluate_row(row: Mapping[str, Any]) -> Any:
        try:
            value = node([read_path(row, name, field_path) for name, field_path in variable_paths])
            kind = value.__class__
            if kind is str or kind is bool or kind is int or value is None:
                return value
            return normalize_value(value)  # integral fractions become whole numbers
        except (EvaluationError, UncertainAnswerError):
            return ASK

    return evaluate_row


def _leaf_paths(free_variables: FreeVariables, parent_path: FieldPath = ()) -> list[FieldPath]:
    """Return the paths of all leaves, whose values are read completely."""
    if not free_variables:
        return [parent_path] if parent_path else []
    return [
        path
        for name, subfields in free_variables.items()
        for path in _leaf_paths(subfields, (*parent_path, name))
    ]


def _build_node(ast: Sequence[Any], numbers: Mapping[FieldPath, int]) -> ClosureNode:
    """Build the closure of a node and all below it. `numbers`: index of each value, by path."""
    node_type, *parts = ast
    if node_type == "value":
        value = parts[0]
        return lambda _: value
    if node_type == "path":
        return _build_value(*_locate_value(tuple(parts), numbers))
    if node_type == "has":
        [[owner_type, *owner_parts]] = parts
        if owner_type == "path":
            number, field_path = _locate_value(tuple(owner_parts), numbers)
            if not field_path:

                def has(values: Sequence[Any]) -> bool:
                    if values[number] is NO_MAP:  # the map that is asked must exist
                        raise EvaluationError("it has no value")
                    return values[number] is not MISSING

                return has
            owner_node, name = _build_value(number, field_path[:-1]), field_path[-1]
        else:
            owner, [_, name] = owner_parts
            owner_node = _build_node(owner, numbers)
        return lambda values: cel_operators.has_field(owner_node(values), name)
    nodes = [_build_node(part, numbers) for part in parts]
    if node_type in UNARY_OPERATORS:
        operation, [operand] = UNARY_OPERATORS[node_type], nodes
        return lambda values: operation(operand(values))
    if node_type == "list":
        return lambda values: [each(values) for each in nodes]
    if node_type == "map":
        pairs = list(zip(nodes[0::2], nodes[1::2], strict=True))
        return lambda values: {key(values): value(values) for key, value in pairs}
    if node_type in NODE_BUILDERS:
        return NODE_BUILDERS[node_type](*nodes)
    return build_binary(BINARY_OPERATORS[node_type], *nodes)


def _locate_value(path: FieldPath, numbers: Mapping[FieldPath, int]) -> tuple[int, FieldPath]:
    """Return the index of the value that contains a path, and the rest of the path."""
    length = next(length for length in range(1, len(path) + 1) if path[:length] in numbers)
    return numbers[path[:length]], path[length:]


def _build_value(number: int, field_path: FieldPath) -> ClosureNode:
    def read_value(values: Sequence[Any]) -> Any:
        if (value := values[number]) is MISSING or value is NO_MAP:
            raise EvaluationError("it has no value")
        return value

    def read_field(values: Sequence[Any]) -> Any:
        value = read_value(values)
        for name in field_path:
            if value.__class__ is not dict or name not in value:
                raise EvaluationError("it has no value")
            value = value[name]
        return value

    return read_field if field_path else read_value


def build_conditional(
    condition: ClosureNode, if_true: ClosureNode, if_false: ClosureNode
) -> ClosureNode:
    """Build `? :`, which evaluates one of its two branches."""

    def node(values: Sequence[Any]) -> Any:
        if (chosen := condition(values)) is True:
            return if_true(values)
        if chosen is False:
            return if_false(values)
        raise no_overload("?:", chosen)

    return node


def build_logic(left: ClosureNode, right: ClosureNode, *, deciding: bool) -> ClosureNode:
    """Build `&&` (decided by false) or `||` (by true): a deciding value absorbs errors."""

    def node(values: Sequence[Any]) -> Any:
        try:
            left_value = left(values)
        except EvaluationError as error:
            if right(values) is deciding:
                return deciding
            raise error from None
        if left_value is deciding:
            return deciding
        right_value = right(values)
        if right_value is deciding or (
            left_value.__class__ is bool and right_value.__class__ is bool
        ):
            return right_value
        raise no_overload("||" if deciding else "&&", left_value, right_value)

    return node


def build_binary(
    operation: Callable[[Any, Any], Any], left: ClosureNode, right: ClosureNode
) -> ClosureNode:
    """Build an operator that needs both its operands."""
    return lambda values: operation(left(values), right(values))


NODE_BUILDERS: dict[str, Callable[..., ClosureNode]] = {
    "&&": partial(build_logic, deciding=False),
    "?:": build_conditional,
    "||": partial(build_logic, deciding=True),
}
