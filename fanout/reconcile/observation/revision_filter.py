"""Upstream revisions whose tag cannot be used: they are left out, and stop nothing.

What the tag names may be missing, or be no commit with the directory of the package. Older
revisions stay usable. A revision that somebody chose or that is in use already is not left out: it
holds its variants by its name. A package that is there and has errors fails its variants.
"""

from collections.abc import Callable, Iterable, Mapping

from fanout.api.gate_vocabulary import Action
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.gate_facts import PolicyFacts
from fanout.reconcile.observation.upstream_packages import get_upstream_tag
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


def find_unusable(
    facts: PolicyFacts,
    candidates: Iterable[str],
    find_problem: Callable[[str], InvalidInput | None],
) -> dict[str, InvalidInput]:
    """Return the candidates to leave out, and revisions that would be the next candidates.

    `find_problem` returns why the tag of a revision cannot be used, or None. Nothing is left out if
    no revision would remain: then the message names the newest.
    """
    # They are published, drafted, released, pinned or named by a decision.
    revisions_in_use = {rule.pin for rule in facts.stages}
    revisions_in_use |= {
        decision.revision
        for decision in facts.records.decisions
        if decision.spec.action in (Action.PUBLISH, Action.ROLLBACK)
    }
    for variant in facts.variants:
        states = (variant.published, variant.draft, variant.grant)
        revisions_in_use |= {it.revision for it in states if it is not None}
    unusable: dict[str, InvalidInput] = {}
    for candidate in sorted(set(candidates).intersection(facts.revisions)):
        for revision in reversed(facts.revisions[: facts.revisions.index(candidate) + 1]):
            problem = find_problem(revision) if revision not in revisions_in_use else None
            if problem is None:
                break
            unusable[revision] = problem
    return unusable if len(unusable) < len(facts.revisions) else {}


def warn_unusable(
    resolved_policy: ResolvedPolicy, unusable: Mapping[str, FanoutError]
) -> dict[str, str]:
    """Return a warning for each tag that is left out, by revision."""
    if resolved_policy.upstream is None:
        return {}
    return {
        revision: f"tag {get_upstream_tag(resolved_policy, revision)} of"
        f" {resolved_policy.upstream.metadata.name} cannot be used and is left out: {problem}"
        for revision, problem in unusable.items()
    }
