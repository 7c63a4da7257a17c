"""Several functions together: order, selection, configuration, digests, and what they report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import config_map, package, point, rows, spec
from variants.running import configured_by, kptfile, rendered, run

from fanout.api.function_catalog import IN_PROCESS_FUNCTIONS as NAMED
from fanout.errors import InvalidInput
from fanout.package.tree_ids import tree_id
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec
from fanout.values import replace
from fanout.variants import function_registry
from fanout.variants.function_registry import STARLARK
from fanout.variants.package_preparation import prepare_package
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web # kpt-set: ${app}\n"
VALUES = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values{}\ndata:\n  app: {}\n"
LOCAL = "\n  annotations: {config.kubernetes.io/local-config: 'true'}"
LIST = FunctionSpec("list-setters")
SHOP = "{by-path: data.app, put-value: shop}"


def test_validation_knows_the_functions_that_there_are():
    assert set(NAMED) == {*function_registry.FUNCTIONS_BY_NAME, STARLARK.name}


UNAVAILABLE = ["gatekeeper", "render-helm-chart",
               "gcr.io/kpt-fn/set-project-id:v0.2", "example.com/set-image:v1"]  # fmt: skip


@pytest.mark.parametrize("image", UNAVAILABLE)
def test_an_unavailable_function_is_refused_by_name(image):
    with pytest.raises(InvalidInput, match=f"Kptfile:7: .* the function {image} is not available"):
        run({"Kptfile": kptfile(f"image: {image}")})


def test_a_function_s_version_is_in_the_digest(monkeypatch):
    variant = spec(mutators=(FunctionSpec("set-image", config={"name": "a", "newTag": "1"}),))
    prepared = prepare_package(package({}), RenderLimits())
    before = resolve_inputs(prepared, variant, ClusterObjectIndex(())).digest
    newer = replace(function_registry.FUNCTIONS_BY_NAME["set-image"], version="next")
    monkeypatch.setattr(
        function_registry,
        "FUNCTIONS_BY_NAME",
        {**function_registry.FUNCTIONS_BY_NAME, "set-image": newer},
    )
    assert resolve_inputs(prepared, variant, ClusterObjectIndex(())).digest != before


@pytest.mark.parametrize("local", ["", LOCAL], ids=["any object", "for tools alone"])
def test_a_function_may_change_what_a_later_one_is_configured_by(local):
    entries = (
        "{image: search-replace, configMap: {by-path: data.app, put-value: shop}}",
        "{image: apply-setters, configPath: values.yaml}",
    )
    only = ", selectors: [{kind: ConfigMap}]}"
    files = {"Kptfile": kptfile(entries[0][:-1] + only, entries[1]),
             "values.yaml": VALUES.format(local, "old"), "a.yaml": SERVICE}  # fmt: skip
    changed_files = run(files)
    assert changed_files == {"values.yaml": VALUES.format(local, "shop"),
                     "a.yaml": SERVICE.replace("web #", "shop #")}  # fmt: skip


def test_a_later_function_does_not_configure_an_earlier_one():
    entries = (
        "{image: apply-setters, configPath: values.yaml}",
        f"{{image: search-replace, selectors: [{{kind: ConfigMap}}], configMap: {SHOP}}}",
    )
    files = {"Kptfile": kptfile(*entries), "values.yaml": VALUES.format("", "old"),
             "a.yaml": SERVICE}  # fmt: skip
    assert run(files)["a.yaml"] == SERVICE.replace("web #", "old #")


SELECTIONS = [
    ("what is selected", "selectors: [{kind: Service}]", {"a.yaml"}),
    ("not what is excluded", "exclude: [{kind: Service}]", {"b.yaml"}),
    ("by name", "selectors: [{name: other}]", {"b.yaml"}),
    ("nothing", "selectors: [{kind: Pod}]", set()),
]


@pytest.mark.parametrize(("selection", "changed"), rows(SELECTIONS))
@pytest.mark.parametrize("more", [(), (LIST,)], ids=["shared", "by target"])
def test_a_function_changes(selection, changed, more):
    entry = f"{{image: ensure-name-substring, configMap: {{prepend: x-}}, {selection}}}"
    other = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: other\n"
    files = {"Kptfile": kptfile(entry), "a.yaml": SERVICE, "b.yaml": other}
    assert set(run(files, *more)) == changed


def test_two_functions_report_in_their_order():
    setters = FunctionSpec("create-setters", config={"secret": "other"})
    other = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: other\n"
    result = rendered({"a.yaml": SERVICE, "b.yaml": other}, LIST, setters, LIST)
    assert [remark.message.split(",")[0] for remark in result.results] == [
        "Name: app", "Name: app", "Name: secret"]  # fmt: skip


STEPS = [
    FunctionSpec("set-namespace", config={"namespace": "edge"}),
    FunctionSpec("set-labels", config={"app": "web"}),
    FunctionSpec("apply-setters", config={"app": "shop"}),
    FunctionSpec("create-setters", config={"word": "example"}),
    FunctionSpec("search-replace", config={"by-value": "example", "put-value": "new"}),
    FunctionSpec("set-image", config={"name": "a", "newTag": "2"}),
    FunctionSpec("remove-local-config-resources"),
]
FILES = {
    "a.yaml": f"{SERVICE}---\n{VALUES.format(LOCAL, 'tool')}",
    "point.yaml": f"{point()}data:\n  app: example # kpt-set: ${{app}}\n---\n{SERVICE}",
    "sub/b.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n"
    "  - {name: c, image: a:1}\n",
    "sub/Kptfile": kptfile("{image: set-annotations, configMap: {team: edge}}"),
}


@given(st.lists(st.sampled_from(STEPS), max_size=5))
def test_a_pipeline_gives_the_same_with_and_without_memory(steps):
    around = {"objects": (config_map("eu", data={"app": "example"}),),
              "injectors": (InjectorSpec("eu"),)}  # fmt: skip
    shared = rendered(FILES, *steps, **around)
    whole = rendered(FILES, *steps, LIST, **around)
    assert {path: entry for path, entry in shared.entries.items() if path != "Kptfile"} == {
        path: entry for path, entry in whole.entries.items() if path != "Kptfile"
    }
    for result in (shared, whole):
        assert result.tree == tree_id(result.entries)
        upstream = {entry.oid for entry, _ in package(FILES).files.values()}
        assert {entry.oid for entry in result.entries.values()} <= upstream | result.blobs.keys()


def test_a_namespace_that_yaml_takes_for_a_boolean_is_reported_as_a_boolean():
    config = "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nmetadata: {name: x}\n"
    files = {"Kptfile": configured_by("set-namespace"), "config.yaml": f"{config}namespace: n\n"}
    with pytest.raises(
        InvalidInput, match="set-namespace: namespace is not a string; put the value"
    ):
        run(files)
