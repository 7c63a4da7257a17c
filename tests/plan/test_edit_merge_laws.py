"""Laws of a bump on generated packages, in which what is injected changes as well."""

from copy import deepcopy
from itertools import count

from hypothesis import given
from hypothesis import strategies as st
from package.merge.generated import (
    KPTFILE,
    edited,
    files_of,
    lost,
    objects,
    packages,
)
from variants.builders import config_map, package, point, spec

from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import format_identity
from fanout.package.yaml_scalars import YamlStyle
from fanout.plan.edits.edit_merge import merge_edits
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import InjectorSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

STYLE = YamlStyle(2, 0)
POINT = "settings.yaml"
SETTINGS = point() + "data: {example: here}\n"
DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "on", "x y"]), min_size=1)


def rendering(files, injected):
    """What fanout makes of upstream's files, with these values injected."""
    prepared = prepare_package(package({**files, POINT: SETTINGS}), RenderLimits())
    variant = spec(injectors=(InjectorSpec("eu", kind="ConfigMap"),))
    inputs = resolve_inputs(
        prepared, variant, ClusterObjectIndex([config_map("eu", data=injected)])
    )
    rendered = render_variant(prepared, variant, inputs)
    blobs = {entry.oid: data for entry, data in prepared.upstream.files.values()}
    blobs |= rendered.blobs
    return {path: (entry.mode, blobs[entry.oid]) for path, entry in rendered.entries.items()}


def as_documents(files):
    """A rendering as a package of the generator."""
    return {
        path: data.decode()
        if path.endswith(".txt")
        else [deepcopy(it.value) for it in Manifest.parse(data, path).documents]
        for path, (_, data) in files.items()
    }


@st.composite
def bumps(draw):
    """A rendering, that of the next revision and of other values, what people made of the first."""
    numbers = count(1000)
    before = draw(packages())
    before["Kptfile"] = [{**deepcopy(KPTFILE), "pipeline": {"mutators": [
        {"image": "set-namespace", "configMap": {"namespace": "shop"}},
        {"image": "set-labels", "configMap": {"team": "edge"}},
    ]}}]  # fmt: skip
    paths = sorted(before.keys() - {"Kptfile", "crd.yaml"})
    after = edited(draw, before, numbers, paths=paths)
    texts = [
        {path: data.decode() for path, (_, data) in files_of(side, STYLE, {}).items()}
        for side in (before, after)
    ]
    values = [draw(DATA), draw(DATA)]
    origin, upstream = map(rendering, texts, values)
    written = as_documents(origin)
    local = edited(draw, written, numbers, paths=[*paths, "package-context.yaml"])
    people = {
        path: origin[path] if content == written.get(path) else data
        for (path, content), data in zip(
            local.items(), files_of(local, STYLE, {}).values(), strict=True
        )
    }
    return origin, upstream, people, values


def contents(merged):
    blobs = merged.content.blobs
    return {path: (e.mode, blobs[e.oid]) for path, e in merged.content.entries.items()}


@given(bumps())
def test_a_bump_loses_no_change_and_brings_the_new_values(bump):
    origin, upstream, local, (_, injected) = bump
    merged = merge_edits(upstream, [(origin, local)])
    result = contents(merged)
    disputed = {conflict.where.object for conflict in merged.conflicts}
    for side in (upstream, local):
        for identity, wrong in lost(origin, side, result).items():
            assert format_identity(identity) in disputed or identity[1] in disputed, wrong
    value_by_identity = {
        format_identity(identity): value for identity, value in objects(result).items()
    }
    assert value_by_identity["ConfigMap/shop/settings"]["data"] == injected


@given(bumps())
def test_merging_again_changes_nothing(bump):
    origin, upstream, local, _ = bump
    once = contents(merge_edits(upstream, [(origin, local)]))
    assert contents(merge_edits(upstream, [(origin, once)])) == once


@given(bumps())
def test_an_unedited_package_becomes_the_new_rendering(bump):
    origin, upstream, _, _ = bump
    merged = merge_edits(upstream, [(origin, origin)])
    assert (contents(merged), merged.conflicts) == (upstream, ())


@given(bumps())
def test_the_same_rendering_again_leaves_everything_as_people_have_it(bump):
    origin, _, local, _ = bump
    merged = merge_edits(origin, [(origin, local)])
    assert (contents(merged), merged.conflicts) == (local, ())
