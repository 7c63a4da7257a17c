"""`fanout report`: record the result of a check as Evidence."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.text_fields import LINK
from fanout.cli.input.completion import complete_checks
from fanout.cli.input.name_lookup import refuse_unrecordable, select_variants
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import invalid_setting, not_found
from fanout.cli.recording.record_session import (
    REPEATED,
    RecordRequest,
    RecordSession,
    open_record_session,
    revision_option,
    subject_options,
    with_request,
)
from fanout.errors import InvalidInput
from fanout.gates.gate_rules import CheckRule
from fanout.gates.gate_wording import label_stage
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore
from fanout.reconcile.observation.evidence_observer import match_evidence
from fanout.reconcile.pass_results import PolicyResult

_MIN_DIGITS = 7
_ALL_DIGITS = 40
_REPEAT_INTERVAL = timedelta(minutes=10)  # an equal report within it is a repeated run
_REPORT_AFTERWARDS = "report after publication"


def resolve_commit(
    commit_id: str, stage: str, variants: Sequence[RenderedVariant], git: GitStore, *, drafted: bool
) -> str:
    """Return the full id of the commit with this id or prefix.

    `variants`: those that it is evidence about. Raises InvalidInput unless the commit
    contains the package of at least one of them as it is published, or with `drafted` as it
    is drafted: otherwise the evidence could never count (docs/concepts/evidence-and-approvals.md).
    """
    place = label_stage(stage)
    commit = _expand_prefix(commit_id.lower(), place, variants)
    states_by_identity = {
        it.observed.repository_state.identity: it.observed.repository_state
        for it in variants
        if it.observed.repository_state.failure is None
    }
    states = [states_by_identity[key] for key in sorted(states_by_identity)]
    is_on_branch = drafted
    for state in states:
        if state.head and not is_on_branch:
            with git.reader(state.remote) as reader:
                is_on_branch = reader.has(commit) and reader.contains(state.head, commit)
    if not is_on_branch:
        searched = ", ".join(state.remote.url for state in states) or "none"
        raise not_found(
            f"commit {commit} is on no branch of {place}; repositories: {searched}",
            "use the checked commit of the branch",
        )
    evidence = match_evidence(
        frozenset({commit}), [it.observed for it in variants], git, {}
    ).values()
    if any(it.drafted_commits if drafted else it.published_commits for it in evidence):
        return commit
    problem = f"commit {commit} has no package of {place} as"
    if drafted:
        problem, remedy = f"{problem} drafted", "use the checked commit of a draft"
    else:
        problem, remedy = f"{problem} published", _REPORT_AFTERWARDS
    raise InvalidInput(problem, reason="WrongRevision", remedy=remedy)


def _expand_prefix(commit_id: str, stage: str, variants: Sequence[RenderedVariant]) -> str:
    if not re.fullmatch(rf"[0-9a-f]{{{_MIN_DIGITS},{_ALL_DIGITS}}}", commit_id):
        raise InvalidInput(
            f"{commit_id} is not a commit id",
            reason="NoObjectId",
            remedy=f"write its {_ALL_DIGITS} digits, or at least the first {_MIN_DIGITS}",
        )
    # A full id is not looked up among known commits: the branch may be ahead of them.
    if len(commit_id) == _ALL_DIGITS:
        return commit_id
    # Of publications and drafts, and the heads of their branches.
    known_commits: set[str] = set()
    for variant in variants:
        state, draft = variant.observed.repository_state, variant.observed.draft
        published = variant.observed.published
        known_commits |= {
            state.head,
            draft.commit if draft is not None else "",
            published.merge if published is not None else "",
            state.find_publication_commit(variant.spec.path),
        }
    matches = sorted(commit for commit in known_commits if commit.startswith(commit_id))
    if len(matches) != 1:
        problem = (
            f"{commit_id} is ambiguous: {' and '.join(matches)}"
            if matches
            else f"no commit of {stage} begins with {commit_id}"
        )
        raise not_found(problem, f"write all {_ALL_DIGITS} digits")
    return matches[0]


@click.command(cls=VerbCommand)
@subject_options
@click.option("--check", required=True, shell_complete=complete_checks, help="Name of the check.")
@click.option(
    "--status",
    required=True,
    type=click.Choice(["passed", "failed", "pending"]),
    help="Result of the check.",
)
@revision_option("Revision that was checked.")
@click.option("--commit", default="", help="Downstream commit that was checked.")
@click.option("--link", default="", help="URL with details of the result.")
@with_request()
def command(request: RecordRequest, **options: str) -> None:
    """Record evidence: the result of a check.

    Give either --revision or --commit to name what was checked. The revision or commit must be
    published. For a check before publication (stage field `requires`), a draft is enough. For
    --commit, the first seven digits are enough. An identical report within ten minutes is not
    recorded again.
    """
    if bool(options["revision"]) == bool(options["commit"]):
        raise invalid_setting(
            "the checked revision or commit is missing", "set either --revision or --commit"
        )
    # Checked before the program is opened: evidence is never changed, so a wrong link would
    # stay in it.
    link = options["link"]
    if not re.fullmatch(LINK, link):
        raise invalid_setting(
            f"{link} is not a valid web address",
            "write one that begins with https:// or http://",
            "--link",
        )
    with open_record_session(request, refuse_unrecordable) as session:
        item, stage = session.item, request.stage
        spec = session.build_subject(needs_stage=True)
        drafted = _is_draft_check(item, stage, options["check"])
        stage_variants = select_variants(item, stage, spec.get("variants", ()))
        if options["commit"]:
            options["commit"] = resolve_commit(
                options["commit"], stage, stage_variants, session.program.world.git, drafted=drafted
            )
        else:
            if drafted:
                drafts = [it.observed.draft for it in stage_variants if it.observed.draft]
                state, revisions = "drafted", {it.trailers.revision for it in drafts}
                remedy = "report on the draft before its publication"
            else:
                seen = [it.observed for it in stage_variants if it.observed.revert_hold is None]
                state, remedy = "published", _REPORT_AFTERWARDS
                revisions = {it.published.revision for it in seen if it.published is not None}
            # Evidence about another revision would never count.
            if options["revision"] not in revisions:
                present = ", ".join(sorted(revisions))
                choices = f"{state} there: {present}" if present else f"nothing is {state}"
                raise InvalidInput(
                    f"{options['revision']} is not {state} in stage {stage} of {item.title};"
                    f" {choices}",
                    reason="WrongRevision",
                    remedy=remedy,
                )
        spec |= {name: value for name, value in options.items() if value}
        if earlier := _find_equal_report(session, spec, stage_variants, drafted=drafted):
            session.print_name(earlier, "", "Evidence", REPEATED)
            session.print_consequences()
        else:
            session.record("Evidence", spec)


def _find_equal_report(
    session: RecordSession,
    spec: Mapping[str, Any],
    variants: Sequence[RenderedVariant],
    *,
    drafted: bool,
) -> str:
    """Return the name of an equal report of the last ten minutes; empty if none.

    Only if it counts like a new one: later reports are recorded, because `freshFor` and `minReady`
    count from the last one, and so are reports that follow a publication or a draft since.
    """
    item, now = session.item, session.settings.now()
    earlier = session.find_equal_record("Evidence", spec)
    if earlier is None or not timedelta() <= now - earlier.at <= _REPEAT_INTERVAL:
        return ""
    names = [it.name for it in item.records]
    for variant in variants:
        draft, published = variant.observed.draft, variant.observed.published
        if drafted:
            line = item.status.drafts.get(variant.spec.name)
            if line is None or draft is None or line.digest != draft.trailers.digest:
                return ""
            since, last_evidence = line.at, ""
        elif published is not None:
            since, last_evidence = published.at, published.heard
        else:
            continue
        is_later = last_evidence in names and names.index(last_evidence) >= names.index(
            earlier.name
        )
        if since >= earlier.at or is_later:
            return ""
    return earlier.name


def _is_draft_check(item: PolicyResult, stage: str, check: str) -> bool:
    """Return whether a check precedes publication. Raises InvalidInput if nobody reports it."""
    checks = {
        it.name: (it.method, group == "requires")
        for rule in item.rules
        for group in ("verification", "requires")
        for it in getattr(rule, group)
        if rule.name == stage and isinstance(it, CheckRule)
    }
    reported = [name for name, (way, _) in checks.items() if way is CheckMethod.REPORT]
    if check in reported:
        return checks[check][1]
    available = f"it has: {', '.join(reported)}" if reported else "it has none"
    if check in checks:
        problem = f"check {check} is queried by fanout ({checks[check][0]})"
        remedy = f"use a reported check; {available}"
    else:
        problem = f"stage {stage or '(none)'} of {item.title} has no check {check}; {available}"
        remedy = "use a reported check of the stage"
    raise not_found(problem, remedy)
