"""Written text reads as what it was, for readers of YAML 1.1 and of YAML 1.2."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fanout.errors import InvalidInput
from fanout.package.field_edits import same_json
from fanout.package.manifest import Manifest
from fanout.package.object_reader import load_objects
from fanout.package.yaml_scalars import dump, dump_all, format_scalar, is_literal, is_plain, quote

texts = st.text(max_size=20).filter(lambda text: not re.search("[\ud800-\udfff]", text))
lookalikes = st.from_regex(r"[-+.0-9a-fA-FxXoOeEnyNYTfs:_~=<|>?!&*%@`#\s'\"]{1,8}", fullmatch=True)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    texts | lookalikes | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@given(values)
def test_dumped_data_reads_as_it_was(value):
    text = dump(value)
    documents = Manifest.parse(text.encode(), "f.yaml").documents
    assert same_json([d.value for d in documents], [] if value is None else [value])
    assert dump(value) == text


@given(texts | lookalikes)
def test_text_is_text_for_every_reader(text):
    for value in (text, [text], {text: text}):
        written = dump(value)
        assert same_json(yaml.load(written, Loader=yaml.CSafeLoader), value)
        assert same_json(YAML(typ="safe", pure=True).load(written), value)


@given(numbers)
def test_numbers_are_numbers_for_every_reader(number):
    written = format_scalar(number)
    for loaded in (
        yaml.load(written, Loader=yaml.CSafeLoader),
        YAML(typ="safe", pure=True).load(written),
    ):
        assert same_json(loaded, number)


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "n",
        "Y",
        "N",
        "yes",
        "No",
        "on",
        "OFF",
        "True",
        "null",
        "~",
        "1",
        "1.5",
        ".5",
        "1e3",
        "1E3",
        "0x1f",
        "0o7",
        "0b1",
        "1_000",
        "12:30:45",
        "2020-01-01",
        "-",
        "-a",
        "?",
        ":",
        ":a",
        "a:",
        "=",
        "<<",
        "*",
        "&",
        "!",
        "@",
        "`",
        "%",
        "#",
        "1e10",
        "0e0",
        "0123456701234567012345670123456701234567",
        "12e4567890123456789012345678901234567890",
        "0b10101010101010101010101010101010101010",
        ".inf",
        ".nan",
        "+1",
        "nan",
        "inf",
        "1.2.3",
        "[",
        "{",
        "]",
        "}",
        ",",
        "|",
        ">",
        "'",
        '"',
    ],
)
def test_a_text_that_reads_as_another_type_is_quoted(text):
    assert not is_plain(text)
    assert format_scalar(text) == quote(text)


@pytest.mark.parametrize(
    "text",
    [
        "prod",
        "v1.2.3",
        "kpt.dev/v1",
        "registry.example:5000/a/b:1.2",
        "https://example.com/a",
        "ConfigMap of the site",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        "5e3a2c3d4e5f60718293a4b5c6d7e8f901234567",
        "61b92c3d4e5f60718293a4b5c6d7e8f901234567",
        "0b2a2c3d4e5f60718293a4b5c6d7e8f901234567",
        "_x",
        "/monitoring",
    ],
)
def test_a_text_that_reads_only_as_text_is_not_quoted(text):
    assert format_scalar(text) == text


def test_the_form_of_a_new_file():
    value = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {}},
        "list": [{"a": 1, "b": [True, None]}, [1, [2]], "on"],
        "text": "one\n\n  two\n",
        "odd": "tab\tand\u2028line",
    }
    assert dump(value) == (
        "kind: ConfigMap\n"
        "metadata:\n"
        "  name: a\n"
        "  labels: {}\n"
        "list:\n"
        "- a: 1\n"
        "  b:\n"
        "  - true\n"
        "  - null\n"
        "- - 1\n"
        "  - - 2\n"
        '- "on"\n'
        "text: |\n"
        "  one\n"
        "\n"
        "    two\n"
        'odd: "tab\\tand\\u2028line"\n'
    )
    assert dump_all([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"


def test_literal_blocks_are_for_clean_text_only():
    assert is_literal("a\nb")
    assert is_literal("a\n\tb\n")
    for text in ("a", "a\n", "a \nb", " a\nb", "a\nb\n\n", "a\r\nb", "\na\nb", "a\x85\nb", "a\nb "):
        assert not is_literal(text)


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}, "\udc80", ("a",)])
def test_a_value_outside_json_is_refused(value):
    with pytest.raises(InvalidInput):
        dump(value)


@given(st.lists(st.dictionaries(texts, values, max_size=3), max_size=3))
def test_objects_read_the_fast_way_are_those_of_manifests(objects):
    objects = [{**item, "kind": "Thing"} for item in objects]
    data = dump_all(objects).encode()
    assert same_json(load_objects(data, "f.yaml"), objects)
    assert same_json([d.value for d in Manifest.parse(data, "f.yaml").documents], objects)
