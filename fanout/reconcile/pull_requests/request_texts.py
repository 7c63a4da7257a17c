"""Titles and texts of pull requests: built in, or from the templates of administrators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fanout.api.promotion_policy import MergeMethod, PromotionPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.pull_requests.removal_requests import build_removal_content
from fanout.plan.pull_requests.request_content import build_content
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_marker import RequestText
from fanout.plan.pull_requests.request_text import RequestContent, format_request
from fanout.plan.pull_requests.template_variables import build_text_variables, build_title_variables
from fanout.plan.records.policy_status import RequestKey
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.commit_templates import render_texts
from fanout.reconcile.pull_requests.package_changes import PackageChangeReader
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import Value


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
    ) -> tuple[Mapping[RequestKey, RequestText], tuple[str, ...]]:
        """Return the text of each request of one policy by the request's key, and warnings.

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
        warnings: dict[str, None] = {}
        titles = self._render(promotions, "title", contents, build_title_variables, warnings)
        bodies = self._render(promotions, "body", contents, build_text_variables, warnings)
        texts = {
            key: format_request(content, titles.get(key, ""), bodies.get(key, ""))
            for key, content in contents.items()
        }
        return texts, tuple(warnings)

    def _render(
        self,
        promotions: Sequence[PromotionPolicy],
        part: Literal["title", "body"],
        contents: Mapping[RequestKey, RequestContent],
        build_variables: Callable[[RequestContent], Mapping[str, Any]],
        warnings: dict[str, None],
    ) -> Mapping[RequestKey, str]:
        """Return what the template yields for each request; what is wrong goes to `warnings`."""
        templates = (
            (it, getattr(it.spec.pull_request, f"{part}_template"))
            for it in sorted(promotions, key=lambda it: it.metadata.name)
            if it.spec.pull_request is not None
        )
        promotion, template = next((it for it in templates if it[1]), (None, ""))
        if promotion is None or not contents:
            return {}
        where = self.declared.where(promotion, f"spec.pullRequest.{part}Template")
        contexts = [build_variables(content) for content in contents.values()]
        rendered = render_texts(self.sandbox, self.budgets, promotion, template, contexts)
        texts: dict[RequestKey, str] = {}
        for key, text in zip(contents, rendered, strict=True):
            if isinstance(text, ExpressionFailure):
                consequence = "the pull request has the built-in text until this is corrected"
                warnings[f"{where}: {text.reason}: {text.problem}; {consequence}"] = None
            else:
                texts[key] = text
        return texts
