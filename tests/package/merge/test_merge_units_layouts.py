"""What only upstream changed has upstream's bytes, in every layout that YAML has."""

from collections import Counter

import pytest
from package.merge.yaml_layouts import LAYOUTS, behind_key

from fanout.package.merge.merge_units import DocumentReader
from fanout.package.merge.package_update import merge_packages

HEAD = "apiVersion: v1\nkind: X\nmetadata: {name: a}\nanchors: [&anchor v]\n"
NEXT = "---\napiVersion: v1\nkind: Z\nmetadata: {name: z}\n"
# Around a value: the column of its key, and the text without and with it. `%s` is another field,
# which is changed locally.
PLACES = {
    "the first field": (0, "ours: %s\n", "theirs:{}\nours: %s\n"),
    "the last field": (0, "ours: %s\n", "ours: %s\ntheirs:{}\n"),
    "above the end's comments": (0, "ours: %s\n# end\n", "ours: %s\ntheirs:{}\n# end\n"),
    "before another document": (0, f"ours: %s\n{NEXT}", f"ours: %s\ntheirs:{{}}\n{NEXT}"),
    "a field in a map": (2, "m:\n  ours: %s\nz: 1\n", "m:\n  theirs:{}\n  ours: %s\nz: 1\n"),
    "behind a quoted key": (0, "ours: %s\n", "'the rs':{}\nours: %s\n"),
    "the first field of an element": (2, None, "l:\n- theirs:{}\n  ours: %s\n- z: 1\n"),
    "the last field of an element": (
        2,
        "l:\n- z: 1\n- ours: %s\n",
        "l:\n- z: 1\n- ours: %s\n  theirs:{}\n",
    ),
    "the first element": (2, "l:\n- x\n- %s\n", "l:\n-{}\n- x\n- %s\n"),
    "the last element": (4, "m:\n  l:\n  - %s\n  - x\n", "m:\n  l:\n  - %s\n  - x\n  -{}\n"),
    "a field of a flow map": (2, "m: {ours: %s}\nz: 1\n", "m: {theirs:{}, ours: %s}\nz: 1\n"),
}
ENDS = ("the first field", "the last element")
BEFORE = ("\n@  q: 1\n@  r: 2", "\n@  - q\n@  - r", " |\n@  q\n@  r")
FORMS = {
    "as it is": lambda text: text,
    "with CR and LF": lambda text: text.replace("\n", "\r\n"),
    "with a directive": lambda text: f"%YAML 1.1\n---\n{text}",
    "with a byte order mark": lambda text: f"\ufeff{text}",
}


def text_of(place, value, number):
    column, without, with_value = PLACES[place]
    if value is None:
        return None if without is None else HEAD + without % number
    if place == "a field of a flow map" and (set(value) & set("\n#") or value[:2] in (" |", " >")):
        return None  # no such layout in a flow map
    return HEAD + with_value.replace("{}", "\0").replace("%s", str(number)).replace(
        "\0", behind_key(value, column)
    )


def merged(form, *texts):
    sides = [{"a.yaml": ("100644", FORMS[form](text).encode())} for text in texts]
    result = merge_packages(*sides)
    return result.files["a.yaml"][1].decode(), result.conflicts


def readable(text):
    return DocumentReader().parse("a.yaml", text.encode()) is not None


def data_of(place, value):
    text = text_of(place, value, 1)
    file = text and DocumentReader().parse("a.yaml", text.encode())
    return file.documents[0].value.data if file else None


def check(place, before, after, form="as it is"):
    """Merge a change of `before` to `after`; return whether the layout can be there."""
    origin, local = (text_of(place, before, number) for number in (1, 2))
    upstream, expected = (text_of(place, after, number) for number in (1, 2))
    if None in (origin, upstream) or not all(map(readable, (origin, upstream))):
        return False
    assert merged(form, origin, upstream, local) == (FORMS[form](expected), ()), (place, before)
    return True


@pytest.mark.parametrize("production", LAYOUTS)
def test_a_value_added_changed_or_replaced_upstream_has_upstream_s_bytes(production):
    counts = Counter()
    for value in LAYOUTS[production]:
        for place in PLACES:
            counts["added"] += check(place, None, value)
            counts["replaced"] += check(place, " 1", value)
        for place in ENDS:
            for before in BEFORE:
                counts["replaced"] += check(place, before, value)
                counts["left"] += check(place, value, before)
            for other in LAYOUTS[production]:
                if data_of(place, other) != data_of(place, value):
                    counts["changed"] += check(place, other, value)
    assert counts["added"]
    assert counts["replaced"]
    assert counts["left"]
    # A change of the layout alone changes no value; most of it arrives, but not of indentation.
    values = [repr(data_of("the first field", value)) for value in LAYOUTS[production]]
    assert counts["changed"] or len(set(values)) == 1


@pytest.mark.parametrize("form", FORMS)
def test_values_are_merged_in_every_form_of_a_file(form):
    checks = [
        check(place, " 1", value, form)
        for values in LAYOUTS.values()
        for value in values
        for place in ENDS
    ]
    assert sum(checks) > 200
