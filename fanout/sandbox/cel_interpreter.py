"""Evaluation of complete CEL expressions, as closures over celpy's shortened tree.

celpy parses; its evaluator is not used, because it deviates from the specification in too
many places. The argument of a closure is a tuple: the row, and the value of each name that
macros around it bind.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import re2

from fanout.sandbox.cel_operators import (
    BINARY_OPERATORS,
    UNARY_OPERATORS,
    EvaluationError,
    build_map,
    describe_kind,
    get_item,
    list_items,
    no_overload,
    to_bool,
    to_bytes,
    to_uint,
    type_of,
)
from fanout.sandbox.cel_syntax import (
    SIGNS,
    Tree,
    arguments_of,
    bare_name,
    child_of,
    find_path,
    find_type,
    is_rooted,
    read_literal,
    subtrees,
    token_of,
)
from fanout.sandbox.cel_times import (
    PARTS_OF_TIMESTAMPS,
    build_part,
    format_value,
    to_duration,
    to_timestamp,
)
from fanout.sandbox.expression_closures import build_binary, build_conditional, build_logic
from fanout.sandbox.free_variables import MACROS
from fanout.sandbox.worker_protocol import MAX_STEPS, RefusedError

Node = Callable[[Sequence[Any]], Any]
MAX_SOURCE_LENGTH = 120  # characters of a name or of the source that are repeated
ITEMS_PER_STEP = 64  # items of a list or map, which an operator in a macro goes through
CHARACTERS_PER_STEP = 1024
_LARGE_TYPES = frozenset({bytes, dict, list, str})
# Those that go through what they are given. The others take as long for any value.
_WEIGHED = frozenset({"!=", "+", "==", "bytes", "contains", "in", "matches", "string"})


class StepCounter:
    """Steps of one evaluation, the same on every machine.

    A step is a node of a macro's body, for each item, or a part of a large value that it handles.
    What is outside of macros is evaluated once, so its cost is bounded by the length of the text.
    """

    def __init__(self) -> None:
        self.taken = 0

    def add(self, number: int) -> None:
        """Count steps. Raises RefusedError, which no operator absorbs, beyond `MAX_STEPS`."""
        self.taken += number
        if self.taken > MAX_STEPS:
            raise RefusedError("LimitExceeded", f"it takes more than {MAX_STEPS:,} steps")

    def count_items(self, items: Iterable[Any], steps: int) -> Iterator[Any]:
        """Yield the items, each of which costs so many steps."""
        for item in items:
            self.taken += steps
            if self.taken > MAX_STEPS:
                self.add(0)
            yield item

    def weigh(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of an operator or a call; one that counts large arguments."""
        if name not in _WEIGHED:
            return function

        def call(first: Any, *others: Any) -> Any:
            # Called for each item of a macro, and hardly ever with a large value.
            if first.__class__ in _LARGE_TYPES and len(first) >= ITEMS_PER_STEP:
                self.add(_count_steps(first))
            for other in others:
                if other.__class__ in _LARGE_TYPES and len(other) >= ITEMS_PER_STEP:
                    self.add(_count_steps(other))
            return function(first, *others)

        return call


def _count_steps(value: Any) -> int:
    if (kind := value.__class__) is list or kind is dict:
        return len(value) // ITEMS_PER_STEP
    return len(value) // CHARACTERS_PER_STEP


def match_pattern(text: Any, pattern: Any) -> bool:
    """Return whether a pattern of RE2 matches a part of the text (`matches()`)."""
    if text.__class__ is not str or pattern.__class__ is not str:
        raise no_overload("matches", text, pattern)
    options = re2.Options()
    options.log_errors = False  # RE2 would write them to standard error
    try:
        return re2.search(pattern, text, options) is not None
    except re2.error:
        raise EvaluationError("the pattern of matches() is no regular expression of RE2") from None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bool": to_bool,
    "bytes": to_bytes,
    "double": UNARY_OPERATORS["double"],
    "duration": to_duration,
    "dyn": lambda value: value,
    "int": UNARY_OPERATORS["int"],
    "matches": match_pattern,
    "size": UNARY_OPERATORS["size"],
    "string": format_value,
    "timestamp": to_timestamp,
    "type": type_of,
    "uint": to_uint,
}
METHODS: dict[str, Callable[..., Any]] = {
    **{name: build_part(name) for name in (*PARTS_OF_TIMESTAMPS, "getMilliseconds")},
    **{name: BINARY_OPERATORS[name] for name in ("contains", "endsWith", "startsWith")},
    "matches": match_pattern,
    "size": UNARY_OPERATORS["size"],
}


