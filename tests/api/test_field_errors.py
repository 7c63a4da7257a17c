"""The field that an error names is one of the document: it is there, or its parent is.

Wrong values are put into every field of every sample object, and into every field that its kind
knows at that place. How validation is built (unions, constraints) must not be seen.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from fanout.api.field_errors import FieldPath
from fanout.api.kind_registry import KINDS, field_names_at
from fanout.api.scenario import Scenario
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object
from fanout.api.validators.scenario_rules import check_scenario

ROOT = Path(__file__).parents[2]
WRONG: tuple[Any, ...] = (
    None, True, -7, "", "a b", [], [-7], ["a", "a"], {}, {"$": {}}, [{}],
)  # fmt: skip
FULL_SCENARIO = """\
apiVersion: fanout.dev/v1alpha1
kind: Scenario
metadata: {name: full}
spec:
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: prod, after: {stages: [dev], soak: 1h}, requires: [{name: ok, approval: {from: [sre]}}]}
  promotion: {autoPromotion: {stages: [dev]}, approvers: [{group: sre, subjects: [a@example.com]}]}
  inFlight: Supersede
  revisions: [v1, v2]
  now: 2030-01-07T12:00:00Z
  variants:
  - {name: ams, stage: dev, revision: v1, ready: -1h, labels: {a: b}, earlier: [{revision: v1}],
     answers: [{check: e2e, status: passed}]}
  - {name: ber, stage: prod, draft: {revision: v1}, released: -5m,
     dependsOn: [{name: x, ready: true}], held: {message: no, reason: PathTaken}}
  history: [{stage: dev, revision: v1, passed: -30m, soaked: 1h}]
  evidence: [{stage: dev, check: e2e, status: passed, revision: v1, at: -1h}]
  approvals: [{stage: prod, check: ok, revision: v1, by: a@example.com}]
  decisions: [{stage: prod, action: Publish, revision: v1, overrides: [soak]}]
  events:
  - {at: +1h, revision: v3}
  - {at: +2h, answer: {check: e2e, status: failed, variants: [ams]}}
  moments: [+3h]
  advance: {readyAfter: 10m, until: +9h}
  expect:
  - {at: +1h, held: [stuck], next: +2h, stages: [{stage: dev, candidate: v1, released: [ams],
     held: [soak]}], variants: [{variant: ams, state: Ready, revision: v1, reasons: [Stuck]}]}
  expectWaves: [{stage: dev, waves: [1]}]
"""


def samples() -> Iterator[tuple[str, Any]]:
    examples = sorted((ROOT / "tests/api/examples").glob("*.yaml"))
    texts = [(path.stem, path.read_text()) for path in examples]
    for name, text in [*texts, ("full-scenario", FULL_SCENARIO)]:
        for number, data in enumerate(yaml.safe_load_all(text)):
            if isinstance(data, dict) and data.get("kind") in KINDS:
                yield f"{name}-{number}", data


SAMPLES = list(samples())


def places(data: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Every field and entry of the document."""
    if path:
        yield path
    entries: Any = data.items() if isinstance(data, Mapping) else ()
    entries = enumerate(data) if isinstance(data, list) else entries
    for key, value in entries:
        yield from places(value, (*path, key))


def everywhere(data: Mapping[str, Any]) -> Iterator[FieldPath]:
    """Every field that is there, and every one that the kind knows beside it."""
    model = KINDS[data["kind"]]
    for path in ((), *places(data)):
        if path:
            yield path
        if isinstance(value_at(data, path), Mapping):
            yield from ((*path, name) for name in field_names_at(model, path))


def value_at(data: Any, path: Sequence[str | int]) -> Any:
    """What is at the path. Raises LookupError or TypeError where nothing is."""
    for part in path:
        data = data[part]
    return data


def put(data: Any, path: FieldPath, value: Any) -> Any:
    copied = copy.deepcopy(data)
    value_at(copied, path[:-1])[path[-1]] = copy.deepcopy(value)
    return copied


def list_error_paths(data: Any) -> Iterator[FieldPath]:
    item, faults = validate_object(data)
    yield from (fault.path for fault in faults)
    if item is not None:
        yield from (fault.path for _, fault in cross_check([item]))
    if isinstance(item, Scenario) and item.spec.stages:
        yield from (fault.path for fault in check_scenario(item, item.spec.stages))


def unresolved(data: Any) -> list[FieldPath]:
    lost = []
    for path in list_error_paths(data):
        try:
            parent = value_at(data, path[:-1])
            fitting = isinstance(parent, list) == (bool(path) and isinstance(path[-1], int))
            assert fitting or not path or not isinstance(parent, list)
        except (LookupError, TypeError, AssertionError):
            lost.append(path)
    return lost


@pytest.mark.parametrize("data", [data for _, data in SAMPLES], ids=[name for name, _ in SAMPLES])
def test_the_path_of_an_error_is_one_of_the_document(data: Any):
    assert not unresolved(data)
    lost = {
        (path, repr(value)): error_path
        for path in dict.fromkeys(everywhere(data))
        for value in WRONG
        if (error_path := unresolved(put(data, path, value)))
    }
    assert not lost


@pytest.mark.parametrize("value", [5, "a b", True, []])
@pytest.mark.parametrize(
    "path",
    [
        ("spec", "expect", 0, "stages", 0, "candidate"),
        ("spec", "expect", 0, "variants", 0, "revision"),
        ("spec", "variants", 0, "stage"),
    ],
    ids=str,
)
def test_a_value_that_fits_no_alternative_is_one_error(path: FieldPath, value: Any):
    _, faults = validate_object(put(yaml.safe_load(FULL_SCENARIO), path, value))
    assert [fault.path for fault in faults if fault.path[: len(path)] == path] == [path]
