"""What a commit of fanout states about packages is read as it was written."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.plan.commit_statement import (
    CommitStatement,
    PackageStatement,
    format_message,
    parse_message,
    split_trailers,
)
from fanout.values import replace

STAGE = "refs/heads/drafts/default/_stages/team.web/prod"
OWN = "refs/heads/drafts/default/eu/web/web"
word = st.text("abcXYZ019./_-", min_size=1, max_size=12)
path = st.text("ab/ .é:-", min_size=1, max_size=12).filter(lambda it: it == it.strip())
subject = st.text(min_size=1).filter(str.strip)


def package(variant="eu", **changes) -> PackageStatement:
    stated = {"digest": "d1", "onto": "none", "tree": "7ee", "rendered": "7ee"} | changes
    return PackageStatement(
        install="default",
        policy="team/web",
        variant=variant,
        stage="prod",
        revision="v2",
        commit="c0ffee",
        **stated,
    )


@st.composite
def statements(draw) -> CommitStatement:
    paths = draw(st.lists(path, unique=True, max_size=6))
    size = draw(st.integers(0, len(paths)))
    variants = draw(st.lists(word, unique=True, min_size=size, max_size=size))
    remaining = draw(st.integers(size, len(paths)))
    return CommitStatement(
        ref=draw(st.sampled_from([STAGE, OWN])),
        policy="team/web",
        stage="prod",
        base=draw(word),
        packages={
            at: package(
                name,
                digest=draw(word),
                onto=draw(word),
                tree=draw(word),
                rendered=draw(word),
                conflicts=draw(st.just("none") | st.just("k1=upstream?@a.yaml k2=local")),
                takes=draw(st.just("") | st.just("aa bb")),
            )
            for at, name in zip(paths, variants, strict=False)
        },
        removed=tuple(sorted(paths[size:remaining])),
        restored=tuple(sorted(paths[remaining:])),
    )


@given(statements(), subject, st.sampled_from(["", "Two values were rejected.\n* a\n"]))
def test_a_statement_is_read_whatever_the_subject_says(stated, subject, body):
    assert parse_message(format_message(subject, stated, body)) == stated


@given(statements(), st.randoms())
def test_the_order_of_the_lines_means_nothing(stated: CommitStatement, order: random.Random):
    head, _, last = format_message("Update web", stated).rstrip("\n").rpartition("\n\n")
    lines = last.split("\n")
    order.shuffle(lines)
    shuffled = parse_message("\n\n".join([head, "\n".join(lines)]))
    assert shuffled is not None
    assert shuffled == replace(
        stated, packages=shuffled.packages, removed=shuffled.removed, restored=shuffled.restored
    )
    assert shuffled.packages == stated.packages
    assert sorted(shuffled.removed) == list(stated.removed)
    assert sorted(shuffled.restored) == list(stated.restored)


@given(statements(), st.sampled_from(["Signed-off-by: Ann <a@b.c>", "Change-Id: I1", "no trailer"]))
def test_lines_of_others_are_left_alone(stated: CommitStatement, line: str):
    message = format_message("Update web", stated) + f"{line}\n"
    assert parse_message(message) == stated
    assert message.endswith(f"{line}\n")


def test_a_commit_of_a_person_states_nothing():
    assert parse_message("Fix the port\n") is None
    assert parse_message("Fix the port\n\nFanout-Policy: team/web\n") is None
    assert parse_message("Fix the port\n\nFanout-Variant: web\n") is None
    assert parse_message("") is None


STATED = CommitStatement(
    ref=STAGE, policy="team/web", stage="prod", base="ba5e", packages={"eu/web": package()}
)


@pytest.mark.parametrize(
    "line",
    [
        "Fanout-Package: eu d1 none",
        "Fanout-Conflicts: us k1=upstream",
        "Fanout-Removed: ",
        "Fanout-Later: 1",
        "Fanout-Merge: c0ffee",
    ],
)
def test_a_line_of_fanout_that_is_not_understood_makes_it_none(line):
    message = format_message("x", STATED)
    assert parse_message(message) == STATED
    assert parse_message(f"{message}{line}\n") is None


@pytest.mark.parametrize("key", ["Install", "Policy", "Stage", "Base", "Revision", "Commit"])
def test_a_statement_without_one_of_its_lines_is_none(key):
    lines = format_message("x", STATED).splitlines(keepends=True)
    assert parse_message("".join(it for it in lines if not it.startswith(f"Fanout-{key}:"))) is None


def test_quoting_the_lines_in_the_text_states_nothing():
    message = format_message("x", STATED)
    assert parse_message(f"Revert\n\n{message}\nSigned-off-by: Ann\n") is None


EARLIER_DRAFT = """\
Add eu/web at web v2

Fanout-Install: default
Fanout-Policy: team/web
Fanout-Variant: eu
Fanout-Stage: prod
Fanout-Revision: v2
Fanout-Commit: c0ffee
Fanout-Digest: d1
Fanout-Onto: none
Fanout-Tree: 7ee
Fanout-Conflicts: k1=upstream?@a.yaml k2=local
"""


def test_a_draft_of_an_earlier_version_named_neither_branch_nor_path():
    stated = parse_message(EARLIER_DRAFT)
    assert stated is not None
    assert (stated.ref, stated.base, stated.stage) == ("", "", "prod")
    expected = package(conflicts="k1=upstream?@a.yaml k2=local", rendered="")
    assert stated.packages == {"": expected}
    rendered = parse_message(EARLIER_DRAFT + "Fanout-Rendered: 7ef\nFanout-Takes: aa\n")
    assert rendered is not None
    assert rendered.packages == {"": replace(expected, rendered="7ef", takes="aa")}
    assert parse_message(EARLIER_DRAFT.replace("Fanout-Digest: d1\n", "")) is None


def test_a_stage_draft_of_an_earlier_version_named_no_branch():
    message = format_message("x", STATED)
    earlier = parse_message(message.replace("Fanout-Set: _stages/team.web/prod\n", ""))
    assert earlier == replace(STATED, ref="")


def test_a_message_has_the_subject_the_text_and_one_line_for_each_package():
    stated = replace(
        STATED,
        packages={"eu/web": package(takes="aa"), "us/web": package("us", conflicts="k1=local")},
        removed=("asia/web",),
    )
    message = format_message("Update 2 packages at v2", stated, "Text for people.")
    assert message == (
        "Update 2 packages at v2\n"
        "\n"
        "Text for people.\n"
        "\n"
        "Fanout-Install: default\n"
        "Fanout-Policy: team/web\n"
        "Fanout-Stage: prod\n"
        "Fanout-Set: _stages/team.web/prod\n"
        "Fanout-Base: ba5e\n"
        "Fanout-Revision: v2\n"
        "Fanout-Commit: c0ffee\n"
        "Fanout-Package: eu d1 none 7ee 7ee eu/web\n"
        "Fanout-Takes: eu aa\n"
        "Fanout-Package: us d1 none 7ee 7ee us/web\n"
        "Fanout-Conflicts: us k1=local\n"
        "Fanout-Removed: asia/web\n"
    )
    assert ("Fanout-Set", "_stages/team.web/prod") in split_trailers(message)
