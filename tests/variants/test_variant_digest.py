"""Which cluster object an injection point gets, and what the digest depends on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import by, config_map, package, point, rows, site, spec

from fanout.api.fanout_configuration import InjectableKind, InjectionRules
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.values import replace
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

EU, US = config_map("eu", data={"region": "eu"}), config_map("us", data={"region": "us"})
SITE = point("Site", "example.com/v1")

CHOICES = [
    ("the object that an injector names is taken", point(), [by("eu")], [EU, US], ("eu", "")),
    ("the first injector whose object is there wins", point(), [by("no"), by("us"), by("eu")],
     [EU, US], ("us", "")),
    ("an injector for another kind is passed by", point(), [by("us", kind="Site"), by("eu")],
     [EU, US], ("eu", "")),
    ("one for another group too", point(), [by("us", group="example.com"), by("eu")], [EU, US],
     ("eu", "")),
    ("one for another version too", SITE, [by("a", version="v2"), by("b", version="v1")],
     [site("a", spec={"a": 1}), site("b", spec={"b": 1})], ("b", "")),
    ("the core group is named by an empty text", point(), [by("eu", group="")], [EU], ("eu", "")),
    ("another namespace's object is not seen", point(), [by("eu")],
     [config_map("eu", "other", data={})], ("", "no ConfigMap eu in namespace platform")),
    ("an object of another kind with that name is not taken", SITE, [by("eu")], [EU],
     ("", "no Site eu in namespace platform")),
    ("every name that was tried is reported", point(), [by("a"), by("b")], [],
     ("", "no ConfigMap a or b in namespace platform")),
    ("without injectors there is nothing", point(), [], [EU], ("", "the variant has no injectors")),
    ("injectors that do not fit are no injectors", point(), [by("eu", kind="Site")], [EU],
     ("", "no injector has kind ConfigMap")),
    ("the walk ends at the first object, also if it lacks the field", point(), [by("x"), by("eu")],
     [config_map("x", binaryData={}), EU], ("", "ConfigMap x has no data")),
    ("empty data is none, as an API server does not store it", point(), [by("x"), by("eu")],
     [config_map("x", data={}), EU], ("", "ConfigMap x has no data")),
    ("an empty spec is content", SITE, [by("x")], [site("x", spec={})], ("x", "")),
    ("a Secret is never injected", point("Secret"), [by("eu")],
     [{**EU, "kind": "Secret", "spec": {"a": 1}}],
     ("", "objects of kind Secret must not be injected")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "injectors", "objects", "expected"), rows(CHOICES))
def test_the_source_of_a_point(text, injectors, objects, expected):
    prepared = prepare_package(package({"a.yaml": text}), RenderLimits())
    inputs = resolve_inputs(prepared, spec(injectors=tuple(injectors)), ClusterObjectIndex(objects))
    (injection,) = inputs.injections
    assert (injection.source, injection.problem) == expected
    assert inputs.missing_injections == (() if injection.source else (injection,))


def test_an_injector_with_a_version_reads_the_object_in_it():
    others = {("platform", "eu"): site("eu", spec={"readAs": "v2"})}
    named = {("platform", "eu"): site("eu", spec={"readAs": "v1"})}
    objects = ClusterObjectIndex().with_objects(
        {("example.com", "Site"): others}, {("example.com", "Site", "v1"): named}
    )
    prepared = prepare_package(package({"a.yaml": SITE}), RenderLimits())
    for version, expected in (("v1", "v1"), (None, "v2")):
        variant = spec(injectors=(by("eu", version=version),))
        (injection,) = resolve_inputs(prepared, variant, objects).injections
        assert injection.value == {"readAs": expected}


def test_only_kinds_that_the_administrator_allows_are_injected():
    allowed = RenderLimits(
        injectable=InjectionRules(kinds=(InjectableKind(kind="ConfigMap", fields_=("data",)),))
    )
    prepared = prepare_package(package({"a.yaml": SITE}), allowed)
    inputs = resolve_inputs(
        prepared, spec(injectors=(by("eu"),)), ClusterObjectIndex([site("eu", spec={"a": 1})])
    )
    assert inputs.missing_injections[0].problem == "objects of kind Site must not be injected"


def test_an_optional_point_without_source_holds_nothing():
    prepared = prepare_package(package({"a.yaml": point(mark="optional")}), RenderLimits())
    inputs = resolve_inputs(prepared, spec(), ClusterObjectIndex())
    assert inputs.injections[0].problem
    assert inputs.missing_injections == ()


def digest(upstream=None, objects=(EU,), **fields):
    prepared = prepare_package(upstream or package({"a.yaml": point()}), RenderLimits())
    fields = {"injectors": (by("eu"),), **fields}
    return resolve_inputs(prepared, spec(**fields), ClusterObjectIndex(objects)).digest


SAME = [
    ("the stage", {"stage": "prod"}),
    ("the policy", {"policy": "other"}),
    ("the target", {"target": "Cluster/platform/other"}),
    ("the priority", {"priority": 7}),
    ("suspension", {"suspended": True}),
    ("labels of the injected object", {"objects": [{**EU, "status": {"seen": True}}]}),
    ("objects that are not injected", {"objects": [EU, US]}),
    ("the order of keys", {"context": {"b": "2", "a": "1"}, "against": {"a": "1", "b": "2"}}),
]
OTHER = [
    ("the name", {"name": "other"}),
    ("the path", {"path": "other"}),
    ("the package context", {"context": {"region": "eu"}}),
    ("keys to be removed", {"remove_keys": ("region",)}),
    ("a function", {"mutators": (FunctionSpec("set-namespace", config={"namespace": "a"}),)}),
    ("the injectors", {"injectors": (by("eu", kind="ConfigMap"),)}),
    ("labels", {"labels": {"a": "b"}}),
    ("annotations", {"annotations": {"a": "b"}}),
    ("the injected value", {"objects": [config_map("eu", data={"region": "moved"})]}),
    ("the injected object's absence", {"objects": []}),
    ("the upstream's content", {"upstream": package({"a.yaml": point(), "b.md": "new"})}),
    ("the upstream's commit", {"upstream": package({"a.yaml": point()}, commit="d" * 40)}),
    ("the revision's name", {"upstream": package({"a.yaml": point()}, name="v2")}),
    ("the upstream's address", {"upstream": package({"a.yaml": point()}, repository="x")}),
]


@pytest.mark.parametrize("fields", rows(SAME))
def test_the_digest_does_not_depend_on(fields):
    against = {"context": fields["against"]} if "against" in fields else {}
    changed = {key: value for key, value in fields.items() if key != "against"}
    assert digest(**changed) == digest(**against)


@pytest.mark.parametrize("fields", rows(OTHER))
def test_the_digest_depends_on(fields):
    assert digest(**fields) != digest()


def test_the_digest_has_forty_digits_and_stays_what_it_is():
    assert digest() == digest()
    assert len(digest()) == 40
    assert set(digest()) <= set("0123456789abcdef")


TEXTS = st.sampled_from(["", "a", "b", "yes", "1", "é", "\u2028", "two\nlines"])
SPECS = st.builds(
    spec,
    name=st.sampled_from(["monitoring-eu", "monitoring-us"]),
    path=st.sampled_from(["a/b", "a/c"]),
    stage=st.sampled_from(["dev", "prod"]),
    context=st.dictionaries(st.sampled_from(["region", "team"]), TEXTS, max_size=2),
    remove_keys=st.sampled_from([(), ("region",)]),
    labels=st.dictionaries(st.sampled_from(["region", "team"]), st.just("x"), max_size=1),
    injectors=st.sampled_from([(), (by("eu"),), (by("us"),)]),
    mutators=st.sampled_from([(), (FunctionSpec("set-namespace", config={"namespace": "other"}),)]),
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
PREPARED = prepare_package(
    package({"a.yaml": point(mark="optional"), "b.yaml": SERVICE}), RenderLimits()
)


@given(SPECS, SPECS, TEXTS, TEXTS)
def test_equal_digests_are_equal_renderings(one, other, one_value, other_value):
    def result(variant, value):
        objects = ClusterObjectIndex([config_map("eu", data={"value": value})])
        inputs = resolve_inputs(PREPARED, variant, objects)
        return inputs.digest, render_variant(PREPARED, variant, inputs)

    one_digest, one_files = result(one, one_value)
    other_digest, other_files = result(replace(other, stage="canary"), other_value)
    assert one_digest != other_digest or one_files == other_files
    assert result(one, one_value) == (one_digest, one_files)
