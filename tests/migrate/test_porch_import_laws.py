"""Laws of the import: every field arrives or is named, and what arrives is valid."""

import copy
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from migrate.porch_objects import WHOLE, judge

from fanout.api.field_errors import find_fields
from fanout.api.validators.object_validation import validate_object
from fanout.migrate.field_mapping import ignore_field
from fanout.migrate.porch_import import PORCH_KINDS, import_porch_objects
from fanout.package.revision import parse_tag

ROWS = [
    (f"{origin.kind} {row.source}", origin, row)
    for origin in PORCH_KINDS
    for row in origin.rows
    if row.source.startswith("spec")
]


@pytest.mark.parametrize(("_", "origin", "row"), ROWS, ids=map(itemgetter(0), ROWS))
def test_a_field_arrives_or_is_named(_, origin, row):
    """Not both, not neither; whether it may stay is asked of nobody here."""
    item = WHOLE[origin.kind]
    fields = list(find_fields(item, row.source))
    assert fields, "the test's own object has every field"
    answer = import_porch_objects([item], lambda _: ())
    named = {remark.path for _, remark in answer.remarks}
    if not row.target:
        silent = row.convert is ignore_field or row.source in (
            "spec.type",
            "spec.content",
        )
        assert silent != (fields[0][0] in named)
    elif row.source.startswith("spec.upstream.workspaceName"):
        assert fields[0][0] in named
    else:
        target_fields = len(list(find_fields(answer.objects[0], row.target)))
        assert target_fields == (
            1 if row.target.count("[*]") < row.source.count("[*]") else len(fields)
        )


VALUES = st.sampled_from(
    [
        *(None, "", "x", "Bad Name!", 0, 3, -1, True, 1.5, [], {}, [{}], [None], ["a", "a"]),
        *({"a": "b"}, {"a": None}, {"a": 1}, {"name": "x"}, "target.name", "target +"),
        *("a/../b", "v1", "x" * 2000),
    ]
)


@st.composite
def spoiled(draw):
    """An object of Porch's in which some fields have other values."""
    item = copy.deepcopy(WHOLE[draw(st.sampled_from(sorted(WHOLE)))])
    for _ in range(draw(st.integers(0, 4))):
        here = item
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(here[key], dict | list) or draw(st.integers(0, 3)) == 0:
                here[key] = copy.deepcopy(draw(VALUES))
                break
            here = here[key]
    return item


@given(spoiled())
def test_an_import_of_any_object_yields_valid_objects(item):
    for made in import_porch_objects([item], judge).objects:
        assert validate_object(made)[1] == ()


REVISIONS = st.one_of(
    st.integers(),
    st.text(max_size=8),
    st.from_regex(r"v?[0-9]{1,3}(\.[0-9]{1,2}){0,3}(-[a-z0-9.]{0,6})?", fullmatch=True),
    st.sampled_from(["main", "", None, True, 1.0, [], "v" + "9" * 20, "v1.0.0-" + "a" * 200]),
)


@given(REVISIONS, REVISIONS, st.sampled_from(["PackageVariant", "PackageVariantSet"]))
def test_any_revision_ends_as_a_valid_object_or_is_named(revision, workspace, kind):
    item = copy.deepcopy(WHOLE[kind])
    item["spec"]["upstream"] |= {"revision": revision, "workspaceName": workspace}
    answer = import_porch_objects([item], judge)
    for made in answer.objects:
        assert validate_object(made)[1] == ()
        rule = made["spec"]["upstream"]["revision"]
        assert rule == {"latest": True} or parse_tag(f"base/{rule['tag']}", "base") is not None
    named = [remark.path for _, remark in answer.remarks]
    assert answer.objects or any(path[:2] == ("spec", "upstream") for path in named)


@given(spoiled())
def test_the_input_stays_as_it_was(item):
    before = copy.deepcopy(item)
    import_porch_objects([item], judge)
    assert item == before
