"""What people read of an explanation: each reason once, variants that are alike as one."""

from fanout.cli.output.explanation_remarks import shorten_explanation
from fanout.gates.explanation import Explanation

SOAK = "v1 soaks in stage dev until noon"


def held(sentence):
    return Explanation("SoakRunning", "Held", sentence)


def variant(name, sentence, *children):
    return Explanation(f"variant {name}", "Drafted", sentence, children=children)


def subjects(line):
    return [child.subject for child in line.children]


def stage(*children):
    return Explanation("stage prod", "pending", "candidate v1: 3 Drafted", children=children)


def test_a_reason_is_given_once():
    line = shorten_explanation(
        stage(held(SOAK), held(f"3 variants, a first: {SOAK}"), held("no approval"))
    )
    assert [child.sentence for child in line.children] == [SOAK, "no approval"]


def test_variants_that_wait_for_the_same_are_one_line_where_the_first_stood():
    a, b, c = (variant(name, f"candidate v1; {SOAK}", held(SOAK)) for name in "abc")
    other = variant("x", "candidate v1; no approval")
    line = shorten_explanation(stage(held(SOAK), a, other, b, c))
    assert subjects(line) == ["SoakRunning", "variant a and 2 like it", "variant x"]
    assert line.children[1].children == ()


def test_stages_and_checks_are_always_told():
    before = [Explanation(f"stage {name}", "passed", "v1 has passed") for name in ("one", "two")]
    assert shorten_explanation(stage(*before)).children == tuple(before)
