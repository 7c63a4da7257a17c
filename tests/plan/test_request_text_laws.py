"""Laws of texts of pull requests: what others wrote is only shown, what people wrote stays."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from request_contents import HOSTILE_NAMES, build_content, build_hostile, build_removal

from fanout.plan.pull_requests.markdown_text import format_code, format_sentence, format_title
from fanout.plan.pull_requests.request_text import (
    MAX_TITLE,
    format_request,
    needs_update,
    parse_marker,
    replace_own_text,
)

# Of what forges and Markdown read anything into, and of anything else.
PIECES = st.sampled_from(
    [*HOSTILE_NAMES.values(), *"`@#!<>&*_~|[]():;.\\/-+=\n\t \u202e", "ab", "7"]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join)
OLD, NEW = format_request(build_content()), format_request(build_removal())


def without_code(markdown: str) -> str:
    """Return one line of Markdown without its inline code, by the rule of CommonMark."""
    plain, rest = "", markdown
    while (opening := re.search(r"(?<!`)`+(?!`)", rest)) is not None:
        plain += rest[: opening.start()]
        run = re.escape(opening[0])
        closing = re.search(rf"(?<!`){run}(?!`)", rest[opening.end() :])
        assert closing is not None, f"code that does not end: {markdown}"
        rest = rest[opening.end() + closing.end() :]
    return plain + rest


@given(TEXTS)
def test_a_sentence_is_one_line_of_plain_words_and_code(text: str):
    line = format_sentence(text)
    assert "\n" not in line
    plain = without_code(line)
    assert plain.isprintable()
    assert not re.search(r"[@#<>&*_~|\[\]/+=$^{}]", plain)
    assert not re.search(r"[0-9a-fA-F]{7}", plain)


@given(TEXTS)
def test_a_value_is_one_code(text: str):
    code = format_code(text)
    assert code.isprintable()
    assert without_code(code) == ""


@given(TEXTS)
def test_a_title_is_a_line_without_references(text: str):
    title = format_title(text, MAX_TITLE)
    assert title.isprintable()
    assert len(title) <= MAX_TITLE
    assert not re.search(r"[@#!](?=\S)|`|://", title)


@given(TEXTS)
def test_no_content_forges_a_marker(text: str):
    request = format_request(build_hostile(text or "x"), body=text)
    marker = parse_marker(request.text)
    assert marker is not None
    assert marker.digest == request.digest
    assert not needs_update(request.text, request)


@given(TEXTS, TEXTS)
@example("", "")
def test_text_of_people_around_fanout_s_part_stays(above: str, below: str):
    present = f"{above}\n\n{OLD.text}\n{below}"
    replaced = replace_own_text(present, NEW)
    assert not needs_update(replaced, NEW)
    if "<!-- fanout" not in above + below:
        assert replaced.strip() == f"{above}\n\n{NEW.text}\n{below}".strip()
    assert replace_own_text(replaced, NEW).strip() == replaced.strip()
