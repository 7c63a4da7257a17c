"""`kpt-merge` marks go from objects that are known by another name, and nothing else does."""

import pytest

from fanout.package.merge.kpt_clone import compute_distance, remove_stale_marks

KNOWN = {("", ("", "ConfigMap", "shop", "eu-words"))}
TEXT = """\
# ours
apiVersion: v1
kind: ConfigMap
metadata:{}
  name: eu-words # long
  namespace: shop
data: {{a: b}} # kpt-merge: /words
"""


def unmarked(data: bytes) -> bytes:
    return remove_stale_marks({"a.yaml": ("100644", data)}, KNOWN)["a.yaml"][1]


ROWS = [
    ("a mark alone", " # kpt-merge: /words", ""),
    ("a mark behind other words", " # mine, kpt-merge: /words", " # mine,"),
    ("a mark with a namespace", "   # kpt-merge: a/words", ""),
    ("a mark that is right", " # kpt-merge: shop/eu-words", " # kpt-merge: shop/eu-words"),
    ("no mark", " # words", " # words"),
]


@pytest.mark.parametrize(("_", "before", "after"), ROWS, ids=[it[0] for it in ROWS])
def test_only_the_mark_goes(_, before: str, after: str):
    text = "---\n".join([TEXT.format(before), TEXT.format(before)])
    wanted = "---\n".join([TEXT.format(after), TEXT.format(after)])
    assert unmarked(text.encode()) == wanted.encode()
    assert unmarked(text.replace("\n", "\r\n").encode()) == wanted.replace("\n", "\r\n").encode()
    assert unmarked("\ufeff".encode() + text.encode()) == "\ufeff".encode() + wanted.encode()


def test_an_object_that_is_not_known_keeps_its_mark():
    text = TEXT.format(" # kpt-merge: /words").replace("eu-words", "us-words").encode()
    assert unmarked(text) == text


def test_a_package_is_as_far_from_another_as_the_other_from_it():
    one = {"a.yaml": ("100644", TEXT.format("").encode())}
    other = {"b.yaml": ("100644", TEXT.format("").replace("shop", "store").encode())}
    assert compute_distance(one, one) == 0
    assert compute_distance(one, other) == compute_distance(other, one) == 2
