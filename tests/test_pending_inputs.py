"""Pending inputs: who lacks a response is called again, and each request is made once."""

import pytest

from fanout.pending_inputs import (
    ExpressionRequest,
    InputPending,
    complete,
    get_response,
    get_responses,
)


class Shell:
    """Answers each request with its upper case, and remembers the rounds."""

    def __init__(self):
        self.responses = {}
        self.rounds = []

    def obtain(self, requests):
        self.rounds.append(requests)
        self.responses |= {request: request.upper() for request in requests}


def test_requests_of_one_round_are_obtained_together_and_once():
    shell = Shell()

    def attempt(*requests):
        return lambda: "".join(get_response(request, shell.responses) for request in requests)

    values = complete([attempt("a", "b"), attempt("a"), lambda: "at once"], shell.obtain)
    assert values == ["AB", "A", "at once"]
    assert shell.rounds == [["a"], ["b"]]


def test_an_attempt_that_has_its_value_is_not_called_again():
    shell, calls = Shell(), []
    complete([lambda: calls.append(1), lambda: get_response("a", shell.responses)], shell.obtain)
    assert calls == [1]


def test_all_missing_responses_are_requested_at_once():
    shell = Shell()
    [value] = complete([lambda: get_responses(["a", "b", "a"], shell.responses)], shell.obtain)
    assert (value, shell.rounds) == (["A", "B", "A"], [["a", "b"]])


def test_requests_that_remain_after_the_last_round_are_raised():
    shell = Shell()

    def attempt():
        raise InputPending([f"request {len(shell.rounds)}"])

    with pytest.raises(InputPending) as pending:
        complete([attempt], shell.obtain, max_rounds=2)
    assert shell.rounds == [["request 0"], ["request 1"]]
    assert pending.value.requests == ("request 2",)


def test_another_error_of_an_attempt_is_raised():
    with pytest.raises(ZeroDivisionError):
        complete([lambda: 1 // 0], Shell().obtain)


def test_equal_expressions_over_the_same_objects_are_one_request():
    target, equal_target = {"name": "ams"}, {"name": "ams"}
    request = ExpressionRequest("target.name", {"target": target})
    assert request == ExpressionRequest("target.name", {"target": target})
    assert hash(request) == hash(ExpressionRequest("target.name", {"target": target}))
    assert request != ExpressionRequest("target.name", {"target": equal_target})
    assert request != ExpressionRequest("target", {"target": target})
