"""Commits at which this state directory last saw the branches of the records.

A branch of records only grows. One that does not descend from where it was has been put back: by a
restored copy, or by somebody who wants a suspension forgotten. Who deletes the state directory
loses this and no more; publications name records too (`fanout.reconcile.rewound`).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from fanout.keeping.files import read_kept, write_kept
from fanout.values import frozen

_FORMAT = "heads of records, 1"


@frozen
class LastHead:
    """Where a branch was, and the last decision on it to accept records that were put back."""

    head: str = ""
    accepted: str = ""


class LastHeads:
    """The last heads of one records repository, by full ref name; kept in one file."""

    def __init__(self, directory: Path | None, url: str) -> None:
        """`directory` may be deleted at any time; None remembers for this process alone."""
        name = f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"
        self._path = directory / name if directory is not None else None
        self._known = self._read()

    def of(self, ref: str) -> LastHead:
        """Return what was last seen of the branch."""
        return self._known.get(ref, LastHead())

    def agrees(self, heads: Mapping[str, str], prefix: str) -> bool:
        """Return whether all branches below `prefix` are where they were seen last."""
        seen = {ref: it.head for ref, it in self._known.items() if ref.startswith(prefix)}
        return all(heads.get(ref, "") == head for ref, head in seen.items())

    def note(self, seen: Mapping[str, LastHead]) -> None:
        """Remember branches; nothing is written when nothing changed."""
        before = self._known
        new = {ref: head for ref, head in seen.items() if before.get(ref) != head}
        if not new:
            return
        self._known = {**before, **new}
        if self._path is None:
            return
        stored = self._read()
        # Where another process has seen more meanwhile, what it saw stands.
        mine = {ref: it for ref, it in new.items() if stored.get(ref) in (None, before.get(ref))}
        rows = {ref: [it.head, it.accepted] for ref, it in sorted({**stored, **mine}.items())}
        write_kept(self._path, json.dumps(rows).encode(), _FORMAT)

    def _read(self) -> dict[str, LastHead]:
        content = read_kept(self._path, _FORMAT) if self._path is not None else None
        rows = json.loads(content) if content else {}
        return {ref: LastHead(head, accepted) for ref, (head, accepted) in rows.items()}
