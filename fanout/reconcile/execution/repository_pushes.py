"""Pushes of a pass, and what of them a server takes that refuses the whole.

The first push of a repository has all its sets. If the server refuses it, sets are left out until
it takes the rest, or until nothing is left to try. The first push that goes through ends that: it
moves refs on which the other sets were planned, so those are for the next pass.

Traces of records have a push of their own for each repository that lacks one. The record counts at
once. What a repository cannot take is a problem of the policy, and the next pass tries again, as
after a crash between the record and its traces.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from time import monotonic

from fanout.errors import Conflict, FanoutError
from fanout.plan.changes.change_sets import ChangeSet, SetMember, keep_members, list_sets
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.publication_messages import CommitSettings, group_publications
from fanout.plan.changes.repository_changes import build_changes
from fanout.plan.observation.repository_state import PushedChange, RepositoryChange
from fanout.plan.push_refusals import find_names, is_refusal, refuses_force
from fanout.plan.records.trace_changes import DueTrace, build_trace_changes
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.world import World
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, field, replace

_MAX_PUSHES = 16  # of one repository in a pass, after the first one
_ROUND_SECONDS = 2.0  # of all searches in a pass of a round; later, none pushes again
_Group = tuple[ChangeSet, ...]


class PushResults(Value):
    """Results of the pushes of a pass, by key of the remote.

    Where a repository took a part, that is its result, and `left_out` has the errors of the rest;
    None for what has nothing to push.
    """

    by_remote: Mapping[str, PushedChange | FanoutError] = field(default_factory=dict)
    left_out: Mapping[tuple[str, SetMember], FanoutError | None] = field(default_factory=dict)
    left_out_refs: Mapping[tuple[str, str], FanoutError | None] = field(default_factory=dict)
    has_refusals: bool = False
    # Of the repositories that refused: names of objects by namespace, by key of the remote.
    names: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    # Policies and hand-written variants with sets that were refused together with others only.
    untried: frozenset[tuple[str, str]] = frozenset()

    def find(self, remote: str, namespace: str, name: str) -> PushedChange | FanoutError | None:
        """Return the result for a variant, or for a set of removals by its ref; None: no push."""
        return self.left_out.get((remote, (namespace, name)), self.by_remote.get(remote))

    def find_of_ref(self, remote: str, ref: str) -> PushedChange | FanoutError | None:
        """Return the result for a draft by its ref; None if its repository was not pushed to."""
        return self.left_out_refs.get((remote, ref), self.by_remote.get(remote))


def push_changes(world: World, pass_plan: PassPlan) -> PushResults:
    """Push the changes of a pass; where a server refuses one, push what it takes of it."""
    git = world.git
    results = dict(git.change(pass_plan.changes)) if pass_plan.changes else {}
    settings, searches = pass_plan.writing, dict[str, _Search]()
    refused = {it: error for it, error in results.items() if isinstance(error, FanoutError)}
    refused = {it: error for it, error in refused.items() if is_refusal(error)}
    if not refused:
        return PushResults(results)
    assert settings is not None, "a pass that has changes is worded"
    refused_before = frozenset(
        (plan.namespace, name) for plan in pass_plan.plans for name in plan.planned.refused_pushes
    )
    for remote, error in refused.items():
        # A server that names no ref refuses the account, and not what it pushes.
        sets = run_isolated(partial(list_sets, pass_plan.plans, remote)) if error.refs else None
        if sets is None or isinstance(sets, FanoutError):
            continue
        searches[remote] = _Search(pass_plan.plans, remote, settings, refused_before)
        # Each pass begins elsewhere: with many sets, one pass does not come to all of them.
        start = int(pass_plan.now.timestamp()) % len(sets) if sets else 0
        searches[remote].refuse(sets[start:] + sets[:start], error)
    end = monotonic() + (_ROUND_SECONDS if world.makes_rounds else inf)
    while changes := [it for search in searches.values() if (it := search.propose()) is not None]:
        for remote, answer in git.change(changes).items():
            searches[remote].note(answer)
        # The others of a round wait for the search; the next one begins with other sets.
        if monotonic() > end:
            break
    left_out: dict[tuple[str, SetMember], FanoutError | None] = {}
    left_out_refs: dict[tuple[str, str], FanoutError | None] = {}
    untried: set[tuple[str, str]] = set()
    for remote, search in searches.items():
        for item, refusal in search.errors.items():
            left_out |= {(remote, member): refusal for member in item.members}
            left_out_refs |= {(remote, ref): refusal for ref in item.refs}
        if search.pushed is not None:
            results[remote] = search.pushed
            untried |= search.list_untried()
    return PushResults(
        results,
        left_out,
        left_out_refs,
        has_refusals=True,
        names={remote: find_names(pass_plan.plans, remote) for remote in refused},
        untried=frozenset(untried),
    )


@dataclasses.dataclass(slots=True)
class _Search:
    """Search for the sets of one repository that its server takes."""

    plans: Sequence[PolicyPlan]
    remote: str
    settings: CommitSettings
    recorded: Collection[SetMember]  # whose pushes an earlier pass found refused
    # None: the set has nothing to push.
    errors: dict[ChangeSet, FanoutError | None] = dataclasses.field(default_factory=dict)
    pushed: PushedChange | None = None
    # To be tried, the next one last.
    _groups: list[_Group] = dataclasses.field(default_factory=list)
    _current: _Group = ()
    # Refused by name, or by themselves.
    _alone: set[ChangeSet] = dataclasses.field(default_factory=set)
    _pushes: int = 0
    _appends: bool = False  # drafts continue what is on their branches
    _is_named: bool = False

    def propose(self) -> RepositoryChange | None:
        """Return the change to push next, or None if the search has ended."""
        while self._groups and self._pushes < _MAX_PUSHES:
            self._current = self._groups.pop()
            change = run_isolated(self._build_change)
            if isinstance(change, RepositoryChange):
                self._pushes += 1
                return change
            if change is None:
                self.errors |= dict.fromkeys(self._current)
        return None

    def _build_change(self) -> RepositoryChange | None:
        """Build the change with the present sets alone; None if it has nothing to push."""
        members = {member for it in self._current for member in it.members}
        plans = keep_members(self.plans, self.remote, members)
        # The text of an administrator's template names all variants of its publication.
        whole, kept = group_publications(self.plans), group_publications(plans)
        texts = self.settings.messages.items()
        messages = {
            key: it for key, it in texts if len(whole.get(key, ())) == len(kept.get(key, ()))
        }
        settings = replace(self.settings, messages=messages)
        return next(iter(build_changes(plans, settings, appends=self._appends)), None)

    def note(self, answer: PushedChange | FanoutError) -> None:
        """Take note of what became of the proposed change."""
        if isinstance(answer, PushedChange):
            self.pushed = answer
            self._groups.clear()
            for item in self._current:
                del self.errors[item]
        elif is_refusal(answer):
            self.refuse(self._current, answer)
        else:  # a lost race, or no answer: the next pass sees what there is
            self._groups.clear()
            self.errors |= dict.fromkeys(self._current, answer)

    def refuse(self, group: _Group, error: FanoutError) -> None:
        """Take note that the server refuses these sets together, and plan what to try instead."""
        self.errors |= dict.fromkeys(group, error)
        if refuses_force(error) and not self._appends:
            self._appends = True
            self._groups.append(group)
            return
        named = tuple(it for it in group if not it.refs.isdisjoint(error.refs))
        if not named:  # the branch of renderings, which all sets move
            self._alone.update(group)
        elif len(named) < len(group):
            self._alone.update(named)
            rest = tuple(it for it in group if it not in named)
            # An `update` hook names the first ref that it refuses; there may be hundreds of them.
            self._groups += reversed(self._split(rest)) if self._is_named else [rest]
            self._is_named = True
        elif len(group) == 1:
            self._alone.update(group)
        else:
            self._groups += reversed(self._split(group))

    def _split(self, group: _Group) -> list[_Group]:
        """Return two parts of the sets, the one first that the server rather takes."""
        if len(group) == 1:
            return [group]
        refused_before = [it for it in group if not it.members.isdisjoint(self.recorded)]
        parts = (refused_before, [it for it in group if it.publishes], group[: len(group) // 2])
        first = next(it for it in parts if 0 < len(it) < len(group))
        split = [tuple(first), tuple(it for it in group if it not in first)]
        return split[::-1] if first is refused_before else split

    def list_untried(self) -> frozenset[tuple[str, str]]:
        """Return the policies with sets that the server refused together with others only."""
        untried = (it for it in self.errors if self.errors[it] and it not in self._alone)
        members = {member for it in untried for member in it.members}
        return frozenset(
            (plan.namespace, plan.name)
            for plan in self.plans
            for name in (
                *(it.rendered.spec.name for it in plan.steps),
                *(it.variant for it in plan.cleanup.removals),
                *(it.ref for it in plan.cleanup.sets),
            )
            if (plan.namespace, name) in members
        )


def write_traces(world: World, writes: Iterable[DueTrace]) -> Mapping[str, FanoutError]:
    """Write traces; return the errors by key of the remote.

    A lost race is no error: the other process wrote its own, and the next pass reads them.
    """
    setup = world.setup
    changes = build_trace_changes(writes, setup.install, setup.identity)
    results = world.git.change(changes) if changes else {}
    return {
        key: result
        for key, result in results.items()
        if isinstance(result, FanoutError) and not isinstance(result, Conflict)
    }
