"""Snapshot on disk of a pass without work, reused by the next process.

A long-running process skips unchanged policies in memory (`policy_memo`). A process
that cron or a pipeline starts reads the bytes of the files, the heads of the records,
one listing per repository, and one search per forge. If all are as in a pass that found
nothing to do, and no next-check time has been reached, the answer of that pass stands:
nothing is parsed, rendered or evaluated.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.errors import FanoutError
from fanout.plan.observation.repository_state import RefListing, RefListingRequest
from fanout.plan.records.policy_records import RecordsKey
from fanout.reconcile.pass_results import PassPlan, PassProblem
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.world import World
from fanout.values import Value, write_json

_FORMAT = 3  # of the snapshots


class StoredSnapshot(Value, kw_only=True):
    """Snapshot on disk: inputs of a pass without work, and its answer."""

    files_digest: str
    at: datetime
    until: datetime | None  # the pass would give another answer from then on
    heads_digest: str
    listing_requests: tuple[RefListingRequest, ...]
    listings_digest: str
    hosted_urls: tuple[str, ...]
    requests_digest: str
    warnings: tuple[str, ...]
    problems: tuple[PassProblem, ...]


class NoopSnapshotStore:
    """Stores snapshots of passes without work, one per kind of pass."""

    def __init__(
        self,
        world: World,
        digest_requests: Callable[[Sequence[str]], str],
        directory: Path,
        version: str,
    ) -> None:
        """Create the store. `directory` may be deleted at any time.

        `digest_requests` searches the forges of the repositories at these URLs, and returns "" if
        something changed. `version`: program version and all settings, that is, whatever affects
        a result but is not read by a pass.
        """
        self._world = world
        self._digest_requests = digest_requests
        self._directory = directory
        self._version = f"{version}\0{world.setup}\0{_FORMAT}"

    def find_plan(self, mode: PassMode, files_digest: str, now: datetime) -> PassPlan | None:
        """Return the plan of a pass made now if nothing changed since the snapshot, else None.

        `files_digest`: digest of all declarations, "" if there is none. Raises Unavailable or
        Denied when the records cannot be listed.
        """
        if not files_digest or not _covers_all(mode):
            return None
        snapshot = read_cache_value(self._snapshot_path(mode), self._version, StoredSnapshot)
        if (
            snapshot is None
            or snapshot.files_digest != files_digest
            or snapshot.at > now
            or (snapshot.until is not None and now >= snapshot.until)
        ):
            return None
        # Cheapest first: records are one listing, repositories may be hundreds.
        records = self._world.records
        heads = records.heads()
        if _digest_heads(heads) != snapshot.heads_digest or not records.heads_unchanged(heads):
            return None
        # The digest of a failed listing is empty and equals no stored one.
        listings = self._world.git.list_refs(snapshot.listing_requests)
        if _digest_listings(listings) != snapshot.listings_digest:
            return None
        urls = snapshot.hosted_urls
        if urls and self._digest_requests(urls) != snapshot.requests_digest:
            return None
        return PassPlan(
            now=now, policies=(), warnings=snapshot.warnings, stored_problems=snapshot.problems
        )

    def store(self, mode: PassMode, files_digest: str, pass_plan: PassPlan) -> None:
        """Store a snapshot of the pass if the next one may give the same answer.

        A failure may be due to lack of time or memory and is retried.
        """
        snapshot = pass_plan.snapshot
        if not files_digest or snapshot is None or not _covers_all(mode):
            return
        problems = pass_plan.problems
        if any(it.failed for it in problems):
            return
        content = StoredSnapshot(
            files_digest=files_digest,
            at=pass_plan.now,
            until=snapshot.next_check,
            heads_digest=_digest_heads(snapshot.heads),
            listing_requests=tuple(snapshot.listing_requests),
            listings_digest=_digest_listings(snapshot.listings),
            hosted_urls=tuple(snapshot.hosted_urls),
            requests_digest=snapshot.requests,
            warnings=tuple(pass_plan.warnings),
            problems=tuple(problems),
        )
        write_cache_file(self._snapshot_path(mode), write_json(content), self._version)

    def _snapshot_path(self, mode: PassMode) -> Path:
        mode_words = [word for word, on in (("publish", mode.publish), ("sweep", mode.sweep)) if on]
        return self._directory / f"{'-'.join(mode_words) or 'drafts'}.json"


def _covers_all(mode: PassMode) -> bool:
    """Return True if the pass covers all policies, as a pass started by cron does."""
    return (
        mode.only is None
        and mode.subjects is None
        and not mode.namespace
        and not mode.unswept_subjects
    )


def _digest_heads(heads: Mapping[RecordsKey, str]) -> str:
    return _digest_rows(sorted([key.namespace, key.policy, head] for key, head in heads.items()))


def _digest_listings(listings: Mapping[str, RefListing | FanoutError]) -> str:
    """Return a digest of the refs of all repositories; "" if one could not be listed."""
    rows = []
    for remote, listing in sorted(listings.items()):
        if isinstance(listing, FanoutError):
            return ""
        rows.append([remote, _digest_rows(sorted(listing.refs.items()))])
    return _digest_rows(rows)


def _digest_rows(rows: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
