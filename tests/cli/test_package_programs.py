"""`fanout package render` and `validate` with validators and with programs that are allowed."""

import json

import pytest
from cli.packages import KPTFILE, config_map, deployment, pipeline, put, state

from fanout.cli.main import run_arguments

NOTE = """\
#!/bin/sh
# returns everything as it came, with another value and a warning
sed 's/text: a/text: b/'
printf 'results:\\n- {message: odd, severity: warning, file: {path: m.yaml, index: 0},'
printf ' field: {path: data.text}}\\n'
"""
MAP = config_map(more="data:\n  text: a # said\n")


@pytest.fixture
def program_package(tmp_path):
    """A package with a program in its pipeline, and the configuration that allows it."""
    directory = put(tmp_path / "package", {"Kptfile": pipeline("{exec: note}"), "m.yaml": MAP})
    put(tmp_path, {"bin/note*": NOTE})
    config = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
    config += f"functions: {{executables: [{{path: {tmp_path}/bin/note}}]}}\n"
    put(tmp_path, {"config.yaml": config})
    return directory, ("--config", str(tmp_path / "config.yaml"))


def test_a_program_changes_the_package_and_its_warning_is_reported(program_package, capsys):
    directory, config = program_package
    assert run_arguments(["package", "render", str(directory), *config]) == 0
    expected_output = "warning: note: m.yaml:6: data.text: odd\nchanged: m.yaml\n"
    assert capsys.readouterr().out == expected_output
    assert (directory / "m.yaml").read_text() == MAP.replace("text: a", "text: b")


def test_without_the_configuration_it_is_refused_and_nothing_changes(program_package, capsys):
    directory, _ = program_package
    before = state(directory)
    assert run_arguments(["package", "render", str(directory)]) == 2
    assert "the executable note is not allowed" in capsys.readouterr().err
    assert run_arguments(["package", "validate", str(directory)]) == 2
    assert "Kptfile:7: Kptfile: pipeline.mutators[0]: the executable" in capsys.readouterr().out
    assert state(directory) == before


def test_a_warning_is_no_fault(program_package, capsys):
    directory, config = program_package
    before = state(directory)
    assert run_arguments(["package", "validate", str(directory), *config]) == 0
    out = capsys.readouterr().out
    assert out == f"warning: note: {directory}/m.yaml:6: data.text: odd\nthe package is valid\n"
    assert run_arguments(["package", "validate", str(directory), *config, "-o", "json"]) == 0
    [warning] = json.loads(capsys.readouterr().out)
    assert (warning["severity"], warning["problem"], warning["line"]) == (
        "warning",
        "odd (note)",
        6,
    )
    assert state(directory) == before


def test_a_bad_configuration_is_reported(program_package, tmp_path, capsys):
    directory, _ = program_package
    text = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
    text += "functions:\n  executables: [{path: bin/note}]\n"
    put(tmp_path, {"bad.yaml": text})
    config = ("--config", str(tmp_path / "bad.yaml"))
    assert run_arguments(["package", "render", str(directory), *config]) == 2
    assert "executables[0].path: 'bin/note' is not an absolute path" in capsys.readouterr().err


def test_every_fault_that_a_validator_finds_is_a_fault_with_its_line(tmp_path, capsys):
    kptfile = f"{KPTFILE}pipeline:\n  validators:\n  - image: kubeconform\n"
    directory = put(tmp_path, {"Kptfile": kptfile, "web.yaml": deployment(replicas="many")})
    assert run_arguments(["package", "validate", str(directory)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        (
            f"{directory}/web.yaml:5: Deployment/web: spec.selector: required field is missing"
            " (kubeconform); correct the package"
        ),
        (
            f"{directory}/web.yaml:5: Deployment/web: spec.template: required field is missing"
            " (kubeconform); correct the package"
        ),
        (
            f"{directory}/web.yaml:6: Deployment/web: spec.replicas: 'many' is not a whole number"
            " (kubeconform); correct the package"
        ),
    ]
