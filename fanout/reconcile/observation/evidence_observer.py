"""Evidence: answers of machines to checks, and commits that reports name, matched to packages.

Machines answer by objects, HTTP services and Prometheus servers. All checks of a policy are probed
together: expressions of one text in one batch, equal probes once in a pass.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from fanout.errors import FanoutError
from fanout.gates.gate_facts import CheckReading
from fanout.groups import group_pairs
from fanout.pending_inputs import ExpressionRequest, complete
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.evidence.check_readings import read_check
from fanout.plan.evidence.due_checks import find_due_checks
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.plan.gates.variant_facts import NO_EVIDENCE, ObservedEvidence
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.ports import GitStore
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy
from fanout.reconcile.world import World
from fanout.selection.cluster_objects import ClusterObjectIndex

# After which a pass asks for answers that an earlier one did not wait for: no service has longer.
ANSWER_PAUSE = timedelta(seconds=10)
_STRIDE = 7919  # a prime, so that passes a minute apart begin far from each other
Readings = Mapping[str, tuple[CheckReading, ...]]


@dataclass(slots=True)
class CheckProber:
    """Prober of checks for one pass, given the observed cluster objects."""

    world: World
    objects: ClusterObjectIndex
    now: datetime
    # Policies with requests that go on without the pass.
    unanswered: set[PolicyKey] = field(default_factory=set)
    _responses: dict[ProbeQuery, ProbeResponse | ProbeFailure] = field(default_factory=dict)
    _late_messages: set[str] = field(default_factory=set)  # of requests that go on

    def read_checks(
        self,
        resolved_policy: ResolvedPolicy,
        variants: Sequence[ObservedVariant],
        budget: EvaluationBudget | None,
    ) -> Readings:
        """Return by variant the readings of checks about its published or released package.

        `budget`: what the expressions of the policy may cost.
        """
        if resolved_policy.upstream_policy is None:
            return {}
        due_checks = list(
            find_due_checks(
                resolved_policy.upstream_policy.spec.stages,
                variants,
                resolved_policy.expression_variables,
                self.now,
            )
        )
        values: dict[ExpressionRequest, Any] = {}
        responses = ChainMap[Any, Any](values, self._responses)

        def obtain(requests: Sequence[ExpressionRequest | ProbeQuery]) -> None:
            by_text = group_pairs(
                (it.text, it) for it in requests if isinstance(it, ExpressionRequest)
            )
            names = self.world.sandbox.free_variables(list(by_text), [])[0] if by_text else []
            for (text, of_text), names_of_text in zip(by_text.items(), names, strict=True):
                # Compared by identity, as the requests are, but only by what the text reads: the
                # answer of one service to all variants may be large.
                alike = group_pairs(
                    (tuple(id(it.variables.get(name)) for name in names_of_text), it)
                    for it in of_text
                )
                rows = [it[0].variables for it in alike.values()]
                [column] = self.world.sandbox.evaluate([text], rows, budget)
                for group, value in zip(alike.values(), column, strict=True):
                    values.update(dict.fromkeys(group, value))
            probes = [it for it in requests if isinstance(it, ProbeQuery)]
            if probes:
                # Each pass starts at another offset: if time is too short for all, every check gets
                # its turn.
                offset = int(self.now.timestamp()) * _STRIDE % len(probes)
                probes = probes[offset:] + probes[:offset]
                answers = self.world.probes.ask(probes)
                self._responses.update(zip(probes, answers, strict=True))
                failures = (it for it in answers if isinstance(it, ProbeFailure))
                self._late_messages |= {it.message for it in failures if it.goes_on}

        namespaces = self.world.setup.check_namespaces
        check_readings = complete(
            [partial(read_check, it, self.objects, responses, namespaces) for it in due_checks],
            obtain,
        )
        if any(it.message in self._late_messages for it in check_readings):
            self.unanswered.add(resolved_policy.key)
        names = (it.variant for it in due_checks)
        readings_by_variant = group_pairs(zip(names, check_readings, strict=True))
        return {name: tuple(several) for name, several in readings_by_variant.items()}


_COMMIT_ID_LENGTH = 40  # digits of a commit's id


class _PackageLocation(NamedTuple):
    """Location and tree of a package that evidence may refer to."""

    variant: str
    path: str
    tree: str
    drafted: bool


def match_evidence(
    commits: frozenset[str],
    variants: Sequence[ObservedVariant],
    git: GitStore,
    readings: Mapping[str, Sequence[CheckReading]],
) -> dict[str, ObservedEvidence]:
    """Return by variant the commits that have its published or drafted package.

    Evidence at a commit on the branch counts for every variant whose package tree at that
    commit equals its published tree; before publication, the tree of its draft. So squash
    and rebase lose no evidence. Commits reported by machines are matched with
    their own variant only, and `readings` (by variant) are part of the result.
    """
    evidence = {name: ObservedEvidence(readings=tuple(readings[name])) for name in readings}
    if not commits and not readings:
        return evidence
    claims = {
        name: {
            it.observed_revision
            for it in readings[name]
            if len(it.observed_revision) == _COMMIT_ID_LENGTH
        }
        for name in readings
    }
    groups: dict[str, tuple[RepositoryState, list[_PackageLocation]]] = {}
    for variant in variants:
        spec, home, draft = variant.spec, variant.package_location, variant.draft
        located: list[tuple[RepositoryState, _PackageLocation]] = []
        if variant.published is not None:
            package = _PackageLocation(spec.name, home.path, variant.published.tree, False)
            located.append((home.repository_state, package))
        if draft is not None and draft.tree is not None:
            package = _PackageLocation(spec.name, spec.path, draft.tree, True)
            located.append((variant.repository_state, package))
        for state, package in located:
            if state.failure is None:
                groups.setdefault(state.identity, (state, []))[1].append(package)
    for _, (repository_state, locations) in sorted(groups.items()):
        if not commits and not any(claims.get(it.variant) for it in locations):
            continue
        head = repository_state.head
        with git.reader(repository_state.remote) as reader:
            for commit in sorted(commits.union(*(claims.get(it.variant, ()) for it in locations))):
                candidates = locations
                if commit not in commits:
                    candidates = [it for it in locations if commit in claims.get(it.variant, ())]
                try:
                    states = reader.paths(commit, {it.path for it in candidates})
                    on_branch = bool(head) and reader.contains(head, commit)
                except FanoutError:
                    # It is in no mirror, or no commit: whoever named it may have made it up. No
                    # error of the policy: anybody who may report evidence writes records.
                    continue
                for name, path, tree, drafted in candidates:
                    # Anybody can push a commit with the right tree to some other branch, so for a
                    # published package only commits of the published branch count.
                    if states[path].tree == tree and (drafted or on_branch):
                        known = evidence.get(name, NO_EVIDENCE)
                        evidence[name] = known.with_commit(commit, drafted=drafted)
    return evidence
