"""Drawings of the stages of a policy, by the command and of names that somebody made up."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.cli.output.text_layout import cell_width
from fanout.cli.verbs.graph import (
    StageGraph,
    StageNode,
    draw_dot,
    draw_mermaid,
    draw_svg,
    draw_text,
)

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "fixtures" / "graphs"
FORMATS = ("text", "mermaid", "dot", "svg")
SITES = {
    "ams": ("dev", "edge"),
    "ber": ("staging-eu", "edge"),
    "bru": ("staging-us", "core"),
    "cph": ("prod", "edge"),
    "dub": ("prod", "core"),
}
STAGES = """\
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: staging-eu, after: {stages: [dev]}}
  - {name: staging-us, after: {stages: [dev]}, suspend: true}
  - {name: prod, after: {stages: [staging-eu, staging-us], require: Any, soak: 1h}}
"""


@company
def fleet(root: Path) -> Fleet:
    """Return four stages: one suspended, and one held by the soak after both before it."""
    made = Fleet.build(root, SITES)
    made.write("policy.yaml", POLICY.partition("  stages:\n")[0] + STAGES)
    made.settle()
    made.report("dev", "v1")
    made.settle()
    return made


@pytest.mark.parametrize("language", FORMATS)
def test_the_stages_are_drawn(fleet: Fleet, update_golden: bool, language: str):
    result = fleet.run("graph", "monitoring", "-o", language)
    assert (result.code, result.err) == (0, "")
    golden = GOLDEN / f"stages.{language}"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(result.out, encoding="utf-8")
    assert result.out == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["text", "mermaid"])
def test_the_page_shows_what_the_command_prints(language: str):
    page = (ROOT / "docs" / "concepts" / "graph.md").read_text(encoding="utf-8")
    assert (GOLDEN / f"stages.{language}").read_text(encoding="utf-8") in page


def test_text_is_the_default(fleet: Fleet):
    text = fleet.run("graph", "monitoring", "-o", "text").out
    assert fleet.run("graph", "monitoring").out == text
    assert max(map(cell_width, text.splitlines())) <= 80


BAD = [
    (("nobody",), "there is no policy nobody"),
    (("monitoring", "-o", "png"), "'png' is not one of"),
]


@pytest.mark.parametrize(("args", "message"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_bad_input_gets_a_message(fleet: Fleet, args: tuple[str, ...], message: str):
    result = fleet.run("graph", *args)
    assert (result.code, result.out) == (1, "")
    assert message in result.err


def test_a_policy_that_a_problem_stops_is_drawn_without_state(fleet: Fleet):
    upstream = fleet.repos["blueprints"]
    upstream.path.rename(upstream.path.with_suffix(".away"))
    result = fleet.run("graph", "monitoring", "-o", "mermaid")
    assert result.code in (0, 3)
    assert result.out.startswith("flowchart LR\n  s0[")
    upstream.path.with_suffix(".away").rename(upstream.path)


# ---- names -------------------------------------------------------------------------------------

NAMES = [
    ("quotes", '"a"];\n'),
    ("arrow", "a --> b"),
    ("tags", "</text><script>alert(1)</script>"),
    ("end of a comment", "-->"),
    ("escape sequence", "\x1b[31mred\x07"),
    ("right-to-left mark", "a\u202eb"),
    ("backslash", "a\\"),
    ("entity", "a#quot;&lt;"),
    ("10 kB", "x" * 10_000),
]


def hostile(name: str) -> StageGraph:
    last = StageNode("next", "Pending", name, 0, 1, (name,), name)
    return StageGraph(name, {name: StageNode(name, "Pending", name, 0, 1), "next": last})


@pytest.mark.parametrize(("_", "name"), NAMES, ids=[row[0] for row in NAMES])
def test_names_are_escaped_in_every_format(_: str, name: str):
    graph = hostile(name)
    svg = draw_svg(graph)
    texts = [it.text or "" for it in ET.fromstring(svg).iter()]
    assert not any(tag in svg for tag in ("<script", "\x1b", "\u202e"))
    assert len([it for it in texts if it.strip()]) == 1 + 1 + 6
    node, following, edge, _style = draw_mermaid(graph).splitlines()[1:]
    assert re.fullmatch(r'  s0\["[^"\]<>]*<br/>Pending<br/>0/1 ready"\]:::Pending', node)
    assert re.fullmatch(r'  s1\["next [^"\]<>]*<br/>Pending<br/>0/1 ready"\]:::Pending', following)
    assert re.fullmatch(r'  s0 -->\|"[^"|<>]*"\| s1', edge)
    assert "-->" not in edge.removeprefix("  s0 -->")
    string = r'"(?:[^"\\]|\\.)*"'
    lines = draw_dot(graph).splitlines()
    assert re.fullmatch(f"digraph {string} {{", lines[0])
    assert re.fullmatch(f"  {string} -> {string} \\[label={string}\\];", lines[-2])
    assert len(lines) == 7
    for width in (20, 80):
        text = draw_text(graph, width).splitlines()
        assert len(text) == 3
        assert max(map(cell_width, text)) <= width
        assert not any(mark in "".join(text) for mark in ("\x1b", "\u202e"))
