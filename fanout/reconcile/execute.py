"""Carries out a plan. The order of effects is the fence: releases are recorded first, then every
repository is pushed, then what came of it is recorded. (Design §3.)

After a crash at any point the next pass continues: what was pushed shows in Git, what was not is
planned again. A lost race is a Conflict and is observed again, never forced over.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from fanout.cluster.contention import until_it_wins
from fanout.cluster.declared import Declared
from fanout.errors import Bug, FanoutError, InvalidInput
from fanout.plan.actions import Action, Kind, Outcome
from fanout.plan.book import BookKey, StatusChange
from fanout.plan.change import last_tag, publication_tag
from fanout.plan.planner import PolicyPlan
from fanout.plan.repository import Written
from fanout.plan.status import Lines, Status, changes
from fanout.plan.steps import Step
from fanout.reconcile.changing import Problems, with_problems, with_stopped
from fanout.reconcile.names import book_key
from fanout.reconcile.passes import Mode, Reconciler
from fanout.reconcile.report import Observed, Report
from fanout.reconcile.world import World
from fanout.telemetry.barrier import BARRIER, run_contained
from fanout.values import replace

_PUSHED = (Kind.WRITE_DRAFT, Kind.PUBLISH, Kind.REMOVE_PACKAGE, Kind.REMOVE_DRAFT)


def run_pass(
    world: World, reconciler: Reconciler, declared: Declared, now: datetime, mode: Mode
) -> Report:
    """Observe, plan, execute; again when a race was lost before anything was done.

    A repository whose push loses a race is that repository's outcome: the next pass sees it anew.
    Raises Conflict when the records moved under every observation of half a minute.
    """
    return until_it_wins(lambda: execute(world, reconciler.observe(declared, now, mode)))


def execute(world: World, observed: Observed) -> Report:
    """Do what the plan says. Raises Conflict, before anything is pushed, when the records moved.

    A policy whose releases cannot be recorded is stopped before anything of it is pushed.
    """
    if not observed.plan:
        return Report(observed)
    heads = {book_key(it.named): it.book.head for it in observed.policies}
    releases = [(it, it.before, it.planned) for it in observed.plans]
    moved, unrecorded = _record(world, observed, heads, releases)
    observed = with_stopped(observed, unrecorded)
    with world.counters.times.phase("writing"):
        written = world.git.change(observed.changes) if observed.changes else {}
    settled, unsettled = _all_settled(observed, written)
    _, unwritten = _record(world, observed, {**heads, **moved}, settled)
    observed = with_problems(observed, {**unsettled, **unwritten})
    urls = {
        (plan.namespace, repository): view.remote.url
        for plan in observed.plans
        for repository, view in (
            *((step.case.spec.repository, step.case.view) for step in plan.steps),
            *((clearing.repository, clearing.view) for clearing in plan.clearings),
            *((it.repository, it.view) for going in plan.departures for it in going.removals),
        )
        if view is not None
    }
    return Report(observed, tuple(_outcomes(observed, urls, written)))


def _all_settled(
    observed: Observed, written: Mapping[str, Written | FanoutError]
) -> tuple[list[tuple[PolicyPlan, Status, Status]], Problems]:
    """What came of each plan that published or removed something, and those of which none knows."""
    settled, failed = [], {}
    for plan in observed.plans:
        if plan.published or plan.clearings or plan.departures:
            status = run_contained(partial(_settled, plan, written))
            if isinstance(status, FanoutError):  # the next pass finds it in the repositories
                failed[plan.namespace, plan.name] = status
            else:
                settled.append((plan, plan.planned, status))
    return settled, failed


def _record(
    world: World,
    observed: Observed,
    heads: Mapping[BookKey, str],
    differences: Sequence[tuple[PolicyPlan, Status, Status]],
) -> tuple[Mapping[BookKey, str], Problems]:
    """Write what is to be remembered of all policies at once.

    Answers where the books are now, and the policies of which nothing could be written. Raises
    Conflict when the records moved, Unavailable or Denied when they cannot be reached.
    """
    keys = {
        (item.named.namespace, item.named.name): book_key(item.named) for item in observed.policies
    }
    lines: dict[BookKey, Lines] = {}
    for plan, before, after in differences:
        lines.setdefault(keys[plan.namespace, plan.name], {}).update(changes(before, after))
    wanted = {key: StatusChange(heads[key], new) for key, new in lines.items() if new}
    if not wanted:
        return {}, {}
    with world.counters.times.phase("records"):
        moved, failed = _put(world, wanted, observed.now)
    whose = {(plan.namespace, plan.name) for plan, _, _ in differences}
    return moved, {it: failed[keys[it]] for it in sorted(whose) if keys[it] in failed}


def _put(
    world: World, wanted: Mapping[BookKey, StatusChange], at: datetime
) -> tuple[Mapping[BookKey, str], Mapping[BookKey, FanoutError]]:
    """Put the changes of all books in one push; where one cannot be made, each by itself.

    The fence of a budget is the swap of its own book, so that pushes of their own are as safe.
    """
    put = world.records.put_status
    together = run_contained(partial(put, wanted, at))
    if not isinstance(together, FanoutError):
        return together, {}
    if not isinstance(together, Bug | InvalidInput):
        raise together
    moved: dict[BookKey, str] = {}
    failed: dict[BookKey, FanoutError] = {}
    for key, change in wanted.items():
        alone = run_contained(partial(put, {key: change}, at))
        if isinstance(alone, FanoutError):
            failed[key] = alone
        else:
            moved |= alone
    return moved, failed


def _settled(plan: PolicyPlan, written: Mapping[str, Written | FanoutError]) -> Status:
    """The status with what was published or removed, as far as its push has worked."""
    lines = dict(plan.planned.variants)
    arrived = set()  # what was said of earlier removals is over
    for step in plan.steps:
        case = step.case
        line = plan.published.get(case.spec.name)
        answer = written.get(case.view.remote.url)
        if line is None or line.published is None or isinstance(answer, FanoutError):
            continue  # a failed push is seen again by the next pass
        merge = line.published.merge
        tag = case.tag or publication_tag(case)
        if step.step is Step.PUBLISH and answer is not None:
            tag = tag if tag in answer.refs else last_tag(case)
            merge = answer.refs.get(tag) or case.view.refs[tag]
        published = replace(line.published, merge=merge, tag=tag.removeprefix("refs/tags/"))
        lines[case.spec.name] = replace(line, published=published)
        arrived.add(case.spec.name)
    for clearing in plan.clearings:
        name, left = clearing.spec.name, clearing.left
        answer = written.get(clearing.view.remote.url)
        if left is not None and not isinstance(answer, FanoutError):
            kept = tuple(it for it in lines[name].left if it != left)
            lines[name] = replace(lines[name], left=kept)
    for departure in plan.departures:
        views = (removal.view for removal in departure.removals)
        answers = (written.get(view.remote.url) for view in views if view is not None)
        if not any(isinstance(answer, FanoutError) for answer in answers):
            lines.pop(departure.variant, None)
    removed = {name: at for name, at in plan.planned.removed.items() if name not in arrived}
    return replace(plan.planned, variants=lines, removed=removed)


def _outcomes(
    observed: Observed,
    urls: Mapping[tuple[str, str], str],
    written: Mapping[str, Written | FanoutError],
) -> Iterator[Outcome]:
    for action in observed.plan.actions:
        try:
            with BARRIER:
                yield _outcome(action, urls, written)
        except Bug as error:
            yield Outcome(action, done=False, problem=str(error), reason=error.reason)


def _outcome(
    action: Action,
    urls: Mapping[tuple[str, str], str],
    written: Mapping[str, Written | FanoutError],
) -> Outcome:
    if action.kind not in _PUSHED:
        return Outcome(action, done=True)
    answer = written[urls[action.namespace, action.repository]]
    if isinstance(answer, Written):
        return Outcome(action, done=True)
    return Outcome(action, done=False, problem=str(answer), reason=answer.reason)
