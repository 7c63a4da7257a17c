"""`fanout graph`: draw the stages of a policy as text, or for Mermaid, Graphviz and browsers."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

import click

from fanout.api.durations import format_duration
from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import find_policy, read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import write_stdout
from fanout.cli.output.text_layout import format_fitted
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import escape_control, print_message, terminal_width
from fanout.gates.after_gate import format_requirement
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value

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
    after: tuple[str, ...] = ()  # the stages that it comes after
    label: str = ""  # rule that holds for all of them together, such as "All of 2, soak 1h"

    @property
    def title(self) -> str:
        """Name of the stage with its candidate."""
        return f"{self.name} {self.candidate}".strip()

    @property
    def progress(self) -> str:
        """Return how many variants are ready, of how many."""
        return f"{self.ready}/{self.total} ready"


class StageGraph(Value):
    """Stages of a policy in their order."""

    policy: str
    nodes: Mapping[str, StageNode]

    @property
    def edges(self) -> list[tuple[StageNode, StageNode]]:
        """Pairs of a stage, which others come after, and such a later one."""
        return [(self.nodes[it], node) for node in self.nodes.values() for it in node.after]


def build_graph(item: PolicyResult) -> StageGraph:
    """Build the graph of a policy from the result of a pass."""
    evaluations = item.decision.stages if item.decision is not None else {}
    nodes: dict[str, StageNode] = {}
    for rule in item.rules:
        evaluation, after = evaluations.get(rule.name), rule.after
        label = ""
        if after is not None:
            soak = f", soak {format_duration(after.soak)}" if after.soak else ""
            count = f" of {len(after.stages)}" if len(after.stages) > 1 else ""
            label = f"{format_requirement(after)}{count}{soak}"
        nodes[rule.name] = StageNode(
            rule.name,
            item.stage_state(rule.name),
            evaluation.candidate if evaluation is not None else "",
            evaluation.aggregates.ready if evaluation is not None else 0,
            evaluation.aggregates.total if evaluation is not None else 0,
            tuple(after.stages) if after is not None else (),
            label,
        )
    return StageGraph(item.resolved_policy.name, nodes)


def escape_label(text: str) -> str:
    """Return the text as one line without control characters."""
    return escape_control(text).replace("\n", " ").replace("\t", " ")


def _join_lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


_HEADS = ("STAGE", "CANDIDATE", "STATE", "READY", "AFTER")
_PRIORITIES = (0, 1, 1, 1, 2)
_CAN_CUT = (False, False, False, False, True)
_Row = tuple[str, ...]


def draw_text(graph: StageGraph, width: int) -> str:
    """Draw each stage below a stage that it comes after, in lines of at most `width` characters.

    A stage after several others has its state where it is first drawn; other lines refer to it.
    """
    drawn: set[str] = set()

    def draw_stage(node: StageNode, branch: str, indent: str) -> Iterator[_Row]:
        name = f"{branch}{escape_label(node.name)}"
        if node.name in drawn:
            yield name, "(above)", "", "", ""
            return
        drawn.add(node.name)
        cells = (node.candidate, node.state, f"{node.ready}/{node.total}", node.label)
        yield name, *(escape_label(cell) for cell in cells)
        targets = [it for it in graph.nodes.values() if node.name in it.after]
        for target in targets[:-1]:
            yield from draw_stage(target, f"{indent}├─ ", f"{indent}│  ")
        for target in targets[-1:]:
            yield from draw_stage(target, f"{indent}└─ ", f"{indent}   ")

    first = [it for it in graph.nodes.values() if not it.after]
    rows = [row for node in first for row in draw_stage(node, "", "")]
    return format_fitted(_HEADS, rows, width, _PRIORITIES, _CAN_CUT)


# Letters, digits and these characters mean nothing to Mermaid inside quotes; all others are
# written as numbered entities, so that no name can end a label or begin an arrow.
_UNSAFE = re.compile(r"[^\w .,:/%()+-]|--+|_")


def draw_mermaid(graph: StageGraph) -> str:
    """Draw the graph from left to right. Names that Mermaid could misread are escaped."""
    ids = {stage: f"s{number}" for number, stage in enumerate(graph.nodes)}
    states = sorted({node.state for node in graph.nodes.values()})

    def escape_entities(text: str) -> str:
        return _UNSAFE.sub(lambda match: "".join(f"#{ord(it)};" for it in match[0]), text)

    def draw_node(node: StageNode) -> str:
        label = f"{escape_entities(node.title)}<br/>{node.state}<br/>{node.progress}"
        return f'  {ids[node.name]}["{label}"]:::{node.state}'

    return _join_lines(
        "flowchart LR",
        *map(draw_node, graph.nodes.values()),
        *(
            f'  {ids[source.name]} -->|"{escape_entities(target.label)}"| {ids[target.name]}'
            for source, target in graph.edges
        ),
        *(f"  classDef {it} fill:{STATE_COLORS[it]},stroke:#333,color:#000" for it in states),
    )


def draw_dot(graph: StageGraph) -> str:
    """Draw the graph as a `digraph`; all names are quoted strings."""

    def quote(*lines: str) -> str:
        escaped = (escape_label(it).replace("\\", "\\\\").replace('"', '\\"') for it in lines)
        text = "\\n".join(escaped)
        return f'"{text}"'

    def draw_node(node: StageNode) -> str:
        label = quote(node.title, node.state, node.progress)
        return f'  {quote(node.name)} [label={label}, fillcolor="{STATE_COLORS[node.state]}"];'

    return _join_lines(
        f"digraph {quote(graph.policy)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled"];',
        *map(draw_node, graph.nodes.values()),
        *(
            f"  {quote(source.name)} -> {quote(target.name)} [label={quote(target.label)}];"
            for source, target in graph.edges
        ),
        "}",
    )


_WIDTH, _HEIGHT = 180, 68  # of a box, in pixels
_GAP_X, _GAP_Y = 130, 28  # between boxes
_MARGIN = 20
_TEXT_LIMIT = 24  # characters that fit into a box


def draw_svg(graph: StageGraph) -> str:
    """Draw each stage as a box right of all stages that it comes after. All text is escaped."""
    columns: dict[str, int] = {}

    def find_column(stage: str) -> int:
        """Return the length of the longest path to the stage."""
        if stage not in columns:
            sources = graph.nodes[stage].after
            columns[stage] = max((find_column(it) + 1 for it in sources), default=0)
        return columns[stage]

    rows: Counter[int] = Counter()
    boxes: dict[str, tuple[int, int]] = {}  # left and top of each stage
    for stage in graph.nodes:
        column = find_column(stage)
        left, top = column * (_WIDTH + _GAP_X), rows[column] * (_HEIGHT + _GAP_Y)
        boxes[stage] = _MARGIN + left, _MARGIN + top
        rows[column] += 1
    width = max((x for x, _ in boxes.values()), default=0) + _WIDTH + _MARGIN
    height = max((y for _, y in boxes.values()), default=0) + _HEIGHT + _MARGIN

    def draw_edge(source: StageNode, target: StageNode) -> str:
        (x1, y1), (x2, y2) = boxes[source.name], boxes[target.name]
        x1, y1, y2, bend = x1 + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2, _GAP_X // 2
        return (
            f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}" fill="none"'
            ' stroke="#333" marker-end="url(#arrow)"/>\n'
            f'<text x="{x2 - bend}" y="{(y1 + y2) // 2 - 6}" text-anchor="middle"'
            f' fill="#333">{_escape_xml(target.label)}</text>'
        )

    def draw_node(node: StageNode) -> str:
        x, y = boxes[node.name]
        texts = (
            (22, "bold", node.title),
            (40, "normal", node.state),
            (57, "normal", node.progress),
        )
        return (
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"'
            f' fill="{STATE_COLORS[node.state]}" stroke="#333"/>'
        ) + "".join(
            f'\n<text x="{x + _WIDTH // 2}" y="{y + offset}" text-anchor="middle"'
            f' font-weight="{weight}">{_escape_xml(text)}</text>'
            for offset, weight, text in texts
        )

    return _join_lines(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{_escape_xml(f'Stages of {graph.policy}')}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
        # Edges first, so that boxes cover those that pass behind them.
        *(draw_edge(source, target) for source, target in graph.edges),
        *map(draw_node, graph.nodes.values()),
        "</svg>",
    )


def _escape_xml(text: str) -> str:
    """Escape a text for XML, and cut it to what fits."""
    return escape(escape_label(text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"))


_PIPE_WIDTH = 80  # characters of a line where no terminal says how many there are
_DRAWERS = {"mermaid": draw_mermaid, "dot": draw_dot, "svg": draw_svg}


@click.command(cls=VerbCommand)
@click.argument("policy", shell_complete=complete_policies)
@click.option(
    "-o",
    "--output",
    "language",
    type=click.Choice(["text", *_DRAWERS]),
    default="text",
    show_default=True,
    help="Output format.",
)
@with_settings(READ_OPTIONS)
def command(settings: Settings, policy: str, language: str) -> ExitCode:
    """Draw the stages of a policy with their state.

    Each stage shows its candidate (the revision to roll out in the stage), its state (Stopped,
    Halted, Failed, Suspended, Passed or Pending), and how many variants are ready at the candidate.
    Each edge shows the condition in the stage field `after`, and the soak time. The format mermaid
    is for Markdown pages, and the format dot is for Graphviz.
    """
    with open_program(settings, check=False) as program:
        _, faults = read_input(program, [policy])
        item = find_policy(program, policy)
    if item.error is not None:
        print_message(f"{item.title}: {item.error}", settings.color, fg="red")
    graph = build_graph(item)
    if language == "text":
        write_stdout(draw_text(graph, terminal_width(sys.stdout) or _PIPE_WIDTH))
    else:
        write_stdout(_DRAWERS[language](graph))
    return ExitCode.SOME_FAILED if faults or item.error is not None else ExitCode.OK
