"""What is put into a package is counted before it is there."""

import subprocess
import sys

import pytest
from variants.builders import by, config_map, package, point, rows, spec
from variants.programs import Shop
from variants.running import NOBODY, kptfile, rendered

from fanout.errors import InvalidInput
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.compiled_template import CompiledTemplate
from fanout.variants.function_requests import AllowedPrograms, KrmProgram
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

LONG = "x" * 2_000
SMALL = {"file_size": 20_000, "size": 60_000, "files": 20}
PROGRAM = KrmProgram("fn", "/opt/fn", version="1")


def settings(count, value="v # kpt-set: ${a}", name="settings"):
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n"
    return head + "".join(f"  k{number}: {value}\n" for number in range(count))


def objects(count):
    return "---\n".join(settings(1, name=f"o{number}") for number in range(count))


def setters(**values):
    return FunctionSpec("apply-setters", config=values)


REPLACEMENTS = "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: r\n"
DOUBLING = REPLACEMENTS + "replacements:\n" + "".join(
    f"- source: {{kind: ConfigMap, name: settings, fieldPath: data.{one}}}\n"
    f"  targets:\n  - select: {{kind: ConfigMap, name: settings}}\n    fieldPaths: [data.{other}]\n"
    "    options: {delimiter: '|', index: 1000000000}\n"
    for _ in range(15)
    for one, other in (("k0", "k1"), ("k1", "k0"))
)  # fmt: skip
NESTING = REPLACEMENTS + "replacements:\n" + "".join(
    f"- source: {{kind: ConfigMap, name: settings, fieldPath: {one}}}\n"
    "  targets:\n  - select: {kind: ConfigMap, name: settings}\n"
    f"    fieldPaths: [{other}.x{n}, {other}.y{n}]\n"
    "    options: {create: true}\n"
    for n in range(15)
    for one, other in (("data", "spec"), ("spec", "data"))
)  # fmt: skip
BOMB = "[" + ", ".join("&a0 " + LONG if n == 0 else "*a0" for n in range(50)) + "]"

GROWING = [
    # what grows, the package, the policy's functions; words of the message
    ("a setter in many places", {"a.yaml": settings(50)}, [setters(a=LONG)],
     ("a.yaml:", "data.k9", "apply-setters: the file would have more than 20,000 bytes",
      "packageLimits.fileBytes")),
    ("a setter many times in one value",
     {"a.yaml": settings(1, f"v # kpt-set: {'${a}' * 50}")}, [setters(a=LONG)],
     ("a.yaml:", "apply-setters: the value would have more than 20,000 bytes")),
    ("a setter in many files", {f"{n}.yaml": settings(9) for n in range(9)}, [setters(a=LONG)],
     ("apply-setters: the package would have more than 60,000 bytes", "packageLimits.bytes")),
    ("a list that shares its elements", {"a.yaml": settings(1, "[] # kpt-set: ${a}")},
     [setters(a=BOMB)], ("a.yaml:", "apply-setters: the file would have")),
    ("a long replacement",
     {"a.yaml": settings(50)},
     [FunctionSpec("search-replace", config={"by-value": "v", "put-value": LONG})],
     ("a.yaml:", "search-replace: the file would have")),
    ("a group many times",
     {"a.yaml": settings(1, LONG)},
     [FunctionSpec("search-replace", config={"by-value-regex": "(x+)", "put-value": "${1}" * 50})],
     ("a.yaml:", "search-replace: the value would have")),
    ("comments", {"a.yaml": settings(50, "v")},
     [FunctionSpec("search-replace", config={"by-value": "v", "put-comment": LONG})],
     ("a.yaml:", "search-replace: the file would have")),
    ("annotations of many objects", {"a.yaml": objects(50)},
     [FunctionSpec("set-annotations", config={"note": LONG})],
     ("a.yaml:", "set-annotations: the file would have")),
    ("labels of many objects", {"a.yaml": objects(200)},
     [FunctionSpec("set-labels", config={"note": "x" * 60})],
     ("a.yaml:", "set-labels: the file would have")),
    ("texts that double each other",
     {"a.yaml": settings(2, "v"), "r.yaml": DOUBLING,
      "Kptfile": kptfile("{image: apply-replacements, configPath: r.yaml}")}, [],
     ("a.yaml:", "apply-replacements: replacements[", "would have more than")),
    ("maps that hold each other",
     {"a.yaml": settings(2, "v"), "r.yaml": NESTING,
      "Kptfile": kptfile("{image: apply-replacements, configPath: r.yaml}")}, [],
     ("a.yaml:", "apply-replacements: replacements[", "would have more than")),
]  # fmt: skip


@pytest.mark.parametrize(("files", "functions", "words"), rows(GROWING))
def test_an_oversized_rendering_names_the_file_the_function_and_the_limit(files, functions, words):
    limits = RenderLimits(**SMALL)
    with pytest.raises(InvalidInput) as caught:
        rendered(files, *functions, limits=limits)
    assert caught.value.reason == "LimitExceeded"
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_values_that_take_the_place_of_others_are_no_growth():
    files = {"a.yaml": settings(9, f"{LONG} # kpt-set: ${{a}}")}
    functions = [setters(a=letter * 2_000) for letter in "abcdefgh"]
    rendered(files, *functions, limits=RenderLimits(**SMALL))


