"""Commit messages from an administrator's template (docs/concepts/expressions.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.promotion_policy import PromotionPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.publication_messages import PublicationGroup, group_publications
from fanout.plan.commit_text import disarm_references
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, find_promotions
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
    policies: Sequence[ResolvedPolicy],
    declared: DeclaredObjects,
    sandbox: Sandbox,
    budgets: BudgetStore,
) -> CommitMessages:
    """Build the message of each publication whose PromotionPolicies give a template.

    `policies`: those of the plans are among them. A failing template yields a warning, and the
    publication gets the default message: its wording is no reason to hold a promotion.
    """
    policy_by_subject = {it.subject: it for it in policies}
    promotions = {
        subject: find_promotions(policy_by_subject[subject], declared.promotions)
        for subject in {(plan.namespace, plan.name) for plan in plans}
    }
    groups: dict[str, tuple[PromotionPolicy, dict[PublicationGroup, Mapping[str, Any]]]] = {}
    for key, variants in group_publications(plans).items():
        policy_promotions = promotions.get((key.namespace, key.policy), ())
        promotion = next((it for it in policy_promotions if it.spec.commit_template), None)
        if promotion is None:
            continue
        name = f"{promotion.metadata.namespace}/{promotion.metadata.name}"
        groups.setdefault(name, (promotion, {}))[1][key] = {
            "namespace": key.namespace,
            "policy": key.policy,
            "stage": key.stage,
            "revision": ", ".join(sorted({it.selected.revision for it in variants})),
            "variants": [
                {
                    "name": it.spec.name,
                    "path": disarm_references(it.spec.path),
                    "target": disarm_references(it.spec.target),
                    "revision": it.selected.revision,
                }
                for it in variants
            ],
        }
    texts: dict[PublicationGroup, str] = {}
    warnings: dict[str, None] = {}
    for _, (promotion, contexts) in sorted(groups.items()):
        template = promotion.spec.commit_template or ""
        where = declared.where(promotion, "spec.commitTemplate")
        filled = render_texts(sandbox, budgets, promotion, template, list(contexts.values()))
        for key, text in zip(contexts, filled, strict=True):
            if isinstance(text, ExpressionFailure):
                consequence = "the commit has the default message until this is corrected"
                warnings[f"{where}: {text.problem}; {consequence}"] = None
            else:
                texts[key] = f"{text.strip()}\n"
    return CommitMessages(texts, tuple(warnings))


def render_texts(
    sandbox: Sandbox,
    budgets: BudgetStore,
    promotion: PromotionPolicy,
    template: str,
    contexts: Sequence[Mapping[str, Any]],
) -> Sequence[str | ExpressionFailure]:
    """Return what a template of an administrator yields in each context, or why it is no text."""
    try:
        with BARRIER:
            [texts] = sandbox.render([template], contexts, budgets.get_budget(promotion))
    except FanoutError as error:
        return [ExpressionFailure(error.reason, str(error))] * len(contexts)
    no_text = ExpressionFailure("ExpressionError", "the template yields no text")
    return [it if isinstance(it, ExpressionFailure) or it.strip() else no_text for it in texts]
