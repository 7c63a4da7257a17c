"""Sources of tokens: what limits and memos are kept by, and what becomes of a refused token."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from forge_proxy import Fault, ForgeProxy, proxying

from fanout.errors import Denied
from fanout.forge.access_tokens import StaticToken
from fanout.forge.forge_call import ForgeCall
from fanout.forge.forge_http import ForgeHttp, HostAccess
from fanout.plan.pull_requests.call_limits import CallKind
from fanout.ports import Credentials

READ = ForgeCall("GET", ("repos", "org", "edge"))
WRITE = ForgeCall("POST", ("repos", "org", "edge", "pulls"), body={}, kind=CallKind.CREATION)
REFUSED = Fault(401, b'{"message": "Bad credentials"}')


class NumberedTokens:
    """One account with tokens that are made one after the other."""

    identity = "account"

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.refused: list[str] = []

    def authorization(self) -> str:
        return f"Bearer token-{self.number}"

    def renew(self, refused: str, clock_offset: timedelta) -> bool:
        self.refused.append(refused)
        self.number += 1
        return True


@pytest.fixture
def proxy() -> Iterator[ForgeProxy]:
    with proxying() as server:
        yield server


def headers_of(proxy: ForgeProxy) -> list[str]:
    return [it.headers["authorization"] for it in proxy.seen]


def client(proxy: ForgeProxy, tokens: NumberedTokens | None = None) -> ForgeHttp:
    access = HostAccess("git.example.com", proxy.api, Credentials(password="token"))
    return ForgeHttp(access, tokens=tokens)


@pytest.mark.parametrize("call", [READ, WRITE])
def test_a_call_with_a_token_that_ended_is_made_again_with_the_next(proxy, call):
    proxy.fail(REFUSED, Fault(200, b'{"a": 1}'))
    tokens = NumberedTokens()
    with closing(client(proxy, tokens)) as http:
        assert http.send(call).data == {"a": 1}
    assert headers_of(proxy) == ["Bearer token-0", "Bearer token-1"]
    assert tokens.refused == ["Bearer token-0"]


def test_a_second_refusal_is_the_answer(proxy):
    proxy.fail(REFUSED, REFUSED, Fault(200))
    tokens = NumberedTokens()
    with closing(client(proxy, tokens)) as http, pytest.raises(Denied, match="Bad credentials"):
        http.send(READ)
    assert len(proxy.seen) == 2


def test_a_token_of_a_secret_is_refused_once(proxy):
    proxy.fail(REFUSED, Fault(200))
    with closing(client(proxy)) as http, pytest.raises(Denied, match="does not accept the token"):
        http.send(READ)
    assert headers_of(proxy) == ["Bearer token"]


def test_an_account_keeps_its_digest_with_each_token(proxy):
    digests = {client(proxy, NumberedTokens(number)).account_digest for number in range(3)}
    assert len(digests) == 1


def test_another_secret_is_another_account():
    sources = [StaticToken(Credentials(password=it)) for it in ("canary-1", "canary-2")]
    first, second = (it.identity for it in sources)
    assert first != second
    assert "canary" not in first
    assert StaticToken(Credentials(password="canary-1")).identity == first
