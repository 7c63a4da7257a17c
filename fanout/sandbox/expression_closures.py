"""Simple expressions as closures that return in process what celpy would return.

A closure takes the values that the expression reads from a row, its activation, once,
and computes from these alone. Each node is called at most once, none reads or builds a
text or list beyond a fixed size, and none recurses into data. So the cost is bounded by
the text (1,024 characters) and the size of the activation. Where celpy's result is not
certain, or is an error, the result is `ASK` and celpy evaluates the expression, whose
error messages are used.

celpy converts all values that an expression reads before it evaluates, needed or not.
So a value that celpy could not convert, or that is too large or unusual to be judged
quickly, makes the result of the whole expression `ASK`.

Each operator covers the cases whose result is certain: values of matching types, within 64 bits,
not too long. All others, errors included, raise `UncertainAnswerError`, and celpy
evaluates the expression: it has habits (`true == 1` holds, `1 == true` is an error)
that are not worth imitating. `EvaluationError` is raised where celpy is known to
have an error too, since `&&`, `||` and `has()` continue after one. A Python int is
celpy's int and a float its double; a `bool` is never taken for a number.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fanout.sandbox.free_variables import FreeVariables

INT_LIMIT = 2**63
MAX_TEXT_LENGTH = 1 << 16  # characters of a text, and of all texts in a list or map
MAX_NUMBER_LENGTH = 32  # characters of a text that is read as a number
ORDERED_TYPES = frozenset({bool, float, int, str})
NUMBER_TYPES = frozenset({float, int})  # compared with each other, exactly
# types that celpy compares with a text without an error, as unequal
UNEQUAL_TO_TEXT = frozenset({bool, type(None)})


class EvaluationError(Exception):
    """There is no value: celpy's result is an error, or what an operator makes of one."""


class UncertainAnswerError(Exception):
    """The result is not certain; celpy must evaluate the expression."""


def check_int64(value: int) -> int:
    """Return the number if it fits 64 bits. Raises UncertainAnswerError."""
    if -INT_LIMIT <= value < INT_LIMIT:
        return value
    raise UncertainAnswerError


def add(left: Any, right: Any) -> Any:
    """Add two numbers of one type, or two texts; lists are left to celpy."""
    # `__class__` and not isinstance, here and below: a bool is an int to isinstance,
    # and never to CEL.
    kind = left.__class__
    if kind is right.__class__:
        if kind is str and len(left) + len(right) <= MAX_TEXT_LENGTH:
            return left + right
        if kind is int:
            return check_int64(left + right)
        if kind is float:
            return left + right
    raise UncertainAnswerError


def build_arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Build an operator for two whole numbers or two fractions."""

    def operation(left: Any, right: Any) -> Any:
        kind = left.__class__
        if kind is right.__class__:
            if kind is int:
                return check_int64(compute(left, right))
            if kind is float:
                return compute(left, right)
        raise UncertainAnswerError

    return operation


def divide(left: Any, right: Any) -> Any:
    """Divide; whole numbers towards zero. Division by zero is left to celpy."""
    if right and left.__class__ is right.__class__:
        if left.__class__ is int:
            quotient = abs(left) // abs(right)
            return check_int64(quotient if (left < 0) == (right < 0) else -quotient)
        if left.__class__ is float:
            return left / right
    raise UncertainAnswerError


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder, with the sign of the dividend."""
    if right and left.__class__ is int and right.__class__ is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    raise UncertainAnswerError


def build_comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Build a comparison such as `<` for values of one ordered type, and any two numbers."""

    def operation(left: Any, right: Any) -> bool:
        kind, other = left.__class__, right.__class__
        if (kind is other and kind in ORDERED_TYPES) or (
            kind in NUMBER_TYPES and other in NUMBER_TYPES
        ):
            return compare(left, right)
        raise UncertainAnswerError

    return operation


def is_equal(left: Any, right: Any) -> bool:
    """Compare scalars of one type, numbers, null, and containers of which one is empty."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind in ORDERED_TYPES:
            return bool(left == right)
        if kind is list and len(left) != len(right):
            return False
        if kind is list or kind is dict:
            if left and right:
                raise UncertainAnswerError  # it may be deep
            return not left and not right
        return True  # only null remains
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        return bool(left == right)
    if left is None and other not in NUMBER_TYPES:
        return False
    if right is None and kind not in NUMBER_TYPES:
        return False
    raise UncertainAnswerError


