"""Stages of a policy as a graph: nodes with their state, and edges with the rule of `after`."""

from collections.abc import Mapping

from fanout.api.durations import format_duration
from fanout.api.results import StageResult
from fanout.api.stages import After
from fanout.cli.terminal import escape_control
from fanout.gates.after_gate import format_requirement
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value, field


class StageNode(Value):
    """One stage: its candidate, its state and how many of its variants are ready at it."""

    name: str
    state: str
    candidate: str = ""
    ready: int = 0
    total: int = 0

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
    nodes = {
        rule.name: _build_node(rule.name, item.stage_state(rule.name), evaluations.get(rule.name))
        for rule in item.rules
    }
    edges = tuple(
        StageEdge(source, rule.name, _format_after(rule.after))
        for rule in item.rules
        if rule.after is not None
        for source in rule.after.stages
    )
    return StageGraph(item.resolved_policy.name, nodes, edges)


def _build_node(name: str, state: str, evaluation: StageResult | None) -> StageNode:
    if evaluation is None:
        return StageNode(name, state)
    aggregates = evaluation.aggregates
    return StageNode(name, state, evaluation.candidate, aggregates.ready, aggregates.total)


def _format_after(after: After) -> str:
    soak = f", soak {format_duration(after.soak)}" if after.soak else ""
    count = f" of {len(after.stages)}" if len(after.stages) > 1 else ""
    return f"{format_requirement(after)}{count}{soak}"


def escape_label(text: str) -> str:
    """Return the text as one line without control characters."""
    return escape_control(text).replace("\n", " ").replace("\t", " ")
