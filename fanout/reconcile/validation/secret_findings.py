"""Warnings about secrets that are named and cannot be read on this machine."""

from collections.abc import Callable, Iterator
from functools import partial

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import Denied, ErrorLocation
from fanout.ports import Credentials, Secrets


def find_missing_secrets(declared: DeclaredObjects, secrets: Secrets) -> Iterator[Finding]:
    """Yield a warning for each `secretRef` of a Repository whose secret cannot be read.

    A warning, because the machine that validates files is often not the one that has the
    secrets.
    """
    for repository in declared.repositories:
        if repository.spec.secret_ref is not None:
            where = declared.where(repository, "spec.secretRef.name")
            find_secret = partial(secrets.get, repository.metadata.namespace)
            yield from _find_problem(where, repository.spec.secret_ref.name, find_secret)


def find_configured_secrets(
    configuration: FanoutConfiguration,
    locate: Callable[[str], ErrorLocation],
    secrets: Secrets,
) -> Iterator[Finding]:
    """Yield a warning for each secret of a configuration that cannot be used.

    `locate` returns the location of a field of the configuration.
    """
    find_secret = partial(secrets.get, "")
    if configuration.records.secret_ref is not None:
        name = configuration.records.secret_ref.name
        yield from _find_problem(locate("records.secretRef.name"), name, find_secret)
    for index, host in enumerate(configuration.forges):
        name = f"forges[{index}].secretRef.name"
        yield from _find_problem(locate(name), host.secret_ref.name, find_secret)
        if host.webhook_secret_ref is not None:
            where = locate(f"forges[{index}].webhookSecretRef.name")
            yield from _find_problem(where, host.webhook_secret_ref.name, find_secret, signs=True)
    for index, secret in enumerate(configuration.check_secrets):
        yield from _find_problem(locate(f"checkSecrets[{index}].name"), secret.name, find_secret)
    for index, target in enumerate(configuration.notifications):
        where = locate(f"notifications[{index}].secretRef.name")
        yield from _find_problem(where, target.secret_ref.name, find_secret, signs=True)


def _find_problem(
    where: ErrorLocation,
    name: str,
    find_secret: Callable[[str], Credentials],
    *,
    signs: bool = False,
) -> Iterator[Finding]:
    """Yield a warning if the secret cannot be read, or has no text for signatures it is used in."""
    try:
        credentials = find_secret(name)
    except Denied as error:
        yield Finding(where, error.problem, error.remedy, "warning")
        return
    if signs and not credentials.password:
        problem = f"secret {name!r} has no text to sign with"
        yield Finding(where, problem, "write a token to it, not an SSH key", "warning")
