"""Values of Secrets are in no difference of packages; which of them differ remains visible."""

import json

import pytest

from fanout.cli.output.merge_view import format_three_way
from fanout.package.package_patch import format_patch, mask_secrets


def secret(name="login", kind="Secret", **values):
    head = f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name} # ours\n"
    return head + "stringData:\n" + "".join(f"  {key}: {it}\n" for key, it in values.items())


def files(text, path="a.yaml"):
    return {path: ("100644", text.encode())}


def patch(before, after, path="a.yaml"):
    sides = mask_secrets((files(before, path), files(after, path)), ("before", "after"))
    return "\n".join(format_patch(*sides, ("a", "b")))


def test_a_changed_value_is_marked_on_both_sides():
    text = patch(secret(user="ann", password="old"), secret(user="ann", password="new"))
    assert '-  password: "*** (before)"' in text
    assert '+  password: "*** (after)"' in text
    assert '   user: "***"' in text
    assert not any(word in text for word in ("ann", "old", "new"))
    assert "name: login # ours" in text


BLOCK = "|\n    several\n    lines\n"
LISTED = "apiVersion: v1\nkind: List\nitems:\n- " + secret(a="hidden").replace("\n", "\n  ")
HIDDEN = [
    # description, file, text that only one side has
    ("a new value", "a.yaml", secret(a="hidden")),
    ("a literal block", "a.yaml", secret(a=BLOCK.replace("several", "hidden"))),
    ("base64", "a.yaml", secret(a="hidden").replace("stringData", "data")),
    ("an item of a List", "a.yaml", LISTED.rstrip(" ")),
    ("a second document", "a.yaml", "kind: A\n---\n" + secret(a="hidden")),
    ("data that is not a mapping", "a.yaml", "kind: Secret\ndata: hidden\n"),
    ("data of one line", "a.yaml", "{kind: Secret, data: {a: hidden}}\n"),
    ("an escaped kind", "a.yaml", 'kind: "\\x53ecret"\ndata: {a: hidden}\n'),
    ("a Secret in an object", "a.yaml", "kind: A\nspec:\n  kind: Secret\n  data: {a: hidden}\n"),
    ("JSON", "a.json", json.dumps({"kind": "Secret", "data": {"a": "hidden"}}, indent=2) + "\n"),
    ("no readable YAML", "a.yaml", secret(a="hidden") + "  b: [\n"),
    ("markers of a conflict", "a.yaml", "<<<<<<< a\n" + secret(a="hidden")),
]


@pytest.mark.parametrize(
    ("path", "text"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN]
)
def test_no_value_is_shown(path, text):
    for sides in ((text, "{}\n"), ("{}\n", text), (text, text.replace("hidden", "hidden2"))):
        diff = patch(*sides, path=path)
        assert "hidden" not in diff
        assert "***" in diff


def test_other_kinds_are_shown():
    assert "+  a: word" in patch("{}\n", secret(kind="ConfigMap", a="word"))


def test_the_three_sides_are_distinguished():
    sides = [files(secret(a=a, b=b)) for a, b in (("x1", "y1"), ("x2", "y2"), ("x3", "y2"))]
    masked = mask_secrets(sides, ("before", "upstream", "here"))
    text = "\n".join(format_three_way(*masked))
    assert '--  a: "*** (before)"' in text
    assert '+   a: "*** (upstream)"' in text
    assert ' +  a: "*** (here)"' in text
    assert ' +  b: "*** (upstream)"' in text
    assert not any(f"{letter}{number}" in text for letter in "xy" for number in (1, 2, 3))
