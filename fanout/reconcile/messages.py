"""Commit messages from an administrator's template. (Design §2, `commitTemplate`.)"""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.promotion_policy import PromotionPolicy
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.plan.cases import Case
from fanout.plan.change import Publication, publications
from fanout.plan.planner import PolicyPlan
from fanout.ports import Sandbox
from fanout.selection.model import Broken
from fanout.telemetry.barrier import BARRIER
from fanout.values import frozen

VARIABLES = ("namespace", "policy", "revision", "stage", "variants")  # of a template


@frozen
class Messages:
    """The messages that templates gave, and what is wrong with those that gave none."""

    texts: Mapping[Publication, str]
    warnings: tuple[str, ...] = ()


def commit_messages(
    plans: Sequence[PolicyPlan],
    promotions: Mapping[tuple[str, str], Sequence[PromotionPolicy]],
    sandbox: Sandbox,
    declared: Declared,
) -> Messages:
    """The message of each publication whose PromotionPolicies give a template, the first's.

    A template that fails is told, and the publication gets the default message: what it would say
    is no reason to hold a promotion that its gates let through.
    """
    texts: dict[Publication, str] = {}
    warnings: list[str] = []
    for promotion, asked in _by_promotion(plans, promotions):
        template = promotion.spec.commit_template or ""
        where = declared.where(promotion, "spec.commitTemplate")
        try:
            with BARRIER:
                [answers] = sandbox.fill([template], [context for _, context in asked])
        except FanoutError as error:
            warnings.append(f"{where}: {error}; the commit has the default message")
            continue
        for (key, _), text in zip(asked, answers, strict=True):
            problem = "it gives an empty text"
            if isinstance(text, Broken):
                problem = text.problem
            elif text.strip():
                texts[key] = f"{text.strip()}\n"
                continue
            warnings.append(f"{where}: {problem}; correct it, the commit has the default message")
    return Messages(texts, tuple(dict.fromkeys(warnings)))


_Asked = list[tuple[Publication, Mapping[str, Any]]]


def _by_promotion(
    plans: Sequence[PolicyPlan], promotions: Mapping[tuple[str, str], Sequence[PromotionPolicy]]
) -> list[tuple[PromotionPolicy, _Asked]]:
    """The publications that each template is asked about, in order of the objects' names."""
    groups: dict[str, tuple[PromotionPolicy, _Asked]] = {}
    for key, cases in publications(plans).items():
        naming = promotions.get((key.namespace, key.policy), ())
        promotion = next((it for it in naming if it.spec.commit_template), None)
        if promotion is not None:
            name = f"{promotion.metadata.namespace}/{promotion.metadata.name}"
            asked = groups.setdefault(name, (promotion, []))[1]
            asked.append((key, _context(key, cases)))
    return [groups[name] for name in sorted(groups)]


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