def build_evaluator(tree: Tree, text: str, steps: StepCounter) -> Callable[[dict[str, Any]], Any]:
    """Return a function from a row of variables to the value.

    It counts its steps, and raises EvaluationError or RefusedError.
    """
    node = _Builder(text, steps).build(tree, ())
    return lambda row: node((row,))


class _Builder:
    """Builder of the closures of one text, which errors repeat parts of."""

    def __init__(self, text: str, steps: StepCounter) -> None:
        self._text = text
        self._steps = steps
        self._built = 0  # nodes

    def build(self, tree: Tree, bound: tuple[str, ...]) -> Node:
        """Build the closure of a tree. `bound`: the names that macros around it bind."""
        self._built += 1
        if (path := find_path(tree)) and (cel_type := find_type(path, bound)) is not None:
            return lambda _: cel_type
        node = self._build_node(tree, bound)

        def evaluate(scope: Sequence[Any]) -> Any:
            try:
                return node(scope)
            except EvaluationError as error:
                # Errors of nodes below this one have their own position.
                if error.column is None and not tree.meta.empty:
                    error.column = tree.meta.column
                raise

        return evaluate

    def _build_node(self, tree: Tree, bound: tuple[str, ...]) -> Node:
        match str(tree.data):
            case "primary":
                return self._build_primary(tree, bound)
            case "member_dot":
                return self._build_field(tree, bound, is_asked_for=False)
            case "member_index":
                return self._build_index(tree, bound)
            case "member_dot_arg":
                if (name := str(token_of(tree, 1))) in MACROS:
                    return self._build_macro(tree, bound)
                nodes = self._build_all([child_of(tree, 0), *arguments_of(tree)], bound)
                method = METHODS[name]
                return _apply(self._steps.weigh(name, method) if bound else method, nodes)
            case "conditionaland" | "conditionalor" as rule:
                operands = self._build_all(subtrees(tree), bound)
                return build_logic(*operands, deciding=rule == "conditionalor")
            case "expr":
                return build_conditional(*self._build_all(subtrees(tree), bound))
        # An operator, of which celpy keeps the sign and the left operand in one node.
        sign, right = subtrees(tree)
        operands = self._build_all([*subtrees(sign), right], bound)
        name = SIGNS[sign.data]
        if len(operands) == 1:
            return _apply(UNARY_OPERATORS[name], operands)
        operation = BINARY_OPERATORS[name]
        return build_binary(self._steps.weigh(name, operation) if bound else operation, *operands)

    def _build_all(self, trees: Iterable[Tree], bound: tuple[str, ...]) -> list[Node]:
        return [self.build(tree, bound) for tree in trees]

    def _build_field(self, tree: Tree, bound: tuple[str, ...], *, is_asked_for: bool) -> Node:
        """Build a node that reads a field, or that tells whether there is one (`has()`)."""
        owner, name = self.build(child_of(tree, 0), bound), str(token_of(tree, 1))
        source = self._source(child_of(tree, 0))

        def read(scope: Sequence[Any]) -> Any:
            value = owner(scope)
            if value.__class__ is not dict:
                kind = describe_kind(value)
                raise EvaluationError(f"{source} is {kind}, it has no field {_shorten(name)!r}")
            if name not in value:
                raise EvaluationError(f"{source} has no field {_shorten(name)!r}")
            return value[name]

        def has(scope: Sequence[Any]) -> bool:
            value = owner(scope)
            if value.__class__ is not dict:
                kind = describe_kind(value)
                raise EvaluationError(f"{source} is {kind}, has() cannot ask for a field of it")
            return name in value

        return has if is_asked_for else read

    def _build_index(self, tree: Tree, bound: tuple[str, ...]) -> Node:
        owner, key = self._build_all(subtrees(tree), bound)
        source = self._source(child_of(tree, 0))

        def node(scope: Sequence[Any]) -> Any:
            container, key_value = owner(scope), key(scope)
            try:
                return get_item(container, key_value)
            except EvaluationError:
                if container.__class__ is dict and key_value.__class__ is str:
                    raise EvaluationError(f"{source} has no key {_shorten(key_value)!r}") from None
                if container.__class__ is list and key_value.__class__ is int:
                    raise EvaluationError(f"{source} has no item with that index") from None
                raise

        return node

    def _build_macro(self, tree: Tree, bound: tuple[str, ...]) -> Node:
        """Build a macro, which counts the nodes of its body for each item."""
        name, (variable, condition) = str(token_of(tree, 1)), arguments_of(tree)
        collection = self.build(child_of(tree, 0), bound)
        built_before = self._built
        body = self.build(condition, (*bound, bare_name(variable) or ""))
        count_items, nodes = self._steps.count_items, self._built - built_before

        def items(scope: Sequence[Any]) -> Iterator[Any]:
            return count_items(list_items(collection(scope)), nodes)

        return partial(MACRO_EVALUATORS[name], items, body)

    def _build_primary(self, tree: Tree, bound: tuple[str, ...]) -> Node:
        inner = child_of(tree, 0)
        match str(inner.data):
            case "literal":
                value = read_literal(token_of(inner, 0))
                return lambda _: value
            case "ident_arg":
                name, arguments = str(token_of(inner, 0)), [*arguments_of(inner)]
                if name == "has":
                    return self._build_field(arguments[0], bound, is_asked_for=True)
                function = self._steps.weigh(name, FUNCTIONS[name]) if bound else FUNCTIONS[name]
                return _apply(function, self._build_all(arguments, bound))
            case "list_lit":
                items = self._build_all(arguments_of(inner), bound)
                return lambda scope: [item(scope) for item in items]
            case "map_lit":
                pairs = next(subtrees(inner), None)
                nodes = self._build_all(subtrees(pairs) if pairs is not None else (), bound)
                return lambda scope: build_map(
                    [key(scope) for key in nodes[0::2]], [value(scope) for value in nodes[1::2]]
                )
        name = str(token_of(inner, 0))
        if name in bound and not is_rooted(tree):  # the innermost that a macro binds
            number = len(bound) - bound[::-1].index(name)
            return lambda scope: scope[number]

        def read_variable(scope: Sequence[Any]) -> Any:
            if name not in scope[0]:
                raise EvaluationError(f"there is no variable {_shorten(name)!r}")
            return scope[0][name]

        return read_variable

    def _source(self, tree: Tree) -> str:
        """Return the text of a tree."""
        return _shorten(self._text[tree.meta.start_pos : tree.meta.end_pos])


