"""Both evaluators, the complete one of a worker and the one in process, agree with CEL."""

import json
import math

import pytest
from sandbox.cel_cases import CASES, ERROR, REFUSED

from fanout.sandbox.cel_worker import CelEngine, to_plain
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.expression_closures import build_closure
from fanout.sandbox.worker_protocol import RefusedError, WorkerLimits
from fanout.selection.variant_spec import ASK, ExpressionFailure
from fanout.telemetry.metrics import Counters

ENGINE = CelEngine()


def outcome(text, row):
    """The value with its types, or ERROR or REFUSED."""
    try:
        ENGINE.find_free_variables(text)
    except RefusedError as refusal:
        assert refusal.problem
        return REFUSED
    try:
        return ENGINE.compute(text, row)
    except RefusedError as refusal:
        assert refusal.reason == "ExpressionError"
        assert refusal.problem
        return ERROR


def typed(value):
    """The value with its type, and those of all below it: 1 is neither 1.0 nor True."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, float) and math.isnan(value):
        return "not a number"
    return type(value), repr(value)


@pytest.mark.parametrize(
    ("area", "text", "value", "row"), CASES, ids=[f"{row[0]}: {row[1]}" for row in CASES]
)
def test_a_worker_s_answer_is_that_of_the_specification(area, text, value, row):
    assert typed(outcome(text, row)) == typed(value)


def test_an_answer_in_process_is_that_of_the_specification():
    computed = 0
    for _, text, value, row in CASES:
        outline = None if value is REFUSED else json.loads(json.dumps(ENGINE.serialize_ast(text)))
        if outline is None:
            continue
        answer = build_closure(outline, ENGINE.find_free_variables(text))(row)
        if answer is not ASK:
            assert value is not ERROR, text
            assert typed(answer) == typed(to_plain(value)), text
            computed += 1
    # Only what is not bounded is left to a worker.
    assert computed > len(CASES) / 4


UNLABELED = [{"metadata": {"name": "eu"}}, {"metadata": {"labels": None, "annotations": None}}]
OF_UNLABELED = [
    ("has(target.metadata.labels.tier)", False),
    ("has(target.metadata.annotations.tier) ? 1 : 2", 2),
    ("'tier' in target.metadata.labels", False),
    ("target.metadata.labels == {}", True),
    ("target.metadata.labels", {}),
    ("size(target.metadata.annotations)", 0),
    ("has(target.metadata.labels)", True),
    ("has(target.metadata.labels) && has(target.metadata.labels.tier)", False),
    ("target.metadata.labels.exists(key, key == 'tier')", False),
    ("[target].map(it, has(it.metadata.labels.tier))", [False]),
    ("target.metadata.labels == target['metadata'].annotations", True),
    ("target['meta' + 'data'].labels", {}),
]


@pytest.fixture(scope="module")
def sandbox():
    with ProcessSandbox(WorkerLimits(), Counters()) as opened:
        yield opened


@pytest.mark.parametrize(("text", "value"), OF_UNLABELED, ids=[row[0] for row in OF_UNLABELED])
def test_labels_and_annotations_of_an_object_are_maps(text, value, sandbox):
    rows = [{"target": item} for item in UNLABELED]
    assert sandbox.evaluate([text], rows) == [[value, value]]
    [closure] = sandbox.closures([text])
    if closure is not None:
        assert [closure(row) for row in rows] == [value, value]


NOT_COMPLETED = [
    ("what has no metadata", "has(target.metadata.labels.tier)", {"repo": "edge"}),
    ("what is no object", "has(target.metadata.labels.tier)", {"metadata": "x"}),
    ("templates in an object", "has(target.spec.labels.x)", {"metadata": {}, "spec": {}}),
]


@pytest.mark.parametrize(
    ("_", "text", "target"), NOT_COMPLETED, ids=[it[0] for it in NOT_COMPLETED]
)
def test_no_other_value_is_completed(_, text, target, sandbox):
    [[answer]] = sandbox.evaluate([text], [{"target": target}])
    assert isinstance(answer, ExpressionFailure)
