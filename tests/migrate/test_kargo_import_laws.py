"""Laws of the import: every field arrives or is named, and what arrives is valid."""

import copy
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from migrate.kargo_objects import WHOLE, judge

from fanout.api.field_errors import find_fields
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object
from fanout.migrate.field_mapping import ignore_field
from fanout.migrate.kargo_fields import KARGO_KINDS
from fanout.migrate.kargo_import import import_kargo_objects

ROWS = [
    (f"{origin.kind} {row.source}", origin.kind, row)
    for origin in KARGO_KINDS
    for row in origin.rows
    if row.source.startswith("spec")
]


@pytest.mark.parametrize(("_", "kind", "row"), ROWS, ids=map(itemgetter(0), ROWS))
def test_a_field_arrives_or_is_named(_, kind, row):
    fields = [
        (index, path)
        for index, item in enumerate(WHOLE)
        if item["kind"] == kind
        for path, _ in find_fields(item, row.source)
    ]
    assert fields, "the tests' own objects have every field"
    answer = import_kargo_objects(WHOLE, lambda _: ())
    named = {(index, remark.path) for index, remark in answer.remarks}
    if row.target and any(list(find_fields(made, row.target)) for made in answer.objects):
        return
    silent = row.convert is ignore_field or row.source.endswith(".kind")
    assert named.intersection(fields) or (silent and not row.target)


VALUES = st.sampled_from(
    [
        *(None, "", "x", "Bad Name!", 0, 3, -1, True, 1.5, [], {}, [{}], [None], ["a", "a"]),
        *({"a": "b"}, {"a": None}, {"name": "x"}, ["dev"], ["prod"], "All", "1h", "regex:(", "dev"),
        *("${{ vars.a }}", "a.b", "a/../b", "v1", "x" * 2000, "FREQ=DAILY", "20260101T000000Z"),
    ]
)


@st.composite
def spoiled(draw):
    """Kargo's objects in which some fields have other values."""
    items = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(0, 5))):
        here = draw(st.sampled_from(items))
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(here[key], dict | list) or draw(st.integers(0, 3)) == 0:
                here[key] = copy.deepcopy(draw(VALUES))
                break
            here = here[key]
    return draw(st.permutations(items))


@given(spoiled())
def test_an_import_of_any_objects_yields_valid_objects(items):
    models = []
    for made in import_kargo_objects(items, judge).objects:
        model, faults = validate_object(made)
        assert faults == ()
        models.append(model)
    assert [fault for _, fault in cross_check(models) if fault.severity == "error"] == []


@given(spoiled())
def test_the_input_stays_as_it_was(items):
    before = copy.deepcopy(items)
    import_kargo_objects(items, judge)
    assert items == before
