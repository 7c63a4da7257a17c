"""Pushes that a server refuses: which errors are refusals, what of them is on record and shown.

A refusal holds nothing back: each pass that has a reason to push tries again. Its line tells the
passes in between, and people, why what is decided is not in the repository.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import Reason
from fanout.api.results import Hold, VariantResult
from fanout.errors import FanoutError
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.gates.stage_holds import group_holds
from fanout.plan.changes.policy_plan import PolicyPlan, build_record_action
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.records.policy_status import RefusedPushLine
from fanout.values import replace

RefusedPushes = Mapping[str, RefusedPushLine]
"""By variant."""

# Reasons of errors that last until somebody changes the server, its rules, or the account. A
# deletion that is refused is none: nothing waits for it.
_REFUSALS = frozenset(
    {
        Reason.ATOMIC_PUSH_UNSUPPORTED,
        Reason.PUSH_DENIED,
        Reason.PUSH_REFUSED,
        Reason.REF_NAME_CLASH,
        Reason.REMOTE_DENIED,
        Reason.REMOTE_FAILED,
    }
)
# What a variant waits for before its push; a sweep that was refused would only be refused again.
_SWEEP_REASONS = frozenset({Reason.NO_DRAFT, Reason.REQUEST_PENDING, Reason.SWEEP_AWAITED})
_WAITING = frozenset({VariantState.DRAFTED, VariantState.RELEASED, VariantState.PROPOSED})
_MAX_WORDS = 600  # characters of the words of a server
_FORCE = re.compile(r"non-fast-forward|force.?push|forced (push|update)", re.IGNORECASE)
_VARYING = re.compile(r"[0-9a-f]{7,}|[0-9]+")


def is_refusal(error: object) -> bool:
    """Return whether the result of a push is an error that lasts."""
    return isinstance(error, FanoutError) and error.reason in _REFUSALS


def refuses_force(error: FanoutError) -> bool:
    """Return whether the server refuses branches that do not continue what they were."""
    return bool(_FORCE.search(error.problem))


def find_names(plans: Iterable[PolicyPlan], remote: str) -> Mapping[str, frozenset[str]]:
    """Return by which names words of a server are about the objects of each namespace.

    Those are paths of packages, which names of branches and tags contain, and policies. `remote`:
    key of the repository, whose drafts are of all policies.
    """
    places: set[tuple[str, str, str]] = set()  # namespace, policy, path
    for plan in plans:
        states = [it.rendered.observed.repository_state for it in plan.steps]
        paths = {it.rendered.spec.path for it in plan.steps}
        paths |= {removal.path for _, removal in plan.cleanup.packages}
        paths |= {package.path for it in plan.cleanup.sets for package in it.removals}
        places |= {(plan.namespace, plan.name, path) for path in paths}
        # Also of policies that the pass is not about.
        for state in {id(it): it for it in states if it.remote.key == remote}.values():
            for draft in state.drafts:
                namespace, _, policy = draft.trailers.policy.partition("/")
                places.add((namespace, policy or draft.trailers.variant, draft.path))
    names: dict[str, set[str]] = {}
    for namespace, policy, path in places:
        names.setdefault(namespace, set()).update(
            {path, f"{namespace}/{policy}", f"{namespace}.{policy}"} - {""}
        )
    return {namespace: frozenset(it) for namespace, it in names.items()}


def word_refusal(error: FanoutError, names: Mapping[str, Collection[str]], namespace: str) -> str:
    """Return the error for people of a namespace, without words about objects of others.

    `names`: those of all namespaces.
    """
    own = names.get(namespace, ())
    others = {it for other in names if other != namespace for it in names[other]}.difference(own)
    kept: list[str] = []
    for line in error.words:
        # A name of others that is a part of one's own name tells nothing.
        own_spans = [span for name in own for span in _find_spans(line, name)]
        if all(
            any(start <= span[0] and span[1] <= end for start, end in own_spans)
            for name in others
            for span in _find_spans(line, name)
        ):
            kept.append(line)
    if len(kept) == len(error.words):
        return str(error)
    problem = error.problem.partition(": ")[0]
    sentence = (
        f"{problem}: {' / '.join(kept)[:_MAX_WORDS]} / its other words are about objects of other"
        " namespaces; administrators find them in the log"
    )
    return str(FanoutError(sentence, remedy=error.remedy, where=error.where))


def _find_spans(line: str, name: str) -> list[tuple[int, int]]:
    """Return where a name is in a line, but for longer words that contain it."""
    if name not in line:
        return []
    return [it.span() for it in re.finditer(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line)]


def note_refusal(
    line: RefusedPushLine | None, repository: str, message: str, now: datetime
) -> RefusedPushLine:
    """Return the line after one more refusal; it is the same one if the message is.

    Commit ids and instants in the words of a server make no difference.
    """
    if line is None or line.repository != repository:
        return RefusedPushLine(now, repository, message)
    if _VARYING.sub("", line.message) == _VARYING.sub("", message):
        return line
    return replace(line, message=message)


def describe_refusal(line: RefusedPushLine) -> str:
    """Describe a refused push: the words of the server, and since when it refuses."""
    return f"{line.message}; refused since {format_instant(line.at)}"


def find_standing(
    lines: RefusedPushes, steps: Iterable[DecidedVariant], removed: Collection[str]
) -> RefusedPushes:
    """Return the lines about variants that are still to be pushed, or wait for the gates only.

    `removed`: variants whose target is gone, and of which something is left.
    """
    if not lines:
        return lines
    due = set(removed)
    for step in steps:
        variant, name = step.rendered, step.rendered.spec.name
        observed, line = variant.observed, lines.get(name)
        if line is None or line.repository != observed.repository_state.identity:
            continue
        is_drafted = observed.draft is not None or variant.postponed is not None
        waits = is_drafted and not variant.selected.is_in_force
        # Nobody needs a branch that is to be removed.
        if step.step is not VariantStep.REMOVE and (step.step is not VariantStep.KEEP or waits):
            due.add(name)
    return {name: line for name, line in lines.items() if name in due}


def with_standing(plan: PolicyPlan, standing: RefusedPushes) -> PolicyPlan:
    """Return the plan that keeps these lines alone on record."""
    if standing == plan.planned.refused_pushes:
        return plan
    action = build_record_action(plan.namespace, plan.name, plan.steps)
    ended = sorted(plan.planned.refused_pushes.keys() - standing.keys())
    actions = (
        replace(action, detail=f"that no refused push about {it} is due any more") for it in ended
    )
    planned = replace(plan.planned, refused_pushes=standing)
    return replace(plan, actions=(*plan.actions, *actions), planned=planned)


def show_refusals(
    decision: PolicyEvaluation, lines: RefusedPushes, steps: Iterable[DecidedVariant]
) -> PolicyEvaluation:
    """Return the decision as shown: refused pushes come first on variants, stages and the policy.

    What the gates decided stays as it is; the plan follows from that.
    """
    if not lines:
        return decision
    repositories = {it.rendered.spec.name: it.rendered.spec.repository for it in steps}
    holds = {
        name: Hold(
            Reason.PUSH_REFUSED,
            describe_refusal(line),
            f"the administrators of the Git server of {repositories[name]}"
            if repositories.get(name)
            else "the administrators of the Git server",
            line.at,
        )
        for name, line in sorted(lines.items())
    }
    variants = dict(decision.variants)
    for name in variants.keys() & holds.keys():
        variant = variants[name]
        others = (it for it in variant.holds if it.reason not in _SWEEP_REASONS)
        variants[name] = replace(
            variant,
            state=VariantState.HELD if variant.state in _WAITING else variant.state,
            # No pass is announced to publish it.
            release=False,
            publish=False,
            holds=(holds[name], *others),
        )

    def group(names: Iterable[str]) -> list[Hold]:
        return group_holds(
            VariantResult(name=it, state=VariantState.HELD, holds=(holds[it],)) for it in names
        )

    stages = {}
    for name, stage in decision.stages.items():
        members = [it for it in variants.values() if it.stage == name]
        if not (refused := group(it.name for it in members if it.name in holds)):
            stages[name] = stage
            continue
        states = Counter(it.state for it in members)
        # Of the holds that end with a push, those stay that a variant of the stage still has.
        ended = _SWEEP_REASONS - {hold.reason for it in members for hold in it.holds}
        stages[name] = replace(
            stage,
            holds=(*refused, *(it for it in stage.holds if it.reason not in ended)),
            counts={state: states[state] for state in VariantState if state in states},
        )
    # Variants without a target come last.
    policy_holds = (*group(sorted(holds, key=lambda it: it not in variants)), *decision.holds)
    return replace(decision, stages=stages, variants=variants, holds=policy_holds)