def is_unequal(left: Any, right: Any) -> bool:
    """Negate `is_equal`. Celpy does not tell a list or a map from null, so these are uncertain."""
    if right is None and left.__class__ in (list, dict):
        raise UncertainAnswerError
    if left is None and right.__class__ in (list, dict):
        raise UncertainAnswerError
    return not is_equal(left, right)


def is_in(item: Any, container: Any) -> bool:
    """Return whether a text is a key of a map, or a scalar is in a list (`in`)."""
    kind = item.__class__
    if container.__class__ is dict:
        if kind is str:
            return item in container
        raise UncertainAnswerError
    if container.__class__ is not list or (kind not in ORDERED_TYPES and item is not None):
        raise UncertainAnswerError
    kinds = {each.__class__ for each in container}
    if kind in kinds and any(each.__class__ is kind and each == item for each in container):
        return True
    if kinds <= {kind} or (kind is str and kinds <= UNEQUAL_TO_TEXT | {str}):
        return False
    if item is None and kinds <= {str, bool}:
        return False
    raise UncertainAnswerError


def get_field(owner: Any, name: str) -> Any:
    """Return a field of a map. Raises EvaluationError for anything else, as celpy does."""
    if owner.__class__ is dict and name in owner:
        return owner[name]
    raise EvaluationError


def get_item(container: Any, key: Any) -> Any:
    """Return an item of a list by index, or of a map by key."""
    if container.__class__ is dict and key.__class__ is str:
        if key in container:
            return container[key]
        raise EvaluationError
    if container.__class__ is list and key.__class__ is int and key >= 0:
        if key < len(container):
            return container[key]
        raise EvaluationError
    raise UncertainAnswerError


def build_text_predicate(predicate: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    """Build a predicate on two texts."""

    def operation(text: Any, part: Any) -> bool:
        if text.__class__ is str and part.__class__ is str:
            return predicate(text, part)
        raise UncertainAnswerError

    return operation


def negate_boolean(value: Any) -> bool:
    """Negate a boolean."""
    if value.__class__ is bool:
        return not value
    raise UncertainAnswerError


def negate_number(value: Any) -> Any:
    """Negate a number."""
    if value.__class__ is int:
        return check_int64(-value)
    if value.__class__ is float:
        return -value
    raise UncertainAnswerError


def get_size(value: Any) -> int:
    """Count characters, items or keys; null has size 0, as in celpy."""
    if value.__class__ in (str, list, dict):
        return len(value)
    if value is None:
        return 0
    raise UncertainAnswerError


def to_string(value: Any) -> str:
    """Convert a value that has only one spelling (`string()`)."""
    if value.__class__ is str:
        return value
    if value.__class__ in (int, float):
        return str(value)
    raise UncertainAnswerError


def to_int(value: Any) -> int:
    """Convert a number, cut off towards zero, or decimal digits (`int()`)."""
    if value.__class__ is int:
        return value
    if value.__class__ is float and math.isfinite(value):
        return check_int64(math.trunc(value))
    if value.__class__ is str and len(value) <= MAX_NUMBER_LENGTH and value.isascii():
        digits = value.removeprefix("-")
        if digits.isdigit():
            return check_int64(int(value))
    raise UncertainAnswerError


def to_double(value: Any) -> float:
    """Convert a number (`double()`)."""
    if value.__class__ in (int, float):
        return float(value)
    raise UncertainAnswerError


BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": build_arithmetic(operator.sub),
    "*": build_arithmetic(operator.mul),
    "/": divide,
    "%": remainder,
    "<": build_comparison(operator.lt),
    "<=": build_comparison(operator.le),
    ">": build_comparison(operator.gt),
    ">=": build_comparison(operator.ge),
    "==": is_equal,
    "!=": is_unequal,
    "in": is_in,
    "field": get_field,
    "index": get_item,
    "contains": build_text_predicate(str.__contains__),
    "endsWith": build_text_predicate(str.endswith),
    "startsWith": build_text_predicate(str.startswith),
}
UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "!": negate_boolean,
    "double": to_double,
    "int": to_int,
    "negated": negate_number,
    "size": get_size,
    "string": to_string,
}


MAX_DEPTH = 20  # levels of a list or map that is read as a whole
ITEM_WEIGHT = 16  # least number of characters that an item of it counts as
MISSING: Any = object()  # in place of a value that does not exist


