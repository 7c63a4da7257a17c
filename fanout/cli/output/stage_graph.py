"""Stages of a policy as a graph, and its drawings: text, Mermaid, Graphviz and SVG."""

import re
from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from fanout.api.durations import format_duration
from fanout.api.stages import After
from fanout.cli.output.table_layout import format_fitted
from fanout.cli.terminal import escape_control
from fanout.gates.after_gate import format_requirement
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value, field, replace

_GREEN, _BLUE, _YELLOW, _GREY, _RED = "#b7e1cd", "#cfe2f3", "#fff2cc", "#e0e0e0", "#f4cccc"
# Background colors for black text. A variant written by hand is a stage of its own, with the
# states of variants.
STATE_COLORS: Mapping[str, str] = {
    **dict.fromkeys(("Passed", "Ready"), _GREEN),
    **dict.fromkeys(("Pending", "Drafted", "Released", "Proposed", "Verifying"), _BLUE),
    **dict.fromkeys(("Held", "Skipped"), _YELLOW),
    **dict.fromkeys(("Suspended",), _GREY),
    **dict.fromkeys(("Halted", "Failed", "Stopped"), _RED),
}


class StageNode(Value):
    """One stage: its candidate, its state and how many of its variants are ready at it."""

    name: str
    state: str
    candidate: str = ""
    ready: int = 0
    total: int = 0

    @property
    def title(self) -> str:
        """Name of the stage with its candidate."""
        return f"{self.name} {self.candidate}".strip()

    @property
    def progress(self) -> str:
        """Return how many variants are ready, of how many."""
        return f"{self.ready}/{self.total} ready"


class StageEdge(Value):
    """One entry of `after.stages`, with the rule that holds for all of them together."""

    source: str
    target: str
    label: str  # such as "All of 2, soak 1h"


class StageGraph(Value):
    """Stages of a policy in their order, and the edges between them."""

    policy: str
    nodes: Mapping[str, StageNode]
    edges: tuple[StageEdge, ...] = field(default=())

    def sources(self, stage: str) -> tuple[str, ...]:
        """Return the stages that a stage comes after."""
        return tuple(edge.source for edge in self.edges if edge.target == stage)

    def targets(self, stage: str) -> tuple[str, ...]:
        """Return the stages that come after a stage."""
        return tuple(edge.target for edge in self.edges if edge.source == stage)

    def label(self, stage: str) -> str:
        """Return the rule of a stage's `after`, or "" without one."""
        return next((edge.label for edge in self.edges if edge.target == stage), "")


def build_graph(item: PolicyResult) -> StageGraph:
    """Build the graph of a policy from the result of a pass."""
    evaluations = item.decision.stages if item.decision is not None else {}
    nodes: dict[str, StageNode] = {}
    for rule in item.rules:
        node = StageNode(rule.name, item.stage_state(rule.name))
        if (evaluation := evaluations.get(rule.name)) is not None:
            ready, total = evaluation.aggregates.ready, evaluation.aggregates.total
            node = replace(node, candidate=evaluation.candidate, ready=ready, total=total)
        nodes[rule.name] = node
    edges = tuple(
        StageEdge(source, rule.name, _format_after(rule.after))
        for rule in item.rules
        if rule.after is not None
        for source in rule.after.stages
    )
    return StageGraph(item.resolved_policy.name, nodes, edges)


def _format_after(after: After) -> str:
    soak = f", soak {format_duration(after.soak)}" if after.soak else ""
    count = f" of {len(after.stages)}" if len(after.stages) > 1 else ""
    return f"{format_requirement(after)}{count}{soak}"


def escape_label(text: str) -> str:
    """Return the text as one line without control characters."""
    return escape_control(text).replace("\n", " ").replace("\t", " ")


def _join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_HEADS = ("STAGE", "CANDIDATE", "STATE", "READY", "AFTER")
_PRIORITIES = (0, 1, 1, 1, 2)
_CAN_CUT = (False, False, False, False, True)
_Row = tuple[str, ...]


def draw_text(graph: StageGraph, width: int) -> str:
    """Draw each stage below a stage that it comes after, in lines of at most `width` characters.

    A stage after several others has its state where it is first drawn, and refers to that line
    where it is drawn again.
    """
    drawn: set[str] = set()
    rows = [
        row
        for stage in graph.nodes
        if not graph.sources(stage)
        for row in _draw_stage(graph, stage, "", "", drawn)
    ]
    return format_fitted(_HEADS, rows, width, _PRIORITIES, _CAN_CUT)


def _draw_stage(
    graph: StageGraph, stage: str, branch: str, indent: str, drawn: set[str]
) -> Iterator[_Row]:
    name = f"{branch}{escape_label(stage)}"
    if stage in drawn:
        yield name, "(above)", "", "", ""
        return
    drawn.add(stage)
    node = graph.nodes[stage]
    cells = (node.candidate, node.state, f"{node.ready}/{node.total}", graph.label(stage))
    yield name, *(escape_label(cell) for cell in cells)
    targets = graph.targets(stage)
    for target in targets:
        is_last = target == targets[-1]
        yield from _draw_stage(
            graph,
            target,
            f"{indent}{'└─ ' if is_last else '├─ '}",
            f"{indent}{'   ' if is_last else '│  '}",
            drawn,
        )


