"""What a `.krmignore` names is bytes in all of fanout, whatever it contains."""

import pytest
from package.merge.test_package_update import kptfile, merge, package, thing
from variants.running import kptfile as pipeline
from variants.running import rendered, run

from fanout.cli.verbs.package import PackageFunctions, validate_package
from fanout.errors import InvalidInput
from fanout.plan.edits.draft_damage import find_new_faults
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.function_requests import AllowedPrograms

RUNTIME = PackageFunctions(AllowedPrograms({}, {}), FunctionResultCache(None))
CHART = "replicas: {{ .Values.replicas }}\n"  # no YAML
A, A2 = thing("a"), thing("a", 2)
IGNORING = {".krmignore": "templates\n"}
FILES = {"Kptfile": kptfile(), **IGNORING, "a.yaml": A, "templates/a.yaml": A}
BROKEN = {**FILES, "templates/chart.yaml": CHART}
LABELS = FunctionSpec("set-labels", config={"app": "x"})


def faults(files, reference):
    return [str(it) for it in find_new_faults(package(files), [package(reference)], "p")]


def validated(files):
    report = validate_package(package(files), RUNTIME)
    return [str(it) for it in report.errors], [it.sentence for it in report.warnings]


def test_functions_do_not_get_it():
    assert run(BROKEN, LABELS).keys() == {"a.yaml"}
    assert run({**BROKEN, ".krmignore": "/chart.yaml\ntemplates/chart.yaml\n"}, LABELS).keys() == {
        "a.yaml",
        "templates/a.yaml",
    }
    assert [it.sentence for it in rendered(BROKEN).results] == []


def test_an_ignored_file_need_not_be_valid():
    assert validated(BROKEN) == ([], [])
    with pytest.raises(InvalidInput, match=r"templates/chart\.yaml"):
        rendered({**BROKEN, ".krmignore": ""})


def test_an_edit_of_it_breaks_no_draft():
    assert faults(BROKEN, FILES) == []
    assert faults({**FILES, "templates/b.yaml": A}, FILES) == []
    read = {"Kptfile": kptfile(), "a.yaml": A}
    assert faults({**read, "templates/chart.yaml": CHART}, read) != []


def test_a_file_that_is_no_longer_ignored_is_an_object_again():
    """The edit that emptied the rules brought the fault in, in a file that it did not touch."""
    [fault] = faults({**FILES, ".krmignore": ""}, FILES)
    assert "the object is also at a.yaml" in fault


def test_a_configuration_of_a_function_is_read_all_the_same():
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {app: x}\n"
    files = {
        **BROKEN,
        "Kptfile": pipeline("{image: set-labels, configPath: templates/config.yaml}"),
        "templates/config.yaml": config,
    }
    assert run(files).keys() == {"a.yaml"}
    assert validated(files) == ([], [])


def test_the_rules_of_one_subpackage_are_not_those_of_another():
    files = {
        "Kptfile": kptfile(),
        "one/Kptfile": kptfile("one"),
        "one/.krmignore": "*.yaml\n",
        "one/a.yaml": CHART,
        "two/Kptfile": kptfile("two"),
        "two/a.yaml": A,
    }
    assert validated(files) == ([], [])
    assert run(files, LABELS).keys() == {"two/a.yaml"}


def test_too_many_patterns_are_an_error_of_the_package():
    [[error], _] = validated({**FILES, ".krmignore": "*a\n" * 5001})
    assert "has more than 10,000 characters of patterns" in error
    with pytest.raises(InvalidInput, match="has more than 10,000 characters of patterns"):
        rendered({**FILES, ".krmignore": "*a\n" * 5001})


def test_an_ignored_file_is_merged_as_text():
    base = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1, b: 1}\n"
    upstream, local = base.replace("a: 1", "a: 2"), base.replace("b: 1", "b: 2")
    sides = [{**FILES, "templates/a.yaml": text} for text in (base, upstream, local)]
    _, [conflict] = merge(*sides)
    assert conflict.startswith("templates/a.yaml")
    objects = [{**it, ".krmignore": "", "a.yaml": CHART} for it in sides]
    files, conflicts = merge(*objects)
    assert conflicts == []
    assert "{a: 2, b: 2}" in files["templates/a.yaml"]


def test_a_sealed_file_stays_one_value():
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
        "stringData:\n  a: ENC[1]\n  b: ENC[1]\n"
        "sops:\n  mac: ENC[{}]\n  version: 3.9.0\n"
    )
    base = text.format("0")
    upstream = text.format("1").replace("a: ENC[1]", "a: ENC[2]")
    local = text.format("2").replace("b: ENC[1]", "b: ENC[2]")
    files, conflicts = merge(*({**FILES, "templates/s.yaml": it} for it in (base, upstream, local)))
    assert files["templates/s.yaml"] in (upstream, local)
    assert len(conflicts) == 1
