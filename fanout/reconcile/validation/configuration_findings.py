"""Findings of `fanout validate` that need the FanoutConfiguration, or its secrets.

Repositories whose forge no administrator lists, checks of namespaces that are not opened to checks,
notifications of policies that are not declared, and secrets that cannot be read on this machine.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from fanout.api.fanout_configuration import FanoutConfiguration, ForgeHost
from fanout.api.field_errors import suggest_name
from fanout.api.git_repository import ForgeType
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import Denied, ErrorLocation, InvalidInput
from fanout.plan import plan_wording
from fanout.plan.observation.observed_request import locate_repository
from fanout.ports import Credentials, Secrets


def find_forge_findings(declared: DeclaredObjects, hosts: Sequence[ForgeHost]) -> Iterator[Finding]:
    """Yield an error for each Repository with a forge that is not listed, or is another program."""
    listed = {host.host: host for host in hosts}
    for repository in declared.repositories:
        if (wanted := repository.spec.forge.type) is ForgeType.NONE:
            continue
        where = declared.where(repository, "spec.url")
        try:
            name, _ = locate_repository(repository.spec.url)
        except InvalidInput as error:
            yield Finding(where, error.problem, error.remedy)
            continue
        if (host := listed.get(name)) is None:
            yield Finding(
                where,
                f"the host {name} is not configured as a forge",
                "ask an administrator to add it to forges of the FanoutConfiguration, or set"
                " forge.type: none",
            )
        elif host.type.value != wanted.value:
            problem = f"{name} is {host.type.value} in the FanoutConfiguration, not {wanted.value}"
            where = declared.where(repository, "spec.forge.type")
            yield Finding(where, problem, f"write {host.type.value}")


def find_closed_namespaces(
    declared: DeclaredObjects, readable_namespaces: Collection[str]
) -> Iterator[Finding]:
    """Yield a warning for each check whose object is in a namespace that it may not read."""
    for policy in declared.policies:
        own_namespace = policy.metadata.namespace
        for field, check in (
            (f"spec.stages[{index}].{section}[{number}]", check)
            for index, stage in enumerate(policy.spec.stages)
            for section, own in (("requires", stage.requires), ("verification", stage.verification))
            for number, check in enumerate(own)
        ):
            namespace = check.object.namespace if check.object is not None else None
            if namespace and namespace not in (own_namespace, *readable_namespaces):
                where = declared.where(policy, f"{field}.object.namespace")
                problem = plan_wording.describe_unreadable_namespace(namespace, own_namespace)
                yield Finding(where, problem, "", "warning")


def find_unknown_policies(
    configuration: FanoutConfiguration,
    locate: Callable[[str], ErrorLocation],
    declared: DeclaredObjects,
) -> Iterator[Finding]:
    """Yield a warning for each policy of a notification that the files do not declare.

    Yields nothing while a file cannot be read, because it may declare the policy.
    """
    identities = [it.metadata for it in declared.declarations]
    titles = [title for it in identities for title in (it.name, f"{it.namespace}/{it.name}")]
    if declared.unread:
        return
    for index, target in enumerate(configuration.notifications):
        for position, title in enumerate(target.policies):
            if title not in titles:
                where = locate(f"notifications[{index}].policies[{position}]")
                problem = f"there is no UpstreamPolicy or PackageVariant {title}"
                remedy = suggest_name(title, titles, "correct it, or give its files to -f too")
                yield Finding(where, problem, remedy, "warning")


def find_missing_secrets(declared: DeclaredObjects, secrets: Secrets) -> Iterator[Finding]:
    """Yield a warning for each `secretRef` of a Repository whose secret cannot be read.

    A warning, because the machine that validates files is often not the one that has the
    secrets.
    """
    for repository in declared.repositories:
        if repository.spec.secret_ref is not None:
            where = declared.where(repository, "spec.secretRef.name")
            namespace, name = repository.metadata.namespace, repository.spec.secret_ref.name
            yield from _find_problem(where, name, partial(secrets.get, namespace))


def find_configured_secrets(
    configuration: FanoutConfiguration, locate: Callable[[str], ErrorLocation], secrets: Secrets
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
