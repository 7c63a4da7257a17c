"""`fanout package render` on real directories."""

import json
import os
from pathlib import Path

import pytest
from cli.packages import KPTFILE, config_map, deployment, pipeline, put, state

from fanout.cli.main import run_arguments
from fanout.variants.function_registry import FUNCTIONS_BY_NAME
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    FunctionResult,
    no_object_changes,
)

CASES = Path(__file__).parents[2] / "fixtures/functions"
LABELS = "{image: set-labels, configMap: {team: shop}}"


def image(name, tag):
    return f"{{image: set-image, configMap: {{name: {name}, newTag: {tag}}}}}"


@pytest.fixture
def package(tmp_path):
    return lambda files: put(tmp_path / "package", files)


def render(directory, *options):
    return run_arguments(["package", "render", str(directory), *map(str, options)])


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_a_package_is_rendered_as_a_variant_is_and_rendering_again_changes_nothing(case, tmp_path):
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert render(case / "input", "--to", once) == 0
    content = state(once)
    assert content.pop("Kptfile") == (case / "input" / "Kptfile").read_bytes()
    assert content == state(case / "expected")
    assert render(once, "--to", twice) == 0
    assert state(twice) == state(once)


def test_in_place_only_what_changed_is_written_and_named(package, capsys):
    directory = package(
        {"Kptfile": pipeline(LABELS), "web.yaml": deployment(), "run*": "x", ".git/HEAD": "x"}
    )
    before = state(directory)
    assert render(directory) == 0
    after = state(directory)
    assert capsys.readouterr().out == "changed: web.yaml\n"
    assert b"team: shop" in after["web.yaml"]
    assert b"replicas: 2 # enough" in after["web.yaml"]
    assert {**after, "web.yaml": b""} == {**before, "web.yaml": b""}
    assert render(directory) == 0
    assert capsys.readouterr().out == ""
    assert state(directory) == after


def test_to_another_directory_the_whole_package_goes_and_the_first_stays(package, tmp_path):
    directory = package({"Kptfile": pipeline(LABELS), "web.yaml": deployment(), "run*": "x"})
    before = state(directory)
    assert render(directory, "--to", tmp_path / "to") == 0
    assert state(directory) == before
    assert state(tmp_path / "to").keys() == before.keys()


def test_subpackages_are_rendered_first_and_each_for_itself(package):
    sub = pipeline("{image: set-annotations, configMap: {by: inner}}", LABELS)
    outer = pipeline("{image: set-annotations, configMap: {by: outer}}")
    directory = package(
        {"Kptfile": outer, "a.yaml": config_map("a"), "b/Kptfile": sub, "b/b.yaml": config_map("b")}
    )
    assert render(directory) == 0
    inside = (directory / "b" / "b.yaml").read_text()
    assert "by: outer" in inside
    assert "team: shop" in inside
    assert "team" not in (directory / "a.yaml").read_text()


def test_the_package_context_is_what_the_file_says_and_none_is_made(package):
    mark = '  annotations: {config.kubernetes.io/local-config: "true"}\n'
    context = config_map("kptfile.kpt.dev", f"{mark}data:\n  name: mine\n")
    kptfile = pipeline("{image: set-namespace, configPath: package-context.yaml}")
    files = {"Kptfile": kptfile, "web.yaml": deployment(), "package-context.yaml": context}
    directory = package(files)
    assert render(directory) == 0
    assert "namespace: mine" in (directory / "web.yaml").read_text()
    assert (directory / "package-context.yaml").read_text() == context
    search = pipeline("{image: search-replace, configMap: {by-value: example, put-value: x}}")
    bare = put(directory.parent / "bare", {"Kptfile": search})
    assert render(bare) == 0
    assert state(bare) == {"Kptfile": search.encode()}


def test_results_are_printed_and_in_the_report(package, capsys):
    text = deployment().replace("# enough", "# kpt-set: ${replicas}")
    directory = package({"Kptfile": pipeline("{image: list-setters}"), "web.yaml": text})
    assert render(directory) == 0
    line = "Name: replicas, Value: 2, Type: int, Count: 1"
    assert capsys.readouterr().out == f"info: list-setters: {line}\n"
    assert render(directory, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "RenderReport",
        "changed": [],
        "results": [
            {
                "message": line,
                "severity": "info",
                "function": "list-setters",
                "object": "",
                "field": "",
                "file": "",
                "line": 0,
            }
        ],
    }


