"""Reading of declared objects by the loop, which uses a change once it has settled."""

from collections.abc import Callable
from math import inf

from fanout.controller.log_throttling import LoopLog
from fanout.declared.declared_objects import DeclarationFailure, DeclaredObjects
from fanout.errors import FanoutError
from fanout.ports import Inventory
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value


class SettlingTime(Value):
    """Time for which what is declared must not change until it is used.

    Half of a directory that is being written may lack the very policy that restricts the
    others; and a hundred objects that are changed together are to be one round.
    """

    quiet: float  # seconds without a change
    longest: float = inf  # seconds since the first change, after which it is used anyway


class DeclarationReader:
    """Declared objects in use, and what is known of changes since. Times are by `clock`."""

    def __init__(
        self, inventory: Inventory, settling: SettlingTime, log: LoopLog, clock: Callable[[], float]
    ) -> None:
        """Use what is declared now; after an error, that nothing can be read."""
        self._inventory = inventory
        self.settling = settling
        self._log = log
        self._clock = clock
        self.declared = DeclaredObjects(unread=(DeclarationFailure("what is declared"),))
        self.declared = self._latest = self._read_inventory()
        # Of the change that is not used yet; the first notice of what is not read yet.
        self._changed_at = self._noticed_at = inf
        self._last_change_at = -inf

    def notice_change(self) -> None:
        """Take note that something has just changed. For any thread."""
        self._last_change_at = self._clock()
        self._noticed_at = min(self._noticed_at, self._last_change_at)

    def read(self) -> float:
        """Use a change that has settled; return the seconds until one may have, or infinity."""
        now = self._clock()
        noticed_at, self._noticed_at = self._noticed_at, inf
        previous, self._latest = self._latest, self._read_inventory()
        if self._latest is self.declared:
            self._changed_at = inf
            return inf
        self._changed_at = min(self._changed_at, noticed_at, now)
        if noticed_at == inf and self._latest is not previous:
            self._last_change_at = max(self._last_change_at, now)
        # Since the change and not since it was read: a round may have been running meanwhile, and
        # another one would follow at once.
        pause = self._last_change_at + self.settling.quiet - now
        if pause > 0 and now - self._changed_at < self.settling.longest:
            return pause
        self.adopt(self._latest)
        return inf

    def adopt(self, declared: DeclaredObjects) -> None:
        """Use what was read elsewhere."""
        self.declared = self._latest = declared
        self._changed_at = inf

    def _read_inventory(self) -> DeclaredObjects:
        """Return what is declared now, or what is in use after an error."""
        declared = run_isolated(self._inventory.read)
        self._log.log_internal_error("declared objects", declared)
        return self.declared if isinstance(declared, FanoutError) else declared
