"""Drawing of a stage graph in the language of Graphviz."""

from fanout.cli.output.graph.stage_graph import StageGraph, escape_label
from fanout.cli.output.graph.state_color import STATE_COLORS


def draw_dot(graph: StageGraph) -> str:
    """Draw the graph as a `digraph`; all names are quoted strings."""
    lines = [
        f"digraph {_quote(graph.policy)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled"];',
    ]
    for stage, node in graph.nodes.items():
        title = f"{node.name} {node.candidate}".strip()
        label = _quote(title, node.state, node.progress)
        lines.append(f'  {_quote(stage)} [label={label}, fillcolor="{STATE_COLORS[node.state]}"];')
    lines += [
        f"  {_quote(edge.source)} -> {_quote(edge.target)} [label={_quote(edge.label)}];"
        for edge in graph.edges
    ]
    return "".join(f"{line}\n" for line in [*lines, "}"])


def _quote(*lines: str) -> str:
    escaped = (escape_label(it).replace("\\", "\\\\").replace('"', '\\"') for it in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'
