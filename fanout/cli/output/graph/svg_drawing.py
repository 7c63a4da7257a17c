"""Drawing of a stage graph as SVG: stages in columns, from left to right."""

from collections.abc import Mapping
from xml.sax.saxutils import escape

from fanout.cli.output.graph.stage_graph import StageEdge, StageGraph, StageNode, escape_label
from fanout.cli.output.graph.state_color import STATE_COLORS
from fanout.values import Value

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
        f"<title>{_escape(f'Stages of {graph.policy}')}</title>",
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
    return "".join(f"{line}\n" for line in [*lines, "</svg>"])


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
            f' fill="#333">{_escape(edge.label)}</text>'
        ),
    ]


def _draw_box(node: StageNode, box: _Box) -> list[str]:
    center = box.x + _WIDTH // 2
    texts = (
        (22, "bold", f"{node.name} {node.candidate}".strip()),
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
        f"{_escape(text)}</text>"
        for offset, weight, text in texts
    ]
    return lines


def _escape(text: str) -> str:
    """Escape a text for XML, and cut it to what fits."""
    shown = text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"
    return escape(escape_label(shown))
