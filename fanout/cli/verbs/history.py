"""`fanout history`: print what was in force when, and what released it."""

from collections.abc import Sequence

import click

from fanout.api.durations import format_duration, parse_duration, parse_instant
from fanout.api.field_errors import InvalidValue
from fanout.api.table_column import Object, TableColumn
from fanout.api.view_base import dump_views
from fanout.cli.declarations import build_not_found
from fanout.cli.input.completion import complete_subjects
from fanout.cli.input.name_lookup import (
    find_named_variants,
    find_policy,
    match_orphaned,
    read_input,
)
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.get_tables import describe_unread
from fanout.cli.output.printer import check_output, print_objects
from fanout.cli.process_exit import ExitCode, invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings, parse_instant_option
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.plan.history.recorded_publications import HistoryEntry, group_by_stage
from fanout.present.history_views import HistoryViews
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_history import PolicyHistory, read_policy_history

_SHORT_DIGITS = 8  # digits of a commit id in a cell


def _read_begin(item: Object) -> str:
    return str(item["metadata"]["creationTimestamp"])


def _format_begin(item: Object) -> str:
    """Return the instant of an entry as people read it: `2026-03-02 09:00`, in UTC."""
    return _read_begin(item)[:16].replace("T", " ")


_STAGE_COLUMNS = (
    TableColumn("BEGAN (UTC)", _format_begin, priority=0),
    TableColumn("STAGE", "spec.stage", priority=0),
    TableColumn("REVISION", "spec.revision", priority=0),
    TableColumn("VARIANTS", "status.variants", priority=3),
    TableColumn(
        "PASSED",
        lambda item: (
            f"after {format_duration(parse_instant(passed) - parse_instant(_read_begin(item)))}"
            if (passed := item["status"].get("passed")) is not None
            else ""
        ),
        priority=2,
    ),
    TableColumn("STATE", "status.state", wide=True),
    TableColumn("DROPPED", "status.dropped", wide=True),
    TableColumn(
        "RELEASED BY",
        lambda item: "; ".join(it["message"] for it in item["status"]["admissions"]),
        cut_width=22,
    ),
)
_PUBLICATION_COLUMNS = (
    TableColumn("SINCE (UTC)", _format_begin, priority=0),
    # Without the path, which the publications of a variant have in common.
    TableColumn("TAG", lambda item: item["status"]["tag"].rpartition("/")[2], priority=0),
    TableColumn("REVISION", "spec.revision", priority=0),
    TableColumn("COMMIT", lambda item: item["status"]["commit"][:_SHORT_DIGITS], priority=3),
    TableColumn("STATE", "status.state", wide=True),
    TableColumn(
        "EVIDENCE",  # the last answer of each check
        lambda item: ",".join(
            map("=".join, {it["check"]: it["result"] for it in item["status"]["evidence"]}.items())
        ),
        priority=2,
    ),
    TableColumn(
        "APPROVED BY",
        lambda item: ",".join(dict.fromkeys(it["by"] for it in item["status"]["approvals"])),
        wide=True,
    ),
    TableColumn("DROPPED", lambda item: len(item["status"]["dropped"]), priority=3),
    TableColumn("RELEASED BY", "status.admission.message", cut_width=22),
    TableColumn("REPOSITORY", "spec.repository", wide=True),
    TableColumn("PATH", "spec.path", wide=True),
    TableColumn("VALUES", lambda item: "; ".join(item["status"]["dropped"]), wide=True),
)


@click.command(cls=VerbCommand)
@click.argument("subject", metavar="POLICY[/STAGE[/VARIANT]]", shell_complete=complete_subjects)
@click.option(
    "--since",
    default="",
    metavar="DURATION|TIME",
    help="Print only entries newer than a duration, such as 24h, or than a time, such as"
    " 2026-03-01T12:00:00Z.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Print at most this many entries.")
