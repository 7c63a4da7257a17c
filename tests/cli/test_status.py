"""The screen of `fanout status`: one screen for any fleet, the urgent first, the rest counted."""

from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import click
import pytest

from fanout.api.explanation_view import (
    Blocker,
    ExplanationSpec,
    ExplanationStatus,
    ExplanationView,
    FleetStageView,
)
from fanout.api.view_base import ViewMeta
from fanout.cli import terminal
from fanout.cli.output.explanation_text import ExplanationLayout
from fanout.cli.verbs.status import format_fleet_status
from fanout.message_commands import MessageCommands
from fanout.present.explanation.fleet_status import FleetStatus

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def blocker(policy, number):
    command = f"fanout approve {policy} --stage prod --revision v2"
    names = tuple(f"{policy}-cluster-{n}-0123456789" for n in range(number))
    return Blocker(
        "ApprovalMissing", "0 of 2 approvals by sre", stage="prod", variants=names, revision="v2",
        needs_person=True, commands=(command,),
    )  # fmt: skip


def policy(name, total=200, ready=200, blockers=()):
    stages = []
    for stage in ("dev", "staging", "prod"):
        reasons = tuple(it.reason for it in blockers if it.stage == stage)
        is_open = bool(reasons)
        number = total // 3
        stages.append(
            stage_view(
                name, stage, "Pending" if is_open else "Passed", candidate="v2", variants=number,
                ready=number - is_open * (total - ready), waits_for=reasons,
                next=NOW + timedelta(hours=3) if is_open else None,
            )
        )  # fmt: skip
    return stages, explained(
        name, "Pending" if blockers else "Ready", variants=total, ready=ready,
        blockers=tuple(blockers), next=NOW + timedelta(hours=3) if blockers else None,
    )  # fmt: skip


def stage_view(policy, stage, state, **fields):
    return FleetStageView(policy=policy, namespace="default", stage=stage, state=state, **fields)


def explained(policy, state, **fields):
    return ExplanationView(
        metadata=ViewMeta(policy, "default"),
        spec=ExplanationSpec(policy),
        status=ExplanationStatus(state, **fields),
    )


def fleet(number, blocked):
    parts = []
    for position in range(number):
        name = f"policy-{position:02}"
        blockers = (blocker(name, 20),) if position % (number // blocked) == 0 else ()
        parts.append(policy(name, ready=200 - 20 * bool(blockers), blockers=blockers))
    explanations = tuple(it for _, it in parts)
    return FleetStatus(
        tuple(stage for stages, _ in parts for stage in stages),
        explanations,
        tuple((it, b) for it in explanations for b in it.status.blockers),
        {},
    )


def screen(status, width=80, height=24):
    return list(format_fleet_status(status, ExplanationLayout(NOW, width), height))


@pytest.mark.parametrize("blocked", [1, 10, 50])
@pytest.mark.parametrize("height", [16, 24, 60])
def test_50_policies_with_10000_variants_fit_one_screen(blocked, height):
    lines = screen(fleet(50, blocked), height=height)
    assert len(lines) < height, "the prompt needs a line too"
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Fleet: 50 policies, ")
    assert lines[-1] == "Next change by time alone: 2026-03-02T12:00:00Z (in 3h)."


@pytest.mark.parametrize("height", [16, 24])
def test_a_rest_with_long_options_fits_one_screen(height, monkeypatch):
    options = MessageCommands(
        (("files", "clusters/europe/policies"), ("records", "../records.git"))
    )
    monkeypatch.setattr(terminal, "_commands", ContextVar("commands", default=options))
    lines = screen(fleet(50, 50), height=height)
    assert "  ../records.git`" in lines
    assert len(lines) < height


def test_policies_that_need_a_person_are_first_and_ready_policies_are_counted():
    lines = screen(fleet(50, 1))
    assert lines == [
        "Fleet: 50 policies, 9980 of 10000 variants ready",
        "",
        "Needs a person:",
        "  policy-00/prod  ApprovalMissing  20 variants: 0 of 2 approvals by sre",
        "    fanout approve policy-00 --stage prod --revision v2",
        "",
        "POLICY      STAGE     REVISION   READY   STATE     WAITS FOR         NEXT",
        "policy-00   dev       v2         66/66   Passed    -                 -",
        "policy-00   staging   v2         66/66   Passed    -                 -",
        "policy-00   prod      v2         46/66   Pending   ApprovalMissing   in 3h",
        *lines[10:-2],
        "and 46 more policies, all ready",
        "Next change by time alone: 2026-03-02T12:00:00Z (in 3h).",
    ]


def test_targets_without_a_variant_are_no_variants_of_the_rest():
    broken = fleet(1, 1)
    lines = [
        stage_view(f"broken-{number:02}", "", "Failed", variants=3, failed=3)
        for number in range(40)
    ]
    others = [explained(it.policy, "Failed") for it in lines]
    status = FleetStatus(
        (*broken.stages, *lines), (*broken.explanations, *others), broken.urgent, {}
    )
    printed = screen(status)
    assert printed[0].startswith("Fleet: 41 policies, 180 of 200 variants ready")
    (rest,) = (line for line in printed if "more policies" in line)
    assert rest.endswith("more policies, 0 of 0 variants ready")


def test_wide_prints_everything():
    lines = screen(fleet(50, 50), height=None)
    assert sum("prod" in line and "Pending" in line for line in lines) == 50
    assert sum(line.startswith("    fanout approve ") for line in lines) == 50


def test_a_narrow_terminal_gets_narrow_lines():
    lines = screen(fleet(10, 10), width=20)
    # An option stays beside its value, so that the command can be pasted.
    assert all(len(line) <= 20 or line.lstrip().startswith("--") for line in lines)


def test_unwrapped_lines_of_a_pipe_have_no_empty_line_at_the_end():
    assert all(screen(fleet(2, 1), width=None, height=None)[-2:])


@pytest.mark.parametrize("width", [80, None])
@pytest.mark.parametrize(
    ("state", "color"),
    [("Passed", "green"), ("Failed", "red"), ("Halted", "red"), ("Pending", "yellow")],
)
def test_of_a_stage_the_state_alone_is_colored(state, color, width):
    stage = stage_view("edge", "dev", state, candidate=state, variants=1)
    status = FleetStatus((stage,), (explained("edge", "Pending"),), (), {})
    layout = ExplanationLayout(NOW, width, is_colored=True)
    assert list(format_fleet_status(status, layout, None))[-1] == (
        f"edge     dev     {state:<8}   0/1     {click.style(state, fg=color)}   -"
    )


def test_a_revision_cannot_break_or_turn_a_line():
    stage = stage_view("edge", "dev", "Passed", candidate="v2\u2028\u202e", variants=1, ready=1)
    status = FleetStatus((stage,), (explained("edge", "Ready"),), (), {})
    assert "v2\\u2028\\u202e" in screen(status)[-1]
