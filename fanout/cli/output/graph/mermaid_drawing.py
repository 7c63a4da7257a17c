"""Drawing of a stage graph as a Mermaid flowchart, for Markdown pages."""

import re

from fanout.cli.output.graph.stage_graph import StageGraph, StageNode
from fanout.cli.output.graph.state_color import STATE_COLORS

# Letters, digits and these characters mean nothing to Mermaid inside quotes; all others are
# written as numbered entities, so that no name can end a label or begin an arrow.
_UNSAFE = re.compile(r"[^\w .,:/%()+-]|--+|_")


def draw_mermaid(graph: StageGraph) -> str:
    """Draw the graph from left to right. Names that Mermaid could misread are escaped."""
    ids = {stage: f"s{number}" for number, stage in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [
        f'  {ids[stage]}["{_format_node(node)}"]:::{node.state}'
        for stage, node in graph.nodes.items()
    ]
    lines += [
        f'  {ids[edge.source]} -->|"{_escape(edge.label)}"| {ids[edge.target]}'
        for edge in graph.edges
    ]
    states = sorted({node.state for node in graph.nodes.values()})
    lines += [
        f"  classDef {state} fill:{STATE_COLORS[state]},stroke:#333,color:#000" for state in states
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_node(node: StageNode) -> str:
    title = f"{node.name} {node.candidate}".strip()
    return f"{_escape(title)}<br/>{node.state}<br/>{node.progress}"


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"#{ord(it)};" for it in match[0]), text)
