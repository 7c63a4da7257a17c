"""Paths and templates of `-o jsonpath`, custom columns and sorting, as kubectl has them."""

import json

import pytest

from fanout.api.table_column import TableColumn
from fanout.cli.output.object_path import parse_template, render_template
from fanout.cli.output.printer import parse_columns, print_objects, sort_objects
from fanout.cli.settings import OutputFormat, Settings
from fanout.errors import InvalidInput

LIST = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "TargetView",
            "metadata": {"name": "ams", "labels": {"fanout.dev/stage": "dev"}},
            "state": "Ready",
            "count": 2,
            "holds": [],
        },
        {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "TargetView",
            "metadata": {"name": "ber", "labels": {"fanout.dev/stage": "prod"}},
            "state": "Held",
            "count": 10,
            "holds": [{"reason": "Window"}, {"reason": "Soak"}],
            "halted": True,
        },
    ],
}

RENDERED = {
    "a field of each": ("{.items[*].metadata.name}", "ams ber"),
    "without the dot": ("{items[0].state}", "Ready"),
    "from the root": ("{$.items[1].state}", "Held"),
    "from the end": ("{.items[-1].metadata.name}", "ber"),
    "a part of a list": ("{.items[0:1].metadata.name}", "ams"),
    "a label with dots": (r"{.items[*].metadata.labels.fanout\.dev/stage}", "dev prod"),
    "a label in quotes": ("{.items[*].metadata.labels['fanout.dev/stage']}", "dev prod"),
    "a filter by text": ('{.items[?(@.state=="Held")].metadata.name}', "ber"),
    "a filter by number": ("{.items[?(@.count<10)].metadata.name}", "ams"),
    "a filter by presence": ("{.items[?(@.halted)].metadata.name}", "ber"),
    "a filter with another type": ("{.items[?(@.state>3)].metadata.name}", ""),
    "at any depth": ("{..reason}", "Window Soak"),
    "a loop": (
        '{range .items[*]}{.metadata.name}{"\\t"}{.count}{"\\n"}{end}',
        "ams\t2\nber\t10\n",
    ),
    "loops in loops": (
        "{range .items[*]}{.metadata.name}:{range .holds[*]}{.reason},{end};{end}",
        "ams:;ber:Window,Soak,;",
    ),
    "text around": ("first: {.items[0].metadata.name}!", "first: ams!"),
    "an object as JSON": ("{.items[1].holds[0]}", '{"reason": "Window"}'),
    "a boolean": ("{.items[1].halted}", "true"),
    "a missing field is nothing": ("{.items[*].nothing.there}", ""),
    "a path alone": (".items[0].metadata.name", "ams"),
}


@pytest.mark.parametrize("sentence", RENDERED)
def test_a_template_is_filled(sentence):
    template, expected = RENDERED[sentence]
    assert render_template(parse_template(template), LIST) == expected


REFUSED = {
    "{.items[*}": "missing ] at position 8",
    "{.items": "missing } for the { at position 1",
    "x}{.a}": "unexpected } at position 2",
    "{.items[0,1]}": "unions such as [0,1] are not supported at position 8",
    "{.items[(@.length-1)]}": "scripts such as [(@.length-1)] are not supported at position 8",
    "{.items[?(@.a=~'x')]}": "filters with =~ are not supported at position 8",
    "{.items[?(@.a==1 && @.b==2)]}": "filters with && or || are not supported at position 8",
    "{.items[?(@.a==x)]}": "x is neither a quoted string nor a number at position 8",
    "{.items[one]}": "cannot read [one] at position 8",
    "{range .items[*]}{.a}": "missing {end} for the {range} at position 1",
    "{.a}{end}": "{end} without {range} at position 5",
    "{.a.}": "expected the name of a field at position 5",
    "{.a b}": "unexpected ' ' at position 4",
    '{"\\x"}': 'cannot read "\\x" at position 2',
}


@pytest.mark.parametrize("template", REFUSED)
def test_a_template_that_does_not_parse_is_refused_with_its_position(template):
    with pytest.raises(InvalidInput) as caught:
        parse_template(template)
    assert caught.value.problem == REFUSED[template]
    assert caught.value.where.field == "-o jsonpath"


def shown(capsys, **settings) -> str:
    print_objects(LIST["items"], [TableColumn("X", lambda _: "x")], Settings(**settings))
    return str(capsys.readouterr().out)


def test_custom_columns(capsys):
    template = "NAME:.metadata.name,REASONS:{.holds[*].reason},NONE:.nothing"
    out = shown(capsys, output=OutputFormat.CUSTOM_COLUMNS, template=template)
    assert out.splitlines() == [
        "NAME   REASONS       NONE",
        "ams    <none>        <none>",
        "ber    Window,Soak   <none>",
    ]


def test_a_comma_within_a_filter_parts_no_columns():
    columns = parse_columns("A:.x[?(@.y=='a,b')].z,B:.w")
    assert [column.head for column in columns] == ["A", "B"]


@pytest.mark.parametrize("template", ["NAME", "NAME:", ":.a", "A:.a,"])
def test_a_custom_column_without_a_path_is_refused(template):
    with pytest.raises(InvalidInput, match="custom column"):
        parse_columns(template)


def test_no_headers(capsys):
    assert shown(capsys, no_headers=True) == "x\nx\n"


def test_a_single_object_is_printed_without_a_list(capsys):
    item = LIST["items"][0]
    print_objects([item], [], Settings(output=OutputFormat.JSON), is_single=True)
    assert json.loads(capsys.readouterr().out) == item


ORDERS = [
    (".metadata.name", ["ams", "ber"]),
    ("{.state}", ["ber", "ams"]),
    (".count", ["ams", "ber"]),
    ("halted", ["ams", "ber"]),
]


@pytest.mark.parametrize(("path", "names"), ORDERS)
def test_sorting(path, names):
    items = sort_objects(LIST["items"][::-1], path)
    assert [item["metadata"]["name"] for item in items] == names


def test_sorting_by_a_field_that_nothing_has_is_refused():
    with pytest.raises(InvalidInput, match=r"no object has the field \.nothing"):
        sort_objects(LIST["items"], ".nothing")