def read_path(row: Mapping[str, Any], name: str, field_path: Sequence[str]) -> Any:
    """Return the value of a variable, or of a field path below it.

    `MISSING` if there is none. Raises UncertainAnswerError.
    """
    if name not in row:
        return MISSING
    value = row[name]
    for step in field_path:
        if value.__class__ is not dict:
            # Only for its error: celpy would convert this value too, although the field is
            # missing.
            normalize_value(value)
            return MISSING
        if step not in value:
            return MISSING
        value = value[step]
    if value.__class__ is str and len(value) <= MAX_TEXT_LENGTH and value.isascii():
        return value  # fast path for most values
    return normalize_value(value)


def normalize_value(value: Any) -> Any:
    """Return the value as celpy has it: 3 for `3.0` in a file. Raises UncertainAnswerError."""
    kind = value.__class__
    if kind is str:
        return _check_text(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return check_int64(value)
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
    remaining = MAX_TEXT_LENGTH
    level = [container]
    # Level by level and not by recursion: deep data must not exhaust the parent's
    # stack.
    for _ in range(MAX_DEPTH):
        nested: list[Any] = []
        for collection in level:
            remaining -= _container_weight(collection, nested)
            if remaining < 0:
                raise UncertainAnswerError
        if not nested:
            return
        level = nested
    raise UncertainAnswerError


def _container_weight(container: Any, nested: list[Any]) -> int:
    """Return the size of a container in characters and items. Adds nested ones to `nested`."""
    weight, items = ITEM_WEIGHT * len(container), container
    if weight > MAX_TEXT_LENGTH:
        raise UncertainAnswerError
    if container.__class__ is dict:
        for key in container:
            if key.__class__ is not str:
                raise UncertainAnswerError
            weight += len(_check_text(key))
        items = container.values()
    for item in items:
        kind = item.__class__
        if kind is dict or kind is list:
            nested.append(item)
        elif kind is float:  # an integral float would have to become an int
            raise UncertainAnswerError
        elif kind is str:
            weight += len(normalize_value(item))
        else:
            normalize_value(item)
    return weight


ASK: Any = object()  # result of a closure: celpy must evaluate the expression

FieldPath = tuple[str, ...]
ClosureNode = Callable[[Sequence[Any]], Any]  # over the values that the expression reads


def build_closure(
    ast: Sequence[Any], free_variables: FreeVariables
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function from a row of variables to plain data or `ASK`."""
    paths = _leaf_paths(free_variables)
    # Most expressions are one path: without the general machinery they take a fraction
    # of the time.
    if ast[0] == "path" and paths == [tuple(ast[1:])]:
        return _build_path_closure(*paths)
    node = _build_node(ast, {path: number for number, path in enumerate(paths)})
    variable_paths = [(path[0], path[1:]) for path in paths]

    def evaluate_row(row: Mapping[str, Any]) -> Any:
        try:
            return _as_response(
                node([read_path(row, name, field_path) for name, field_path in variable_paths])
            )
        except (EvaluationError, UncertainAnswerError):
            return ASK

    return evaluate_row


def _build_path_closure(path: FieldPath) -> Callable[[Mapping[str, Any]], Any]:
    """Build the closure of an expression that is one path, as most are."""
    name, *field_path = path

    def read_row(row: Mapping[str, Any]) -> Any:
        try:
            value = read_path(row, name, field_path)
        except UncertainAnswerError:
            return ASK
        return ASK if value is MISSING else value

    return read_row


def _leaf_paths(free_variables: FreeVariables, parent_path: FieldPath = ()) -> list[FieldPath]:
    """Return the paths of all leaves, whose values are read completely."""
    if not free_variables:
        return [parent_path] if parent_path else []
    return [
        path
        for name, subfields in free_variables.items()
        for path in _leaf_paths(subfields, (*parent_path, name))
    ]


def _as_response(value: Any) -> Any:
    """Return a result as a worker would send it: integral fractions become whole numbers."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int or value is None:
        return value
    return normalize_value(value)


def _build_node(ast: Sequence[Any], numbers: Mapping[FieldPath, int]) -> ClosureNode:
    """Build the closure of a node and all below it. `numbers`: index of each value, by path."""
    node_type, *parts = ast
    if node_type == "value":
        value = parts[0]
        return lambda _: value
    if node_type == "path":
        return _build_value(*_locate_value(tuple(parts), numbers))
    nodes = [_build_node(part, numbers) for part in parts]
    if node_type in UNARY_OPERATORS:
        operation, [operand] = UNARY_OPERATORS[node_type], nodes
        return lambda values: operation(operand(values))
    if node_type in NODE_BUILDERS:
        return NODE_BUILDERS[node_type](*nodes)
    return _build_binary(BINARY_OPERATORS[node_type], *nodes)


def _locate_value(path: FieldPath, numbers: Mapping[FieldPath, int]) -> tuple[int, FieldPath]:
    """Return the index of the value that contains a path, and the rest of the path."""
    length = next(length for length in range(1, len(path) + 1) if path[:length] in numbers)
    return numbers[path[:length]], path[length:]


def _build_value(number: int, field_path: FieldPath) -> ClosureNode:
    def read_value(values: Sequence[Any]) -> Any:
        value = values[number]
        if value is MISSING:
            raise EvaluationError
        return value

    def read_field(values: Sequence[Any]) -> Any:
        value = values[number]
        for name in field_path:
            if value.__class__ is not dict or name not in value:
                raise EvaluationError
            value = value[name]
        return value

    return read_field if field_path else read_value


def _build_has(node: ClosureNode) -> ClosureNode:
    def has(values: Sequence[Any]) -> bool:
        try:
            node(values)
        except EvaluationError:
            return False
        return True

    return has


def _without_faults(node: ClosureNode) -> ClosureNode:
    """Make faults of a node uncertain where celpy does not simply return an error."""

    def certain(values: Sequence[Any]) -> Any:
        try:
            return node(values)
        except EvaluationError:
            raise UncertainAnswerError from None

    return certain


def _build_list(*nodes: ClosureNode) -> ClosureNode:
    certain = [_without_faults(node) for node in nodes]
    return lambda values: [each(values) for each in certain]


def _build_map(*nodes: ClosureNode) -> ClosureNode:
    items = _build_list(*nodes)

    def node(values: Sequence[Any]) -> dict[str, Any]:
        keys_and_values = items(values)
        return dict(zip(keys_and_values[0::2], keys_and_values[1::2], strict=True))

    return node


def _build_conditional(
    condition: ClosureNode, if_true: ClosureNode, if_false: ClosureNode
) -> ClosureNode:
    def node(values: Sequence[Any]) -> Any:
        try:
            chosen = condition(values)
        except EvaluationError:
            # Its value is not used. celpy evaluates this branch even so, and that may raise an
            # uncertain result.
            if_true(values)
            raise
        if chosen is True:
            return if_true(values)
        if chosen is False:
            return if_false(values)
        raise UncertainAnswerError

    return node


def _build_logic(left: ClosureNode, right: ClosureNode, *, deciding: bool) -> ClosureNode:
    """Build `&&` (decided by false) or `||` (by true), which absorb faults.

    celpy evaluates both sides, and returns a value that is no boolean beside one that
    decides nothing.
    """

    def node(values: Sequence[Any]) -> Any:
        try:
            left_value = left(values)
        except EvaluationError:
            # The right side is evaluated although the left one failed: CEL lets a deciding
            # value absorb errors.
            if right(values) is deciding:
                return deciding
            raise
        try:
            right_value = right(values)
        except EvaluationError:
            if left_value is deciding:
                return deciding
            raise
        if left_value is deciding or right_value is deciding:
            return deciding
        if left_value is (not deciding):
            return right_value
        if right_value is (not deciding):
            return left_value
        raise EvaluationError

    return node


def _build_binary(
    operation: Callable[[Any, Any], Any], left: ClosureNode, right: ClosureNode
) -> ClosureNode:
    def node(values: Sequence[Any]) -> Any:
        try:
            left_value = left(values)
        except EvaluationError:
            right(values)  # celpy evaluates both; the right one may be uncertain
            raise
        return operation(left_value, right(values))

    return node


def _build_remainder(left: ClosureNode, right: ClosureNode) -> ClosureNode:
    """Build `%`; a text on the left is uncertain, since celpy formats it like Python."""
    return _build_binary(BINARY_OPERATORS["%"], _without_faults(left), _without_faults(right))


NODE_BUILDERS: dict[str, Callable[..., ClosureNode]] = {
    "%": _build_remainder,
    "&&": partial(_build_logic, deciding=False),
    "?:": _build_conditional,
    "has": _build_has,
    "list": _build_list,
    "map": _build_map,
    "||": partial(_build_logic, deciding=True),
}
