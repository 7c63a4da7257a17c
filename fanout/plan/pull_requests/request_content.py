"""Content of a pull request's text, from the variants in it and the decision of the gates.

Templates of administrators have it as variables.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from fanout.api.durations import format_instant
from fanout.api.promotion_policy import MergeMethod
from fanout.api.reasons import AWAITS_APPROVERS, Reason, ReasonClass, classify_reason
from fanout.plan.changes.next_drafts import find_next_draft
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.edits.merge_disputes import limit_lines, parse_disputes, rejected_lines_of_draft
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.pull_requests.markdown_text import (
    format_block,
    format_code,
    format_foreign_link,
    format_link,
    format_sentence,
)
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_layout import (
    build_body,
    build_title,
    format_difference,
    without_siblings,
)
from fanout.plan.pull_requests.request_values import (
    RequestCheck,
    RequestConflict,
    RequestContent,
    RequestHold,
    RequestReadings,
    RequestUpstream,
    RequestVariant,
)
from fanout.plan.rendered_variant import ChangeVerb, RenderedVariant
from fanout.selection.ref_names import install_of
from fanout.values import replace

# Holds that end by what fanout does next, or that the forge shows by itself: a text that named
# them would be written once more for each.
_UNTOLD_REASONS: Final = frozenset(
    {
        Reason.FORGE_DENIED,
        Reason.FORGE_REFUSES,
        Reason.FORGE_UNAVAILABLE,
        Reason.MERGE_ACCEPTED,
        Reason.MERGE_AWAITED,
        Reason.NO_DRAFT,
        Reason.RATE_LIMITED,
        Reason.REQUEST_CLOSED,
        Reason.REQUEST_HELD,
        Reason.REQUEST_OPEN,
        Reason.REQUEST_PENDING,
        Reason.STAGE_DRAFT_PENDING,
        Reason.SWEEP_AWAITED,
    }
)
_CHECKS: Final = frozenset({ReasonClass.EVIDENCE, ReasonClass.APPROVAL})
_DraftedVariant = tuple[RenderedVariant, OpenDraft | None]
_Key = TypeVar("_Key", bound=Hashable)


def build_content(
    group: RequestGroup,
    merge: MergeMethod,
    readings: RequestReadings,
) -> RequestContent:
    """Build the content of the text of one pull request.

    `readings`: what was read for it alone.
    """
    drafts = [(it.rendered, find_next_draft(it.rendered)) for it in group.members]
    variants, upstreams = _build_variants(group, drafts)
    evaluations = {
        it.rendered.spec.path: it.evaluation for it in group.members if it.evaluation is not None
    }
    # Instants of holds by checks move whenever a check is asked again.
    holds = _group(
        (
            replace(it, since=None, until=None)
            if classify_reason(it.reason) in _CHECKS
            else replace(it, since=None),
            path,
        )
        for path, evaluation in evaluations.items()
        for it in evaluation.holds
        if it.reason not in _UNTOLD_REASONS
    )
    paths_by_check = _group(
        (replace(check, latest=None, passes_at=None, until=None), path)
        for path, evaluation in evaluations.items()
        for check in evaluation.checks
    )
    checks = tuple(RequestCheck(check, paths) for check, paths in paths_by_check.items())
    approvals = (it.result for it in checks if it.result.reason in AWAITS_APPROVERS)
    # What holds members, their evaluations say.
    own_holds = (group.refusal,) if group.members else (group.hold, group.refusal)
    name = group.policy or (variants[0].name if variants else "")
    return RequestContent(
        install=install_of(group.ref),
        policy=f"{group.namespace}/{name}",
        stage=group.stage,
        repository=group.repository,
        branch=group.state.branch.removeprefix("refs/heads/"),
        head_branch=group.ref.removeprefix("refs/heads/"),
        variants=tuple(variants),
        changes=readings.patches,
        changed=readings.changed,
        histories=readings.histories,
        conflicts=tuple(_build_conflicts(drafts)),
        holds=(
            *(RequestHold(hold, paths) for hold, paths in holds.items()),
            *(RequestHold(replace(it, since=None)) for it in own_holds if it is not None),
        ),
        checks=checks,
        upstreams=tuple(upstreams),
        merge=merge,
        approval_checks=tuple(dict.fromkeys(check.name for check in approvals)),
    )


def _build_variants(
    group: RequestGroup, drafts: Iterable[_DraftedVariant]
) -> tuple[list[RequestVariant], Collection[RequestUpstream]]:
    """Return the packages of a request, and the upstream revisions they were made from."""
    variants: list[RequestVariant] = []
    upstreams: dict[RequestUpstream, None] = {}
    for variant, draft in drafts:
        observed, spec, verb = variant.observed, variant.spec, variant.change_verb
        revision = draft.trailers.revision if draft is not None else variant.selected.revision
        variants.append(
            RequestVariant(
                name=spec.name,
                path=spec.path,
                verb=verb,
                target=spec.target,
                old_path=observed.package_location.path if verb is ChangeVerb.MOVE else "",
                old_revision=observed.published.revision if observed.published is not None else "",
                revision=revision,
            )
        )
        if draft is not None:
            package = variant.selected.package
            upstream = RequestUpstream(
                repository=package.upstream.repository if package else spec.upstream_repository,
                package=spec.upstream_package,
                revision=revision,
                commit=draft.trailers.commit,
            )
            upstreams[upstream] = None
    variants += [
        RequestVariant(
            name=it.variant or it.path, path=it.path, verb=ChangeVerb.REMOVE, detail=it.reason
        )
        for it in group.removals
    ]
    return variants, upstreams


def _build_conflicts(drafts: Iterable[_DraftedVariant]) -> Iterator[RequestConflict]:
    """Yield the conflicts of the drafts, equal ones once; each names the key to decide it by."""
    conflicts: list[tuple[tuple[str, bool], str]] = []
    for variant, draft in drafts:
        if draft is None or draft.trailers.conflicts == NO_VALUE:
            continue
        disputes = parse_disputes(draft.trailers.conflicts)
        decided = {it.key for it in disputes if it.is_decided} | draft.settled_keys
        # Cut as in the message of the commit, from which the lines are read in later passes.
        conflicts += [
            ((line, line.partition(" ")[0] in decided), variant.spec.path)
            for line in limit_lines(rejected_lines_of_draft(draft))
        ]
    for (line, is_decided), paths in _group(conflicts).items():
        key, _, sentence = line.partition(" ")
        yield RequestConflict(paths, f"{sentence} (conflict {key})", is_decided)


def _group(items: Iterable[tuple[_Key, str]]) -> Mapping[_Key, tuple[str, ...]]:
    """Return the paths of the packages that have each item, in order of appearance."""
    paths: dict[_Key, list[str]] = {}
    for item, path in items:
        paths.setdefault(item, []).append(path)
    return {item: tuple(several) for item, several in paths.items()}


TITLE_VARIABLES: Final = (
    "branch",
    "headBranch",
    "install",
    "namespace",
    "policy",
    "repository",
    "revision",
    "stage",
    "title",
    "variants",
)
TEXT_VARIABLES: Final = (
    *TITLE_VARIABLES,
    "changes",
    "checks",
    "conflicts",
    "differences",
    "histories",
    "holds",
    "stages",
    "text",
    "upstreams",
)


def build_title_variables(content: RequestContent) -> Mapping[str, Any]:
    """Return the variables of `titleTemplate`: plain, because the title is escaped as a whole."""
    return {**_common_variables(content, str), "title": build_title(content)}


def build_text_variables(content: RequestContent) -> Mapping[str, Any]:
    """Return the variables of `bodyTemplate`. Values are Markdown: inline code, and sentences.

    What is published in the stage of the request, and the requests of it elsewhere, are in none:
    a text that had them would be written again with each of them.
    """
    content = without_siblings(content)
    return {
        **_common_variables(content, format_code),
        **_reading_variables(content),
        "title": format_code(build_title(content)),
        "text": build_body(content),
        "changes": [
            {
                "paths": list(map(format_code, change.paths)),
                "patch": format_block(change.lines, "diff"),
                "omitted": format_sentence(change.omitted),
            }
            for change in content.changes
        ],
        "checks": [
            {
                "name": format_code(check.result.name),
                "result": str(check.result.verdict),
                "sentence": format_sentence(check.result.message),
                "paths": list(map(format_code, check.paths)),
            }
            for check in content.checks
        ],
        "conflicts": [
            {
                "sentence": format_sentence(conflict.message),
                "decided": conflict.is_decided,
                "paths": list(map(format_code, conflict.paths)),
            }
            for conflict in content.conflicts
        ],
        "holds": [
            {
                "reason": format_code(item.hold.reason),
                "sentence": format_sentence(item.hold.message),
                "actor": format_sentence(item.hold.who),
                "until": format_code(format_instant(item.hold.until)) if item.hold.until else "",
                "paths": list(map(format_code, item.paths)),
            }
            for item in content.holds
        ],
        "upstreams": [
            {
                "repository": format_code(upstream.repository),
                "package": format_code(upstream.package),
                "revision": format_code(upstream.revision),
                "commit": format_code(upstream.commit),
            }
            for upstream in content.upstreams
        ],
    }


def _reading_variables(content: RequestContent) -> Mapping[str, Any]:
    """Return the variables about the packages, upstream and the stages."""
    return {
        "differences": [
            {
                "sentence": format_difference(item.difference),
                "paths": list(map(format_code, item.paths)),
            }
            for item in content.changed
        ],
        "histories": [
            {
                "package": format_code(item.package),
                "oldRevision": format_code(item.old_revision),
                "revision": format_link(format_code(item.revision), item.tag_url),
                "comparison": format_link("compare", item.compare_url) if item.compare_url else "",
                "authors": list(map(format_sentence, item.authors)),
                "commits": [
                    {
                        "commit": format_link(format_code(commit.commit), commit.url),
                        "subject": format_sentence(commit.subject),
                        "author": format_sentence(commit.author),
                    }
                    for commit in item.commits
                ],
                "omitted": item.omitted,
            }
            for item in content.histories
        ],
        "stages": [
            {
                "name": format_code(line.name),
                "revisions": list(map(format_code, line.revisions)),
                "ready": line.readiness,
                "since": format_code(format_instant(line.since)) if line.since else "",
                "evidence": [
                    {
                        "check": format_foreign_link(format_code(it.check), it.url),
                        "result": str(it.verdict),
                    }
                    for it in line.evidence
                ],
            }
            for line in content.stages
        ],
    }


def _common_variables(content: RequestContent, escape: Callable[[str], str]) -> Mapping[str, Any]:
    namespace, _, policy = content.policy.partition("/")
    revisions = sorted({variant.revision for variant in content.variants if variant.revision})
    return {
        "branch": escape(content.branch),
        "headBranch": escape(content.head_branch),
        "install": escape(content.install),
        "namespace": escape(namespace),
        "policy": escape(policy),
        "repository": escape(content.repository),
        "revision": ", ".join(map(escape, revisions)),
        "stage": escape(content.stage),
        "variants": [
            {
                "name": escape(variant.name),
                "path": escape(variant.path),
                "target": escape(variant.target),
                "action": str(variant.verb),
                "oldRevision": escape(variant.old_revision),
                "revision": escape(variant.revision),
            }
            for variant in content.variants
        ],
    }
