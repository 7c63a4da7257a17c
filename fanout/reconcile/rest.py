"""A pass that found everything at rest, remembered for the next process.

A process that stays does not judge a policy again of which nothing can have changed
(`fanout.reconcile.quiet`). One that is started anew, by cron or a pipeline, reads the world as
every pass does: the bytes of the files, the heads of the records, one listing per repository.
Where all of it is as it was when a pass found nothing to do, and no instant has come that can
change the answer, that answer stands, and nothing is parsed, rendered or judged.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from fanout.errors import FanoutError
from fanout.keeping.files import read_kept, write_kept
from fanout.plan.book import BookKey
from fanout.plan.repository import Listing, Look, Remote
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Observed, Trouble
from fanout.reconcile.world import World


class Resting:
    """Remembers passes that had nothing to do, one for each way of sweeping."""

    def __init__(self, world: World, directory: Path, made_by: str) -> None:
        """`directory` may be deleted at any time. `made_by` names the version of the program and
        all settings: whatever decides an answer and is not read by a pass.
        """
        self._world = world
        self._directory = directory
        self._made_by = f"{made_by}\0{world.setup}"

    def found(self, mode: Mode, files: str, now: datetime) -> Observed | None:
        """What a pass would say now, if the world is still at rest; None: it has to be judged.

        `files` is the digest of all that is declared, "" where there is none. Raises Unavailable or
        Denied when the records cannot be listed.
        """
        kept = self._read(mode) if files else None
        if kept is None or kept["files"] != files or not _in_time(kept, now):
            return None
        heads = self._world.records.heads()
        if _heads(heads) != kept["heads"] or not self._world.records.as_seen(heads):
            return None
        looks = [Look(Remote(url, secret), tuple(keep)) for url, secret, keep in kept["looks"]]
        if _listings(self._world.git.look(looks)) != kept["listings"]:
            return None
        troubles = (Trouble(**{**row, "names": tuple(row["names"])}) for row in kept["troubles"])
        warnings = tuple(kept["warnings"])
        return Observed(now, policies=(), warnings=warnings, remembered=tuple(troubles))

    def keep(self, mode: Mode, files: str, observed: Observed) -> None:
        """Remember the pass, if the next one may say the same.

        What failed may have failed for want of time or memory, and is tried again.
        """
        rest = observed.rest
        if not files or rest is None or not _of_all(mode):
            return
        troubles = observed.troubles
        if any(it.failed for it in troubles):
            return
        content = {
            "files": files,
            "at": observed.now.isoformat(),
            "until": rest.until.isoformat() if rest.until is not None else None,
            "heads": _heads(rest.heads),
            "looks": [(it.remote.url, it.remote.secret, it.keep) for it in rest.looks],
            "listings": _listings(rest.listings),
            "warnings": observed.warnings,
            "troubles": [_row(trouble) for trouble in troubles],
        }
        write_kept(self._path(mode), json.dumps(content).encode(), self._made_by)

    def _read(self, mode: Mode) -> dict[str, Any] | None:
        content = read_kept(self._path(mode), self._made_by) if _of_all(mode) else None
        found: dict[str, Any] | None = json.loads(content) if content else None
        return found

    def _path(self, mode: Mode) -> Path:
        ways = [word for word, on in (("publish", mode.publish), ("sweep", mode.sweep)) if on]
        return self._directory / f"{'-'.join(ways) or 'drafts'}.json"


def _of_all(mode: Mode) -> bool:
    """Is it a pass over everybody, as cron starts it?"""
    return mode.only is None and mode.whom is None and not mode.namespace and not mode.unswept


def _in_time(kept: Mapping[str, Any], now: datetime) -> bool:
    until = kept["until"]
    begun = datetime.fromisoformat(kept["at"]) <= now
    return begun and (until is None or now < datetime.fromisoformat(until))


def _row(trouble: Trouble) -> dict[str, Any]:
    return {it.name: getattr(trouble, it.name) for it in fields(trouble)}


def _heads(heads: Mapping[BookKey, str]) -> str:
    return _digest(sorted([key.namespace, key.policy, head] for key, head in heads.items()))


def _listings(listings: Mapping[str, Listing | FanoutError]) -> str:
    """The same for the same refs of the same repositories; "" where one could not be listed."""
    rows = []
    for url, listing in sorted(listings.items()):
        if isinstance(listing, FanoutError):
            return ""
        rows.append([url, _digest(sorted(listing.refs.items()))])
    return _digest(rows)


def _digest(rows: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