def test_an_injected_object_that_is_too_large_is_named():
    big = config_map("eu", data={f"k{number}": LONG for number in range(20)})
    with pytest.raises(InvalidInput) as caught:
        rendered(
            {"a.yaml": point()}, objects=[big], injectors=(by("eu"),), limits=RenderLimits(**SMALL)
        )
    assert caught.value.reason == "LimitExceeded"
    assert "a.yaml:1: ConfigMap/settings" in str(caught.value)
    assert "injection: the file would have more than 20,000 bytes" in str(caught.value)


def test_a_package_context_that_is_too_large_is_named():
    with pytest.raises(InvalidInput, match="package context: the file would have"):
        rendered({}, context={f"k{n}": LONG for n in range(20)}, limits=RenderLimits(**SMALL))


def test_labels_of_the_kptfile_are_counted():
    with pytest.raises(InvalidInput, match=r"Kptfile: the file has .* more than 20,000"):
        rendered({}, annotations={f"k{n}": LONG for n in range(20)}, limits=RenderLimits(**SMALL))


def test_a_name_gets_no_text_that_no_name_has_room_for():
    with pytest.raises(InvalidInput, match="the text to append has 2,000 characters"):
        rendered(
            {"a.yaml": objects(2)}, FunctionSpec("ensure-name-substring", config={"append": LONG})
        )


PROGRAMS = [
    ("files without end", lambda n: f"more-{n}.yaml", "x", "has more than 20 files"),
    ("an object too large", lambda _: "more.yaml", LONG * 20, "the file would have more than"),
]


@pytest.mark.parametrize(("path", "text", "words"), rows(PROGRAMS))
def test_objects_added_by_a_program_are_counted(path, text, words):
    def work(whole):
        for number in range(40):
            notes = {"internal.config.kubernetes.io/path": path(number)}
            meta = {"name": f"n{number}", "annotations": notes}
            item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": text}}
            whole["items"].append(item)

    limits = RenderLimits(**SMALL, programs=AllowedPrograms({"fn": PROGRAM}, {}))
    with pytest.raises(InvalidInput) as caught:
        rendered(
            {"Kptfile": kptfile("exec: fn")},
            limits=limits,
            answering=FunctionResultCache(Shop(work)),
        )
    assert caught.value.reason == "LimitExceeded"
    assert words in str(caught.value)
    assert "fn: " in str(caught.value)


def test_variants_that_are_filled_in_are_counted_too():
    """The first two make the mould; what the third puts into it is too long."""
    prepared = prepare_package(package({"a.yaml": settings(9)}), RenderLimits(**SMALL))
    outcomes = []
    for value in ("one", "two", "three", "x" * 3_000):
        variant = spec(mutators=(setters(a=value),))
        inputs = resolve_inputs(prepared, variant, ClusterObjectIndex(()))
        try:
            render_variant(prepared, variant, inputs)
            outcomes.append("")
        except InvalidInput as error:
            outcomes.append(str(error))
    assert any(isinstance(mould, CompiledTemplate) for mould in prepared.template_cache.values())
    assert outcomes[:3] == ["", "", ""]
    assert "apply-setters: the file would have more than 20,000 bytes" in outcomes[3]


MEASURE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from variants.test_size_accounting import hostile
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
hostile()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def hostile():
    """A package of 70 kB that a setter makes 200 MB of."""
    with pytest.raises(InvalidInput, match="apply-setters: the file would have more than"):
        rendered({"a.yaml": settings(2_500)}, setters(a="x" * 80_000), answering=NOBODY)


def test_oversized_results_take_no_memory(request):
    tests = str(request.config.rootpath / "tests")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tests], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 100 << 10  # KiB


def test_a_package_with_too_many_values_is_refused_by_name():
    files = {"a.yaml": settings(9), "b.yaml": settings(9)}
    with pytest.raises(InvalidInput) as caught:
        prepare_package(package(files), RenderLimits(values=30))
    assert caught.value.reason == "LimitExceeded"
    assert str(caught.value).startswith("b.yaml: the package has more than 30 YAML values")
    assert "packageLimits.values" in caught.value.remedy
    prepare_package(package(files), RenderLimits(values=50))


def test_an_injected_object_with_too_many_values_is_named():
    big = config_map("eu", data={f"k{number}": "" for number in range(100)})
    with pytest.raises(InvalidInput) as caught:
        rendered(
            {"a.yaml": point()},
            objects=[big],
            injectors=(by("eu"),),
            limits=RenderLimits(values=90),
        )
    assert caught.value.reason == "LimitExceeded"
    assert "injection: the package would have more than 90 YAML values" in str(caught.value)
    assert "packageLimits.values" in str(caught.value)


def test_values_that_a_setter_puts_into_many_places_are_counted():
    files = {"a.yaml": settings(20, "[] # kpt-set: ${a}")}
    values = f"[{', '.join(map(str, range(20)))}]"
    with pytest.raises(InvalidInput, match="the package would have more than 200 YAML values"):
        rendered(files, setters(a=values), limits=RenderLimits(values=200))
    rendered(files, setters(a="[1, 2]"), limits=RenderLimits(values=200))
