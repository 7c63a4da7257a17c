"""What a draft commit says about itself is read as it was written."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.plan.draft_trailers import DraftTrailers, format_draft_message, parse_trailers

word = st.text("abcXYZ019./_-", min_size=1, max_size=12)
NAMES = list(DraftTrailers.__struct_fields__)
trailers = st.builds(DraftTrailers, **dict.fromkeys(NAMES[:10], word), takes=st.just("") | word)


@given(trailers, st.text(min_size=1).filter(str.strip))
def test_trailers_are_read_whatever_the_subject_says(said, subject):
    assert parse_trailers(format_draft_message(subject, said)) == said


def test_a_person_s_commit_has_none():
    assert parse_trailers("Fix the port\n\nFanout-Variant: web\n") is None


def test_quoting_the_trailers_in_the_text_makes_no_draft():
    message = format_draft_message(
        "x", DraftTrailers(**dict(zip(NAMES, "abcdefghi", strict=False)))
    )
    assert parse_trailers(f"Revert\n\n{message}\nSigned-off-by: Ann\n") is None
