"""`fanout approve`: record a person's approval of drafts or removals of a stage, by their trees."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import Verdict
from fanout.api.text_fields import pluralize
from fanout.cli.input.completion import complete_checks
from fanout.cli.input.name_lookup import select_variants
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode, exit_code_after, invalid_setting, not_found
from fanout.cli.recording.eligibility import build_no_draft, find_author, select_decided
from fanout.cli.recording.record_session import (
    RecordRequest,
    RecordSession,
    current_trees,
    open_record_session,
    revision_option,
    subject_options,
    with_request,
)
from fanout.errors import InvalidInput
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import ApprovalRule
from fanout.gates.gate_wording import format_names
from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.evidence.review_approvals import list_removal_facts
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value


@click.command(cls=VerbCommand)
@subject_options
@revision_option("Revision of the drafts; required without --removals.")
@click.option(
    "--removals",
    is_flag=True,
    help="Approve the removal of packages from repositories without a forge.",
)
@click.option(
    "--check",
    default="",
    shell_complete=complete_checks,
    help="Name of the approval check; required if the stage has several.",
)
@with_request()
def command(request: RecordRequest, revision: str, check: str, removals: bool) -> ExitCode:
    """Approve drafts or removals of a stage.

    The approval counts only for the current content of the drafts. A draft that is rewritten needs
    a new approval. A stage has drafts only of its candidate, the revision to roll out in the stage.
    A newer revision is drafted when it has passed the earlier stages (stage field `after`). Drafts
    with undecided merge conflicts are left out. To approve such drafts, name their variants with
    --variant. Exits with code 4 if the approval counts for none of the drafts.

    With --removals, approves the removal of packages of the stage instead. Where the stage requires
    approvals and the repository has no forge, packages are removed on a branch, which `fanout get
    targets` names, and the next sweep merges the branch when it has enough approvals. The approval
    counts only for the present content of the branches: a branch that changes needs a new approval.
    """
    if removals and (revision or request.variants):
        raise invalid_setting(
            f"--removals and {'--revision' if revision else '--variant'} exclude each other",
            "omit one: removals are approved together, branch by branch",
            "--removals",
        )
    with open_record_session(request) as session:
        select = _select_removals if removals else _select_drafts
        subject = select(session, check, revision)
        author = find_author(session, subject.rule)
        approved = author.find_approved(session.item, subject.reviewed)
        expires = subject.rule.expires
        is_complete = bool(subject.reviewed) and len(approved) == len(subject.reviewed)
        if not is_complete or expires is not None:
            session.record("Approval", subject.spec, f" for {subject.title}", groups=author.groups)
    repeated = ""
    if approved:
        some = f"{len(approved)} of them ({format_names(approved)})"
        drafts = f"these {subject.noun}" if is_complete else some
        repeated = f"{session.author.email.lower()} has already approved {drafts}"
        if expires is not None:
            repeated += f"; the approval now counts for another {format_duration(expires)}"
        elif is_complete:
            repeated = f"nothing to do: {repeated}"
    session.print_notes([author.format_not_counted(subject.reviewed), repeated, subject.note])
    own_edits = author.find_own_edits(subject.reviewed)
    has_effect = author.is_approver and len(own_edits) < len(subject.reviewed)
    return exit_code_after(int(bool(subject.note)), effect=has_effect)


class _ApprovedDrafts(Value):
    """Drafts or removals that an approval is about."""

    rule: ApprovalRule
    spec: Mapping[str, Any]  # of the record
    reviewed: Sequence[VariantFacts]
    title: str
    noun: str = "drafts"
    note: str = ""  # on drafts that are left out


def _select_drafts(session: RecordSession, check: str, revision: str) -> _ApprovedDrafts:
    item, stage, spec = session.item, session.request.stage, session.build_subject()
    named_variants = spec.get("variants", ())
    _refuse_unnamed(item, stage, revision)
    rule = find_approval_rule(item, stage, check)
    # A named variant's draft was looked at, so it can be approved; its conflicts still hold it.
    candidates = select_variants(item, stage, named_variants)
    selection = select_decided(item, candidates, "approved", accept=bool(named_variants))
    if not (trees := current_trees(selection.variants, revision, written_only=True)):
        raise build_no_draft(item, stage, revision, selection.variants)
    names = {variant.spec.name for variant in selection.variants}
    variants = [it for it in (item.facts.variants if item.facts else ()) if it.name in names]
    return _ApprovedDrafts(
        rule,
        spec | {"revision": revision, "check": rule.name, "trees": trees},
        [it for it in variants if it.draft and it.draft.tree in trees],
        pluralize(len(trees), "draft"),
        note=selection.note,
    )


def _select_removals(session: RecordSession, check: str, _revision: str) -> _ApprovedDrafts:
    """Return the branches that remove packages of the stage."""
    item, stage, spec = session.item, session.request.stage, session.build_subject()
    branches = _find_approvable_removals(item)
    if not stage:
        stages = sorted({it.stage for it in branches})
        lines = " or ".join(f"--stage {it} --removals" for it in stages)
        remedy = f"use {lines}" if lines else "no removal waits for an approval"
        raise not_found(f"the stage of {item.title} to approve removals of is missing", remedy)
    rule = find_approval_rule(item, stage, check)
    branches = [it for it in branches if it.stage == stage]
    if not branches:
        problem = f"no branch removes packages of stage {stage} of {item.title}"
        remedy = "run `fanout get targets`; `fanout sweep` writes the branch"
        plans = [it for it in item.removal_sets if it.stage == stage]
        hosted = [it for it in plans if it.state.forge is not None]
        if plan := next((it for it in plans if it.state.forge is None), None):
            branch = plan.ref.removeprefix("refs/heads/")
            problem = f"branch {branch}, which removes packages of stage {stage}, is out of date"
            remedy = "run `fanout sweep`, which writes it, then review it"
            if plan.write is None and not plan.is_removed:
                problem = f"branch {branch} removes nothing any more"
                remedy = "run `fanout get targets`, which shows why"
        elif hosted:
            problem = f"packages of stage {stage} of {item.title} are removed by pull requests"
            remedy = f"approve the pull request in {format_names(it.repository for it in hosted)}"
        raise InvalidInput(problem, reason="NoDraft", remedy=remedy)
    trees = sorted({it.draft.tree for it in branches if it.draft is not None})
    reviewed = list(list_removal_facts(branches))
    title = f"the removal of {pluralize(len(reviewed), 'package')}"
    spec |= {"check": rule.name, "trees": trees}
    return _ApprovedDrafts(rule, spec, reviewed, title, "removals")


def _find_approvable_removals(item: PolicyResult) -> list[PlannedSet]:
    """Return the branches that remove packages and that records approve: where there is no forge.

    A branch that the next pass writes again is not approved as it is.
    """
    return [it for it in item.removal_sets if it.state.forge is None and it.is_current]


def find_approval_rule(item: PolicyResult, stage: str, check: str) -> ApprovalRule:
    """Return the approval check of this name, or the only one. Raises InvalidInput."""
    rules = item.facts.stages if item.facts else ()
    rules_by_check = {rule.name: rule for it in rules if it.name == stage for rule in it.approvals}
    if check in rules_by_check:
        return rules_by_check[check]
    if not check and len(rules_by_check) == 1:
        return next(iter(rules_by_check.values()))
    checks = list(rules_by_check)
    required = f"it requires: {', '.join(checks)}" if checks else "it requires no approval"
    raise not_found(
        f"stage {stage} of {item.title}: {required}",
        "choose one with --check" if checks else "there is nothing to approve",
    )


def _refuse_unnamed(item: PolicyResult, stage: str, revision: str) -> None:
    """Raise InvalidInput without a stage or a revision; the remedy lists what can be approved."""
    missing = [name for name, value in (("stage", stage), ("revision", revision)) if not value]
    if not missing:
        return
    approval_stages = [rule for rule in item.rules if rule.approvals and stage in ("", rule.name)]
    decisions = item.decision.variants if item.decision else {}
    lines = []
    for rule in approval_stages:
        checks = {check.name for check in rule.approvals}
        # Of current drafts that lack an approval.
        revisions = {
            variant.observed.draft.trailers.revision
            for variant in select_variants(item, rule.name)
            if variant.observed.draft is not None
            and variant.selected.has_current_draft
            and any(
                check.name in checks and check.verdict is not Verdict.PASSED
                for check in decisions[variant.spec.name].checks
            )
        }
        lines += [f"--stage {rule.name} --revision {it}" for it in sorted(revisions)]
    removed = {it.stage for it in _find_approvable_removals(item)}
    lines += [f"--stage {it.name} --removals" for it in approval_stages if it.name in removed]
    if lines:
        remedy = f"use {' or '.join(lines)}"
    elif approval_stages:
        names = ", ".join(rule.name for rule in approval_stages)
        remedy = f"no draft waits for an approval; stages with approvals: {names}"
    else:
        remedy = (
            "no stage requires approvals" if not stage else f"stage {stage} requires no approval"
        )
    raise not_found(f"the {' and '.join(missing)} of {item.title} to approve is missing", remedy)
