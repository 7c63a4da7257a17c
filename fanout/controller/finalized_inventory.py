"""Declared objects of a cluster, each with the finalizer before anything is written for it."""

from collections.abc import Collection, Mapping
from math import inf
from time import monotonic

from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.object_key import ObjectKey
from fanout.ports import FinalizerWriter, Inventory

RETRY_AFTER = 30.0  # seconds until objects without the finalizer are tried again


class FinalizedInventory:
    """Inventory whose objects have the finalizer before anything is planned for them.

    The same value is returned while the API server shows the same objects.
    """

    def __init__(self, inventory: Inventory, finalizers: FinalizerWriter) -> None:
        """Read from another inventory."""
        self._inventory = inventory
        self._finalizers = finalizers
        self._shown: DeclaredObjects | None = None  # what the other inventory read last
        self._finalized = DeclaredObjects()
        self._retry_at = inf  # by the monotonic clock

    def read(self) -> DeclaredObjects:
        """Return what is declared and has the finalizer. Raises what the other inventory raises."""
        shown = self._inventory.read()
        if shown is not self._shown or monotonic() >= self._retry_at:
            self._finalized = self._finalizers.add_missing(shown)
            self._shown = shown
            self._retry_at = inf if self._finalized is shown else monotonic() + RETRY_AFTER
        return self._finalized

    def require(self, injected: Mapping[ObjectKey, Collection[tuple[str, str]]]) -> bool:
        """Read these kinds too, which packages inject; return whether the next reading differs."""
        return self._inventory.require(injected)

    def digest(self) -> str:
        """Return "": nothing tells without a listing whether anything changed."""
        return ""

    def last_digest(self) -> str:
        """Return "", as `digest` does."""
        return ""
