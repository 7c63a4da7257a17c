"""Contents that are put together when they are asked for are what they would be as a whole."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.package.tree_ids import BlobUnion, FilledText, LazyBlobs, blob_id

TEXTS = st.text(max_size=8)
CONTENTS = st.dictionaries(st.sampled_from("abcdef"), st.binary(max_size=8))


@st.composite
def filled(draw) -> tuple[FilledText, bytes]:
    """A text with its room, and what it comes to."""
    texts = draw(st.lists(TEXTS, max_size=4))
    around = draw(st.lists(TEXTS, min_size=len(texts) + 1, max_size=len(texts) + 1))
    room = [it for piece in around for it in (piece, "")][:-1]
    whole = "".join(a + b for a, b in zip(around, [*texts, ""], strict=True))
    return FilledText(room, texts), whole.encode()


@given(st.lists(filled(), max_size=4), CONTENTS)
def test_filled_in_contents_equal_whole_contents(some, whole):
    lazy = {blob_id(data): one for one, data in some}
    contents = {**whole, **{blob_id(data): data for _, data in some}}
    blobs = LazyBlobs(whole, lazy)
    assert dict(blobs) == contents == blobs
    assert len(blobs) == len(contents)
    assert all(oid in blobs for oid in contents)
    assert "none" not in blobs
    assert blobs.get("none") is None


def test_the_pieces_are_shared_and_stay_as_they_are():
    pieces = ["name: ", "", "\n"]
    first, second = FilledText(pieces, ["a"]), FilledText(pieces, ["b"])
    assert (first.data, second.data, first.data) == (b"name: a\n", b"name: b\n", b"name: a\n")
    assert pieces == ["name: ", "", "\n"]


@given(st.lists(CONTENTS, max_size=4))
def test_a_union_has_the_contents_of_its_parts(parts):
    parts = [{blob_id(data): data for data in part.values()} for part in parts]
    gathered = BlobUnion()
    for part in parts:
        gathered.add(part)
    contents = {oid: data for part in parts for oid, data in part.items()}
    assert gathered == contents
    assert len(gathered) == len(contents)
    assert all(oid in gathered for oid in contents)
    assert "none" not in gathered
