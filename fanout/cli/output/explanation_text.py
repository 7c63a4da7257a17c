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

    def wrap(self, text: str) -> list[str]:
        """Return the lines of a sentence."""
        return wrap_text(text, self.width)

    def format_explanation(self, explanation: ExplanationView) -> Iterator[str]:
        """Yield the lines of one explanation."""
        spec, status = explanation.spec, explanation.status
        noun = "Variant" if spec.variant else "Stage" if spec.stage else "Policy"
        name = "/".join(filter(None, (spec.policy, spec.stage, self.name(spec.variant))))
        facts = [status.state]
        if status.candidate:
            facts.append(f"candidate {status.candidate}")
        if spec.variant:
            facts.append(f"published {status.published or 'nothing'}")
        elif status.variants:
            facts.append(f"{status.ready} of {pluralize(status.variants, 'variant')} ready")
        head, *lines = wrap_text(f"{noun} {name}: {', '.join(facts)}", self.width, "", _INDENT)
        yield head.replace(f": {status.state}", f": {self.paint_state(status.state, bold=True)}", 1)
        yield from lines
        rows = [
            [
                it.stage if not spec.stage and not spec.variant else "",
                it.reason,
                self._describe_blocker(it, explanation),
            ]
            for it in status.blockers
        ]
        yield from self._format_section("Blocked by:", rows)
        if not rows and not status.moving:
            yield "Nothing blocks it."
        requests = [[it.repository, str(it.number), it.state, it.url] for it in status.requests]
        yield from self._format_section("Pull requests:", requests)
        yield from self._format_conflicts(status.conflicts)
        notes = [
            [it.reason, f"{it.message}{f' until {format_instant(it.until)}' if it.until else ''}"]
            for it in status.notes
        ]
        yield from self._format_section("Notes:", notes)
        yield from self._format_commands(self.commands.complete_all(list_commands(status)))
        yield from self._format_moving(status.moving)
        if status.opens_at:
            instant = format_until(status.opens_at, self.now)
            yield from self.wrap(f"Opens automatically at {instant}.")
        elif status.next:
            yield from self.format_next(status.next)

    def format_fleet(self, explanations: Sequence[ExplanationView]) -> Iterator[str]:
        """Yield the lines of what blocks the policies of a fleet, the most urgent first."""
        statuses = [it.status for it in explanations]
        total, ready = sum(it.variants for it in statuses), sum(it.ready for it in statuses)
        policies = pluralize(len(explanations), "policy")
        headline = f"Fleet: {policies}, {ready} of {pluralize(total, 'variant')} ready"
        yield from (self.paint(it, bold=True) for it in self.wrap(headline))
        blockers = list_blockers(explanations)
        rows = []
        for owner, blocker in blockers:
            name = owner.spec.policy or owner.spec.variant
            place = "/".join(filter(None, (name, blocker.stage)))
            rows.append([place, blocker.reason, self._describe_blocker(blocker, owner)])
        yield from self._format_section("Blocked by:", rows)
        if not rows:
            yield "Nothing is blocked."
        yield from self._format_conflicts([it for status in statuses for it in status.conflicts])
        lines = [command for _, blocker in blockers for command in blocker.commands]
        for status in statuses:
            lines += self.commands.complete_all(list_commands(status))
        yield from self._format_commands(tuple(dict.fromkeys(lines)))
        yield from self._format_moving([name for it in statuses for name in it.moving])
        instants = [it.next for it in statuses if it.next is not None]
        if instants:
            yield from self.format_next(min(instants))

    def format_subject(
        self, blocker: Blocker, explanation: ExplanationView, limit: int = _MAX_NAMED
    ) -> str:
        """Return the blocked variants before their sentence; of several the first `limit`."""
        shown = list(map(self.name, blocker.variants))
        if len(shown) > 1:
            listed = f" ({list_first(shown, limit)})" if limit else ""
            return f"{pluralize(len(shown), blocker.noun)}{listed}: "
        if not shown or explanation.spec.variant:
            return ""
        is_named = blocker.variants[0] in blocker.message or f"{shown[0]} " in f"{blocker.message} "
        return "" if is_named else f"{shown[0]}: "

    def format_next(self, at: datetime) -> list[str]:
        """Return the lines that say when time alone changes something."""
        return self.wrap(f"Next change by time alone: {format_until(at, self.now)}.")

    def _format_section(self, title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        if rows:
            yield self.paint(title, bold=True)
            yield from wrap_rows(rows, self.width, _INDENT)

    def _describe_blocker(self, blocker: Blocker, explanation: ExplanationView) -> str:
        """Return the sentence with the blocked variants, the end, and who can end it."""
        sentence = f"{self.format_subject(blocker, explanation)}{blocker.message}"
        is_only = len(explanation.status.blockers) == 1
        if blocker.until and not is_only and format_instant(blocker.until) not in sentence:
            sentence += f"; opens automatically at {format_until(blocker.until, self.now)}"
        if not blocker.commands and not blocker.until and blocker.reason not in AFTER_OTHERS:
            sentence += f"; unblocked by {blocker.who}" if blocker.who else ""
        return sentence

    def _format_conflicts(self, conflicts: Sequence[ExplainedConflict]) -> Iterator[str]:
        are_several = len({it.variant for it in conflicts}) > 1
        rows = [
            [it.key, f"{self.name(it.variant)}: {it.message}" if are_several else it.message]
            for it in conflicts[:_MAX_CONFLICTS]
        ]
        yield from self._format_section("Merge conflicts by key:", rows)
        if len(conflicts) > _MAX_CONFLICTS:
            yield f"{_INDENT}and {len(conflicts) - _MAX_CONFLICTS} more"

    def _format_commands(self, commands: Sequence[str]) -> Iterator[str]:
        """Yield the section of the commands that unblock, each on a line of its own."""
        if commands:
            yield self.paint("To unblock:", bold=True)
        for command in commands:
            yield from wrap_command(command, self.width, _INDENT)

    def _format_moving(self, moving: Sequence[str]) -> Iterator[str]:
        if moving:
            shown = list_first(list(map(self.name, moving)), _MAX_NAMED)
            yield from self.wrap(f"The next sweep continues with {shown}.")
