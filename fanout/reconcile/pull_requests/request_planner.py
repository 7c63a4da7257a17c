"""Planning of the pull requests of one policy: texts, calls, records.

Texts are built in, or from the templates of administrators. On other people's pull requests, the
status of fanout is planned once for each repository.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from fanout.api.promotion_policy import MergeMethod, PromotionPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.actions import ActionKind, RepositorySubject
from fanout.plan.changes.policy_plan import PolicyPlan, build_record_action
from fanout.plan.decided_variant import DecidedVariant
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.other_requests import OtherStatuses, plan_other_statuses
from fanout.plan.pull_requests.request_content import (
    build_content,
    build_text_variables,
    build_title_variables,
)
from fanout.plan.pull_requests.request_group import (
    RequestGroup,
    group_orphaned,
    group_removals,
    group_requests,
)
from fanout.plan.pull_requests.request_holds import RequestHoldInputs, read_request_settings
from fanout.plan.pull_requests.request_plan import plan_request, wants_request
from fanout.plan.pull_requests.request_records import find_begun, observe_request_lines
from fanout.plan.pull_requests.request_text import RequestText, format_request
from fanout.plan.pull_requests.request_values import RequestContent
from fanout.plan.pull_requests.stage_table import build_stage_lines, find_siblings
from fanout.plan.records.policy_status import RequestKey
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.commit_templates import render_texts
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.policy_phases import DecidedPolicy
from fanout.reconcile.pull_requests.package_changes import PackageChangeReader
from fanout.reconcile.pull_requests.upstream_history import UpstreamHistoryReader
from fanout.reconcile.selection.policy_resolution import repository_key
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import Value, replace


class RequestTextBuilder(Value, kw_only=True):
    """Builds the texts of pull requests in one pass."""

    change_reader: PackageChangeReader
    history_reader: UpstreamHistoryReader
    sandbox: Sandbox
    declared: DeclaredObjects
    budgets: BudgetStore

    def build_texts(
        self,
        groups: Sequence[RequestGroup],
        steps: Sequence[DecidedVariant],
        decided: DecidedPolicy,
        merge: MergeMethod,
    ) -> tuple[Mapping[RequestKey, RequestText], tuple[str, ...]]:
        """Return the text of each request of one policy by the request's key, and warnings.

        Of the PromotionPolicies that govern the policy, the first by name that has a template gives
        it. A template that fails or yields nothing gives a warning, and the request gets the
        built-in text: its wording is no reason to hold anything.
        """
        inputs = decided.observed.inputs
        contents: dict[RequestKey, RequestContent] = {}
        for group in filter(wants_request, groups):
            variants = [it.rendered for it in group.members]
            readings = self.change_reader.read_changes(variants)
            histories = self.history_reader.read_histories(inputs.resolved_policy, variants)
            content = build_content(group, merge, replace(readings, histories=histories))
            revisions = frozenset(filter(None, (it.revision for it in content.variants)))
            siblings, omitted = find_siblings(group, groups, steps, revisions)
            contents[group.key] = replace(
                content,
                stages=build_stage_lines(decided.facts, decided.decision, revisions, group.stage),
                siblings=siblings,
                omitted_siblings=omitted,
            )
        promotions = inputs.promotions
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


class RequestPlanner(Value, kw_only=True):
    """Plans the pull requests of policies, one policy after the other, at one moment."""

    now: datetime
    publish: bool
    texts: RequestTextBuilder

    def add_requests(self, plan: PolicyPlan, decided: DecidedPolicy) -> PolicyPlan:
        """Return the plan with the calls about pull requests of its variants and removals."""
        inputs, variants = decided.observed.inputs, decided.observed.variants
        states_by_repository = inputs.path_ownership.states_by_repository
        if not any(state.forge for state in states_by_repository.values()):
            return plan
        lines, details = observe_request_lines(plan.planned, variants, plan.cleanup.sets, self.now)
        settings = read_request_settings(inputs.promotions)
        # The branches of removals that a person declined are not written.
        kept = tuple(replace(it, write=None) if it.is_declined else it for it in plan.cleanup.sets)
        if kept != plan.cleanup.sets:
            written = {draft.ref for draft in kept if draft.write is not None}
            remaining = [
                it
                for it in plan.actions
                if it.kind is not ActionKind.DRAFT_REMOVAL or it.ref in written
            ]
            cleanup = replace(plan.cleanup, sets=kept)
            plan = replace(plan, cleanup=cleanup, actions=tuple(remaining))
        groups = (
            *group_requests(plan.namespace, plan.steps, replace(plan.planned, requests=lines)),
            *group_orphaned(plan, states_by_repository, lines),
            *group_removals(
                plan.cleanup.sets,
                RequestHoldInputs(settings, lines, self.now, is_publishing=self.publish),
            ),
        )
        texts, warnings = self.texts.build_texts(groups, plan.steps, decided, settings.merge)
        begun = find_begun(plan.planned.openings, groups, self.now)
        changes = [
            it
            for group in groups
            if group.key not in begun
            and (it := plan_request(group, texts.get(group.key), settings)) is not None
        ]
        openings = {
            (it.repository, it.head_ref): self.now for it in changes if it.opening is not None
        }
        record_action = build_record_action(plan.namespace, plan.name, plan.steps)
        actions = [replace(record_action, detail=detail) for detail in details]
        actions += [action for it in changes for action in it.actions]
        return replace(
            plan,
            actions=(*plan.actions, *actions),
            planned=replace(plan.planned, requests=lines, openings={**begun, **openings}),
            request_changes=tuple(changes),
            warnings=warnings,
        )


def plan_others(
    scope: PassScope, repository_states: Mapping[str, RepositoryState], install: str
) -> OtherStatuses:
    """Plan the statuses in all repositories of a pass.

    `repository_states` are by identity of the Repository object.
    """
    states = repository_states.values()
    if not any(it.forge is not None and it.forge.other_requests for it in states):
        return OtherStatuses((), ())
    # Several policies may be in one repository; the first one's calls they are.
    subjects: dict[str, RepositorySubject] = {}
    for policy in scope.evaluated:
        is_hand_written = policy.upstream_policy is None
        for repository in policy.repositories.values():
            state = repository_states[repository_key(repository)]
            if state.identity not in subjects:
                subjects[state.identity] = RepositorySubject(
                    namespace=policy.namespace,
                    policy="" if is_hand_written else policy.name,
                    variant=policy.name if is_hand_written else "",
                    repository=repository.metadata.name,
                    state=state,
                )
    return plan_other_statuses(subjects.values(), install)
