"""Titles and texts of pull requests: built in, or from the templates of administrators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fanout.api.promotion_policy import MergeMethod, PromotionPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.plan.pull_requests.removal_requests import build_removal_content
from fanout.plan.pull_requests.request_content import build_content
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_marker import RequestText
from fanout.plan.pull_requests.request_text import RequestContent, format_request
from fanout.plan.pull_requests.template_variables import build_text_variables, build_title_variables
from fanout.plan.records.policy_status import RequestKey
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.pull_requests.package_changes import PackageChangeReader
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import Value, field

_Contents = Mapping[RequestKey, RequestContent]


class RequestTexts(Value):
    """Texts of pull requests, and warnings about templates that yield none."""

    texts: Mapping[RequestKey, RequestText] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class RequestTextBuilder(Value, kw_only=True):
    """Builds the texts of pull requests in one pass."""

    change_reader: PackageChangeReader
    sandbox: Sandbox
    declared: DeclaredObjects
    budgets: BudgetStore

    def build_texts(
        self,
        groups: Sequence[RequestGroup],
        promotions: Sequence[PromotionPolicy],
        merge: MergeMethod,
    ) -> RequestTexts:
        """Build the text of each request of one policy, by the request's key.

        `promotions` are the PromotionPolicies that govern the policy. The first by name that has
        a template gives it. A template that fails or yields nothing gives a warning, and the
        request gets the built-in text: its wording is no reason to hold anything.
        """
        contents: dict[RequestKey, RequestContent] = {}
        for group in groups:
            if group.removal is not None:
                contents[group.key] = build_removal_content(group, merge)
            else:
                changes = self.change_reader.read_changes([it.rendered for it in group.members])
                contents[group.key] = build_content(group, merge, changes)
        titles, title_warnings = self._render(
            promotions, _TITLE_FIELD, contents, build_title_variables
        )
        bodies, body_warnings = self._render(
            promotions, _BODY_FIELD, contents, build_text_variables
        )
        return RequestTexts(
            {
                key: format_request(content, titles.get(key, ""), bodies.get(key, ""))
                for key, content in contents.items()
            },
            tuple(dict.fromkeys([*title_warnings, *body_warnings])),
        )

    def _render(
        self,
        promotions: Sequence[PromotionPolicy],
        template_field: str,
        contents: _Contents,
        build_variables: Callable[[RequestContent], Mapping[str, Any]],
    ) -> tuple[Mapping[RequestKey, str], list[str]]:
        """Return what the template yields for each request, and warnings."""
        promotion, template = _find_template(promotions, template_field)
        if promotion is None or not contents:
            return {}, []
        where = self.declared.where(promotion, f"spec.pullRequest.{template_field}")
        try:
            with BARRIER:
                [rendered] = self.sandbox.render(
                    [template],
                    [build_variables(content) for content in contents.values()],
                    self.budgets.get_budget(promotion),
                )
        except FanoutError as error:
            return {}, [_warn_default_text(where, error.reason, str(error))]
        texts: dict[RequestKey, str] = {}
        warnings: list[str] = []
        for key, text in zip(contents, rendered, strict=True):
            if isinstance(text, ExpressionFailure):
                warnings.append(_warn_default_text(where, text.reason, text.problem))
            elif text.strip():
                texts[key] = text
            else:
                problem = "the template yields no text"
                warnings.append(_warn_default_text(where, "ExpressionError", problem))
        return texts, warnings


def _warn_default_text(where: object, reason: str, problem: str) -> str:
    return (
        f"{where}: {reason}: {problem}; the pull request has the built-in text until this is"
        " corrected"
    )


_TITLE_FIELD, _BODY_FIELD = "titleTemplate", "bodyTemplate"


def _find_template(
    promotions: Sequence[PromotionPolicy], template_field: str
) -> tuple[PromotionPolicy, str] | tuple[None, str]:
    """Return the template of the first promotion that has one, and the promotion."""
    for promotion in sorted(promotions, key=lambda it: it.metadata.name):
        request = promotion.spec.pull_request
        if request is not None:
            is_title = template_field == _TITLE_FIELD
            template = request.title_template if is_title else request.body_template
            if template:
                return promotion, template
    return None, ""
