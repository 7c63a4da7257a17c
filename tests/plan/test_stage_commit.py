"""What a commit of a stage draft says about its packages is read as it was written."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.plan.draft_trailers import DraftTrailers, parse_trailers
from fanout.plan.stage_drafts.stage_commit import (
    format_stage_commit,
    parse_stage_commit,
)

word = st.text("abcXYZ019./_-", min_size=1, max_size=12)
path = st.text("ab/ .é", min_size=1, max_size=12).filter(lambda it: it == it.strip())


def package(variant="eu", **changes):
    said = {"digest": "d1", "onto": "none", "tree": "7ee", "rendered": "7ee"} | changes
    return DraftTrailers(
        install="default",
        policy="team/web",
        variant=variant,
        stage="prod",
        revision="v2",
        commit="c0ffee",
        **said,
    )


@st.composite
def packages(draw):
    paths = draw(st.lists(path, unique=True, max_size=5))
    variants = draw(st.lists(word, unique=True, min_size=len(paths), max_size=len(paths)))
    return {
        at: package(
            name,
            digest=draw(word),
            onto=draw(word),
            tree=draw(word),
            rendered=draw(word),
            conflicts=draw(st.just("none") | st.just("k1=upstream?@a.yaml k2=local")),
            takes=draw(st.just("") | st.just("aa bb")),
        )
        for at, name in zip(paths, variants, strict=True)
    }


@given(packages(), st.lists(path, unique=True, max_size=3), st.text(min_size=1).filter(str.strip))
def test_lines_are_read_whatever_the_subject_says(said, removed, subject):
    read = parse_stage_commit(format_stage_commit(subject, package(), "ba5e", said, removed))
    assert read is not None
    assert (read.base, read.packages, read.removed) == ("ba5e", said, tuple(sorted(removed)))


def test_a_stage_commit_is_no_draft_of_one_variant():
    assert (
        parse_trailers(format_stage_commit("x", package(), "ba5e", {"eu/web": package()})) is None
    )


def test_a_person_s_commit_is_none():
    assert parse_stage_commit("Fix the port\n") is None
    assert parse_stage_commit("Fix the port\n\nFanout-Policy: team/web\n") is None


def test_a_line_that_is_not_understood_makes_it_none():
    message = format_stage_commit("x", package(), "ba5e", {"eu/web": package()})
    assert parse_stage_commit(message) is not None
    for line in (
        "Signed-off-by: Ann",
        "Fanout-Package: eu d1 none",
        "Fanout-Conflicts: us k1=upstream",
        "Fanout-Later: 1",
    ):
        assert parse_stage_commit(f"{message}{line}\n") is None, line


def test_quoting_the_lines_in_the_text_makes_none():
    message = format_stage_commit("x", package(), "ba5e", {"eu/web": package()})
    assert parse_stage_commit(f"Revert\n\n{message}\nSigned-off-by: Ann\n") is None
