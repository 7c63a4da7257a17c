"""Lists whose elements came, went or moved: the law for every list of elements with keys."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.package.manifest import Manifest
from fanout.package.merge.list_rearrangement import apply_rearranged_lists, compare_values
from fanout.package.merge.merge_keys import DescribedShape

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)
SHAPE = DescribedShape({"list": DescribedShape(merge_keys=("name",))})
HEAD = "top: 1 # kept\nlist:\n"


def text_of(names):
    return HEAD + "".join(f"# above {n}\n- name:  {n} # is {n}\n  size: 1\n" for n in names)


@given(NAMES, NAMES, st.sets(st.sampled_from("abcdefgh")))
def test_every_element_that_stays_keeps_its_comments(before, after, grown):
    elements = [{"name": name, "size": 2 if name in grown else 1} for name in after]
    value = {"top": 1, "list": elements}
    old = Manifest.parse(text_of(before).encode(), "").documents[0].value
    changes = compare_values(old, value, SHAPE)
    if before == after:
        assert not changes.rearranged_lists
        return
    text = apply_rearranged_lists(text_of(before), changes.rearranged_lists)
    assert Manifest.parse(text.encode(), "").documents[0].value == value
    for name in after:
        assert (f"- name:  {name} # is {name}\n" in text) is (name in before)
