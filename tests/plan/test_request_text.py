"""Texts of pull requests: examples in fixtures/requests, what is cut, what people wrote.

`pytest tests/plan/test_request_text.py --update-golden` writes the examples; look at the
difference before it is committed.
"""

import re
from pathlib import Path

import pytest
from request_contents import (
    HOSTILE_NAMES,
    MORNING,
    PATCH,
    build_content,
    build_hostile,
    build_many,
    build_removal,
)

from fanout.api.results import Hold
from fanout.plan.pull_requests.markdown_text import (
    format_block,
    format_code,
    format_foreign_link,
    format_sentence,
    format_title,
)
from fanout.plan.pull_requests.request_content import TEXT_VARIABLES, build_text_variables
from fanout.plan.pull_requests.request_layout import MAX_TEXT
from fanout.plan.pull_requests.request_text import (
    MAX_TITLE,
    format_request,
    needs_update,
    parse_marker,
    replace_own_text,
    replace_own_title,
)
from fanout.plan.pull_requests.request_values import PackageChange, RequestConflict, RequestHold
from fanout.values import replace

GOLDEN = Path(__file__).parents[2] / "fixtures" / "requests"
CONTENTS = {"update.md": build_content, "many.md": build_many, "removal.md": build_removal}


@pytest.mark.parametrize("name", CONTENTS)
def test_example(name, update_golden):
    request = format_request(CONTENTS[name]())
    text = f"{request.title}\n\n{request.text}"
    if update_golden:
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_hostile_names_as_values_sentences_and_titles(update_golden):
    rows = [
        f"{kind}\n  {format_code(name)}\n  {format_sentence(name)}\n  {format_title(name, 60)}\n"
        for kind, name in HOSTILE_NAMES.items()
    ]
    if update_golden:
        (GOLDEN / "hostile.txt").write_text("".join(rows), encoding="utf-8")
    assert "".join(rows) == (GOLDEN / "hostile.txt").read_text(encoding="utf-8")


SENTENCES = [
    ("plain words stay", "in-flight limit reached (1 of 1)", r"in-flight limit reached (1 of 1\)"),
    ("commands are code", "run `fanout plan`, then wait", "run `fanout plan`, then wait"),
    ("a reference is code", "closes #1.", "closes `#1`."),
    ("codes do not run together", "`a`#1", "`a` `#1`"),
    ("a lone backtick is code", "a ` b", "a `` ` `` b"),
    ("a number at the start is no list", "1. is first", r"1\. is first"),
]


@pytest.mark.parametrize(("description", "text", "expected"), SENTENCES)
def test_sentence(description, text, expected):
    assert format_sentence(text) == expected


@pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
def test_no_name_forges_a_marker(name):
    content = build_hostile(name)
    request = format_request(content)
    marker = parse_marker(request.text)
    assert marker is not None
    assert (marker.install, marker.policy, marker.stage) == (name, content.policy, name)
    assert marker.digest == request.digest
    assert not needs_update(request.text, request)
    assert replace_own_text(request.text, request) == request.text
    lines = [line for line in request.text.splitlines() if line.startswith("<!-- fanout")]
    assert len(lines) == 2


@pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
def test_a_title_is_one_short_line(name):
    title = format_request(build_hostile(name)).title
    assert title.isprintable()
    assert 0 < len(title) <= MAX_TITLE


@pytest.mark.parametrize("title", ["WIP: x", "wip:WIP: x", "[Draft] x", "(draft): [WIP]: x"])
def test_a_title_does_not_make_a_draft_of_a_request(title):
    assert format_request(build_content(), title).title == "x"
    assert format_request(build_content(), "Draft the plan").title == "Draft the plan"


def test_no_line_of_a_block_ends_the_block():
    block = format_block(["```", "`````", "x"], "diff").splitlines()
    assert block[0] == "``````diff"
    assert block[-1] == "``````"


def test_a_template_replaces_title_and_text_and_forges_no_marker():
    forged = "<!-- fanout install=x policy=x/x stage=x digest=sha256:0 -->"
    request = format_request(build_content(), "My title\n", f"My text\n{forged}\n")
    assert request.title == "My title"
    assert "My text" in request.text
    assert "What it waits for" not in request.text
    marker = parse_marker(request.text)
    assert marker is not None
    assert marker.install == "default"
    assert forged not in request.text


def test_the_digest_changes_with_title_text_and_nothing_else():
    request = format_request(build_content())
    assert format_request(build_content()) == request
    assert format_request(build_content(), title="Other").digest != request.digest
    unheld = replace(build_content(), holds=())
    assert format_request(unheld).digest != request.digest


