"""Drawing of a stage graph as a tree of text, for terminals."""

from collections.abc import Iterator

from fanout.cli.output.graph.stage_graph import StageGraph, escape_label
from fanout.cli.output.table_layout import format_fitted

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
