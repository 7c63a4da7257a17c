"""Output options of `fanout get` that kubectl has too, and its tables on real terminals."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from fleet import Fleet
from pseudo_terminal import run_on_terminal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "output.md"
[SHOWN] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Three sites, drafted."""
    made = Fleet.build(tmp_path_factory.mktemp("company"))
    made.sweep()
    return made


def test_a_single_object_by_name_is_printed_without_a_list(fleet: Fleet):
    names = fleet.run("get", "variants", "-o", "jsonpath={.items[*].metadata.name}").out.split()
    assert len(names) == 3
    alone = fleet.run("get", "variant", names[0], "-o", "json").json
    assert (alone["kind"], alone["metadata"]["name"]) == ("PackageVariant", names[0])
    assert fleet.run("get", "variants", *names[:2], "-o", "json").json["kind"] == "List"


def test_custom_columns_sorted_without_heads(fleet: Fleet):
    columns = "custom-columns=PATH:.spec.downstream.package,NAME:.metadata.name"
    path = ".spec.downstream.package"
    result = fleet.run("get", "variants", "-o", columns, "--sort-by", path, "--no-headers")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["sites/ams", "sites/ber", "sites/cph"]


@pytest.mark.parametrize("line", SHOWN.splitlines())
def test_the_commands_of_the_page_print_a_line_for_each_variant(fleet: Fleet, line: str):
    result = fleet.run(*shlex.split(line)[1:])
    assert result.code == 0, result.err
    rows = [row for row in result.out.splitlines() if row.startswith("monitoring-")]
    assert len(rows) == 3
    assert all(len(row.split()) == 2 and "<none>" not in row for row in rows)


def test_a_bad_template_ends_before_the_pass(fleet: Fleet):
    fresh = replace(fleet, state="fresh")
    result = fresh.run("get", "variants", "-o", "jsonpath={.items[*}")
    assert (result.code, result.out) == (1, "")
    assert "missing ] at position 8" in result.err
    assert not (fleet.root / "fresh").exists()


@pytest.mark.parametrize("option", ["jsonpath", "custom-columns=", "table=x", "xml"])
def test_a_bad_format_is_refused(fleet: Fleet, option: str):
    result = fleet.run("get", "variants", "-o", option)
    assert (result.code, result.out) == (1, "")


def test_all_namespaces_exclude_one(fleet: Fleet):
    everything = fleet.run("get", "variants", "-A", "-o", "json").items
    assert len(everything) == 3
    refused = fleet.run("get", "variants", "-A", "-n", "other")
    assert refused.code == 1
    assert "exclude each other" in refused.err


def test_quiet_prints_no_notes(fleet: Fleet):
    loud = fleet.run("get", "evidence")
    assert (loud.out, loud.err) == ("", "no resources found\n")
    assert fleet.run("get", "evidence", "-q").err == ""


@pytest.mark.parametrize("columns", [20, 80])
@pytest.mark.parametrize("noun", ["policies", "variants", "stages", "targets", "drafts"])
def test_tables_fit_a_real_terminal(fleet: Fleet, noun: str, columns: int):
    state = ("--state-dir", str(fleet.root / "state"), "--now", fleet.now.isoformat())
    line = ("get", noun, "-f", str(fleet.root / "policies"), *state, "-q")
    screen = run_on_terminal(line, columns)
    assert screen.code == 0
    assert 0 < max(map(len, screen.lines)) <= columns


def test_a_plan_on_80_columns_has_places_and_revisions(fleet: Fleet):
    fleet.release("v2")
    state = ("--state-dir", str(fleet.root / "state"), "--now", fleet.now.isoformat())
    screen = run_on_terminal(("plan", "-f", str(fleet.root / "policies"), *state, "-q"), 80)
    head, *rows = [line for line in screen.lines if line.startswith(("ACTION", "WriteDraft"))]
    assert head.split() == ["ACTION", "POLICY", "STAGE", "TARGET", "WHAT"]
    assert rows
    assert all(line.rpartition(" at ")[2] in ("v1", "v2") for line in rows)
    assert max(map(len, screen.lines)) <= 80


def test_json_of_a_terminal_is_not_cut(fleet: Fleet):
    state = ("--state-dir", str(fleet.root / "state"), "--now", fleet.now.isoformat())
    line = ("get", "variants", "-f", str(fleet.root / "policies"), *state, "-o", "json")
    assert len(json.loads(run_on_terminal([*line, "-q"], 20).text)["items"]) == 3


def test_a_file_with_a_hostile_name_is_named_harmlessly(fleet: Fleet, tmp_path: Path):
    (tmp_path / "a\x1b[2Jb\u202e.yaml").write_text("kind: [\n")
    result = fleet.run("validate", "-f", str(tmp_path), files=False)
    assert "a\\x1b[2Jb\\u202e.yaml" in result.out + result.err
    assert "\x1b" not in result.out + result.err