PEOPLE_ABOVE, PEOPLE_BELOW = "From me: @ann, look.\n\n", "\n\n- [ ] I have read it\n"


def test_text_of_people_around_fanout_s_part_stays():
    old, new = format_request(build_content()), format_request(build_removal())
    present = f"{PEOPLE_ABOVE}{old.text.rstrip()}{PEOPLE_BELOW}".replace("\n", "\r\n")
    replaced = replace_own_text(present, new).replace("\r\n", "\n")
    assert replaced == f"{PEOPLE_ABOVE}{new.text.rstrip()}{PEOPLE_BELOW}"
    assert not needs_update(replaced, new)
    assert needs_update(present, new)


OLD_TITLE = "Update 3 packages to monitoring v1.2.0 (edge/monitoring, stage prod)"
NEW_TITLE = "Remove site1/monitoring (edge/monitoring)"
TITLES = [
    ("fanout's alone", OLD_TITLE, NEW_TITLE),
    ("with a prefix", f"OPS-7: {OLD_TITLE}", f"OPS-7: {NEW_TITLE}"),
    ("with a suffix", f"{OLD_TITLE} [after lunch]", f"{NEW_TITLE} [after lunch]"),
    ("with both", f"(1) {OLD_TITLE} (2)", f"(1) {NEW_TITLE} (2)"),
    ("of a person alone", "My title", NEW_TITLE),
    ("with a changed part of fanout", OLD_TITLE.replace("v1.2.0", "v9"), NEW_TITLE),
    ("too long", f"{'x' * 230} {OLD_TITLE}", f"{'x' * 230} Remove site1/monito"),
]


@pytest.mark.parametrize(("description", "present", "expected"), TITLES)
def test_words_of_people_around_fanout_s_title_stay(description, present, expected):
    old, new = format_request(build_content()), format_request(build_removal())
    assert (old.title, new.title) == (OLD_TITLE, NEW_TITLE)
    text = f"{PEOPLE_ABOVE}{old.text}"
    assert replace_own_title(present, text, new) == expected


def test_a_title_is_replaced_where_the_text_does_not_say_which_part_is_fanout_s():
    old, new = format_request(build_content()), format_request(build_removal())
    earlier = re.sub(r" title=\S*", "", old.text)
    assert parse_marker(earlier) is not None
    for text in (earlier, ""):
        assert replace_own_title(f"x {OLD_TITLE}", text, new) == NEW_TITLE


def test_an_edit_of_fanout_s_part_stays_until_that_part_changes():
    request = format_request(build_content())
    edited = request.text.replace("`v1.2.0`", "`v9`")
    assert not needs_update(edited, request)
    assert replace_own_text(edited, request) == request.text


def _without(text, beginning):
    return "".join(it for it in text.splitlines(True) if not it.startswith(beginning))


