"""The tests' GitHub: who may what, with the API and with git, and under which name."""

import base64
import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from github_site import WRITES, Site


def git(folder: Path, *arguments: str) -> str:
    """Run git; return what it printed, of a failure too."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, "GIT_ALLOW_PROTOCOL": "file:http"},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_pushes_need_write_and_reach_the_requests(site: Site, tmp_path: Path):
    pull = site.open()
    work = tmp_path / "work"
    url = site.github.git_url(site.repository, site.token)
    git(tmp_path, "clone", "-q", "-b", "draft", url, "work")
    (work / "c.txt").write_text("c\n")
    git(work, "add", ".")
    author = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
    git(work, *author, "commit", "-qm", "by hand")
    head = git(work, "rev-parse", "HEAD").strip()
    reader = site.github.git_url(site.repository, site.github.token("eve"))
    assert "403" in git(work, "push", reader, "draft")
    assert "hidden ref" in git(work, "push", url, "draft:refs/pull/1/head")
    assert site.disk.object_id("draft") == pull.head_commit
    writer = site.github.git_url(site.repository, site.github.token("ann"))
    git(work, "push", writer, "draft", "draft:main")
    assert site.disk.object_id("main") == head
    merged = site.ask("GET", "/pulls/1")
    assert (merged["merged"], merged["merged_by"]["login"]) == (True, "ann")


def test_hidden_repositories_and_old_names_of_git(site: Site, tmp_path: Path):
    site.repository.is_private = True
    url = site.github.git_url(site.repository, site.token)
    assert "refs/heads/main" in git(tmp_path, "ls-remote", url)
    assert "not found" in git(
        tmp_path, "ls-remote", site.github.git_url(site.repository, site.github.token("zoe"))
    )
    site.github.rename(site.repository, "acme/renamed")
    assert "refs/heads/main" in git(tmp_path, "ls-remote", url)


@pytest.mark.parametrize(
    ("method", "path", "body", "missing"),
    [
        ("PUT", "/pulls/1/merge", {}, "contents=write"),
        ("PATCH", "/pulls/1", {"title": "t"}, "pull_requests=write"),
        ("POST", "/pulls", {"head": "draft", "base": "main"}, "pull_requests=write"),
        ("GET", "/pulls/1", None, "pull_requests=read, contents=read"),
        ("GET", "/commits/draft/check-runs", None, "checks=read"),
        ("DELETE", "/git/refs/heads/draft", None, "contents=write"),
    ],
)
def test_a_permission_that_is_missing_is_403_and_named(
    site: Site, method: str, path: str, body: Any, missing: str
):
    site.open()
    site.installation.permissions.clear()
    status, headers, answer = site.try_call(method, path, body)
    assert (status, answer["message"]) == (403, "Resource not accessible by integration")
    assert headers["X-Accepted-GitHub-Permissions"] == missing
    reader = site.github.token("zoe", pull_requests="read")
    status, _, answer = site.try_call("PATCH", "/pulls/1", {"title": "t"}, token=reader)
    assert (status, answer["message"]) == (403, "Resource not accessible by personal access token")


def test_a_repository_that_a_credential_does_not_see_is_404(site: Site):
    hidden = site.github.repository("acme/hidden", is_private=True)
    site.repository.is_private = True
    chosen = site.github.installation(
        site.app, "acme", repositories=(site.repository,), permissions={"contents": "read"}
    )
    token = site.github.token(chosen)
    statuses = {
        name: site.try_call("GET", f"//repos/{name}", token=token)[0]
        for name in ("acme/site", hidden.full_name, "acme/none")
    }
    assert statuses == {"acme/site": 200, "acme/hidden": 404, "acme/none": 404}
    assert site.try_call("GET", "", token=site.github.token("zoe"))[0] == 404


def test_an_archived_repository_refuses_writes(site: Site):
    site.open()
    site.repository.is_archived = True
    assert site.ask("GET", "")["archived"]
    assert site.try_call("PATCH", "/pulls/1", {"title": "t"})[0] == 403


def test_tokens_end_with_their_installation(site: Site, tmp_path: Path):
    url = site.github.git_url(site.repository, site.token)
    site.repository.is_private = True
    site.installation.is_suspended = True
    status, _, answer = site.try_call("GET", "")
    assert (status, answer["message"]) == (403, "This installation has been suspended")
    assert "403" in git(tmp_path, "ls-remote", url)
    site.installation.is_suspended = False
    assert site.try_call("GET", "")[0] == 200
    site.github.uninstall(site.installation)
    assert site.try_call("GET", "")[0] == 401
    assert "Authentication failed" in git(tmp_path, "ls-remote", url)


def test_a_token_that_ended_is_refused_by_git_too(site: Site, tmp_path: Path):
    site.repository.is_private = True
    site.github.state.credentials[site.token].expires_at = site.now + timedelta(hours=1)
    url = site.github.git_url(site.repository, site.token)
    assert "refs/heads/main" in git(tmp_path, "ls-remote", url)
    site.pass_time(hours=1)
    assert "Authentication failed" in git(tmp_path, "ls-remote", url)


def test_an_answer_has_the_instant_of_the_host(site: Site):
    site.pass_time(minutes=2)
    assert site.try_call("GET", "")[1]["Date"] == "Tue, 01 Dec 2026 00:02:00 GMT"


def assertion(site: Site, key: Path, **claims: Any) -> str:
    """Return a signed assertion of the App, as openssl signs it."""
    now = int(site.now.timestamp())
    values = {"iat": now - 60, "exp": now + 540, "iss": site.app.client_id, **claims}
    parts = [json.dumps(it).encode() for it in ({"alg": "RS256", "typ": "JWT"}, values)]
    text = ".".join(base64.urlsafe_b64encode(it).rstrip(b"=").decode() for it in parts)
    command = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    signed = subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout
    return f"{text}.{base64.urlsafe_b64encode(signed).rstrip(b'=').decode()}"


@pytest.fixture
def keys(tmp_path: Path) -> list[Path]:
    """Return the files of two private keys and the public key of the first."""
    files = [tmp_path / name for name in ("key", "other", "public")]
    for file in files[:2]:
        subprocess.run(["openssl", "genrsa", "-out", file, "1024"], check=True, capture_output=True)
    command = ["openssl", "rsa", "-in", str(files[0]), "-pubout", "-out", str(files[2])]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_an_installation_token_lasts_an_hour_and_has_what_was_asked_for(
    site: Site, keys: list[Path]
):
    key, other, public = keys
    site.app = site.github.app("signed", public)
    site.installation = site.github.installation(site.app, "acme", permissions=WRITES)
    jwt = assertion(site, key)
    found = site.ask("GET", "/installation", token=jwt)
    path = f"//app/installations/{found['id']}/access_tokens"
    body = {"repositories": ["site"], "permissions": {"contents": "read"}}
    granted = site.ask("POST", path, body, token=jwt)
    assert found["id"] == site.installation.id
    assert len(granted["token"]) > 40
    assert granted["expires_at"] == "2026-12-01T01:00:00Z"
    assert granted["permissions"] == {"contents": "read"}
    assert site.ask("GET", "/branches/main", token=granted["token"])["name"] == "main"
    assert site.try_call("GET", "/pulls/1", token=granted["token"])[0] == 403
    site.pass_time(minutes=60)
    assert site.try_call("GET", "", token=granted["token"])[0] == 401
    now = int(site.now.timestamp())
    refused = {
        assertion(site, other): 401,
        assertion(site, key, iss="Iv0"): 401,
        assertion(site, key, exp=now + 601): 401,
        assertion(site, key, exp=now - 1): 401,
        assertion(site, key, iat=now + 60): 401,
        "none": 401,
    }
    for token, status in refused.items():
        assert site.try_call("POST", path, {}, token=token)[0] == status
    jwt = assertion(site, key)
    for wrong in ({"repositories": ["none"]}, {"permissions": {"administration": "read"}}):
        assert site.try_call("POST", path, wrong, token=jwt)[0] == 422
    site.installation.is_suspended = True
    status, _, answer = site.try_call("POST", path, {}, token=jwt)
    assert (status, answer["message"]) == (403, "This installation has been suspended")
    del site.github.state.installations[site.installation.id]
    assert site.try_call("POST", path, {}, token=jwt)[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [("GET", "/pulls?state=all", None, 301), ("PATCH", "/pulls/1", {"title": "t"}, 307)],
)
def test_a_renamed_repository_is_found_by_its_id(
    site: Site, method: str, path: str, body: Any, status: int
):
    site.open()
    site.github.rename(site.repository, "group/new")
    answered, headers, answer = site.try_call(method, path, body)
    assert (answered, answer["url"]) == (status, headers["Location"])
    assert headers["Location"] == f"{site.github.api}/repositories/{site.repository.id}{path}"
    token = site.github.token("ann")
    assert site.github.ask(method, headers["Location"], body, token=token)[0] == 200
    by_id = f"{site.github.api}/repositories/{site.repository.id}"
    assert site.github.ask("GET", by_id, token=token)[2]["full_name"] == "group/new"
