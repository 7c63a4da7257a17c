"""Inputs of a variant that are returned again, and those that are not."""

from hypothesis import given
from hypothesis import strategies as st
from variants.builders import by, config_map, package, point, spec

from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.variants.package_preparation import prepare_package
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

POINTS = {
    "a.yaml": point(),
    "b.yaml": f"{point(name='more', mark='optional')}data:\n  region: none\n",
}
PREPARED = prepare_package(package(POINTS), RenderLimits())
VARIANT = spec(injectors=(by("eu"), by("default")))
CONTENTS = st.sampled_from(
    [None, {}, {"region": "eu"}, {"region": "us"}, {"region": "eu", "a": ""}]
)


def index_of(contents):
    """Objects of both injectors; None: there is none."""
    names = zip(("eu", "default"), contents, strict=True)
    return ClusterObjectIndex([config_map(name, data=it) for name, it in names if it is not None])


@given(st.tuples(CONTENTS, CONTENTS), st.tuples(CONTENTS, CONTENTS))
def test_inputs_are_the_same_with_previous_ones_and_without(before, after):
    previous = resolve_inputs(PREPARED, VARIANT, index_of(before))
    fresh = resolve_inputs(PREPARED, VARIANT, index_of(after))
    inputs = resolve_inputs(PREPARED, VARIANT, index_of(after), previous)
    assert inputs == fresh
    assert inputs.object_versions == fresh.object_versions
    assert (inputs is previous) == (previous.injections == fresh.injections)


def test_the_same_content_in_another_object_is_another_input():
    data = {"region": "eu"}
    previous = resolve_inputs(PREPARED, VARIANT, index_of([data, None]))
    inputs = resolve_inputs(PREPARED, VARIANT, index_of([None, data]), previous)
    assert {it.source for it in inputs.injections} == {"default"}
    assert inputs.digest != previous.digest


def test_unchanged_content_is_the_same_injection():
    objects = index_of([{"region": "eu"}, {"region": "us"}])
    previous = resolve_inputs(PREPARED, VARIANT, objects)
    assert resolve_inputs(PREPARED, VARIANT, objects, previous) is previous