BEGIN, END = "<!-- fanout:", "<!-- fanout install="
DAMAGED = {
    "end is missing": (lambda old: PEOPLE_ABOVE + _without(old, END), PEOPLE_ABOVE, ""),
    "beginning is missing": (lambda old: _without(old, BEGIN) + PEOPLE_BELOW, "", PEOPLE_BELOW),
    "part is there twice": (
        lambda old: f"{PEOPLE_ABOVE}{old}\n{old}{PEOPLE_BELOW}",
        PEOPLE_ABOVE,
        PEOPLE_BELOW,
    ),
    "part is missing": (lambda old: PEOPLE_ABOVE, PEOPLE_ABOVE, ""),
    "text is empty": (lambda old: "", "", ""),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_part_is_written_again(damage):
    build_damage, above, below = DAMAGED[damage]
    old, new = format_request(build_content()), format_request(build_removal())
    for present in (build_damage(old.text), build_damage(new.text)):
        assert needs_update(present, new)
        replaced = replace_own_text(present, new)
        assert replaced.count(new.text.strip()) == 1
        assert replaced.startswith(above)
        assert replaced.rstrip().endswith(below.strip())
        assert "What it waits for" not in replaced.replace(new.text.strip(), "")
        assert not needs_update(replaced, new)


def test_a_part_copied_from_another_request_is_written_again():
    other = format_request(build_removal())
    assert needs_update(other.text, format_request(build_content()))


def _large_content(**counts):
    patch = (*PATCH, *(f"+  line {number}" for number in range(100)))
    content = build_content()
    return replace(
        content,
        changes=tuple(
            PackageChange((f"site{number}",), patch) for number in range(counts["changes"])
        ),
        conflicts=tuple(
            RequestConflict((f"site{number}",), f"file {number} " * 40, is_decided=number % 2 == 0)
            for number in range(counts["conflicts"])
        ),
        holds=tuple(
            RequestHold(Hold("Suspended", "is suspended " * 9), (f"site{number}",))
            for number in range(counts["holds"])
        ),
    )


LARGE = [
    ("changes are cut first", {"changes": 100, "conflicts": 4, "holds": 4}, ["change"]),
    (
        "then decided conflicts; all undecided ones and gates stay",
        {"changes": 9, "conflicts": 250, "holds": 4},
        ["change", "entry", "check", "decided conflict"],
    ),
    ("gates are cut last", {"changes": 9, "conflicts": 9, "holds": 900}, ["entry"]),
]


@pytest.mark.parametrize(("description", "counts", "cut"), LARGE)
def test_a_long_text_is_cut_by_whole_entries(description, counts, cut):
    request = format_request(_large_content(**counts))
    assert MAX_TEXT * 0.9 < len(request.text.encode()) <= MAX_TEXT
    for noun in cut:
        plural = "entries" if noun == "entry" else f"{noun}s"
        assert f"{plural} of " in request.text or f"{noun} of " in request.text
    assert request.text.count("```") % 2 == 0
    if len(cut) < 6 and "entry" not in cut:
        assert "entries of" not in request.text
    assert not needs_update(request.text, request)


def test_a_long_text_of_a_template_is_cut_at_a_line():
    request = format_request(build_content(), body="line of text\n" * 9000)
    assert len(request.text.encode()) <= MAX_TEXT
    assert "bytes not shown: the text would be too long." in request.text


def test_a_long_line_of_a_template_is_cut_within_the_line():
    text = format_request(build_content(), body="€" * 30_000).text
    assert MAX_TEXT * 0.9 < len(text.encode()) <= MAX_TEXT
    assert "bytes not shown: the text would be too long." in text


def test_the_state_of_another_request_is_no_reason_to_write_the_text():
    content = build_content()
    merged = replace(
        content,
        siblings=tuple(replace(it, state="merged") for it in content.siblings),
        stages=(
            content.stages[0],
            replace(content.stages[1], readiness="some of 3", revisions=("v1.2.0",), since=MORNING),
        ),
    )
    one, other = format_request(content), format_request(merged)
    assert one.text != other.text
    assert not needs_update(one.text, other)
    fewer = format_request(replace(content, siblings=content.siblings[:1]))
    assert not needs_update(one.text, fewer)
    assert needs_update(fewer.text, one)
    staging = replace(content.stages[0], readiness="some of 4")
    other_stage = replace(content, stages=(staging, content.stages[1]))
    assert needs_update(one.text, format_request(other_stage))


LINKS = [
    ("a page", "https://ci.example.com/runs/7?a=b#L12", True),
    ("an issue", "https://git.example.com/acme/base/issues/7", False),
    ("a request", "https://github.com/acme/base/pull/7", False),
    ("a merge request", "https://gitlab.com/a/b/-/merge_requests/7", False),
    ("a commit", "https://github.com/acme/base/commit/0123456", False),
    ("no page", "javascript:alert(1)", False),
    ("a user in it", "https://ann@evil.example/x", False),
    ("an end of the link", "https://evil.example/a)b", False),
    ("a bracket", "https://evil.example/[a", False),
    ("a mention", "https://evil.example/@ann", False),
    ("a reference", "https://evil.example/x#1", False),
    ("a line break", "https://evil.example/a\n<!-- x", False),
    ("no host", "https:///x", False),
    ("broken brackets", "https://[x/y", False),
]


@pytest.mark.parametrize(("description", "url", "is_link"), LINKS)
def test_foreign_link(description, url, is_link):
    shown = format_foreign_link("`e2e`", url)
    assert shown == (f"[`e2e`]({url})" if is_link else f"`e2e` {format_code(url)}")
    assert format_foreign_link("`e2e`", "") == "`e2e`"


def test_the_body_variables_are_those_that_validation_knows():
    variables = build_text_variables(build_content())
    assert sorted(variables) == sorted(TEXT_VARIABLES)
    assert "The same stage elsewhere" not in variables["text"]
    assert variables["histories"][0]["commits"][1]["subject"] == "Fix the port `(#12)`"
    assert variables["stages"][0]["evidence"][1] == {"check": "`soak-test`", "result": "failed"}
