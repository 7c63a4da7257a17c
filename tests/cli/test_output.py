"""Tables that awk can read, objects that tools can."""

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Verdict
from fanout.api.table_column import TableColumn
from fanout.cli.output.printer import format_json, format_table, print_objects, print_value
from fanout.cli.settings import OutputFormat, Settings

COLUMNS = (
    TableColumn("NAME", lambda item: item["metadata"]["name"]),
    TableColumn("READY", lambda item: item["ready"]),
    TableColumn("MESSAGE", lambda item: item["message"], wide=True),
)


def item(name: str, ready: object = True, message: str = "fine") -> dict[str, object]:
    return {
        "kind": "TargetView",
        "apiVersion": "fanout.dev/v1alpha1",
        "metadata": {"name": name},
        "ready": ready,
        "message": message,
    }


def shown(capsys, items, output) -> str:
    print_objects(items, COLUMNS, Settings(output=output))
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_columns_are_aligned_and_nothing_trails(capsys):
    items = [item("a"), item("much-longer", ready=False)]
    assert shown(capsys, items, OutputFormat.TABLE) == (
        "NAME          READY\na             True\nmuch-longer   False\n"
    )


def test_wide_has_more_columns(capsys):
    assert shown(capsys, [item("a")], OutputFormat.WIDE).splitlines()[0].split() == [
        "NAME",
        "READY",
        "MESSAGE",
    ]


def test_no_objects_are_a_head_alone(capsys):
    assert shown(capsys, [], OutputFormat.TABLE) == "NAME   READY\n"


def test_every_row_has_as_many_words_as_the_head(capsys):
    """A missing value keeps its place, a message with breaks stays one line."""
    out = shown(capsys, [item("a", ready=None, message="two\nlines\x1b[2J")], OutputFormat.WIDE)
    assert re.split(" {3,}", out.splitlines()[1]) == ["a", "<none>", "two lines\\x1b[2J"]


def test_json_is_the_object_with_sorted_keys(capsys):
    print_value(item("ä"), OutputFormat.JSON)
    out = capsys.readouterr().out
    assert json.loads(out) == item("ä")
    assert list(json.loads(out)) == sorted(item("ä"))
    assert "ä" in out


PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(Verdict),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN_DATA)
def test_json_is_formatted_as_the_standard_library_does(value):
    expected = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    assert format_json(value) == "".join(
        it if it.isprintable() or it == "\n" else json.dumps(it)[1:-1] for it in expected
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_objects_are_a_list_however_many(count, capsys):
    items = [item(str(number)) for number in range(count)]
    assert json.loads(shown(capsys, items, OutputFormat.JSON)) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": items,
    }


def test_yaml_has_sorted_keys_at_every_depth(capsys):
    print_value({"b": 1, "kind": "TargetView", "a": {"z": [], "ready": "yes"}}, OutputFormat.YAML)
    out = capsys.readouterr().out
    assert out == 'a:\n  ready: "yes"\n  z: []\nb: 1\nkind: TargetView\n'


INVISIBLE = "\u061c\u180e\u200b\u200f\u202e\u2060\u2066\u2067\u2068\u2069\u206f\ufeff"


@pytest.mark.parametrize("character", INVISIBLE, ids=ascii)
def test_yaml_escapes_what_changes_the_direction_of_text_or_is_not_seen(character, capsys):
    value = {"line": f"a{character}b", f"k{character}": "x", "lines": f"a\nb{character}\n"}
    print_value(value, OutputFormat.YAML)
    out = capsys.readouterr().out
    assert character not in out
    assert yaml.safe_load(out) == value


def test_names_are_as_kubectl_takes_them_back(capsys):
    items = [item("a"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}]
    assert shown(capsys, items, OutputFormat.NAME) == "targetview.fanout.dev/a\nconfigmap/b\n"


def test_a_table_needs_no_row():
    assert format_table(["A"], []) == "A\n"
