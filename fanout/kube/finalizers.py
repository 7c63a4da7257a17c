"""Finalizers of UpstreamPolicies and of PackageVariants written by hand.

The API server keeps a deleted object until its finalizers are removed. So one is added before
anything is written for the object, and removed when nothing of it is left downstream.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from fanout.api.object_meta import API_VERSION, GROUP
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, Finding, key_of
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput
from fanout.kube.api_connection import (
    CONNECTIONS,
    MERGE_TYPE,
    RETRY_REMEDY,
    ApiConnection,
    NotServed,
)
from fanout.retries import retry_conflicts
from fanout.values import replace

FINALIZER = f"{GROUP}/removal"

_log = structlog.get_logger()
Declaration = UpstreamPolicy | PackageVariant


class RemovalFinalizers:
    """Adds and removes the finalizer of fanout; one per process."""

    def __init__(self, connection: ApiConnection) -> None:
        """Use a connection whose user may get and patch both kinds."""
        self._connection = connection
        self._added: frozenset[str] = frozenset()  # uids of objects that were given it

    def add_missing(self, declared: DeclaredObjects) -> DeclaredObjects:
        """Add the finalizer where it is missing; return the objects that have it."""
        missing = [
            it
            for it in _list_present(declared)
            if FINALIZER not in it.metadata.finalizers and it.metadata.uid not in self._added
        ]
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            outcomes = list(zip(missing, threads.map(self._add, missing), strict=True))
        errors = {key_of(it): error for it, error in outcomes if error is not None}
        added = {it.metadata.uid for it, error in outcomes if error is None}
        # What the watch has yet to bring; a uid is never used again.
        present = {it.metadata.uid for it in _list_present(declared)}
        self._added = frozenset(uid for uid in (self._added & present) | added if uid)
        if not errors:
            return declared
        problem = f"the finalizer {FINALIZER} cannot be added, so nothing is written"
        findings = (
            Finding(
                declared.where(it, "metadata.finalizers"),
                f"{problem}: {error.problem}",
                error.remedy,
            )
            for it in _list_present(declared)
            if (error := errors.get(key_of(it))) is not None
        )
        return replace(
            declared,
            policies=tuple(it for it in declared.policies if key_of(it) not in errors),
            variants=tuple(it for it in declared.variants if key_of(it) not in errors),
            left_out=tuple(sorted((*declared.left_out, *errors))),
            faults=(*declared.faults, *findings),
        )

    def remove(self, declarations: Collection[Declaration]) -> None:
        """Remove the finalizer of deleted objects; the next pass repeats what failed."""
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            for declaration, error in zip(
                declarations, threads.map(self._remove, declarations), strict=True
            ):
                subject = f"{declaration.metadata.namespace}/{declaration.metadata.name}"
                if error is None:
                    _log.info("Deletion completed", kind=declaration.kind, object=subject)
                else:
                    _log.warning(
                        "Finalizer not removed",
                        kind=declaration.kind,
                        object=subject,
                        problem=str(error),
                    )

    def _add(self, declaration: Declaration) -> FanoutError | None:
        """Add the finalizer. Return why it cannot be added; raises Unavailable."""

        def add() -> None:
            meta = self._read_meta(declaration)
            if meta is None or meta.get("deletionTimestamp"):
                problem = "it was deleted meanwhile"
                raise InvalidInput(problem, reason="NotFound", remedy=RETRY_REMEDY)
            finalizers = meta.get("finalizers", [])
            if FINALIZER not in finalizers:
                self._write(declaration, meta, [*finalizers, FINALIZER])

        try:
            retry_conflicts(add)
        except (Denied, InvalidInput, Conflict) as error:
            return error
        return None

    def _remove(self, declaration: Declaration) -> FanoutError | None:

        def remove() -> None:
            meta = self._read_meta(declaration)
            if meta is not None and FINALIZER in meta.get("finalizers", ()):
                others = [it for it in meta["finalizers"] if it != FINALIZER]
                self._write(declaration, meta, others)

        try:
            retry_conflicts(remove)
        except FanoutError as error:
            return error
        return None

    def _read_meta(self, declaration: Declaration) -> Mapping[str, Any] | None:
        """Return the present metadata; None if the object is gone, or another one has its name."""
        try:
            meta: Mapping[str, Any] = self._connection.get(_path_of(declaration))["metadata"]
        except NotServed:
            return None
        return meta if meta["uid"] == declaration.metadata.uid else None

    def _write(
        self, declaration: Declaration, meta: Mapping[str, Any], finalizers: Sequence[str]
    ) -> None:
        """Replace the finalizers. Raises Conflict if the object has changed since `meta`."""
        # Others add and remove theirs; an older list would undo that.
        version = meta["resourceVersion"]
        change = {"metadata": {"resourceVersion": version, "finalizers": finalizers}}
        self._connection.send("PATCH", _path_of(declaration), change, MERGE_TYPE)


def _list_present(declared: DeclaredObjects) -> Iterator[Declaration]:
    """Yield the policies and variants that nobody has deleted."""
    yield from (it for it in declared.policies if not it.is_being_deleted)
    yield from (it for it in declared.variants if not it.is_being_deleted)


def _path_of(declaration: Declaration) -> str:
    meta = declaration.metadata
    return f"/apis/{API_VERSION}/namespaces/{meta.namespace}/{declaration.PLURAL}/{meta.name}"
