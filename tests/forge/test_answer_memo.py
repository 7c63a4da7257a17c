"""Conditional reads on the tests' GitHub, and what is kept for them."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from forge_proxy import Fault, proxying
from github_site import Site

from fanout.errors import Unavailable
from fanout.forge.answer_memo import AnswerMemo
from fanout.forge.forge_call import ForgeCall, ForgeResponse
from fanout.forge.forge_http import ForgeHttp, HostAccess
from fanout.ports import Credentials
from fanout.values import replace

PULLS = ForgeCall("GET", ("repos", "acme", "site", "pulls"), is_conditional=True)


@pytest.fixture
def http(site: Site) -> Iterator[ForgeHttp]:
    secret = Credentials(password=site.token)
    headers = (
        ("X-GitHub-Api-Version", "2026-03-10"),
        ("Accept", "application/vnd.github+json"),
    )
    access = HostAccess("github.com", site.github.api, secret, headers=headers)
    with closing(ForgeHttp(access)) as client:
        yield client


def used(site: Site) -> int:
    """Return how many calls of the hour the host has counted."""
    return next(iter(site.github.limits.windows.values())).used


def test_an_unchanged_answer_is_the_last_one_and_costs_nothing(site: Site, http: ForgeHttp):
    site.open()
    first = http.send(PULLS)
    counted = used(site)
    site.pass_time(seconds=90)
    again = http.send(PULLS)
    assert (first.is_unchanged, again.is_unchanged) == (False, True)
    assert again.data is first.data
    assert first.instant is not None
    assert again.instant is not None
    assert (again.instant - first.instant).total_seconds() == 90
    assert used(site) == counted
    assert site.github.calls[-1].endswith(" 304")


def test_a_change_is_seen(site: Site, http: ForgeHttp):
    assert http.send(PULLS).data == []
    site.open()
    changed = http.send(PULLS)
    assert ([it["number"] for it in changed.data], changed.is_unchanged) == ([1], False)
    assert http.send(PULLS).is_unchanged


def test_another_query_is_another_answer(site: Site, http: ForgeHttp):
    http.send(PULLS)
    assert not http.send(replace(PULLS, query=(("state", "all"),))).is_unchanged


def test_a_plain_read_asks_for_everything(site: Site, http: ForgeHttp):
    http.send(PULLS)
    assert not http.send(replace(PULLS, is_conditional=False)).is_unchanged


def test_a_304_that_nobody_asked_for_is_no_answer():
    with proxying() as proxy:
        proxy.fail(Fault(304, b""))
        access = HostAccess("git.example.com", proxy.api, Credentials(password="token"))
        with closing(ForgeHttp(access)) as client, pytest.raises(Unavailable):
            client.send(PULLS)


def test_answers_used_least_recently_are_dropped_at_the_limit():
    memo = AnswerMemo(max_bytes=100)
    calls = [replace(PULLS, path=(str(number),)) for number in range(4)]
    response = ForgeResponse(200, [], etag='"a"')
    for call in calls[:2]:
        memo.keep(call, response, 40)
    assert memo.find(calls[0]) is response
    memo.keep(calls[2], response, 40)
    assert [memo.find(it) is not None for it in calls] == [True, False, True, False]
    memo.keep(calls[3], response, 101)
    assert memo.find(calls[3]) is None, "larger than all"
    memo.keep(calls[0], replace(response, etag=""), 1)
    assert memo.find(calls[0]) is None, "a host may stop sending tags"
    memo.keep(calls[0], response, 60)
    assert [memo.find(it) is not None for it in calls] == [True, False, True, False]
