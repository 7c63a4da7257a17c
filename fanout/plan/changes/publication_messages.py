"""Messages of commits that publish or merge: who is published together, what the commit says."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fanout.api.commit_trailers import Trailer
from fanout.api.results import VariantResult
from fanout.plan.actions import ActionSubject, RequestChange
from fanout.plan.changes.commit_chain import split_by_commit
from fanout.plan.changes.package_removal import build_removal_message
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.commit_text import disarm_references
from fanout.plan.decided_variant import VariantStep
from fanout.plan.edits.merge_disputes import conflict_paragraph, rejected_lines_of_draft
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_status import GrantLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import Value, field, replace

_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: ")


class PublicationGroup(ActionSubject, kw_only=True):
    """Key of what is published in one merge: one stage of one policy in one repository.

    `policy` is the name of the variant if that is written by hand.
    """

    repository: str  # key of the state of the Git repository


class CommitSettings(Value):
    """Settings for writing commits: installation, committer, and messages from templates."""

    install: str
    identity: CommitIdentity
    # by group: messages from the administrator's templates
    messages: Mapping[PublicationGroup, str] = field(default_factory=dict)


def group_publications(
    plans: Sequence[PolicyPlan],
) -> dict[PublicationGroup, list[RenderedVariant]]:
    """Group the variants to publish; each group is one stage in one repository.

    It is merged by fanout's push, or by the forge of the repository.
    """
    groups: dict[PublicationGroup, list[RenderedVariant]] = {}
    for plan in plans:
        for planned in plan.steps:
            if planned.step in (VariantStep.PUBLISH, VariantStep.MERGE):
                variant = planned.rendered
                key = PublicationGroup(
                    namespace=plan.namespace,
                    policy=plan.name,
                    stage=variant.spec.stage,
                    repository=variant.observed.repository_state.key,
                )
                groups.setdefault(key, []).append(variant)
    for variants in groups.values():
        variants.sort(key=lambda variant: variant.spec.path)
    return groups


def split_publication(variants: Iterable[RenderedVariant]) -> Iterator[list[RenderedVariant]]:
    """Yield the variants of a group by the commits that publish them.

    The packages of a stage draft are on one branch, so one commit merges all of them.
    """
    by_branch: dict[str, list[RenderedVariant]] = {}
    for variant in variants:
        assert variant.observed.draft is not None, "only an open draft is published"
        by_branch.setdefault(variant.observed.draft.commit, []).append(variant)
    for branches in split_by_commit(tuple(by_branch.values())):
        yield list(chain.from_iterable(branches))


def build_publication_message(
    group: PublicationGroup,
    variants: Sequence[RenderedVariant],
    plan: PolicyPlan,
    settings: CommitSettings,
) -> str:
    """Build the message of a commit that publishes variants of a group."""
    message = settings.messages.get(group, "")
    if not message:  # without a commitTemplate
        paths = [variant.spec.path for variant in variants]
        subject = paths[0] if len(paths) == 1 else f"{len(paths)} variants"
        stage_phrase = f" of stage {group.stage}" if group.stage else ""
        revision = ", ".join(sorted({variant.selected.revision for variant in variants}))
        listed = "".join(f"* {path}\n" for path in paths)
        policy = f"{Trailer.POLICY.value}: {group.namespace}/{variants[0].spec.policy}"
        message = f"Publish {subject}{stage_phrase} at {revision}\n\n{listed}\n{policy}\n"
        message = disarm_references(message)
    rejected_lines = [
        f"{variant.spec.path}: {line}" if len(variants) > 1 else line
        for variant in variants
        if variant.observed.draft is not None
        for line in rejected_lines_of_draft(variant.observed.draft)
    ]
    message = with_paragraph(message, conflict_paragraph(rejected_lines))
    if variants[0].observed.repository_state.forge is not None:
        # Approvals by reviews are observed, and on record nowhere else.
        names = {variant.spec.name for variant in variants}
        evaluations = (it.evaluation for it in plan.steps if it.rendered.spec.name in names)
        trailers = build_approval_trailers(it for it in evaluations if it is not None)
        message = with_trailers(message, trailers)
    grants = find_grants(variants, plan)
    record_names = sorted({grant.records for grant in grants} - {"", NO_VALUE})
    # Names of records begin with their time, so the last in order is the newest.
    newest = record_names[-1] if record_names else grants[0].records
    # A commit that names a record also shows that its release was recorded before it was made.
    return with_trailers(message, [f"{Trailer.RECORDS}: {newest}"] if newest else ())


def build_approval_trailers(evaluations: Iterable[VariantResult]) -> tuple[str, ...]:
    """Return the lines of a publication's message that name whose approvals counted."""
    approvers = {
        name
        for evaluation in evaluations
        for check in evaluation.checks
        for name in check.approvers
    }
    return tuple(f"{Trailer.APPROVED_BY}: {name}" for name in sorted(approvers))


def find_grants(variants: Sequence[RenderedVariant], plan: PolicyPlan) -> list[GrantLine]:
    """Return the grants of the variants that a policy publishes."""
    released = (plan.planned.variants[variant.spec.name].grant for variant in variants)
    return [grant for grant in released if grant is not None]


def with_merge_messages(plan: PolicyPlan, settings: CommitSettings) -> PolicyPlan:
    """Return the plan with the messages of its merges: those that there are without a forge."""
    if not any(change.merge for change in plan.request_changes):
        return plan
    messages = {
        (first.observed.repository_state.remote.key, first.observed.draft_ref): message
        for group, variants in group_publications([plan]).items()
        for message in [build_publication_message(group, variants, plan, settings)]
        for first in variants
    }
    for it in plan.cleanup.sets:
        if it.draft is not None:
            message = build_removal_message(it.removals, it.draft.policy, it.approvers)
            messages[it.state.remote.key, it.ref] = message
    changes: list[RequestChange] = []
    for change in plan.request_changes:
        if change.merge is None:
            changes.append(change)
            continue
        message = messages.get((change.remote.key, change.head_ref), "")
        subject, _, body = message.partition("\n")
        merge = replace(change.merge, subject=subject, body=body.strip("\n"))
        changes.append(replace(change, merge=merge))
    return replace(plan, request_changes=tuple(changes))


def with_paragraph(message: str, paragraph: str) -> str:
    """Return the message with one more paragraph, before its trailers if it has some."""
    if not paragraph:
        return message
    head, _, last = message.strip("\n").rpartition("\n\n")
    # Git reads trailers from the last paragraph only, so other text goes above it.
    if head and all(_TRAILER.match(line) for line in last.split("\n")):
        return f"{head}\n\n{paragraph}\n{last}\n"
    text = message.strip("\n")
    return f"{text}\n\n{paragraph}"


def with_trailers(message: str, lines: Sequence[str]) -> str:
    """Return the message with more trailers, in its last paragraph if that has trailers."""
    if not lines:
        return message
    text = message.rstrip()
    head, _, last = text.rpartition("\n\n")
    has_trailers = head and all(_TRAILER.match(line) for line in last.split("\n"))
    gap = "" if has_trailers else "\n"
    return f"{text}\n{gap}" + "".join(f"{line}\n" for line in lines)
