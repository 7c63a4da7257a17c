"""Findings about Repositories whose forge no administrator lists."""

from collections.abc import Iterator, Sequence

from fanout.api.fanout_configuration import ForgeHost
from fanout.api.git_repository import ForgeType
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import InvalidInput
from fanout.plan.observation.repository_location import locate_repository


def find_forge_findings(declared: DeclaredObjects, hosts: Sequence[ForgeHost]) -> Iterator[Finding]:
    """Yield an error for each Repository with a forge that is not listed, or is another program."""
    listed = {host.host: host for host in hosts}
    for repository in declared.repositories:
        wanted = repository.spec.forge.type
        if wanted is ForgeType.NONE:
            continue
        where = declared.where(repository, "spec.url")
        try:
            name, _ = locate_repository(repository.spec.url)
        except InvalidInput as error:
            yield Finding(where, error.problem, error.remedy)
            continue
        host = listed.get(name)
        if host is None:
            yield Finding(
                where,
                f"the host {name} is not configured as a forge",
                "ask an administrator to add it to forges of the FanoutConfiguration, or set"
                " forge.type: none",
            )
        elif host.type.value != wanted.value:
            yield Finding(
                declared.where(repository, "spec.forge.type"),
                f"{name} is {host.type.value} in the FanoutConfiguration, not {wanted.value}",
                f"write {host.type.value}",
            )
