"""Rules of a branch on GitHub: its classic protection, and the rules of rulesets.

Either alone misses rules. Of classic protection only administrators may read all.
"""

from collections.abc import Callable, Iterable, Sequence

from fanout.api.promotion_policy import MergeStyle
from fanout.forge.answer_fields import AnswerObject
from fanout.plan.observation.branch_rules import ALL_STYLES, BranchFacts, RequiredStatus
from fanout.values import replace

_RULE_FLAGS = {
    "required_linear_history": "requires_linear_history",
    "required_signatures": "requires_signatures",
    "merge_queue": "requires_queue",
}


def read_protection(answer: AnswerObject, name_app: Callable[[int], str]) -> BranchFacts:
    """Return the classic protection in a `branch-with-protection`; `name_app`: by the App's id.

    All but the required checks of it only administrators may read.
    """
    protection = answer.child("protection")
    is_classic = protection is not None and protection.flag("enabled")
    checks = protection.child("required_status_checks") if protection is not None else None
    required = checks.children("checks") if checks is not None else []
    hidden = None if is_classic else False
    return BranchFacts(
        is_protected=answer.flag("protected"),
        required_statuses=frozenset(
            RequiredStatus(it.text("context"), name_app(it.number("app_id", -1))) for it in required
        ),
        required_approvals=None if is_classic else 0,
        may_push=None if answer.flag("protected") else True,
        requires_code_owners=hidden,
        requires_linear_history=hidden,
        requires_signatures=hidden,
        requires_resolved_conversations=hidden,
        ignores_last_pusher=hidden,
    )


def read_rule(answer: AnswerObject, name_app: Callable[[int], str]) -> BranchFacts:
    """Return a `repository-rule-detailed` as what it alone asks; `name_app`: by the App's id."""
    kind, parameters = answer.text("type"), answer.child("parameters")
    facts = BranchFacts(is_protected=True, may_push=kind not in ("update", "pull_request"))
    if kind in _RULE_FLAGS:
        return replace(facts, **{_RULE_FLAGS[kind]: True})
    if parameters is None:
        return facts
    if kind == "required_status_checks":
        required = parameters.children("required_status_checks")
        statuses = frozenset(
            RequiredStatus(it.text("context"), name_app(it.number("integration_id", -1)))
            for it in required
        )
        return replace(facts, required_statuses=statuses)
    if kind == "pull_request":
        methods = parameters.texts("allowed_merge_methods")
        styles = frozenset(style for style in MergeStyle if style.lower() in methods)
        return replace(
            facts,
            required_approvals=parameters.number("required_approving_review_count"),
            requires_code_owners=parameters.flag("require_code_owner_review"),
            requires_resolved_conversations=parameters.flag("required_review_thread_resolution"),
            ignores_last_pusher=parameters.flag("require_last_push_approval"),
            allowed_styles=styles or ALL_STYLES,
        )
    return facts


def join_rules(rules: Sequence[BranchFacts]) -> BranchFacts:
    """Return what rules ask together; what one of them asks for certain, none that is hidden takes.

    One rule that forbids a push is enough, as one that requires an approval is.
    """
    approvals = [it.required_approvals for it in rules]
    readable = [it for it in approvals if it is not None]
    statuses = [it.required_statuses for it in rules if it.required_statuses is not None]
    pushes = [it.may_push for it in rules]
    styles = [it.allowed_styles for it in rules if it.allowed_styles is not None]
    return BranchFacts(
        is_protected=_any(it.is_protected for it in rules),
        required_statuses=frozenset().union(*statuses),
        required_approvals=max(readable)
        if any(readable) or len(readable) == len(approvals)
        else None,
        may_push=None if None in pushes and False not in pushes else all(pushes),
        requires_code_owners=_any(it.requires_code_owners for it in rules),
        requires_linear_history=_any(it.requires_linear_history for it in rules),
        requires_signatures=_any(it.requires_signatures for it in rules),
        requires_resolved_conversations=_any(it.requires_resolved_conversations for it in rules),
        ignores_last_pusher=_any(it.ignores_last_pusher for it in rules),
        requires_queue=_any(it.requires_queue for it in rules),
        allowed_styles=ALL_STYLES.intersection(*styles),
    )


def _any(values: Iterable[bool | None]) -> bool | None:
    """Return whether any is true, or None if that is hidden."""
    given = set(values)
    return True if True in given else None if None in given else False
