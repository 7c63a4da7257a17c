"""Warnings about secrets that are named and cannot be read on this machine."""

from collections.abc import Callable, Iterator

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.manifest_documents import FileFinding
from fanout.errors import Denied, ErrorLocation
from fanout.ports import Credentials
from fanout.reconcile import validation_wording as wording


def find_missing_secrets(
    declared: DeclaredObjects, secrets: Callable[[str], Credentials]
) -> Iterator[FileFinding]:
    """Yield a warning for each `secretRef` of a Repository whose secret cannot be read.

    A warning, because the machine that validates files is often not the one that has the
    secrets. `secrets` returns a secret by name and raises Denied if that is not possible.
    """
    for repository in declared.repositories:
        if repository.spec.secret_ref is not None:
            where = declared.where(repository, "spec.secretRef.name")
            yield from _find_problem(where, repository.spec.secret_ref.name, secrets)


def find_configured_secrets(
    configuration: FanoutConfiguration,
    locate: Callable[[str], ErrorLocation],
    secrets: Callable[[str], Credentials],
) -> Iterator[FileFinding]:
    """Yield a warning for each secret of forges, checks and notifications that cannot be used.

    `locate` returns the location of a field of the configuration.
    """
    for index, host in enumerate(configuration.forges):
        name = f"forges[{index}].secretRef.name"
        yield from _find_problem(locate(name), host.secret_ref.name, secrets)
        if host.webhook_secret_ref is not None:
            where = locate(f"forges[{index}].webhookSecretRef.name")
            yield from _find_problem(where, host.webhook_secret_ref.name, secrets, signs=True)
    for index, secret in enumerate(configuration.check_secrets):
        yield from _find_problem(locate(f"checkSecrets[{index}].name"), secret.name, secrets)
    for index, target in enumerate(configuration.notifications):
        where = locate(f"notifications[{index}].secretRef.name")
        yield from _find_problem(where, target.secret_ref.name, secrets, signs=True)


def _find_problem(
    where: ErrorLocation, name: str, secrets: Callable[[str], Credentials], *, signs: bool = False
) -> Iterator[FileFinding]:
    """Yield a warning if the secret cannot be read, or has no text for signatures it is used in."""
    try:
        credentials = secrets(name)
    except Denied as error:
        yield FileFinding(where, error.problem, error.remedy, "warning")
        return
    if signs and not credentials.password:
        problem = wording.describe_signing_secret(name)
        yield FileFinding(where, problem, wording.SIGNATURE_REMEDY, "warning")
