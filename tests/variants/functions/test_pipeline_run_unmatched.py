"""Settings that match nothing in a package: said, whichever way the package is rendered."""

import pytest
from variants.builders import config_map, package, point, rows, spec
from variants.running import kptfile, rendered

from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

POD = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web # kpt-set: ${name}\nspec:\n"
    "  containers:\n  - name: web\n    image: nginx:1 # kpt-set: nginx:${tag}\n"
)
FILES = {"a.yaml": POD, "b.yaml": POD.replace("name: web #", "name: other #")}


def remarks(files, *mutators, **fields):
    results = rendered(files, *mutators, **fields).results
    return [(it.severity, it.function, it.message) for it in results]


def setters(**values):
    return FunctionSpec("apply-setters", config=values)


def image(name, tag="2"):
    return FunctionSpec("set-image", config={"name": name, "newTag": tag})


UNMATCHED = [
    ("a setter", setters(tagg="2"), [("warning", "no field has a setter tagg")]),
    ("all of several", setters(b="1", a="1"), [("warning", "no field has a setter a, b")]),
    ("one of several", setters(tag="2", tagg="2"), [("info", "no field has a setter tagg")]),
    ("none of several", setters(tag="2", name="a"), []),
    ("a setter whose value is there", setters(tag="1"), []),
    ("an image", image("ngnix"), [("warning", "no container has the image ngnix")]),
    ("no image", image("nginx"), []),
    ("an image whose tag is there", image("nginx", "1"), []),
    ("a value", FunctionSpec("create-setters", config={"x": "unheard-of"}),
     [("warning", "no field has the value of the setter x")]),
    ("no value", FunctionSpec("create-setters", config={"x": "nginx"}), []),
]  # fmt: skip


WHOLE = FunctionSpec("ensure-name-substring", config={"append": "-x"})


@pytest.mark.parametrize(("mutator", "expected"), rows(UNMATCHED))
@pytest.mark.parametrize(
    "further", [(), (WHOLE,)], ids=["object by object", "with a function of the whole package"]
)
def test_a_setting_without_a_match_is_reported(mutator, expected, further):
    reported = remarks(FILES, mutator, *further)
    assert reported == [(severity, mutator.image, text) for severity, text in expected]


def test_an_unmatched_setting_of_the_package_s_own_functions_has_its_place():
    files = {**FILES, "Kptfile": kptfile("{image: set-image, configMap: {name: ngnix, newTag: a}}")}
    [result] = rendered(files).results
    assert result.sentence == "set-image: Kptfile:7: no container has the image ngnix"


def test_only_objects_that_the_function_gets_count():
    files = {
        **FILES,
        "sub/Kptfile": kptfile("{image: set-image, configMap: {name: nginx, newTag: a}}"),
    }
    assert [severity for severity, *_ in remarks(files)] == ["warning"]


def test_a_function_before_may_make_what_is_looked_for():
    renamed = FunctionSpec("set-image", config={"name": "nginx", "newName": "caddy"})
    assert remarks(FILES, renamed, image("caddy")) == []
    [(_, _, message)] = remarks(FILES, renamed, image("nginx"))
    assert message == "no container has the image nginx"


def variants_of(files, *mutator_lists, injected=""):
    prepared = prepare_package(package(files), RenderLimits())
    for number, mutators in enumerate(mutator_lists):
        variant = spec(mutators=mutators, context={"site": f"s{number}"})
        inputs = resolve_inputs(prepared, variant, ClusterObjectIndex(()))
        yield render_variant(prepared, variant, inputs, {})


def test_variants_of_one_shape_say_the_same():
    """From the second on they are filled into a template."""
    lists = [
        (setters(tag=f"v{number}", tagg="x"), image("ngnix", f"v{number}")) for number in range(4)
    ]
    messages = [[it.message for it in each.results] for each in variants_of(FILES, *lists)]
    assert messages == [["no field has a setter tagg", "no container has the image ngnix"]] * 4


def test_settings_are_matched_with_the_objects_of_each_target():
    """The object of an injection point is not that of the package."""
    files = {
        "point.yaml": f"{point(mark='optional')}data:\n  size: a # kpt-set: ${{size}}\n",
        **FILES,
    }
    sites = [
        config_map("settings", data={"size": "b"}),
        config_map("settings", data={"other": "c"}),
    ]
    for objects, injectors in (((), ()), *(((it,), (InjectorSpec("settings"),)) for it in sites)):
        fields = {"objects": objects, "injectors": injectors}
        mutators = (setters(size="x", tagg="y"), image("nginx"))
        reported = remarks(files, *mutators, **fields)
        assert reported == remarks(files, *mutators, WHOLE, **fields)
        has_setter = not objects or "size" in objects[0]["data"]
        expected = ("info", "tagg") if has_setter else ("warning", "size, tagg")
        assert reported == [(expected[0], "apply-setters", f"no field has a setter {expected[1]}")]
