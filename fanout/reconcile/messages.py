"""Commit messages from an administrator's template. (Design §2, `commitTemplate`.)"""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.promotion_policy import PromotionPolicy
from fanout.plan.cases import Case
from fanout.plan.change import Publication, publications
from fanout.plan.planner import PolicyPlan
from fanout.ports import Sandbox


def commit_messages(
    plans: Sequence[PolicyPlan],
    promotions: Mapping[tuple[str, str], Sequence[PromotionPolicy]],
    sandbox: Sandbox,
) -> dict[Publication, str]:
    """The message of each publication whose PromotionPolicies give a template, the first's.

    A template that fails gives the default message: what it would say is no reason to hold a
    promotion that its gates let through. `fanout validate` has refused what does not compile.
    """
    messages: dict[Publication, str] = {}
    groups: dict[str, list[tuple[Publication, Mapping[str, Any]]]] = {}
    for key, cases in publications(plans).items():
        templates = [
            promotion.spec.commit_template
            for promotion in promotions.get((key.namespace, key.policy), ())
            if promotion.spec.commit_template
        ]
        if templates:
            groups.setdefault(templates[0], []).append((key, _context(key, cases)))
    for template, asked in sorted(groups.items()):
        [texts] = sandbox.fill([template], [context for _, context in asked])
        for (key, _), text in zip(asked, texts, strict=True):
            if isinstance(text, str) and text.strip():
                messages[key] = f"{text.strip()}\n"
    return messages


def _context(key: Publication, cases: Sequence[Case]) -> Mapping[str, Any]:
    return {
        "namespace": key.namespace,
        "policy": key.policy,
        "stage": key.stage,
        "revision": ", ".join(sorted({case.revision for case in cases})),
        "variants": [
            {
                "name": case.spec.name,
                "path": case.spec.path,
                "target": case.spec.target,
                "revision": case.revision,
            }
            for case in cases
        ],
    }
