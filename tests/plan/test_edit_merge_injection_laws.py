"""Laws of a bump in which what is injected changes too: fanout's own values are nobody's edits."""

from hypothesis import given
from hypothesis import strategies as st
from variants.builders import config_map, package, point, spec

from fanout.package.field_edits import Edit
from fanout.package.manifest import Manifest
from fanout.plan.edits.edit_merge import merge_edits
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import InjectorSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

DATA = st.dictionaries(
    st.sampled_from("abcd"), st.sampled_from(["1", "yes", "x y", "#"]), min_size=1
)
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}} # ours
spec:
  replicas: {replicas}
  paused: false
"""


def rendering(replicas, injected):
    """A rendering of a package with one injection point, as files."""
    files = {
        "web.yaml": DEPLOYMENT.format(replicas=replicas),
        "settings.yaml": point() + "data: {example: here}\n",
    }
    prepared = prepare_package(package(files), RenderLimits())
    variant = spec(injectors=(InjectorSpec("eu", kind="ConfigMap"),))
    rendered = render_variant(
        prepared,
        variant,
        resolve_inputs(prepared, variant, ClusterObjectIndex([config_map("eu", data=injected)])),
    )
    blobs = {entry.oid: data for entry, data in prepared.upstream.files.values()}
    blobs |= rendered.blobs
    return {path: (entry.mode, blobs[entry.oid]) for path, entry in rendered.entries.items()}


def contents(merged):
    blobs = merged.content.blobs
    return {path: (e.mode, blobs[e.oid]) for path, e in merged.content.entries.items()}


def injected_of(files):
    [document] = Manifest.parse(files["settings.yaml"][1], "settings.yaml").documents
    return document.value["data"]


def replaced(files, path, old, new):
    mode, data = files[path]
    assert old in data
    return {**files, path: (mode, data.replace(old, new))}


@given(st.integers(1, 3), st.integers(1, 3), DATA, DATA)
def test_without_edits_the_result_is_the_new_rendering(one, two, before, after):
    origin, upstream = rendering(one, before), rendering(two, after)
    merged = merge_edits(upstream, [(origin, origin)])
    assert contents(merged) == upstream
    assert merged.conflicts == ()


@given(st.integers(1, 3), st.integers(1, 3), DATA, DATA)
def test_an_edit_elsewhere_stays_and_the_new_values_arrive(one, two, before, after):
    origin, upstream = rendering(one, before), rendering(two, after)
    local = replaced(origin, "web.yaml", b"paused: false", b"paused: true # by hand")
    merged = merge_edits(upstream, [(origin, local)])
    assert merged.conflicts == ()
    wanted = replaced(upstream, "web.yaml", b"paused: false", b"paused: true # by hand")
    assert contents(merged) == wanted


@given(st.integers(1, 3), DATA)
def test_with_the_same_values_the_result_is_local(one, data):
    origin = rendering(one, data)
    local = replaced(origin, "web.yaml", b"paused: false", b"paused: true")
    assert contents(merge_edits(origin, [(origin, local)])) == local


@given(DATA, DATA, st.data())
def test_an_edit_of_an_injected_value_stays_unless_that_value_changed(before, after, data):
    key = data.draw(st.sampled_from(sorted(before)))
    origin, upstream = rendering(1, before), rendering(1, after)
    mode, text = origin["settings.yaml"]
    manifest = Manifest.parse(text, "settings.yaml")
    edited = manifest.apply_edits_to_text([Edit(0, ("data", key), "mine")])
    local = {**origin, "settings.yaml": (mode, edited)}
    merged = merge_edits(upstream, [(origin, local)])
    injected = injected_of(contents(merged))
    if after.get(key) == before[key]:
        assert injected == {**after, key: "mine"}
        assert merged.conflicts == ()
    else:
        assert injected == after
        [conflict] = merged.conflicts
        assert conflict.where.field == f"data.{key}"
