"""Clients of the hosts that a FanoutConfiguration lists, by the URLs of Repositories.

There is one client for each account of a host, so one governor counts all calls of the account.
This module loads httpx2: it is imported where hosts are configured, and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from fanout.api.fanout_configuration import ForgeHost, ForgeProgram
from fanout.errors import InvalidInput
from fanout.forge.forge_http import ForgeHttp, HostAccess, HttpLimits
from fanout.forge.gitea import GiteaForge
from fanout.plan.observation.observed_request import RepositoryName, locate_repository
from fanout.plan.pull_requests.call_limits import HostLimits, limits_of_host
from fanout.ports import Credentials, Forge
from fanout.telemetry.metrics import EventCounters
from fanout.values import replace


class ForgeHosts:
    """Forges by repository URL, made when they are first asked for. Thread-safe."""

    def __init__(
        self,
        hosts: Sequence[ForgeHost],
        secrets: Callable[[str], Credentials],
        events: EventCounters | None = None,
        patience: float | None = None,
    ) -> None:
        """Create an empty set; `secrets` returns a secret by name, or raises Denied.

        Calls are counted in `events`. `patience`: seconds for one call, and for the limits that
        would let it be made later; None: as long as it may take.
        """
        self._patience = patience
        self._http_limits = HttpLimits() if patience is None else HttpLimits(patience=patience)
        self._events = events
        self._hosts = {host.host: host for host in hosts}
        self._secrets = secrets
        self._clients: dict[str, ForgeHttp] = {}
        self._lock = Lock()

    def forge_of(self, url: str) -> tuple[Forge, RepositoryName]:
        """Return the forge of a repository, and its name there. Raises InvalidInput, Denied."""
        name, repository = locate_repository(url)
        host = self._hosts.get(name)
        if host is None:
            raise InvalidInput(
                f"the host {name} is not configured as a forge",
                reason="InvalidObject",
                remedy="have an administrator list it in forges of the FanoutConfiguration",
            )
        if host.type is not ForgeProgram.GITEA:
            raise InvalidInput(f"{host.type} is not supported yet", reason="InvalidObject")
        with self._lock:  # a second client would have limits of its own
            if name not in self._clients:
                access = HostAccess(
                    host=host.host,
                    api=host.api or f"https://{host.host}/api/v1",
                    secret=self._secrets(host.secret_ref.name),
                    secret_name=host.secret_ref.name,
                    certificate_authority=host.certificate_authority or "",
                )
                limits = limits_of_host(host)
                if self._patience is not None:
                    limits = replace(limits, patience=min(limits.patience, self._patience))
                self._clients[name] = ForgeHttp(access, limits, self._http_limits, self._events)
            return GiteaForge(self._clients[name]), repository

    def limits_of(self, url: str) -> HostLimits | None:
        """Return the limits of a repository's host; None if the host is not listed."""
        try:
            name, _ = locate_repository(url)
        except InvalidInput:
            return None
        host = self._hosts.get(name)
        return None if host is None else HostLimits(name, limits_of_host(host))

    def remaining_calls(self) -> Mapping[tuple[str, str], int]:
        """Return how many more calls each host that was called takes now, by host and limit."""
        with self._lock:
            clients = dict(self._clients)
        return {
            (host, limit): number
            for host, client in clients.items()
            for limit, number in client.remaining_calls().items()
        }

    def close(self) -> None:
        """End the connections to all hosts."""
        for client in self._clients.values():
            client.close()
