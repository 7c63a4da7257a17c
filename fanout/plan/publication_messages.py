"""Messages of the commits that publish: who is published together, and what the commit says."""

from collections.abc import Mapping, Sequence

from fanout.api.commit_trailers import Trailer
from fanout.plan.actions import ActionSubject
from fanout.plan.decided_variant import VariantStep
from fanout.plan.draft_trailers import NO_VALUE, with_last_record, with_paragraph, with_trailers
from fanout.plan.edits.merge_disputes import conflict_paragraph, rejected_lines_of_draft
from fanout.plan.evidence.review_approvals import build_approval_trailers
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.records.policy_status import GrantLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import Value, field


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
    """Group the variants to publish; each group is one stage in one repository (design §5).

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


def build_publication_message(
    group: PublicationGroup,
    variants: Sequence[RenderedVariant],
    plan: PolicyPlan,
    settings: CommitSettings,
) -> str:
    """Build the message of the commit that publishes a group of variants."""
    message = with_paragraph(
        settings.messages.get(group) or _default_message(group, variants),
        conflict_paragraph(_rejected_lines(variants)),
    )
    message = with_trailers(message, _list_approvals(variants, plan))
    grants = find_grants(variants, plan)
    record_names = sorted({grant.records for grant in grants} - {"", NO_VALUE})
    # Names of records begin with their time, so the last in order is the newest.
    newest = record_names[-1] if record_names else grants[0].records
    return with_last_record(message, newest) if newest else message


def _list_approvals(variants: Sequence[RenderedVariant], plan: PolicyPlan) -> tuple[str, ...]:
    """Return the trailers about whose approvals counted, where reviews are approvals.

    Those are observed, and on record nowhere else.
    """
    if variants[0].observed.repository_state.forge is None:
        return ()
    names = {variant.spec.name for variant in variants}
    evaluations = (it.evaluation for it in plan.steps if it.rendered.spec.name in names)
    return build_approval_trailers(it for it in evaluations if it is not None)


def find_grants(variants: Sequence[RenderedVariant], plan: PolicyPlan) -> list[GrantLine]:
    """Return the grants of the variants that a policy publishes."""
    released = (plan.planned.variants[variant.spec.name].grant for variant in variants)
    return [grant for grant in released if grant is not None]


def _rejected_lines(variants: Sequence[RenderedVariant]) -> list[str]:
    """Return the values rejected in the drafts, with paths if there are several."""
    return [
        f"{variant.spec.path}: {line}" if len(variants) > 1 else line
        for variant in variants
        if variant.observed.draft is not None
        for line in rejected_lines_of_draft(variant.observed.draft)
    ]


def _default_message(group: PublicationGroup, variants: Sequence[RenderedVariant]) -> str:
    """Return the message of a publication without a commitTemplate."""
    return _format_message(
        f"{group.namespace}/{variants[0].spec.policy}",
        group.stage,
        ", ".join(sorted({variant.selected.revision for variant in variants})),
        [variant.spec.path for variant in variants],
    )


def _format_message(policy: str, stage: str, revision: str, variants: list[str]) -> str:
    """Format the message of a publication: its variants, stage, revision and policy."""
    subject = variants[0] if len(variants) == 1 else f"{len(variants)} variants"
    stage_phrase = f" of stage {stage}" if stage else ""
    listed = "".join(f"* {variant}\n" for variant in variants)
    return (
        f"Publish {subject}{stage_phrase} at {revision}\n\n{listed}\n{Trailer.POLICY.value}:"
        f" {policy}\n"
    )