@click.option("--reverse", is_flag=True, help="Print the oldest entry first.")
@with_settings(READ_OPTIONS, formats=tuple(OutputFormat))
def command(
    settings: Settings, subject: str, since: str, limit: int | None, *, reverse: bool
) -> ExitCode:
    """Print when and why revisions were published.

    For a policy or a stage, prints one entry for each revision published in a stage, with the
    number of variants. For a variant, prints one entry for each published revision, with its tag,
    its commit, its evidence, and how many values were dropped to resolve merge conflicts. The
    newest entry comes first. A moved or removed variant is found by its former name.

    If a downstream repository cannot be read, prints only what the records contain, and exits with
    code 3.
    """
    check_output(settings)
    start = None
    if since[:1].isdecimal() and ("-" in since or ":" in since):
        start = parse_instant_option(since, "--since")
    elif since:
        try:
            start = settings.now() - parse_duration(since)
        except InvalidValue as error:
            remedy = "write a duration such as 24h, or an instant such as 2026-03-01T12:00:00Z"
            raise invalid_setting(f"{since}: {error.problem}", remedy, "--since") from None
    policy, _, remainder = subject.partition("/")
    stage, _, variant = remainder.partition("/")
    with open_program(settings, check=False) as program:
        _, faults = read_input(program, [policy])
        item = find_policy(program, policy)
        history = read_policy_history(program.world, item)
    for problem in describe_unread(history):
        print_message(problem, settings.color, fg="red")
    views = HistoryViews(item)
    stages = {rule.name for rule in item.rules}
    stages |= {entry.recorded.stage for entry in history.entries} - {""}
    if stage and stage not in stages:
        # `POLICY/VARIANT` names a variant where no stage has that name; a path has slashes.
        if not _find_variants(item, history, "", remainder):
            raise build_not_found("stage", [stage], stages)
        stage, variant = "", remainder
    by_publication = variant or item.resolved_policy.upstream_policy is None
    if by_publication:
        entries: Sequence[HistoryEntry] = history.entries
        if variant:
            names = _find_variants(item, history, stage, variant)
            if len(names) > 1:
                choices = ", ".join(sorted(names))
                raise not_found(f"{variant} matches several variants", f"use one of: {choices}")
            if not names:
                named = [(it.spec.name, it.spec.stage) for it in item.variants]
                named += [(it.recorded.variant, it.recorded.stage) for it in entries]
                existing = {name for name, own_stage in named if stage in ("", own_stage)}
                raise build_not_found("variant", [variant], existing)
            entries = [it for it in entries if it.recorded.variant in names]
        shown = [views.publication(it) for it in entries if start is None or it.at >= start]
        objects = dump_views(shown)
    else:
        objects = dump_views(
            views.stage_revision(it)
            for it in group_by_stage(history.entries, history.verdicts)
            if stage in ("", it.stage) and (start is None or it.began >= start)
        )
    if (newest_first := objects[::-1][:limit]) or not settings.output.is_table:
        columns = _PUBLICATION_COLUMNS if by_publication else _STAGE_COLUMNS
        print_objects(newest_first[::-1] if reverse else newest_first, columns, settings)
    else:
        print_message("nothing was published", settings.color)
    return ExitCode.SOME_FAILED if faults or history.failures else ExitCode.OK


def _find_variants(
    item: PolicyResult, history: PolicyHistory, stage: str, name: str
) -> frozenset[str]:
    """Return the variants of a name, present ones first; those of a stage at any time."""
    stages: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    for entry in history.entries:
        recorded = entry.recorded
        stages.setdefault(recorded.variant, set()).add(recorded.stage)
        names.setdefault(recorded.variant, {recorded.variant}).add(recorded.path)
    for present in item.variants:
        stages.setdefault(present.spec.name, set()).add(present.spec.stage)
    in_stage = {it for it, own_stages in stages.items() if not stage or stage in own_stages}
    variants = [it for it in item.variants if it.spec.name in in_stage]
    matches = frozenset(it.spec.name for it in find_named_variants(variants, name))
    if matches or name in in_stage:
        return matches or frozenset([name])
    if by_path := frozenset(it for it in in_stage if name in names.get(it, ())):
        return by_path
    past = in_stage - {it.spec.name for it in item.variants}
    return frozenset(match_orphaned(item.resolved_policy, sorted(past), names, name))
