"""Pending inputs: what pure code needs from the outside, as data.

Values of expressions, outputs of functions, schemas and answers of probes are requested in
the same way. Pure code takes the responses so far as an argument. Where it lacks one, it
raises `InputPending` with its requests; the shell obtains the responses of all requests of
a round together, and calls the code again. Equal requests have equal responses, so each
attempt gets further than the one before, until it returns its value.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from fanout.values import Value

Result = TypeVar("Result")
Responses = Mapping[Any, Any]  # by request
NO_RESPONSES: Responses = {}


class InputPending(Exception):
    """A computation cannot continue before these requests have responses."""

    def __init__(self, requests: Iterable[Hashable]) -> None:
        self.requests = tuple(requests)
        super().__init__(self.requests)


class ExpressionRequest(Value):
    """Request for the value of an expression over a row of variables.

    Requests are equal if their texts are and their rows have the same objects as values:
    comparing large objects by value costs more than evaluating twice.
    """

    text: str
    variables: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionRequest) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return (self.text, *((name, id(value)) for name, value in self.variables.items()))


def get_response(request: Hashable, responses: Responses) -> Any:
    """Return the response to the request. Raises InputPending while there is none."""
    if request not in responses:
        raise InputPending([request])
    return responses[request]


def get_responses(requests: Sequence[Hashable], responses: Responses) -> list[Any]:
    """Return the responses in order of the requests. Raises InputPending with all that lack."""
    missing = [request for request in requests if request not in responses]
    if missing:
        raise InputPending(missing)
    return [responses[request] for request in requests]


def complete(
    attempts: Sequence[Callable[[], Result]],
    obtain: Callable[[Sequence[Any]], None],
    max_rounds: int | None = None,
) -> list[Result]:
    """Call each attempt until it returns its value, and return the values in order.

    `obtain` gets the distinct requests of a round, and adds the responses to those that the
    attempts read. Raises InputPending if requests remain after `max_rounds` rounds, and what
    an attempt raises.
    """
    values: dict[int, Result] = {}
    for round_number in count():
        requests: list[Hashable] = []
        for number, attempt in enumerate(attempts):
            if number not in values:
                try:
                    values[number] = attempt()
                except InputPending as pending:
                    requests += pending.requests
        if not requests:
            break
        if round_number == max_rounds:
            raise InputPending(requests)
        obtain(list(dict.fromkeys(requests)))
    return [values[number] for number in range(len(attempts))]
