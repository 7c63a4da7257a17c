"""Laws of validation: whatever somebody writes, the answer is an object or sentences."""

import copy
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.field_errors import sort_errors
from fanout.api.kind_registry import KINDS
from fanout.api.validators.object_validation import validate_object

EXAMPLES = [
    yaml.safe_load(path.read_text())
    for path in sorted((Path(__file__).parent / "examples").glob("*.yaml"))
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", "dev", "name", "1h", "-x", "../x", "a b", "10%", "ext::x"]),
    st.dates(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["name", "stages", "image", "policy"]), st.integers(0, 1)),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=5,
)


def places_in(data, path=()):
    yield path
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in entries:
        if isinstance(value, (dict, list)):
            yield from places_in(value, (*path, key))
        else:
            yield (*path, key)


@st.composite
def damaged(draw):
    """An example in which up to three places hold something else."""
    data = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([path for path in places_in(data) if path]))
        inside = data
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = draw(ANYTHING)
    return data


@given(damaged())
def test_the_answer_is_an_object_or_sentences(data):
    model, faults = validate_object(data)
    assert (model is None) == bool(faults)
    assert sort_errors(faults) == faults
    for fault in faults:
        assert fault.problem
        assert fault.remedy
        assert "Input should" not in fault.problem, fault


@given(damaged())
def test_a_valid_object_stays_valid_when_written_again(data):
    model, _ = validate_object(data)
    if model is not None:
        written = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        again, faults = validate_object(written)
        assert faults == ()
        assert again == KINDS[model.kind].model_validate(written, by_name=False)
        assert again.model_dump() == model.model_dump()