def test_files_that_functions_add_and_remove_are_named(tmp_path, capsys):
    for name, line in [
        ("upsert-resource", "added: configmap_web-settings.yaml\n"),
        ("remove-local-config-resources", "removed: setters.yaml\n"),
    ]:
        assert render(CASES / name / "input", "--to", tmp_path / name) == 0
        assert line in capsys.readouterr().out


def test_errors_of_a_function_are_printed_and_no_file_is_written(package, monkeypatch, capsys):
    results = (FunctionResult("all is bad", "error"), FunctionResult("some is odd", "warning"))
    checker = CatalogFunction(
        "checker", "1", repr, no_object_changes, report_package=lambda *_: iter(results)
    )
    monkeypatch.setitem(FUNCTIONS_BY_NAME, "checker", checker)
    directory = package({"Kptfile": pipeline(LABELS, "{image: checker}"), "web.yaml": deployment()})
    before = state(directory)
    assert render(directory) == 2
    assert capsys.readouterr().out == "error: checker: all is bad\nwarning: checker: some is odd\n"
    assert state(directory) == before
    assert run_arguments(["package", "validate", str(directory)]) == 2
    assert "all is bad" in capsys.readouterr().out


def breadth_first(kptfile):
    note = "  name: shop\n  annotations:\n    kpt.dev/bfs-rendering: 'true'\n"
    return kptfile.replace("  name: shop\n", note)


WEB = {"web.yaml": deployment()}
ANY = {"Kptfile": pipeline(LABELS), **WEB}
REFUSED = [
    ("no Kptfile", WEB, "/package: there is no Kptfile"),
    (
        "a function that is not there",
        {"Kptfile": pipeline(LABELS, "{image: gatekeeper}"), **WEB},
        "/package/Kptfile:8: Kptfile: pipeline.mutators[1]: the function gatekeeper is",
    ),
    (
        "a function of somebody else's",
        {"Kptfile": pipeline("{image: example.com/set-labels:v1}"), **WEB},
        "the function example.com/set-labels:v1 is not available",
    ),
    (
        "an executable",
        {"Kptfile": pipeline("{exec: ./run}"), **WEB},
        "the executable ./run is not allowed; ask an administrator to allow it",
    ),
    (
        "a validator that is not there",
        {"Kptfile": pipeline("{image: gatekeeper}", section="validators"), **WEB},
        "pipeline.validators[0]: the function gatekeeper is not available; check the policies",
    ),
    (
        "the last of two functions fails",
        {"Kptfile": pipeline(LABELS, "{image: set-image, configMap: {nam: x}}"), **WEB},
        "/package/Kptfile:8: Kptfile: pipeline.mutators[1]: set-image: ",
    ),
    (
        "a file that cannot be read",
        {**ANY, "z.yaml": "a: 1\na: 2\n\tb: 3\n"},
        "/package/z.yaml:",
    ),
    (
        "a package context that is not there",
        {"Kptfile": pipeline("{image: set-namespace, configPath: package-context.yaml}")},
        "there is no package-context.yaml",
    ),
    (
        "the package around another is to be rendered first",
        {"Kptfile": breadth_first(pipeline(LABELS)), "sub/Kptfile": KPTFILE},
        "/package/Kptfile:6: Kptfile: metadata.annotations",
    ),
]


@pytest.mark.parametrize(
    ("files", "sentence"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
@pytest.mark.parametrize("to", [False, True], ids=["in place", "to"])
def test_a_failed_rendering_names_the_place_and_changes_no_file(
    package, tmp_path, capsys, files, sentence, to
):
    directory = package(files)
    before = state(tmp_path)
    assert render(directory, *(["--to", tmp_path / "to"] if to else [])) == 2
    out, err = capsys.readouterr()
    assert (out, sentence in err) == ("", True), err
    assert state(tmp_path) == before


def test_links_and_full_targets_are_refused(package, tmp_path, capsys):
    directory = package(ANY)
    assert render(directory, "--to", directory) == 1
    assert "is not empty" in capsys.readouterr().err
    (directory / "link").symlink_to(os.devnull)
    assert render(directory) == 2
    assert "/package/link: is a symbolic link" in capsys.readouterr().err
