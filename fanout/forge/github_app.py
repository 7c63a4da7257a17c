"""Credentials of a GitHub App: assertions signed with its key, and tokens of its installations.

An App is installed once on each owner of repositories. Each installation has limits of its own and
tokens that end after an hour. With a new token GitHub answers no conditional read with 304, so a
token is used until five minutes before its end, by the API and by Git.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from fanout.errors import Denied, FanoutError, Unavailable
from fanout.forge.answer_fields import AnswerObject, MalformedAnswer
from fanout.forge.forge_call import ForgeCall, ForgeResponse
from fanout.forge.forge_http import ForgeHttp, HostAccess, TokenRefused
from fanout.message_commands import DISTRIBUTION
from fanout.plan.observation.observed_request import RepositoryName
from fanout.plan.pull_requests.call_limits import CallKind
from fanout.ports import TOKEN_USER, Credentials
from fanout.telemetry.redaction import Redactor

Result = TypeVar("Result")

EXTRA = "github-app"
_ISSUED_BEFORE = timedelta(seconds=60)  # GitHub's advice, for clocks that differ
_LIFETIME = timedelta(seconds=540)  # from now; GitHub refuses 600 of a clock that is ahead
_REUSED_SECONDS = 240.0
_TOLERANCE = timedelta(seconds=30)  # of the clock, well within `_ISSUED_BEFORE`
_RENEWED_BEFORE = 300.0  # seconds before the end of a token
_FAILURE_SECONDS = 30.0  # for which a refusal to make a token is the answer to all calls
_MAX_LOOKUPS = 3  # repositories that are asked for their installation at a time


class AppAssertions:
    """Source of the headers by which an App proves who it is. Thread-safe.

    The secret is read for each assertion, so a rotated key is used without a restart.
    """

    def __init__(
        self,
        name: str,
        read_secret: Callable[[], Credentials],
        redactor: Redactor,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Use the secret `name`, which `read_secret` returns. Raises Denied."""
        self.secret_name = name
        self._read_secret = read_secret
        self._redactor = redactor
        self._clock = clock
        self._lock = Lock()
        self._offset = timedelta()
        self._made_at = 0.0
        self._assertion = ""
        self._secret = self._check(read_secret())
        self.issuer = self._secret.github_app_id

    @property
    def identity(self) -> str:
        """Return the App's id."""
        return f"app {self.issuer}"

    def authorization(self) -> str:
        """Return the header, of an assertion that was made a few minutes ago or is made now."""
        with self._lock:
            if not self._assertion or self._clock() - self._made_at > _REUSED_SECONDS:
                self._make()
            return f"Bearer {self._assertion}"

    def renew(self, refused: str, clock_offset: timedelta) -> bool:
        """Return whether the clock or the key was the problem, and is another one now."""
        with self._lock:
            if refused != f"Bearer {self._assertion}":
                return True
            offset, secret = self._offset, self._secret
            if abs(clock_offset - offset) > _TOLERANCE:
                self._offset = clock_offset
            self._make()
            return (self._offset, self._secret) != (offset, secret)

    def _make(self) -> None:
        self._secret = self._check(self._read_secret())
        if self._secret.github_app_id != self.issuer:
            raise _unusable(
                self.secret_name, "has another githubAppID than before", "start fanout again"
            )
        now = datetime.now(UTC) + self._offset
        claims = {"iat": now - _ISSUED_BEFORE, "exp": now + _LIFETIME, "iss": self.issuer}
        assertion = sign_claims(claims, self._secret.github_app_private_key, self.secret_name)
        if self._assertion:
            self._redactor.forget(self._assertion)
        self._redactor.register(assertion)
        self._assertion, self._made_at = assertion, self._clock()

    def _check(self, secret: Credentials) -> Credentials:
        if not secret.github_app_private_key:
            raise _unusable(
                self.secret_name, "has no githubAppPrivateKey", "store the App's key in it"
            )
        issuer = secret.github_app_id
        if not issuer:
            raise _unusable(self.secret_name, "has no githubAppID", "store the App's id in it")
        if not (issuer.isascii() and issuer.replace(".", "").isalnum()):
            remedy = "store the number of the App, or its client ID"
            raise _unusable(self.secret_name, "has a githubAppID that is none", remedy)
        return secret


