"""Commit messages from an administrator's template (design §2, `commitTemplate`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.promotion_policy import PromotionPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.publication_messages import PublicationGroup, group_publications
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import Value

TEMPLATE_VARIABLES = ("namespace", "policy", "revision", "stage", "variants")  # of a template


class CommitMessages(Value):
    """Commit messages by publication, and warnings about templates that yield none."""

    texts: Mapping[PublicationGroup, str]
    warnings: tuple[str, ...] = ()


def build_commit_messages(
    plans: Sequence[PolicyPlan],
    promotions: Mapping[tuple[str, str], Sequence[PromotionPolicy]],
    sandbox: Sandbox,
    declared: DeclaredObjects,
    budgets: BudgetStore,
) -> CommitMessages:
    """Build the message of each publication whose PromotionPolicies give a template.

    `promotions`: PromotionPolicies by namespace and name of the policy. A failing template
    yields a warning, and the publication gets the default message: its wording is no reason
    to hold a promotion.
    """
    texts: dict[PublicationGroup, str] = {}
    warnings: list[str] = []
    for promotion, publications_and_contexts in _group_by_promotion(plans, promotions):
        template = promotion.spec.commit_template or ""
        where = declared.where(promotion, "spec.commitTemplate")
        try:
            with BARRIER:
                [filled_texts] = sandbox.render(
                    [template],
                    [context for _, context in publications_and_contexts],
                    budgets.get_budget(promotion),
                )
        except FanoutError as error:
            warnings.append(_warn_default_message(where, error))
            continue
        for (key, _), text in zip(publications_and_contexts, filled_texts, strict=True):
            if isinstance(text, ExpressionFailure):
                warnings.append(_warn_default_message(where, text.problem))
            elif text.strip():
                texts[key] = f"{text.strip()}\n"
            else:
                warnings.append(_warn_default_message(where, "the template yields no text"))
    return CommitMessages(texts, tuple(dict.fromkeys(warnings)))


def _warn_default_message(where: object, problem: object) -> str:
    return f"{where}: {problem}; the commit has the default message until this is corrected"


_PublicationContexts = list[tuple[PublicationGroup, Mapping[str, Any]]]


def _group_by_promotion(
    plans: Sequence[PolicyPlan], promotions: Mapping[tuple[str, str], Sequence[PromotionPolicy]]
) -> list[tuple[PromotionPolicy, _PublicationContexts]]:
    """Return the publications of each template, in order of the objects' names."""
    groups: dict[str, tuple[PromotionPolicy, _PublicationContexts]] = {}
    for key, variants in group_publications(plans).items():
        policy_promotions = promotions.get((key.namespace, key.policy), ())
        promotion = next((it for it in policy_promotions if it.spec.commit_template), None)
        if promotion is not None:
            name = f"{promotion.metadata.namespace}/{promotion.metadata.name}"
            group = groups.setdefault(name, (promotion, []))[1]
            group.append((key, _build_context(key, variants)))
    return [groups[name] for name in sorted(groups)]


def _build_context(key: PublicationGroup, variants: Sequence[RenderedVariant]) -> Mapping[str, Any]:
    return {
        "namespace": key.namespace,
        "policy": key.policy,
        "stage": key.stage,
        "revision": ", ".join(sorted({variant.selected.revision for variant in variants})),
        "variants": [
            {
                "name": variant.spec.name,
                "path": variant.spec.path,
                "target": variant.spec.target,
                "revision": variant.selected.revision,
            }
            for variant in variants
        ],
    }
