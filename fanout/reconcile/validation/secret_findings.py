"""Warnings about secrets that are declared and cannot be read on this machine."""

from collections.abc import Callable, Iterator

from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.manifest_documents import FileFinding
from fanout.errors import Denied
from fanout.ports import Credentials


def find_missing_secrets(
    declared: DeclaredObjects, secrets: Callable[[str], Credentials]
) -> Iterator[FileFinding]:
    """Yield a warning for each `secretRef` of a Repository whose secret cannot be read.

    A warning, because the machine that validates files is often not the one that has the
    secrets. `secrets` returns a secret by name and raises Denied if that is not possible.
    """
    for repository in declared.repositories:
        if repository.spec.secret_ref is None:
            continue
        try:
            secrets(repository.spec.secret_ref.name)
        except Denied as error:
            where = declared.where(repository, "spec.secretRef.name")
            yield FileFinding(where, error.problem, error.remedy, "warning")
