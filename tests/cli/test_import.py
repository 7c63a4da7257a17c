"""`fanout import`: every folder in fixtures/import/porch and fixtures/import/kargo is a case.

`pytest tests/cli/test_import.py --update-golden` writes what comes out; look at the difference.
"""

import io
import json
from pathlib import Path

import pytest
import yaml

from fanout.cli.main import run_arguments

FIXTURES = Path(__file__).parents[2] / "fixtures/import"
CASES = sorted(case for program in FIXTURES.iterdir() for case in program.iterdir())
PROGRAMS = sorted(program.name for program in FIXTURES.iterdir())
REPOSITORY = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: edge}
spec: {type: git, git: {repo: https://git.example.com/edge.git}}
"""


@pytest.fixture(params=CASES, ids=lambda case: f"{case.parent.name} {case.name}")
def case(request, monkeypatch):
    monkeypatch.chdir(request.param)
    return request.param


def test_case(case, capsys, update_golden):
    status = run_arguments(["import", case.parent.name, "-f", "input.yaml"])
    out, err = capsys.readouterr()
    if update_golden:
        (case / "expected.yaml").write_text(out, encoding="utf-8")
        (case / "notes.txt").write_text(err, encoding="utf-8")
    assert out == (case / "expected.yaml").read_text(encoding="utf-8")
    assert err == (case / "notes.txt").read_text(encoding="utf-8")
    named = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert status == (3 if named else 0)


def test_imported_objects_are_valid(case, capsys):
    status = run_arguments(["validate", "-f", "expected.yaml"])
    lines = [it for it in capsys.readouterr().out.splitlines() if not it.startswith("warning: ")]
    assert [it for it in lines if "objects are valid" not in it] == []
    assert status == 0


def test_json_is_a_list_of_the_same_objects(case, capsys):
    run_arguments(["import", case.parent.name, "-f", "input.yaml", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "List"
    written = (case / "expected.yaml").read_text(encoding="utf-8")
    assert answer["items"] == list(yaml.safe_load_all(written))


def test_a_dash_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(REPOSITORY.encode())))
    assert run_arguments(["import", "porch", "-f", "-"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["spec"] == {
        "url": "https://git.example.com/edge.git"
    }


def test_a_directory_is_read_whole_and_each_line_names_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.yaml").write_text(REPOSITORY)
    (tmp_path / "in/b.json").write_text('{"kind": "List",\n "items": [\n  {"kind": "Secret"}]}')
    assert run_arguments(["import", "porch", "-f", "in"]) == 3
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["metadata"] == {"name": "edge"}
    assert err.startswith("in/b.json:3: Secret: kind: ")


def test_only_the_namespace_that_was_asked_for_is_read(tmp_path, capsys):
    other = REPOSITORY.replace("{name: edge}", "{name: far, namespace: far}")
    (tmp_path / "a.yaml").write_text(f"{REPOSITORY}---\n{other}")
    assert run_arguments(["import", "porch", "-f", str(tmp_path), "-n", "far"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"] == {
        "name": "far",
        "namespace": "far",
    }


UNREADABLE = [
    ("no YAML", b"a: [1\n"),
    ("a key twice", b"kind: A\nkind: B\n"),
    ("not UTF-8", b"\xff\xfe"),
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("data", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_unreadable_input_yields_nothing(data, program, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(REPOSITORY)
    (tmp_path / "b.yaml").write_bytes(data)
    assert run_arguments(["import", program, "-f", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "b.yaml" in err


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("arguments", [[], ["-f", "nowhere.yaml"]], ids=["no file", "none there"])
def test_without_a_file_there_is_nothing_to_import(
    arguments, program, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run_arguments(["import", program, *arguments]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_empty_input_yields_nothing_and_is_no_fault(program, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text("---\n")
    assert run_arguments(["import", program, "-f", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_an_object_of_the_program_s_the_kinds_are_named(program, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert run_arguments(["import", program, "-f", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "a.yaml:2: ConfigMap/a: kind: ConfigMap v1 is not translated; supported: " in err


def test_of_kargo_s_projects_only_the_one_asked_for_is_read(monkeypatch, capsys):
    monkeypatch.chdir(FIXTURES / "kargo/automation-and-windows")
    assert run_arguments(["import", "kargo", "-f", "input.yaml", "-n", "plain"]) == 3
    made = yaml.safe_load_all(capsys.readouterr().out)
    assert {item["metadata"]["namespace"] for item in made} == {"plain"}
