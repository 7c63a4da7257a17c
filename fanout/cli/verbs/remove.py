"""`fanout remove`: remove an orphaned variant, or the leftovers of a move."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import click

from fanout.api.field_errors import suggest_name
from fanout.api.gate_vocabulary import Action
from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.api.results import Hold
from fanout.cli.input.completion import complete_policies, complete_variants
from fanout.cli.input.name_lookup import (
    find_named_variants,
    find_orphaned_paths,
    find_policy,
    match_orphaned,
)
from fanout.cli.input.options import VerbCommand
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, invalid_setting, not_found, nothing_to_do
from fanout.cli.recording.record_session import (
    REPEATED,
    RecordRequest,
    RecordSession,
    open_record_session,
    print_new_records,
    print_recorded,
    reason_option,
    with_request,
)
from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.cli.terminal import complete_text
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_wording import describe_hold, format_names
from fanout.gates.removal_gate import closed_window_hold
from fanout.plan.changes.package_removal import PackageRemoval
from fanout.plan.changes.planned_sets import SetOwner
from fanout.plan.gates.stage_rules import build_calendars
from fanout.reconcile.execution.removal_execution import (
    find_removals,
    find_undeclared_variant,
    remove_by_level,
)
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.problem_aggregation import format_failed_outcomes
from fanout.reconcile.records.undeclared_policies import refuse_undeclared
from fanout.reconcile.removal.orphaned_variants import find_removal_doubt
from fanout.reconcile.selection.policy_resolution import are_all_promotions_read, find_promotions


@click.command(cls=VerbCommand)
@click.argument("policy", required=False, default="", shell_complete=complete_policies)
@click.argument("variant", required=False, shell_complete=complete_variants)
@click.option("--all-gone", is_flag=True, help="Remove all variants whose targets no longer exist.")
@click.option("--edited", is_flag=True, help="Remove the package even if it has downstream edits.")
@reason_option
@with_request()
def command(request: RecordRequest, variant: str | None, all_gone: bool, edited: bool) -> ExitCode:
    """Remove variants whose target no longer exists.

    In stages with automatic promotion, sweeps remove variants whose target no longer exists, unless
    there are more of them than the field `removalLimit` allows. This command also works without
    automatic promotion, and ignores `removalLimit`. After a move, the old package of a variant
    stays until the variant is ready at its new path. This command can remove the old package
    earlier.

    VARIANT is the name of a variant, its path, its repository:path, or the name of its former
    target. `fanout get targets` shows the reason TargetGone for each variant whose target no longer
    exists. For a variant that belongs to a PackageVariant object and to no policy, give VARIANT
    alone.

    The package is deleted from the branch in one commit, and the draft is deleted too. If
    `deletionPolicy` is Orphan, the package is kept, and a draft with downstream edits is also kept.
    Tags are always kept.

    With --all-gone, removes all variants whose target no longer exists. Variants of later stages
    are removed first.

    In a repository with a forge, the package is removed on a branch, and the next sweep opens a
    pull request for this branch. In a repository without a forge, if the stage requires approvals,
    the package is removed on a branch too, which people approve with `fanout approve --removals`.
    When the branch has enough approvals, this command or the next sweep merges it. With --all-gone,
    the branch removes only the variants of one stage: the last stage that still has variants to
    remove. When this branch is merged, the next sweep continues with the stage before.

    If a window is closed, the command only records the decision to remove the variants, and exits
    with code 4. A sweep removes the variants when the window is open. An interrupted command can be
    run again.
    """
    if not request.policy:
        raise click.UsageError("name a policy or a variant")
    settings = request.settings
    find = partial(_find_policy, without_variant=variant is None and not all_gone)
    with open_record_session(request, None, find) as session:
        program, item = session.program, session.item
        declared = program.read_declared()
        try:
            names = _select_names(item, variant, declared, settings.now(), all_orphaned=all_gone)
        except InvalidInput:
            # The decision by which an earlier run removed the variants, if there was one.
            for record in reversed(item.records):
                is_about = variant is None or record.spec.variants == (variant,)
                if record.action is Action.CONFIRM_REMOVAL and is_about:
                    equal_spec = {**record.fields, "reason": request.reason}
                    earlier = session.find_equal_decision(equal_spec, (DecisionStatus.APPLIED,))
                    if earlier is None:
                        raise
                    session.print_name(earlier.name, "; it is applied", verb=REPEATED)
                    return ExitCode.OK
            raise
        removals = find_removals(program.world, item, declared, names, request.reason)
        edited_trees = {it: tree for removal in removals for it, tree in removal.edits.items()}
        if edited_trees and not edited:
            raise InvalidInput(
                f"edited outside fanout: {' and '.join(edited_trees)}",
                reason="EditedDownstream",
                remedy="review the edits, and use --edited to remove the package anyway",
            )
        window_hold = _find_closed_window(item, declared, names, settings)
        spec = {"variants": names, "action": Action.CONFIRM_REMOVAL.value, "reason": request.reason}
        spec |= {"trees": sorted(set(edited_trees.values()))} if edited_trees else {}
        if item.resolved_policy.upstream_policy is not None:
            spec["policy"] = item.resolved_policy.name
        session.record_once(spec)
        if window_hold is not None:
            session.print_notes([f"a later sweep removes it: {describe_hold(window_hold)}"])
            return ExitCode.NO_EFFECT
        policy = item.resolved_policy
        owner = SetOwner(program.world.setup.install, policy.namespace, policy.name)
        if settings.dry_run:
            print_new_records(program)
            for removal in removals:
                print_recorded(settings, _format_removal(removal, owner))
            return ExitCode.OK
        if settings.plans_only:
            variants = format_names(removal.variant for removal in removals)
            write_stdout(f"the controller removes {variants}\n")
            return ExitCode.OK
        _remove(session, declared, removals, names, owner)
    return ExitCode.OK


def _remove(
    session: RecordSession,
    declared: DeclaredObjects,
    removals: Sequence[PackageRemoval],
    names: Sequence[str],
    owner: SetOwner,
) -> None:
    """Remove the variants of these names, and print what has become of each."""
    reason, at = session.request.reason, session.settings.now()
    pending = set(names)
    steps = remove_by_level(session.program.world, session.item, declared, removals, reason, at)
    for removed, undeletable in steps:
        kept = {it.action.variant for it in undeletable}
        for removal in removed:
            pending.discard(removal.variant)
            # Of a draft alone nothing is removed if its branch stays.
            if removal.tree or removal.variant not in kept:
                write_stdout(complete_text(f"{_format_removal(removal, owner)}\n"))
        session.print_notes(f"warning: {line}" for line in format_failed_outcomes(undeletable))
    for name in sorted(pending):
        write_stdout(f"{name} waits for variants of other stages; a later sweep removes it\n")


def _select_names(
    item: PolicyResult,
    variant: str | None,
    declared: DeclaredObjects,
    now: datetime,
    *,
    all_orphaned: bool,
) -> list[str]:
    """Return the names of the variants to remove.

    Raises InvalidInput without any, and for all if files leave it uncertain which are orphaned.
    """
    if not all_orphaned:
        if item.resolved_policy.upstream_policy is None and variant is None:
            return [item.resolved_policy.name]
        return [_resolve_name(item, variant or "", declared)]
    if variant is not None:
        raise invalid_setting("VARIANT and --all-gone exclude each other", "keep one of them")
    # An unreadable file may declare targets that only seem to be deleted. Whoever says
    # --all-gone has looked at a list and not at each variant.
    doubt = find_removal_doubt(declared, item.resolved_policy.upstream_policy, now)
    if doubt is not None:
        raise InvalidInput(
            f"cannot determine the deleted targets of {item.title}: {doubt.message}",
            reason="InvalidObject",
            remedy="run `fanout validate` and correct the error, or name a variant",
        )
    if not item.orphans:
        problem = f"{item.title} has no variant without a target"
        raise nothing_to_do(problem, "run `fanout get targets`")
    return [orphan.name for orphan in item.orphans]


def _find_closed_window(
    item: PolicyResult, declared: DeclaredObjects, names: Sequence[str], settings: Settings
) -> Hold | None:
    """Return the closed window that holds the removal now, or None.

    Raises InvalidInput if no later sweep would remove the variants: those written by hand, and the
    leftovers of a move. On a cluster nobody else removes them.
    """
    windows = build_calendars(find_promotions(item.resolved_policy, declared.promotions))
    unread = not are_all_promotions_read(declared, item.resolved_policy.namespace)
    window_hold = closed_window_hold(windows, settings.now(), has_unreadable_calendar=unread)
    orphaned = {orphan.name for orphan in item.orphans}
    policy = item.resolved_policy
    is_declared = policy.upstream_policy is not None or policy.is_being_deleted
    is_swept = is_declared and orphaned.issuperset(names)
    if settings.uses_cluster and not is_swept:
        raise nothing_to_do(
            "the controller removes only variants of a policy whose target no longer exists, not"
            f" {format_names(names)}",
            "delete the PackageVariant, or wait until the variant is ready at its new path",
        )
    if window_hold is not None and not is_swept:
        problem, reason = describe_hold(window_hold), window_hold.reason
        raise InvalidInput(
            problem, reason=reason, remedy="run the command again when the window is open"
        )
    return window_hold


def _find_policy(program: Program, policy: str, *, without_variant: bool) -> PolicyResult:
    """Return the policy, or variant written by hand, even if its object is deleted."""
    try:
        return find_policy(program, policy)
    except InvalidInput:
        namespace = program.settings.namespace or DEFAULT_NAMESPACE
        declared = program.read_declared()
        undeclared = (
            find_undeclared_variant(program.world, declared, namespace, policy)
            if without_variant
            else None
        )
        if undeclared is None:
            refuse_undeclared(program.world, declared, namespace, policy)
            raise
        return undeclared


def _resolve_name(item: PolicyResult, name: str, declared: DeclaredObjects) -> str:
    """Return the name of the variant to remove. Raises InvalidInput if nothing has it."""
    orphaned = {orphan.name for orphan in item.orphans}
    names = sorted(orphaned)
    default_remedy = f"variants without a target: {format_names(names)}" if names else ""
    if not name:
        raise not_found(
            f"the variant of {item.title} is missing",
            default_remedy or "name the variant to remove",
        )
    if name in orphaned or name in item.status.variants:
        return name
    removable = orphaned | item.status.variants.keys() - {it.spec.name for it in item.variants}
    paths = find_orphaned_paths(item, declared)
    matches = {it.spec.name for it in find_named_variants(item.variants, name)}
    matches.update(match_orphaned(item.resolved_policy, removable, paths, name))
    if len(matches) > 1:
        raise not_found(
            f"{name} matches several variants of {item.title}",
            f"use one of: {format_names(sorted(matches))}",
        )
    if not matches:
        raise not_found(
            f"{item.title} has no variant {name} without a target",
            suggest_name(name, names, default_remedy or "run `fanout get targets`"),
        )
    return matches.pop()


def _format_removal(removal: PackageRemoval, owner: SetOwner) -> str:
    state = removal.repository_state
    location = f"{removal.path} in {state.identity}" if state is not None else removal.path
    if removal.awaits_review:
        branch = owner.find_ref(removal.stage).removeprefix("refs/heads/")
        if removal.state.forge is None:
            return (
                f"{removal.variant} waits for approvals: branch {branch} removes {location}; review"
                f" it, then run `fanout approve {owner.name} --stage {removal.stage} --removals`"
            )
        return (
            f"{removal.variant} waits for its pull request: branch {branch} removes {location};"
            " the next sweep opens the request"
        )
    if removal.tree:
        return f"{removal.variant} removed: {location} left the branch"
    if state is None:
        return f"{removal.variant} removed from the status: its repository is not declared"
    if removal.path_state.tree is None:
        return f"{removal.variant} removed: the branch did not have it"
    return f"{removal.variant} removed: {location} stays on the branch"
