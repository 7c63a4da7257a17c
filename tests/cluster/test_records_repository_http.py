"""What is advised where records over HTTP cannot be reached: never keys, never a Repository."""

from pathlib import Path

import pytest
from http_git import serving

from fanout.cluster.records_repository import RecordsRepository
from fanout.errors import FanoutError
from fanout.git.mirror import create_bare
from fanout.git.mirror_store import MirrorStore
from fanout.plan.observation.repository_state import CommitIdentity, FileCommit, Remote
from fanout.ports import Credentials
from fanout.telemetry.metrics import Counters

REF = "refs/heads/fanout/default/shop/web"
GIVEN = "Basic dTpw"  # u:p
WORDS = ("SSH", "ssh", "known_hosts", "spec.", "Repository")


def open_records(tmp_path: Path, url: str, secret: Credentials | None) -> RecordsRepository:
    store = MirrorStore(
        tmp_path / "mirrors",
        install="default",
        secrets=lambda namespace, name: secret if (namespace, name) == ("", "books") else None,
        counters=Counters(),
    )
    remote = Remote(url, secret="books" if secret else "")
    return RecordsRepository(store, remote, Counters())


def find_remedy(records: RecordsRepository) -> str:
    with pytest.raises(FanoutError) as refused:
        records.heads([REF])
    remedy = refused.value.remedy
    assert not any(word in remedy for word in WORDS), remedy
    return remedy


def test_records_are_written_and_read_with_a_secret(tmp_path):
    create_bare(tmp_path / "records.git")
    with serving(tmp_path, authorization=GIVEN) as server:
        records = open_records(tmp_path, server.url("records.git"), Credentials("u", "p"))
        commit = FileCommit(
            ref=REF, parent="", content_by_path={"a": b"b"}, dropped_paths=(), message="a\n",
            timestamp=0,
        )  # fmt: skip
        written = records.change([commit], {REF: ""}, CommitIdentity("Jo", "jo@example.com"))
        assert records.heads([REF]) == written


@pytest.mark.parametrize(
    ("secret", "advice"),
    [
        (None, "create a secret with a token"),
        (Credentials("u", "wrong"), "correct secret 'books' of records.secretRef"),
    ],
)
def test_a_server_that_asks_for_credentials(tmp_path, secret, advice):
    create_bare(tmp_path / "records.git")
    with serving(tmp_path, authorization=GIVEN) as server:
        assert advice in find_remedy(open_records(tmp_path, server.url("records.git"), secret))


@pytest.mark.parametrize(
    ("secret", "advice"),
    [
        (None, "if it is private, create a secret with a token"),
        (Credentials("u", "p"), "if it is private, correct secret 'books'"),
    ],
)
def test_a_repository_that_the_server_does_not_show(tmp_path, secret, advice):
    with serving(tmp_path) as server:
        remedy = find_remedy(open_records(tmp_path, server.url("absent.git"), secret))
    assert "name their repository with --records" in remedy
    assert advice in remedy


def test_a_server_that_is_not_there(tmp_path):
    with serving(tmp_path) as server:
        url = server.url("records.git")
    assert "make this records repository reachable" in find_remedy(
        open_records(tmp_path, url, None)
    )


def test_a_token_that_may_only_read_is_known_until_a_push_goes_through(tmp_path):
    create_bare(tmp_path / "records.git")
    with serving(tmp_path, authorization=GIVEN) as server:
        server.is_public = True
        records = open_records(tmp_path, server.url("records.git"), Credentials("u", "p"))
        commit = FileCommit(
            ref=REF, parent="", content_by_path={"a": b"b"}, dropped_paths=(), message="a\n",
            timestamp=0,
        )  # fmt: skip
        server.is_read_only = True
        assert records.heads([REF]) == {REF: ""}
        with pytest.raises(FanoutError) as refused:
            records.change([commit], {REF: ""}, CommitIdentity("Jo", "jo@example.com"))
        assert records.push_refusal.read() == str(refused.value)
        server.is_read_only = False
        records.change([commit], {REF: ""}, CommitIdentity("Jo", "jo@example.com"))
        assert records.push_refusal.read() == ""