def _apply(function: Callable[..., Any], arguments: Sequence[Node]) -> Node:
    return lambda scope: function(*[argument(scope) for argument in arguments])


def _shorten(text: str) -> str:
    """Shorten a source in its middle: branches of one expression differ at the end."""
    if len(text) <= MAX_SOURCE_LENGTH:
        return text
    half = MAX_SOURCE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"


def _decide(items: Node, body: Node, scope: Sequence[Any], *, deciding: bool) -> bool:
    """Evaluate `all` (decided by false) or `exists` (by true), which absorb errors."""
    problem: EvaluationError | None = None
    for item in items(scope):
        try:
            value = body((*scope, item))
        except EvaluationError as error:
            problem = error
            continue
        if value.__class__ is not bool:
            problem = no_overload("exists" if deciding else "all", value)
        elif value is deciding:
            return deciding
    if problem is not None:
        raise problem
    return not deciding


def _select(name: str, items: Node, body: Node, scope: Sequence[Any]) -> list[Any]:
    """Return the items for which a condition is true."""
    selected = []
    for item in items(scope):
        value = body((*scope, item))
        if value.__class__ is not bool:
            raise no_overload(name, value)
        if value:
            selected.append(item)
    return selected


MACRO_EVALUATORS: dict[str, Callable[[Node, Node, Sequence[Any]], Any]] = {
    "all": partial(_decide, deciding=False),
    "exists": partial(_decide, deciding=True),
    "exists_one": lambda *nodes: len(_select("exists_one", *nodes)) == 1,
    "filter": partial(_select, "filter"),
    "map": lambda items, body, scope: [body((*scope, item)) for item in items(scope)],
}
