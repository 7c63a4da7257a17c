"""Text of explanations: a headline, the blockers, the commands that end them, the next instant."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from fanout.api.durations import format_instant
from fanout.api.explanation_view import Blocker, ExplainedConflict, ExplanationView
from fanout.api.text_fields import list_first, pluralize
from fanout.cli.output.text_layout import format_until, wrap_command, wrap_rows, wrap_text
from fanout.message_commands import MessageCommands
from fanout.present.explanation.fleet_status import list_blockers
from fanout.present.explanation.policy_explanation import list_commands
from fanout.present.explanation.unblock_commands import AFTER_OTHERS
from fanout.values import Value, field

_INDENT = "  "
_MAX_CONFLICTS = 10  # listed of a policy or stage
_MAX_NAMED = 3  # variants named in one line
_COLORS = {
    **dict.fromkeys(("Ready", "Passed"), "green"),
    **dict.fromkeys(("Failed", "Halted", "Stopped", "Stuck"), "red"),
}


class ExplanationLayout(Value):
    """Layout of printed explanations: present time, width of lines, colors, names and commands."""

    now: datetime
    width: int | None  # None: lines are not wrapped
    is_colored: bool = False
    commands: MessageCommands = MessageCommands()  # how commands are completed
    names: Mapping[str, str] = field(default_factory=dict)  # display names of variants

    def paint(self, text: str, **style: str | bool) -> str:
        """Return the text in a style, if colors are wanted."""
        return click.style(text, **style) if self.is_colored else text  # type: ignore[arg-type]  # click.style takes each style by its own type

    def paint_state(self, state: str, **style: str | bool) -> str:
        """Return a state or verdict in its color, if colors are wanted."""
        return self.paint(state, fg=_COLORS.get(state, "yellow"), **style)

    def name(self, variant: str) -> str:
        """Return the display name of a variant."""
        return self.names.get(variant, variant)


def format_explanation(explanation: ExplanationView, layout: ExplanationLayout) -> Iterator[str]:
    """Yield the lines of one explanation."""
    spec, status = explanation.spec, explanation.status
    noun = "Variant" if spec.variant else "Stage" if spec.stage else "Policy"
    name = "/".join(filter(None, (spec.policy, spec.stage, layout.name(spec.variant))))
    facts = [status.state]
    if status.candidate:
        facts.append(f"candidate {status.candidate}")
    if spec.variant:
        facts.append(f"published {status.published or 'nothing'}")
    elif status.variants:
        facts.append(f"{status.ready} of {pluralize(status.variants, 'variant')} ready")
    head, *lines = wrap_text(f"{noun} {name}: {', '.join(facts)}", layout.width, "", _INDENT)
    state = layout.paint_state(status.state, bold=True)
    yield head.replace(f": {status.state}", f": {state}", 1)
    yield from lines
    rows = [
        [
            it.stage if not spec.stage and not spec.variant else "",
            it.reason,
            describe_blocker(it, explanation, layout),
        ]
        for it in status.blockers
    ]
    if rows:
        yield from _format_section("Blocked by:", rows, layout)
    elif not status.moving:
        yield "Nothing blocks it."
    if status.requests:
        request_rows = [[it.repository, str(it.number), it.state, it.url] for it in status.requests]
        yield from _format_section("Pull requests:", request_rows, layout)
    yield from _format_conflicts(status.conflicts, layout)
    if status.notes:
        note_rows = [
            [it.reason, f"{it.message}{f' until {format_instant(it.until)}' if it.until else ''}"]
            for it in status.notes
        ]
        yield from _format_section("Notes:", note_rows, layout)
    yield from format_commands(layout.commands.complete_all(list_commands(status)), layout)
    yield from _format_moving(status.moving, layout)
    if status.opens_at:
        sentence = f"Opens automatically at {format_until(status.opens_at, layout.now)}."
        yield from wrap_text(sentence, layout.width)
    elif status.next:
        yield from format_next(status.next, layout)


def _format_section(
    title: str, rows: Sequence[Sequence[str]], layout: ExplanationLayout
) -> Iterator[str]:
    yield layout.paint(title, bold=True)
    yield from wrap_rows(rows, layout.width, _INDENT)


def describe_blocker(
    blocker: Blocker, explanation: ExplanationView, layout: ExplanationLayout
) -> str:
    """Return the sentence with the blocked variants, the end, and who can end it."""
    sentence = f"{format_subject(blocker, explanation, layout)}{blocker.message}"
    is_only = len(explanation.status.blockers) == 1
    if blocker.until and not is_only and format_instant(blocker.until) not in sentence:
        sentence += f"; opens automatically at {format_until(blocker.until, layout.now)}"
    if not blocker.commands and not blocker.until and blocker.reason not in AFTER_OTHERS:
        sentence += f"; unblocked by {blocker.who}" if blocker.who else ""
    return sentence


def format_subject(
    blocker: Blocker,
    explanation: ExplanationView,
    layout: ExplanationLayout,
    limit: int = _MAX_NAMED,
) -> str:
    """Return the blocked variants before their sentence; of several the first `limit` by name."""
    shown = list(map(layout.name, blocker.variants))
    if len(shown) > 1:
        listed = f" ({list_first(shown, limit)})" if limit else ""
        return f"{pluralize(len(shown), blocker.noun)}{listed}: "
    if not shown or explanation.spec.variant:
        return ""
    is_named = blocker.variants[0] in blocker.message or f"{shown[0]} " in f"{blocker.message} "
    return "" if is_named else f"{shown[0]}: "


def _format_conflicts(
    conflicts: Sequence[ExplainedConflict], layout: ExplanationLayout
) -> Iterator[str]:
    if not conflicts:
        return
    are_several = len({it.variant for it in conflicts}) > 1
    rows = [
        [it.key, f"{layout.name(it.variant)}: {it.message}" if are_several else it.message]
        for it in conflicts[:_MAX_CONFLICTS]
    ]
    yield from _format_section("Merge conflicts by key:", rows, layout)
    if len(conflicts) > _MAX_CONFLICTS:
        yield f"{_INDENT}and {len(conflicts) - _MAX_CONFLICTS} more"


def format_commands(commands: Sequence[str], layout: ExplanationLayout) -> Iterator[str]:
    """Yield the section of the commands that unblock, each on a line of its own."""
    if commands:
        yield layout.paint("To unblock:", bold=True)
    for command in commands:
        yield from wrap_command(command, layout.width, _INDENT)


def _format_moving(moving: Sequence[str], layout: ExplanationLayout) -> Iterator[str]:
    if moving:
        shown = list_first(list(map(layout.name, moving)), _MAX_NAMED)
        yield from wrap_text(f"The next sweep continues with {shown}.", layout.width)


def format_next(at: datetime, layout: ExplanationLayout) -> list[str]:
    """Return the lines that say when time alone changes something."""
    sentence = f"Next change by time alone: {format_until(at, layout.now)}."
    return wrap_text(sentence, layout.width)


def format_fleet(
    explanations: Sequence[ExplanationView], layout: ExplanationLayout
) -> Iterator[str]:
    """Yield the lines of what blocks the policies of a fleet, the most urgent first."""
    statuses = [it.status for it in explanations]
    total, ready = sum(it.variants for it in statuses), sum(it.ready for it in statuses)
    policies = pluralize(len(explanations), "policy")
    headline = f"Fleet: {policies}, {ready} of {pluralize(total, 'variant')} ready"
    yield from (layout.paint(it, bold=True) for it in wrap_text(headline, layout.width))
    blockers = list_blockers(explanations)
    rows = []
    for owner, blocker in blockers:
        name = owner.spec.policy or owner.spec.variant
        place = "/".join(filter(None, (name, blocker.stage)))
        rows.append([place, blocker.reason, describe_blocker(blocker, owner, layout)])
    if rows:
        yield from _format_section("Blocked by:", rows, layout)
    else:
        yield "Nothing is blocked."
    conflicts = [conflict for it in statuses for conflict in it.conflicts]
    yield from _format_conflicts(conflicts, layout)
    lines = [command for _, blocker in blockers for command in blocker.commands]
    lines += [line for it in statuses for line in layout.commands.complete_all(list_commands(it))]
    yield from format_commands(tuple(dict.fromkeys(lines)), layout)
    moving = [name for it in statuses for name in it.moving]
    yield from _format_moving(moving, layout)
    instants = [it.next for it in statuses if it.next is not None]
    if instants:
        yield from format_next(min(instants), layout)
