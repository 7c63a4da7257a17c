"""Output about new records, and of `--dry-run`: what would be added, and what would follow."""

from collections.abc import Mapping
from textwrap import indent
from typing import Any

from fanout.cli.output.pass_output import print_planned_actions
from fanout.cli.output.printer import format_yaml, write_stdout
from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.cli.terminal import escape_control
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


def print_recorded(settings: Settings, line: str) -> None:
    """Print the line that names a record; in a dry run with a mark, as kubectl has it."""
    mark = " (dry run)" if settings.dry_run else ""
    write_stdout(f"{line.rstrip()}{mark}\n")


def describe_record(settings: Settings, kind: str, name: str, *, is_repeated: bool = False) -> str:
    """Return the name of a record with what became of it; on a cluster it is an object."""
    verb = "created" if settings.uses_cluster else "recorded"
    return f"{kind.lower()}.fanout.dev/{name} {'already recorded' if is_repeated else verb}"


def print_consequences(program: Program, policy: ResolvedPolicy) -> None:
    """In a dry run, print the new records, and what the next sweep of the policy would do."""
    if not program.settings.dry_run:
        return
    print_new_records(program)
    only = frozenset([policy.name])
    observed = program.observe(PassMode(only=only, namespace=policy.namespace))
    write_stdout("the next sweep would do:\n")
    print_planned_actions(observed, program.settings)


def print_new_records(program: Program) -> None:
    """Print the records that a dry run has not written; nothing if there are none."""
    for manifest in list_new_records(program) if program.settings.dry_run else ():
        write_stdout("would be recorded:\n")
        write_stdout(indent(escape_control(format_yaml(manifest)), "  "))


def list_new_records(program: Program) -> list[Mapping[str, Any]]:
    """Return the records that a dry run has not written, or that are objects of a cluster."""
    return [] if program.overlay is None else list(program.overlay.manifests)
