"""Reader of other people's pull requests to branches that require the status of fanout.

The search of a host by author does not show them, so each such repository costs one listing in
each pass. What a request changes is read once for each head, and again when the branch moves.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from fanout.plan.observation.forge_state import OtherRequest
from fanout.plan.observation.observed_request import BranchFacts, ObservedRequest, RepositoryName
from fanout.plan.pull_requests.other_requests import (
    build_other_status,
    find_changed_packages,
    requires_status,
)
from fanout.plan.pull_requests.request_plan import format_status, status_context
from fanout.ports import BranchReader, ChangedPathReader, Forge, StatusStore
from fanout.reconcile.pull_requests.forge_reading import ForgeReader, HostedRepository
from fanout.reconcile.pull_requests.request_memo import (
    BranchMemo,
    OtherRequestMemo,
    RepositoryMemo,
    digest_listing,
)
from fanout.selection.ref_names import drafts_prefix
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, replace

_RULES_AGE = timedelta(hours=1)  # no search shows that the rules of a branch changed


def has_same_requests(
    forge: Forge, name: RepositoryName, memo: RepositoryMemo, instant: datetime
) -> bool:
    """Return whether the open requests of a repository, and its rules, count as read before.

    `instant` is the host's time. Raises FanoutError.
    """
    readings = [it.read for it in (memo.settings, memo.rules) if it is not None]
    if readings and instant - max(readings) >= _RULES_AGE:
        return False
    if memo.listing_digest is None:
        return True
    return digest_listing(forge.open_requests(name)) == memo.listing_digest


class OtherRequestReader(Value, kw_only=True):
    """Reader of the requests of other people in one repository."""

    reader: ForgeReader
    repository: HostedRepository

    def read_requests(self) -> tuple[OtherRequest, ...]:
        """Return the open requests of other people, by number, with what they change.

        Without any where the branch does not require the status of fanout, and where not all
        records can be read. Raises FanoutError where they cannot be listed.
        """
        repository, memo = self.repository, self._memo
        if repository.owned_paths is None:
            return ()
        rules, context = self._read_rules(), status_context(self.reader.install)
        others: dict[int, OtherRequestMemo] = {}
        requests: list[OtherRequest] = []
        listing_digest = None
        if rules is not None and requires_status(rules.required_contexts, context):
            listed = repository.forge.open_requests(repository.name)
            wanted = self._select_requests(listed)
            for request in wanted:
                outcome = run_isolated(partial(self._read_request, request))
                if isinstance(outcome, OtherRequestMemo):
                    others[request.number] = outcome
                    requests.append(self._build_request(request, outcome))
                elif outcome is not None:
                    requests.append(
                        OtherRequest(
                            number=request.number,
                            head_commit=request.head_commit,
                            problem=str(outcome),
                        )
                    )
            listing_digest = digest_listing(listed) if len(others) == len(wanted) else ""
        if (memo.others, memo.listing_digest) != (others, listing_digest):
            memo.others, memo.listing_digest = others, listing_digest
            self.reader.memo.has_changed = True
        return tuple(sorted(requests, key=lambda it: it.number))

    @property
    def _memo(self) -> RepositoryMemo:
        return self.reader.memo.repository(self.repository.name)

    def _read_rules(self) -> BranchFacts | None:
        """Return the rules of the branch as they were within the last hour."""
        repository, memo = self.repository, self._memo
        if not isinstance(repository.forge, BranchReader):
            return None
        candidates: tuple[BranchMemo | None, ...] = (memo.settings, memo.rules)
        branch_memos = [
            it
            for it in candidates
            if it is not None
            and it.base_branch == repository.base_branch
            and self.reader.instant - it.read < _RULES_AGE
        ]
        if branch_memos:
            return max(branch_memos, key=lambda it: it.read).branch
        memo.rules = BranchMemo(
            branch=repository.forge.branch(repository.name, repository.base_branch),
            base_branch=repository.base_branch,
            read=self.reader.instant,
        )
        self.reader.memo.has_changed = True
        return memo.rules.branch

    def _select_requests(self, listed: Iterable[ObservedRequest]) -> list[ObservedRequest]:
        """Return the requests of other people to the Repository's branch."""
        repository = self.repository
        prefix = drafts_prefix(self.reader.install)
        refs = repository.state.refs
        # A commit has one status of a context, which at the head of a draft says what its own
        # request waits for.
        draft_heads = {commit for ref, commit in refs.items() if ref.startswith(prefix)}
        return [
            request
            for request in listed
            if request.base_branch == repository.base_branch
            and request.head_commit not in draft_heads
            and not (
                f"refs/heads/{request.head_branch}".startswith(prefix)
                and request.is_from(repository.name)
            )
        ]

    def _read_request(self, request: ObservedRequest) -> OtherRequestMemo | None:
        """Read a request, unless it is known; None while the host is not done with a push."""
        forge, name = self.repository.forge, self.repository.name
        if not isinstance(forge, ChangedPathReader) or not isinstance(forge, StatusStore):
            return None
        memo = self._memo.others.get(request.number)
        if memo is not None and memo.head_commit != request.head_commit:
            memo = None
        base_commit = self.repository.state.head
        if memo is None or memo.base_commit != base_commit:
            changed = forge.changed_paths(name, request.number)
            if changed.head_commit != request.head_commit:
                return None
            memo = OtherRequestMemo(
                head_commit=request.head_commit,
                base_commit=base_commit,
                changed_paths=changed.paths,
                status=memo.status if memo is not None else "",
            )
        # One that was set by the pass before is not known yet.
        built = self._build_request(request, memo)
        wanted = build_other_status(built.changed_packages, self.reader.install)
        if memo.status != format_status(wanted):
            statuses = forge.statuses(name, request.head_commit)
            present = (
                f"{it.state}: {it.description}" for it in statuses if it.context == wanted.context
            )
            memo = replace(memo, status=next(present, ""))
        return memo

    def _build_request(self, request: ObservedRequest, memo: OtherRequestMemo) -> OtherRequest:
        owned_paths = self.repository.owned_paths
        assert owned_paths is not None, "all records were read"
        return OtherRequest(
            number=request.number,
            head_commit=memo.head_commit,
            changed_packages=find_changed_packages(memo.changed_paths, owned_paths),
            status=memo.status,
        )
