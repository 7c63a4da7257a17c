"""Finalizers of UpstreamPolicies and of PackageVariants written by hand.

The API server keeps a deleted object until its finalizers are removed. So one is added before
anything is written for the object, and removed when nothing of it is left downstream.
"""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from fanout.api.object_meta import API_VERSION, GROUP
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, key_of
from fanout.declared.finding import Finding
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
        present = [it for it in declared.declarations if not it.is_being_deleted]
        missing = [
            it
            for it in present
            if FINALIZER not in it.metadata.finalizers and it.metadata.uid not in self._added
        ]
        outcomes = self._change(missing, is_added=True)
        errors = {key_of(it): error for it, error in outcomes if error is not None}
        added = {it.metadata.uid for it, error in outcomes if error is None}
        # What the watch has yet to bring; a uid is never used again.
        uids = {it.metadata.uid for it in present}
        self._added = frozenset(uid for uid in (self._added & uids) | added if uid)
        if not errors:
            return declared
        problem = f"the finalizer {FINALIZER} cannot be added, so nothing is written"
        findings = (
            Finding(
                declared.where(it, "metadata.finalizers"),
                f"{problem}: {error.problem}",
                error.remedy,
            )
            for it in present
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
        for declaration, error in self._change(declarations, is_added=False):
            subject = f"{declaration.metadata.namespace}/{declaration.metadata.name}"
            log = _log.bind(kind=declaration.kind, object=subject)
            if error is None:
                log.info("Deletion completed")
            else:
                log.warning("Finalizer not removed", problem=str(error))

    def _change(
        self, declarations: Collection[Declaration], *, is_added: bool
    ) -> list[tuple[Declaration, FanoutError | None]]:
        """Add or remove the finalizer of all of them; return each with the error, if any.

        Raises Unavailable if it is to be added.
        """

        def change(declaration: Declaration) -> FanoutError | None:
            try:
                retry_conflicts(partial(self._write, declaration, is_added=is_added))
            except FanoutError as error:
                if is_added and not isinstance(error, (Denied, InvalidInput, Conflict)):
                    raise
                return error
            return None

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            return list(zip(declarations, threads.map(change, declarations), strict=True))

    def _write(self, declaration: Declaration, *, is_added: bool) -> None:
        """Add or remove the finalizer. Raises Conflict if the object changes meanwhile."""
        named = declaration.metadata
        path = f"/apis/{API_VERSION}/namespaces/{named.namespace}/{declaration.PLURAL}/{named.name}"
        try:
            meta = self._connection.get(path)["metadata"]
        except NotServed:
            meta = {"uid": ""}
        is_present = meta["uid"] == named.uid  # else it is gone, or another object has its name
        if is_added and (not is_present or meta.get("deletionTimestamp")):
            raise InvalidInput("it was deleted meanwhile", reason="NotFound", remedy=RETRY_REMEDY)
        finalizers = meta.get("finalizers", [])
        if not is_present or (FINALIZER in finalizers) == is_added:
            return
        others = [it for it in finalizers if it != FINALIZER]
        # Others add and remove theirs; an older list would undo that.
        version = meta["resourceVersion"]
        changed = [*others, FINALIZER] if is_added else others
        change = {"metadata": {"resourceVersion": version, "finalizers": changed}}
        self._connection.send("PATCH", path, change, MERGE_TYPE)
