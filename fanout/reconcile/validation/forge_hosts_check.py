"""Findings about Repositories whose forge no administrator lists."""

from collections.abc import Iterator, Sequence

from fanout.api.fanout_configuration import ForgeHost
from fanout.api.git_repository import ForgeType
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import InvalidInput
from fanout.plan.observation.observed_request import locate_repository
from fanout.reconcile import validation_wording as wording


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
                wording.describe_unlisted_host(name),
                wording.FORGE_REMEDY,
            )
        elif host.type.value != wanted.value:
            yield Finding(
                declared.where(repository, "spec.forge.type"),
                wording.describe_other_forge(name, host.type.value, wanted.value),
                f"write {host.type.value}",
            )
