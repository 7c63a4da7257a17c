"""Credentials of a GitHub App on the tests' GitHub: finding, making, renewing and losing tokens."""

import builtins
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from github_calls import Answer
from github_site import WRITES, Site

from fanout.api.fanout_configuration import ForgeHost
from fanout.cluster.file_secrets import FileSecrets
from fanout.errors import Denied, FanoutError
from fanout.forge.forge_call import ForgeCall
from fanout.forge.forge_hosts import ForgeHosts
from fanout.forge.forge_http import ForgeHttp
from fanout.git.mirror_store import MirrorStore
from fanout.plan.observation.observed_request import RepositoryName
from fanout.plan.observation.repository_state import RefListing, RefListingRequest, Remote
from fanout.ports import Credentials
from fanout.telemetry.metrics import Counters
from fanout.telemetry.redaction import REDACTED, Redactor

READ = ForgeCall("GET", ("repos", "acme", "site"))
SITE = RepositoryName("acme", "site")
Key = tuple[str, Path]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[Key]:
    """Return the text of two private keys, each with the file of its public one."""
    folder = tmp_path_factory.mktemp("keys")
    made = []
    for name in ("first", "second"):
        private, public = folder / name, folder / f"{name}.pub"
        subprocess.run(
            ["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True
        )
        command = ["openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public)]
        subprocess.run(command, check=True, capture_output=True)
        made.append((private.read_text(), public))
    return made


class AppSite:
    """An App on the tests' GitHub with the client for it, and a clock that the test sets."""

    def __init__(self, site: Site, keys: list[Key]) -> None:
        self.site, self.github = site, site.github
        self.key, public = keys[0]
        self.app = site.github.app("signed", public)
        self.installation = site.github.installation(self.app, "acme", permissions=WRITES)
        self.app_id = str(self.app.id)
        self.redactor = Redactor()
        self.entry = ForgeHost.model_validate(
            {
                "host": self.github.host,
                "type": "github",
                "api": self.github.api,
                "secretRef": {"name": "app"},
            }
        )
        self.hosts = ForgeHosts([self.entry], self.secret, redactor=self.redactor)

    def secret(self, name: str) -> Credentials:
        assert name == "app"
        return Credentials(github_app_id=self.app_id, github_app_private_key=self.key)

    def client(self, repository: RepositoryName = SITE) -> ForgeHttp:
        return self.hosts.client_of(self.entry, repository)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the host and for the tokens that are kept."""
        self.site.pass_time(seconds=seconds)
        for app in self.hosts._apps.values():
            for tokens in app._installations.values():
                tokens._renewed_from -= seconds

    def accept(self, key: Path) -> None:
        """Let the host check assertions with another public key."""
        object.__setattr__(self.app, "key", key)

    def minted(self) -> int:
        """Return how many tokens the host has made."""
        calls = self.github.calls
        return sum(it.endswith("/access_tokens 201") for it in calls)

    def tokens(self) -> list[str]:
        """Return the tokens that the host has made."""
        return [it for it in self.github.state.credentials if it.startswith(f"ghs_{self.app.id}_")]


@pytest.fixture
def place(site: Site, keys: list[Key]) -> Iterator[AppSite]:
    made = AppSite(site, keys)
    with closing(made.hosts):
        yield made


def test_a_call_has_a_token_of_the_installation_although_the_clock_is_wrong(place: AppSite):
    assert place.client().send(READ).data["full_name"] == "acme/site"
    assert place.client().send(READ).status == 200
    assert place.minted() == 1


def test_the_client_id_is_as_good_as_the_number(place: AppSite):
    place.app_id = place.app.client_id
    assert place.client().send(READ).status == 200


def test_a_token_is_used_until_five_minutes_before_its_end(place: AppSite):
    place.client().send(READ)
    place.pass_time(54 * 60)
    place.client().send(READ)
    assert place.minted() == 1
    place.pass_time(90)
    place.client().send(READ)
    assert place.minted() == 2


def test_a_token_that_ended_early_is_renewed_within_the_call(place: AppSite):
    place.client().send(READ)
    [token] = place.tokens()
    del place.github.state.credentials[token]
    assert place.client().send(READ).status == 200
    assert place.minted() == 2


def test_an_installation_that_was_removed_and_made_again_is_found(place: AppSite):
    place.client().send(READ)
    place.github.uninstall(place.installation)
    place.github.installation(place.app, "acme", permissions=WRITES)
    assert place.client().send(READ).status == 200


def test_a_rotated_key_is_used_without_a_restart(place: AppSite, keys: list[Key]):
    place.client().send(READ)
    place.key = keys[1][0]
    place.accept(keys[1][1])
    place.pass_time(3600)
    assert place.client().send(READ).status == 200


def test_each_owner_has_a_client_and_tokens_of_its_own(place: AppSite):
    place.github.repository("other/site")
    place.github.installation(place.app, "other", permissions=WRITES)
    other = place.client(RepositoryName("other", "site"))
    other.send(ForgeCall("GET", ("repos", "other", "site")))
    place.client().send(READ)
    assert place.client(RepositoryName("Acme", "core")) is place.client()
    assert other is not place.client()
    assert other.account_digest != place.client().account_digest
    assert place.minted() == 2
    assert {host for host, _ in place.hosts.remaining_calls()} == {
        f"{place.github.host}/acme",
        f"{place.github.host}/other",
    }


def test_an_estimate_counts_each_owner_for_itself(place: AppSite):
    limits = place.hosts.limits_of(f"http://{place.github.host}/acme/site.git")
    assert limits is not None
    assert limits.host == f"{place.github.host}/acme"
    place.key = ""
    with closing(ForgeHosts([place.entry], place.secret)) as hosts:
        limits = hosts.limits_of(f"http://{place.github.host}/acme/site.git")
    assert limits is not None
    assert limits.host == place.github.host, "calls fail for their own reason"


def test_the_identity_outlives_token_key_and_process(place: AppSite, keys: list[Key]):
    digest = place.client().account_digest
    place.key = keys[1][0]
    with closing(ForgeHosts([place.entry], place.secret)) as hosts:
        assert hosts.client_of(place.entry, SITE).account_digest == digest


def test_a_repository_that_is_not_selected_does_not_hide_the_installation(place: AppSite):
    hidden = place.github.repository("acme/hidden", is_private=True)
    place.installation.repositories = {place.site.repository.id}
    client = place.client(RepositoryName("acme", hidden.name))
    with pytest.raises(Denied, match=r"is not installed on acme/hidden \(404\)"):
        client.send(ForgeCall("GET", ("repos", "acme", "hidden")))
    place.pass_time(0)
    for app in place.hosts._apps.values():
        app._installations["acme"]._failed_at -= 31
    assert place.client().send(READ).status == 200
    with pytest.raises(Denied, match=r"nothing at GET /repos/acme/hidden \(404\)"):
        client.send(ForgeCall("GET", ("repos", "acme", "hidden")))


def suspend(place: AppSite) -> None:
    place.installation.is_suspended = True


def uninstall(place: AppSite) -> None:
    place.github.uninstall(place.installation)


def forget_key(place: AppSite) -> None:
    place.key = ""


def damage_key(place: AppSite) -> None:
    place.key = place.key.replace("M", "N", 9)


def forget_id(place: AppSite) -> None:
    place.app_id = ""


def misspell_id(place: AppSite) -> None:
    place.app_id = "12 34"


def give_another_id(place: AppSite) -> None:
    place.app_id = "999999"


def lose_key(place: AppSite) -> None:
    assert place.app.key is not None
    place.accept(place.app.key.with_name("second.pub"))


REFUSALS: list[tuple[Callable[[AppSite], None], str]] = [
    (suspend, "gets no token (403): This installation has been suspended; check"),
    (uninstall, "is not installed on acme/site (404); install it on the owner"),
    (forget_key, "secret 'app' has no githubAppPrivateKey; store"),
    (forget_id, "secret 'app' has no githubAppID; store"),
    (misspell_id, "secret 'app' has a githubAppID that is none; store"),
    (damage_key, "secret 'app' has a githubAppPrivateKey that is no RSA private key in PEM; store"),
    (give_another_id, "GitHub App 999999 is not accepted (401): A JSON web token could not be"),
    (
        lose_key,
        "not accepted (401): A JSON web token could not be decoded; correct githubAppID and",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), REFUSALS, ids=[it.__name__ for it, _ in REFUSALS])
def test_a_refusal_is_one_sentence_with_the_field(
    place: AppSite, change: Callable[[AppSite], None], sentence: str
):
    change(place)
    with pytest.raises(Denied) as caught:
        place.client().send(READ)
    assert sentence in str(caught.value)
    assert "PRIVATE" not in str(caught.value)
    calls = len(place.github.calls)
    with pytest.raises(Denied):
        place.client().send(READ)
    assert len(place.github.calls) == calls, "the answer of half a minute ago does"


def test_a_permission_that_the_installation_lacks_is_named(place: AppSite):
    place.installation.permissions.clear()
    with pytest.raises(Denied, match="Resource not accessible by integration"):
        place.client().send(ForgeCall("GET", ("repos", "acme", "site", "pulls")))


def test_the_extra_that_is_missing_is_named(place: AppSite, monkeypatch: pytest.MonkeyPatch):
    load = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "jwt":
            raise ModuleNotFoundError(name=name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        Denied, match=r"install the extra: pip install 'fanout-gitops\[github-app\]"
    ):
        place.client().send(READ)


def test_git_uses_the_token_of_the_api(place: AppSite, tmp_path: Path):
    place.site.repository.is_private = True
    place.client().send(READ)
    listing = list_refs(place, tmp_path)
    assert isinstance(listing, RefListing), listing
    assert "refs/heads/main" in listing.refs
    assert place.minted() == 1


def list_refs(place: AppSite, folder: Path) -> RefListing | FanoutError:
    store = MirrorStore(
        folder / "mirrors",
        install="default",
        secrets=lambda _, name: place.secret(name),
        counters=Counters(),
        exchange_secret=place.hosts.exchange_secret,
    )
    remote = Remote(place.github.git_url(place.site.repository), secret="app")
    with closing(store):
        return store.list_refs([RefListingRequest(remote, ())])[remote.key]


@pytest.mark.parametrize(
    ("url", "program", "problem"),
    [
        ("git@{host}:acme/site.git", "github", "tokens are for https alone"),
        ("http://{host}/acme/site.git", "gitea", "is no host of type github"),
        ("https://git.example.com/acme/site.git", "github", "is no host of type github"),
    ],
)
def test_git_refuses_an_app_where_its_tokens_are_of_no_use(
    place: AppSite, url: str, program: str, problem: str
):
    entry = place.entry.model_copy(update={"type": program})
    with closing(ForgeHosts([entry], place.secret)) as hosts, pytest.raises(Denied, match=problem):
        url = url.format(host=place.github.host)
        hosts.exchange_secret(url, "app", lambda: place.secret("app"))


def test_another_secret_needs_the_key_of_the_app(place: AppSite, keys: list[Key]):
    place.client().send(READ)
    stolen = Credentials(github_app_id=place.app_id, github_app_private_key=keys[1][0])
    url = place.github.git_url(place.site.repository)
    with pytest.raises(Denied, match="is not accepted"):
        place.hosts.exchange_secret(url, "app", lambda: stolen)


def test_a_directory_with_the_fields_of_flux_is_a_secret(tmp_path: Path, keys: list[Key]):
    folder = tmp_path / "app"
    folder.mkdir(mode=0o700)
    values = {
        "githubAppID": "123\n",
        "githubAppInstallationID": "5",
        "githubAppPrivateKey": keys[0][0],
    }
    for name, text in values.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    redactor = Redactor()
    secret = FileSecrets(redactor, tmp_path, {}).get("", "app")
    assert (secret.github_app_id, secret.is_github_app) == ("123", True)
    assert redactor.redact_text(f"<{secret.github_app_private_key}>") == f"<{REDACTED}>"
    assert repr(secret) == "Credentials()"


def test_a_token_is_in_no_log_no_error_and_no_process_list(
    place: AppSite, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    place.site.repository.is_private = True
    commands: set[str] = set()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    commands.add(file.read_bytes().decode(errors="replace"))
                except OSError:
                    continue
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        listing = list_refs(place, tmp_path)
    finally:
        is_over.set()
        watcher.join()
    assert isinstance(listing, RefListing), listing
    assert any("ls-remote" in it for it in commands), "the list shows the processes of Git"
    [token] = place.tokens()
    answer = Answer({"message": f"no right for {token}"}, 403)
    place.github.refuse("/pulls", answer)
    with pytest.raises(Denied) as caught:
        place.client().send(ForgeCall("GET", ("repos", "acme", "site", "pulls")))
    seen = [str(caught.value), repr(caught.value), caplog.text, *commands]
    seen += [repr(it) for it in (place.client().access, place.hosts._apps)]
    assert [it for it in seen if token in it or place.key[40:80] in it] == []
    assert REDACTED in str(caught.value)
    assert token not in place.redactor.redact_text(f"log {token}, x-access-token:{token}")