class InstallationTokens:
    """Source of the tokens of an App's installation on one owner. Thread-safe."""

    def __init__(
        self,
        client: ForgeHttp,
        assertions: AppAssertions,
        title: str,
        redactor: Redactor,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Make no token yet. `title`: the owner with the host, `github.com/acme`."""
        self._client = client
        self._assertions = assertions
        self._title = title
        self._redactor = redactor
        self._clock = clock
        self._lock = Lock()
        # Any of them leads to the installation that reaches it; the next one to ask is the first.
        # With a lock of their own, which nobody holds during a call.
        self._repositories: dict[RepositoryName, None] = {}
        self._repositories_lock = Lock()
        self._installation = 0
        self._token, self._renewed_from = "", 0.0
        self._failure: Denied | None = None
        self._failed_at = 0.0

    @property
    def identity(self) -> str:
        """Return App and owner: an owner has one installation of an App."""
        return f"{self._assertions.identity} on {self._title.casefold()}"

    def add_repository(self, repository: RepositoryName) -> None:
        """Add a repository by which the installation can be found."""
        with self._repositories_lock:
            self._repositories.setdefault(repository)

    def authorization(self) -> str:
        """Return the header with a token of the installation."""
        return f"Bearer {self.token()}"

    def token(self) -> str:
        """Return a token that lasts for five minutes at least, made now if there is none.

        Raises Denied, InvalidInput, RateLimited, Unavailable.
        """
        with self._lock:
            now = self._clock()
            if self._token and now < self._renewed_from:
                return self._token
            failure = self._failure
            if failure is not None and now < self._failed_at + _FAILURE_SECONDS:
                raise Denied(failure.problem, reason=failure.reason, remedy=failure.remedy)
            try:
                token, seconds = self._mint()
            except Denied as error:
                self._failure, self._failed_at = error, now
                raise
            if self._token:
                self._redactor.forget(self._token, TOKEN_USER)
            self._redactor.register(token, TOKEN_USER)
            self._token, self._renewed_from = token, self._clock() + seconds - _RENEWED_BEFORE
            return token

    def renew(self, refused: str, clock_offset: timedelta) -> bool:  # noqa: ARG002 as declared
        """Make another token with the next call: this one was revoked, or ended early."""
        with self._lock:
            if refused == f"Bearer {self._token}":
                self._renewed_from = 0.0
            return True

    def _mint(self) -> tuple[str, float]:
        """Return a new token and for how many seconds it lasts."""
        try:
            if self._installation:
                minted = self._ask_for_token()
                if minted is not None:
                    return minted
            # Removed, and perhaps installed anew with another id.
            self._installation = self._find_installation()
            minted = self._ask_for_token()
        except TokenRefused as error:
            remedy = "correct githubAppID and githubAppPrivateKey of the secret"
            raise self._denied(
                ": ".join(("is not accepted (401)", *error.words)),
                f"{remedy} {self._assertions.secret_name}",
            ) from None
        if minted is None:
            self._installation = 0
            raise self._denied("was removed (404)", "install it again")
        return minted

    def _find_installation(self) -> int:
        """Return the id of the installation that reaches one of the repositories."""
        with self._repositories_lock:
            names = list(self._repositories)[:_MAX_LOOKUPS]
        for name in names:
            path = ("repos", name.owner, name.name, "installation")
            response = self._client.send(ForgeCall("GET", path, expected=frozenset({404})))
            if response.status != 404:
                return self._read(response, lambda answer: answer.number("id"))
            # The others first, next time: this one may be the only one that is not selected.
            with self._repositories_lock:
                self._repositories[name] = self._repositories.pop(name)
        sought = " or ".join(map(str, names))
        raise self._denied(
            f"is not installed on {sought} (404)",
            "install it on the owner, with access to the repository",
        )

    def _ask_for_token(self) -> tuple[str, float] | None:
        """Return token and seconds; None if there is no installation with this id any more."""
        path = ("app", "installations", str(self._installation), "access_tokens")
        call = ForgeCall(
            "POST", path, body={}, kind=CallKind.WRITE, expected=frozenset({403, 404, 422})
        )
        response = self._client.send(call)
        if response.status == 404:
            return None
        if response.status in (403, 422):
            words = response.data.get("message") if isinstance(response.data, Mapping) else None
            suffix = f": {self._client.quote(words)}" if isinstance(words, str) else ""
            raise self._denied(
                f"gets no token ({response.status}){suffix}",
                "check the installation in the settings of the owner",
            )

        def read(answer: AnswerObject) -> tuple[str, float]:
            token, now = answer.text("token"), response.instant or datetime.now(UTC)
            if not (token.isascii() and token.isprintable() and token):
                raise MalformedAnswer("token has characters that no header has")
            return token, (answer.instant("expires_at") - now).total_seconds()

        return self._read(response, read)

    def _read(self, response: ForgeResponse, read: Callable[[AnswerObject], Result]) -> Result:
        try:
            return read(AnswerObject(response.data))
        except MalformedAnswer as error:
            raise Unavailable(
                f"{self._title} gave no usable answer about the installation of GitHub App"
                f" {self._assertions.issuer}: {error}",
                reason="ForgeUnavailable",
            ) from None

    def _denied(self, problem: str, remedy: str) -> Denied:
        return Denied(
            f"{self._title}: GitHub App {self._assertions.issuer} {problem}",
            reason="ForgeDenied",
            remedy=remedy,
        )


class AppInstallations:
    """An App on one host, with its installations. Callers take turns."""

    def __init__(self, client: ForgeHttp, assertions: AppAssertions, redactor: Redactor) -> None:
        """Know no installation yet; calls of `client` have the assertions."""
        self.client = client
        self._assertions = assertions
        self._redactor = redactor
        self._installations: dict[str, InstallationTokens] = {}

    @property
    def access(self) -> HostAccess:
        """Return the address of the host, and the App's secret."""
        return self.client.access

    def tokens_of(self, repository: RepositoryName) -> InstallationTokens:
        """Return the tokens for all repositories of an owner."""
        tokens = self._installations.get(repository.owner.casefold())
        if tokens is None:
            title = f"{self.access.host}/{repository.owner}"
            tokens = InstallationTokens(self.client, self._assertions, title, self._redactor)
            self._installations[repository.owner.casefold()] = tokens
        tokens.add_repository(repository)
        return tokens


def sign_claims(claims: Mapping[str, Any], private_key: str, secret_name: str) -> str:
    """Return claims signed with a key of an App (RFC 7519, RS256). Raises Denied."""
    try:
        import jwt  # noqa: PLC0415

        return jwt.encode(dict(claims), private_key, algorithm="RS256")
    except (ModuleNotFoundError, NotImplementedError):  # the second without cryptography
        raise _unusable(
            secret_name,
            "is a GitHub App, and the library PyJWT is not installed",
            f"install the extra: pip install '{DISTRIBUTION}[{EXTRA}]'",
        ) from None
    # Errors of two libraries, of many types; some show parts of the key.
    except Exception:  # noqa: BLE001
        raise _unusable(
            secret_name,
            "has a githubAppPrivateKey that is no RSA private key in PEM",
            "store the file that GitHub made for the App",
        ) from None


def _unusable(secret_name: str, problem: str, remedy: str) -> FanoutError:
    return Denied(f"secret {secret_name!r} {problem}", reason="SecretUnusable", remedy=remedy)
