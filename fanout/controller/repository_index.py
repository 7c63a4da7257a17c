"""Index of the policies that use each repository, as the last passes resolved them."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


class RepositoryIndex:
    """Policies by the URLs of the repositories that they read or write.

    One thread updates it while others look something up. It does not know repositories that no
    pass has resolved yet, nor those where only records say that a package was there.
    """

    def __init__(self) -> None:
        # Replaced and never changed, so that readers need no lock.
        self._urls: Mapping[PassSubject, frozenset[str]] = {}

    def update(self, report: PassReport, declared: frozenset[PassSubject]) -> None:
        """Take over what a pass resolved; forget policies that are not declared any more.

        A policy that could not be resolved keeps its repositories.
        """
        resolved: defaultdict[PassSubject, set[str]] = defaultdict(set)
        for item in report.pass_plan.policies:
            policy = item.resolved_policy
            if urls := _repository_urls(policy):
                resolved[PassSubject(policy.namespace, policy.name)] |= urls
        merged = {**self._urls, **{it: frozenset(urls) for it, urls in resolved.items()}}
        self._urls = {subject: urls for subject, urls in merged.items() if subject in declared}

    def find(self, is_repository: Callable[[str], bool]) -> frozenset[PassSubject]:
        """Return the policies and variants with a URL for which `is_repository` is true."""
        return frozenset(
            subject for subject, urls in self._urls.items() if any(map(is_repository, urls))
        )


def _repository_urls(policy: ResolvedPolicy) -> set[str]:
    # Thousands of variants share a few Repository objects.
    repositories = {id(it): it for it in policy.repositories.values()}.values()
    upstream = [] if policy.upstream is None else [policy.upstream]
    return {it.spec.url for it in (*repositories, *upstream)}
