"""Label selectors as people type them, in kubectl's language."""

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.selection.label_selector import matches, parse_selector

THINGS: dict[str, dict[str, str]] = {
    "bare": {},
    "dev": {"tier": "dev", "weight": "3"},
    "prod": {"tier": "prod", "example.com/team": "edge", "weight": "10"},
    "odd": {"tier": "", "weight": "heavy", "in": "notin"},
}

CHOSEN = [
    ("nothing chooses all", "", "bare dev prod odd"),
    ("spaces are nothing", "  ", "bare dev prod odd"),
    ("one value", "tier=dev", "dev"),
    ("two signs are one", "tier==dev", "dev"),
    ("spaces do not matter", " tier = dev , weight = 3 ", "dev"),
    ("another value, or none at all", "tier!=dev", "bare prod odd"),
    ("a key with its prefix", "example.com/team=edge", "prod"),
    ("one of several", "tier in (dev, prod)", "dev prod"),
    ("none of several, or none at all", "tier notin (dev,prod)", "bare odd"),
    ("the key is there", "tier", "dev prod odd"),
    ("the key is not there", "!tier", "bare"),
    ("a space behind the mark", "! tier", "bare"),
    ("an empty value", "tier=", "odd"),
    ("any value but the empty one", "tier!=,tier", "dev prod"),
    ("an empty value among several", "tier in (,dev)", "dev odd"),
    ("a set of the empty value", "tier in ()", "odd"),
    ("all terms hold", "tier,tier!=dev,weight notin (10)", "odd"),
    ("greater", "weight>3", "prod"),
    ("less", "weight < 10", "dev"),
    ("keys that are words of the language", "in=notin", "odd"),
    ("such a key in a set", "in in (notin)", "odd"),
]


@pytest.mark.parametrize(("_", "text", "names"), CHOSEN, ids=map(itemgetter(0), CHOSEN))
def test_chosen(_: str, text: str, names: str):
    selector = parse_selector(text)
    assert [name for name, labels in THINGS.items() if matches(selector, labels)] == names.split()


REFUSED = [
    ("a comma at the end", "tier=dev,", "expected a key, got the end"),
    ("a comma at the beginning", ",tier", "expected a key, got ',' at character 1"),
    ("two words", "tier dev", "expected a comma or one of = == != in notin > <, got 'dev'"),
    ("two values", "tier=dev prod", "expected a comma, got 'prod' at character 10"),
    ("three signs", "tier===dev", "expected a value, got '='"),
    ("a set without brackets", "tier in dev", "expected '(', got 'dev'"),
    ("a set that does not end", "tier in (dev", "expected a comma or ')', got the end"),
    ("no key", "=dev", "expected a key, got '=' at character 1"),
    ("a key that cannot be one", "-tier=dev", "expected a key, got '-tier'"),
    ("a value that cannot be one", "tier=dev*", "expected a value, got 'dev*'"),
    ("a mark before a value", "!tier=dev", "expected a comma, got '='"),
    ("a word where a number is compared", "weight>heavy", "expected a number, got 'heavy'"),
    ("brackets alone", "(tier)", "expected a key, got '('"),
]


@pytest.mark.parametrize(("_", "text", "problem"), REFUSED, ids=map(itemgetter(0), REFUSED))
def test_refused(_: str, text: str, problem: str):
    with pytest.raises(InvalidInput) as caught:
        parse_selector(text)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("--selector: ")


WORDS = st.sampled_from(["tier", "weight", "in", "x"])
VALUES = st.sampled_from(["", "dev", "3", "notin"])
LABELS = st.dictionaries(WORDS, VALUES)


@given(WORDS, st.lists(VALUES, min_size=1), LABELS)
def test_a_term_and_its_opposite_part_all_objects(key: str, values: list[str], labels):
    listed = f"({','.join(values)})"
    for one, other in ((f"{key} in {listed}", f"{key} notin {listed}"), (key, f"!{key}")):
        chosen = [matches(parse_selector(text), labels) for text in (one, other)]
        assert sorted(chosen) == [False, True]


@given(st.text(alphabet="ab=!(),<>in tod/.-", max_size=12))
def test_any_text_is_a_selector_or_refused(text: str):
    try:
        parse_selector(text)
    except InvalidInput as error:
        assert error.remedy