# Letters, digits and these characters mean nothing to Mermaid inside quotes; all others are
# written as numbered entities, so that no name can end a label or begin an arrow.
_UNSAFE = re.compile(r"[^\w .,:/%()+-]|--+|_")


def draw_mermaid(graph: StageGraph) -> str:
    """Draw the graph from left to right. Names that Mermaid could misread are escaped."""
    ids = {stage: f"s{number}" for number, stage in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for stage, node in graph.nodes.items():
        label = f"{_escape_entities(node.title)}<br/>{node.state}<br/>{node.progress}"
        lines.append(f'  {ids[stage]}["{label}"]:::{node.state}')
    lines += [
        f'  {ids[edge.source]} -->|"{_escape_entities(edge.label)}"| {ids[edge.target]}'
        for edge in graph.edges
    ]
    states = sorted({node.state for node in graph.nodes.values()})
    lines += [
        f"  classDef {state} fill:{STATE_COLORS[state]},stroke:#333,color:#000" for state in states
    ]
    return _join_lines(lines)


def _escape_entities(text: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"#{ord(it)};" for it in match[0]), text)


def draw_dot(graph: StageGraph) -> str:
    """Draw the graph as a `digraph`; all names are quoted strings."""
    lines = [
        f"digraph {_quote(graph.policy)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled"];',
    ]
    for stage, node in graph.nodes.items():
        label = _quote(node.title, node.state, node.progress)
        lines.append(f'  {_quote(stage)} [label={label}, fillcolor="{STATE_COLORS[node.state]}"];')
    lines += [
        f"  {_quote(edge.source)} -> {_quote(edge.target)} [label={_quote(edge.label)}];"
        for edge in graph.edges
    ]
    return _join_lines([*lines, "}"])


def _quote(*lines: str) -> str:
    escaped = (escape_label(it).replace("\\", "\\\\").replace('"', '\\"') for it in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'


_WIDTH, _HEIGHT = 180, 68  # of a box, in pixels
_GAP_X, _GAP_Y = 130, 28  # between boxes
_MARGIN = 20
_TEXT_LIMIT = 24  # characters that fit into a box


class _Box(Value):
    x: int
    y: int


def draw_svg(graph: StageGraph) -> str:
    """Draw each stage as a box right of all stages that it comes after. All text is escaped."""
    columns = _find_columns(graph)
    rows: dict[int, int] = {}
    boxes: dict[str, _Box] = {}
    for stage in graph.nodes:
        column = columns[stage]
        row = rows.get(column, 0)
        rows[column] = row + 1
        boxes[stage] = _Box(
            _MARGIN + column * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y)
        )
    width = max((box.x for box in boxes.values()), default=0) + _WIDTH + _MARGIN
    height = max((box.y for box in boxes.values()), default=0) + _HEIGHT + _MARGIN
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">'
        ),
        f"<title>{_escape_xml(f'Stages of {graph.policy}')}</title>",
        (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
        ),
    ]
    # Edges first, so that boxes cover those that pass behind them.
    for edge in graph.edges:
        lines += _draw_edge(edge, boxes)
    for stage, node in graph.nodes.items():
        lines += _draw_box(node, boxes[stage])
    return _join_lines([*lines, "</svg>"])


def _find_columns(graph: StageGraph) -> dict[str, int]:
    """Return the column of each stage: the length of the longest path to it."""
    columns: dict[str, int] = {}

    def find_column(stage: str) -> int:
        if stage not in columns:
            columns[stage] = max((find_column(it) + 1 for it in graph.sources(stage)), default=0)
        return columns[stage]

    for stage in graph.nodes:
        find_column(stage)
    return columns


def _draw_edge(edge: StageEdge, boxes: Mapping[str, _Box]) -> list[str]:
    source, target = boxes[edge.source], boxes[edge.target]
    x1, y1 = source.x + _WIDTH, source.y + _HEIGHT // 2
    x2, y2 = target.x, target.y + _HEIGHT // 2
    bend = _GAP_X // 2
    return [
        (
            f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}" fill="none"'
            ' stroke="#333" marker-end="url(#arrow)"/>'
        ),
        (
            f'<text x="{x2 - _GAP_X // 2}" y="{(y1 + y2) // 2 - 6}" text-anchor="middle"'
            f' fill="#333">{_escape_xml(edge.label)}</text>'
        ),
    ]


def _draw_box(node: StageNode, box: _Box) -> list[str]:
    center = box.x + _WIDTH // 2
    texts = (
        (22, "bold", node.title),
        (40, "normal", node.state),
        (57, "normal", node.progress),
    )
    lines = [
        (
            f'<rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"'
            f' fill="{STATE_COLORS[node.state]}" stroke="#333"/>'
        )
    ]
    lines += [
        f'<text x="{center}" y="{box.y + offset}" text-anchor="middle" font-weight="{weight}">'
        f"{_escape_xml(text)}</text>"
        for offset, weight, text in texts
    ]
    return lines


def _escape_xml(text: str) -> str:
    """Escape a text for XML, and cut it to what fits."""
    shown = text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"
    return escape(escape_label(shown))
