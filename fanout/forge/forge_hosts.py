"""Clients of the hosts that a FanoutConfiguration lists, by the URLs of Repositories.

There is one client for each account of a host, so one governor counts all calls of the account.
This module loads httpx2: it is imported where hosts are configured, and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from threading import Lock

from fanout.api.fanout_configuration import ForgeHost, ForgeProgram
from fanout.errors import Denied, FanoutError, InvalidInput
from fanout.forge.access_tokens import TokenSource
from fanout.forge.forge_http import ForgeHttp, HostAccess, HttpLimits
from fanout.forge.gitea import GiteaForge
from fanout.forge.github import GitHubForge
from fanout.forge.github_app import AppAssertions, AppInstallations
from fanout.plan.observation.observed_request import RepositoryName, locate_repository
from fanout.plan.pull_requests.call_limits import CallLimits, HostLimits, limits_of_host
from fanout.ports import TOKEN_USER, Credentials, Forge
from fanout.telemetry.metrics import EventCounters
from fanout.telemetry.redaction import Redactor
from fanout.values import replace

_API_VERSIONS = {
    ForgeProgram.GITHUB: "v3",
    ForgeProgram.GITLAB: "v4",
    ForgeProgram.GITEA: "v1",
}
_CLIENTS: Mapping[ForgeProgram, type[GiteaForge | GitHubForge]] = {
    ForgeProgram.GITEA: GiteaForge,
    ForgeProgram.GITHUB: GitHubForge,
}
_HEADERS = {
    ForgeProgram.GITHUB: (
        ("Accept", "application/vnd.github+json"),
        ("X-GitHub-Api-Version", "2026-03-10"),
    )
}


class ForgeHosts:
    """Forges by repository URL, made when they are first asked for. Thread-safe."""

    def __init__(
        self,
        hosts: Sequence[ForgeHost],
        secrets: Callable[[str], Credentials],
        events: EventCounters | None = None,
        patience: float | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """Create an empty set; `secrets` returns a secret by name, or raises Denied.

        Calls are counted in `events`. `patience`: seconds for one call, and for the limits that
        would let it be made later; None: as long as it may take. Tokens that are made are secrets
        of `redactor`.
        """
        self._patience = patience
        self._http_limits = HttpLimits() if patience is None else HttpLimits(patience=patience)
        self._events = events
        self._redactor = redactor or Redactor()
        self._hosts = {host.host: host for host in hosts}
        self._secrets = secrets
        # By host and owner; the owner is "" where one account serves all repositories.
        self._clients: dict[tuple[str, str], ForgeHttp] = {}
        self._apps: dict[str, AppInstallations] = {}  # by digest of host and secret
        self._apps_of_hosts: dict[str, AppInstallations] = {}
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
        client_type = _CLIENTS.get(host.type)
        if client_type is None:
            raise InvalidInput(f"{host.type} is not supported yet", reason="InvalidObject")
        return client_type(self.client_of(host, repository)), repository

    def client_of(self, host: ForgeHost, repository: RepositoryName) -> ForgeHttp:
        """Return the client for a repository of a listed host. Raises InvalidInput, Denied."""
        name, owner = host.secret_ref.name, repository.owner.casefold()
        with self._lock:  # a second client would have limits of its own
            if (host.host, "") in self._clients:
                return self._clients[host.host, ""]
            if host.host not in self._apps_of_hosts:
                secret = self._secrets(name)
                if not (secret.is_github_app and host.type is ForgeProgram.GITHUB):
                    client = self._open_client(self._access(host, secret), limits_of_host(host))
                    return self._clients.setdefault((host.host, ""), client)
                app = self._find_app(self._access(host, secret), partial(self._secrets, name))
                self._apps_of_hosts[host.host] = app
            app = self._apps_of_hosts[host.host]
            tokens = app.tokens_of(repository)
            if (host.host, owner) not in self._clients:
                access = replace(app.access, owner=repository.owner)
                client = self._open_client(access, limits_of_host(host), tokens)
                self._clients[host.host, owner] = client
            return self._clients[host.host, owner]

    def exchange_secret(
        self, url: str, name: str, read_secret: Callable[[], Credentials]
    ) -> Credentials:
        """Return credentials of Git with a token of an App, as `ForgeDirectory` specifies."""
        host_name, repository = locate_repository(url)
        host, secret = self._hosts.get(host_name), read_secret()
        if not url.startswith(("https://", "http://")):
            problem = f"secret {name!r} is a GitHub App, whose tokens are for https alone"
            remedy = "write the URL of the Repository with https://"
            raise Denied(problem, reason="SecretUnusable", remedy=remedy)
        if host is None or host.type is not ForgeProgram.GITHUB:
            # With an assertion of the App, any server could get tokens for all its installations.
            problem = f"secret {name!r} is a GitHub App, and {host_name} is no host of type github"
            remedy = "have an administrator list it in forges of the FanoutConfiguration"
            raise Denied(problem, reason="SecretUnusable", remedy=remedy)
        access = replace(self._access(host, secret), secret_name=name)
        with self._lock:
            tokens = self._find_app(access, read_secret).tokens_of(repository)
        return Credentials(
            TOKEN_USER, tokens.token(), certificate_authority=secret.certificate_authority
        )

    def limits_of(self, url: str) -> HostLimits | None:
        """Return the limits of a repository's host; None if the host is not listed."""
        try:
            name, repository = locate_repository(url)
        except InvalidInput:
            return None
        host = self._hosts.get(name)
        if host is None:
            return None
        if host.type is ForgeProgram.GITHUB:
            with suppress(FanoutError):  # for a problem with the secret, calls fail
                name = self.client_of(host, repository).access.name
        return HostLimits(name, limits_of_host(host))

    def remaining_calls(self) -> Mapping[tuple[str, str], int]:
        """Return how many more calls each host that was called takes now, by host and limit."""
        with self._lock:
            clients = list(self._clients.values())
        return {
            (client.access.name, limit): number
            for client in clients
            for limit, number in client.remaining_calls().items()
        }

    def close(self) -> None:
        """End the connections to all hosts."""
        for client in (*self._clients.values(), *(it.client for it in self._apps.values())):
            client.close()

    def _access(self, host: ForgeHost, secret: Credentials) -> HostAccess:
        return HostAccess(
            host=host.host,
            api=host.api or locate_api(host.type, host.host),
            secret=secret,
            secret_name=host.secret_ref.name,
            certificate_authority=host.certificate_authority or "",
            headers=_HEADERS.get(host.type, ()),
        )

    def _find_app(
        self, access: HostAccess, read_secret: Callable[[], Credentials]
    ) -> AppInstallations:
        """Return the App of a secret. Whoever names it needs its key to get its tokens."""
        secret = access.secret
        parts = (
            access.api,
            access.secret_name,
            secret.github_app_id,
            secret.github_app_private_key,
        )
        digest = sha256("\0".join(parts).encode()).hexdigest()
        if digest not in self._apps:
            assertions = AppAssertions(access.secret_name, read_secret, self._redactor)
            client = self._open_client(access, CallLimits(), assertions)
            self._apps[digest] = AppInstallations(client, assertions, self._redactor)
        return self._apps[digest]

    def _open_client(
        self, access: HostAccess, limits: CallLimits, tokens: TokenSource | None = None
    ) -> ForgeHttp:
        if self._patience is not None:
            limits = replace(limits, patience=min(limits.patience, self._patience))
        return ForgeHttp(access, limits, self._http_limits, self._events, tokens, self._redactor)


def locate_api(program: ForgeProgram, host: str) -> str:
    """Return the usual address of the API of a host."""
    if program is ForgeProgram.GITHUB and host == "github.com":
        return "https://api.github.com"
    return f"https://{host}/api/{_API_VERSIONS[program]}"
