"""The verbs for machines and beginners: schedule, schema, crds, completion, version."""

import json

import pytest

from fanout.cli.main import VERBS, run_arguments


def out_of(capsys, *arguments: str) -> str:
    assert run_arguments(list(arguments)) == 0
    return capsys.readouterr().out


def instants(text: str) -> list[str]:
    return [line.split("/")[1] for line in text.splitlines()]


def test_schedule_next_goes_by_the_clock_of_its_zone(capsys):
    """Oslo goes from +01:00 to +02:00 on 29 March 2026."""
    out = out_of(
        capsys,
        *("schedule", "next", "0 9 * * *", "--time-zone", "Europe/Oslo"),
        *("--after", "2026-03-28T00:00:00Z", "-n", "2", "-o", "name"),
    )
    assert instants(out) == ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z"]


def test_schedule_next_begins_now(capsys, monkeypatch):
    monkeypatch.setenv("FANOUT_NOW", "2026-03-01T12:00:00Z")
    out = out_of(capsys, "schedule", "next", "@hourly", "-n", "1", "-o", "name")
    assert instants(out) == ["2026-03-01T13:00:00Z"]


def test_schedule_next_shows_local_time_beside_utc(capsys):
    out = out_of(
        capsys,
        *("schedule", "next", "30 8 * * 1-5", "--time-zone", "Asia/Kolkata"),
        *("--after", "2026-03-06T10:00:00Z", "-n", "1"),
    )
    assert [line.split() for line in out.splitlines()] == [
        ["DAY", "LOCAL", "UTC"],
        ["Mon", "2026-03-09T08:30:00+05:30", "2026-03-09T03:00:00Z"],
    ]


def test_schedule_next_as_json_is_a_list(capsys):
    out = out_of(capsys, "schedule", "next", "@daily", "-n", "3", "-o", "json")
    answer = json.loads(out)
    assert answer["kind"] == "List"
    assert [item["kind"] for item in answer["items"]] == ["InstantView"] * 3


REFUSED = [
    ["schedule", "next", "0 0 31 2 *"],
    ["schedule", "next"],
    ["schedule", "next", "0", "8", "*", "*", "*"],
    ["schedule", "next", "5/15 * * * *"],
    ["schedule", "next", "@daily", "--time-zone", "Europe/Olso"],
    ["schedule", "next", "@daily", "--after", "yesterday"],
    ["schedule", "next", "@daily", "-n", "0"],
    ["schema", "UpstreamPolizy"],
    ["completion", "powershell"],
]


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_unusable_arguments_are_refused(arguments, capsys):
    assert run_arguments(arguments) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err


def test_schema_of_a_kind_is_a_json_schema_whatever_its_case(capsys):
    schema = json.loads(out_of(capsys, "schema", "UpstreamPolicy"))
    assert schema["type"] == "object"
    assert json.loads(out_of(capsys, "schema", "upstreampolicy")) == schema
    assert json.loads(out_of(capsys, "schema"))["UpstreamPolicy"] == schema


def test_crds_are_documents_that_kubectl_applies(capsys):
    documents = out_of(capsys, "crds").split("---\n")
    items = json.loads(out_of(capsys, "crds", "-o", "json"))["items"]
    assert len(documents) == len(items)
    assert {item["kind"] for item in items} == {"CustomResourceDefinition"}
    assert "upstreampolicies.fanout.dev" in {item["metadata"]["name"] for item in items}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_asks_fanout(shell, capsys):
    assert "_FANOUT_COMPLETE" in out_of(capsys, "completion", shell)


def test_completion_knows_the_verbs(capsys, monkeypatch):
    monkeypatch.setenv("_FANOUT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "fanout s")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run_arguments([])
    verbs = [line.split(",")[1] for line in capsys.readouterr().out.splitlines()]
    assert verbs == [name for name in VERBS if name.startswith("s")]


def test_version_names_what_a_bug_report_needs(capsys):
    version = json.loads(out_of(capsys, "version", "-o", "json"))
    assert set(version) == {"fanout", "commit", "python", "git", "libraries"}
    assert {"click", "pygit2", "cel-python"} <= set(version["libraries"])
    assert "psutil" not in version["libraries"]
    table = out_of(capsys, "version")
    assert f"fanout {version['fanout']}".split() in [line.split() for line in table.splitlines()]
