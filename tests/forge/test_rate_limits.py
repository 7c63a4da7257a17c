"""What answers say about limits, and that a client keeps to it on the tests' GitHub."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic

import pytest
from github_calls import Answer
from github_site import Site

from fanout.errors import Denied, RateLimited, Unavailable
from fanout.forge.forge_call import ForgeCall
from fanout.forge.forge_http import ForgeHttp, HostAccess
from fanout.forge.rate_limits import LimitRefusal, LimitReport, PoolCount, read_limits
from fanout.plan.pull_requests.call_limits import CallKind, CallLimits
from fanout.ports import Credentials

NOW = datetime(2026, 12, 1, tzinfo=UTC)
LATER = int(NOW.timestamp()) + 100
USED_UP = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(LATER)}
SECONDARY = "You have exceeded a secondary rate limit."
ABUSE = "You have triggered an abuse detection mechanism."
NONE, POOL, PACE = None, LimitRefusal.POOL, LimitRefusal.PACE
REPORTS = [
    ("an answer without limits", 200, {}, "", NONE, None),
    ("a success with the last call", 200, USED_UP, "", NONE, None),
    ("GitHub's hour", 403, USED_UP, "API rate limit exceeded for x.", POOL, 101),
    ("GitHub's hour with the other status", 429, USED_UP, "API rate limit exceeded", POOL, 101),
    ("a secondary limit", 403, {"retry-after": "30"}, SECONDARY, PACE, 30),
    ("a secondary limit with nothing but words", 403, {}, SECONDARY, PACE, None),
    ("a secondary limit of earlier years", 403, {}, ABUSE, PACE, None),
    ("a secondary limit with the last call", 403, {**USED_UP, "retry-after": "7"}, "", PACE, 7),
    ("a missing right", 403, {}, "Resource not accessible by integration", NONE, None),
    (
        "a missing right with the last call",
        403,
        {**USED_UP, "x-accepted-github-permissions": "contents=write"},
        "Resource not accessible by integration",
        NONE,
        None,
    ),
    ("GitLab's minute", 429, {"retry-after": "12", "ratelimit-remaining": "0"}, "", PACE, 12),
    ("plain words", 429, {}, "", PACE, None),
    ("a Retry-After that is none", 429, {"retry-after": "soon"}, "", PACE, 60),
    ("a wait of a year", 429, {"retry-after": "31536000"}, "", PACE, 86400),
    ("a host that is down", 503, {"retry-after": "5"}, "", NONE, 5),
    ("an error that mentions limits", 422, {}, "the rate limit is no number", NONE, None),
]


@pytest.mark.parametrize(
    ("sentence", "status", "headers", "words", "refusal", "wait"),
    REPORTS,
    ids=[it[0] for it in REPORTS],
)
def test_the_refusal(sentence, status, headers, words, refusal, wait):
    report = read_limits(status, headers, words, NOW)
    assert (report.refusal, report.wait_seconds) == (refusal, wait)


COUNTS = [
    (
        "GitHub's",
        {"x-ratelimit-resource": "search", **USED_UP},
        LimitReport("search", PoolCount(0, LATER, 101)),
    ),
    (
        "GitLab's",
        {"ratelimit-remaining": "9", "ratelimit-reset": str(LATER)},
        LimitReport("", PoolCount(9, LATER, 101)),
    ),
    (
        "a duration",
        {"ratelimit-remaining": "9", "ratelimit-reset": "100"},
        LimitReport("", PoolCount(9, LATER, 101)),
    ),
    (
        "a reset that is over",
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(LATER - 500)},
        LimitReport("", PoolCount(0, LATER - 500, 0)),
    ),
    ("a count without a reset", {"x-ratelimit-remaining": "5"}, LimitReport("")),
    ("no number", {**USED_UP, "x-ratelimit-remaining": "many"}, LimitReport("")),
    ("digits of another script", {**USED_UP, "x-ratelimit-remaining": "३"}, LimitReport("")),
]


@pytest.mark.parametrize(("sentence", "headers", "report"), COUNTS, ids=[it[0] for it in COUNTS])
def test_the_count(sentence, headers, report):
    assert read_limits(200, headers, "", NOW) == report


# ---- a client ----------------------------------------------------------------------------------

READ = ForgeCall("GET", ("repos", "acme", "site"))


def status_call(site: Site) -> ForgeCall:
    path = ("repos", "acme", "site", "statuses", site.disk.object_id("draft"))
    return ForgeCall("POST", path, body={"state": "pending"}, kind=CallKind.CONTENT)


@pytest.fixture
def http(site: Site) -> Iterator[ForgeHttp]:
    headers = (
        ("X-GitHub-Api-Version", "2026-03-10"),
        ("Accept", "application/vnd.github+json"),
    )
    secret = Credentials(password=site.token)
    access = HostAccess("github.com", site.github.api, secret, "token", headers=headers)
    with closing(ForgeHttp(access, CallLimits(patience=0.0))) as client:
        yield client


def seconds_until(error: RateLimited) -> float:
    return (error.until - datetime.now(UTC)).total_seconds()


def test_an_hour_that_is_used_up_is_waited_for_without_a_refusal(site: Site, http: ForgeHttp):
    site.github.limits.hourly["core"] = 3
    for _ in range(3):
        http.send(READ)
    for _ in range(2):
        with pytest.raises(RateLimited) as caught:
            http.send(READ)
    assert len(site.github.calls) == 3
    assert 3500 < seconds_until(caught.value) <= 3602
    assert http.send(
        ForgeCall("GET", ("search", "issues"), (("q", "is:pr"),), pool="search")
    ).data, "another pool has calls left"


def test_an_hour_that_somebody_else_used_up_ends_with_the_reset(site: Site, http: ForgeHttp):
    http.send(READ)
    site.pass_time(minutes=10)
    site.github.limits.hourly["core"] = 0
    with pytest.raises(RateLimited) as caught:
        http.send(READ)
    assert 2900 < seconds_until(caught.value) <= 3002


@pytest.mark.parametrize(("retry_after", "seconds"), [(20, 20), (None, 60)])
def test_a_secondary_limit_ends_all_calls_for_a_while(
    site: Site, http: ForgeHttp, retry_after: int | None, seconds: int
):
    site.github.limits.content_a_minute = 1
    site.github.limits.retry_after = retry_after
    http.send(status_call(site))
    with pytest.raises(RateLimited) as caught:
        http.send(status_call(site))
    assert seconds - 5 < seconds_until(caught.value) <= seconds + 1
    made = len(site.github.calls)
    with pytest.raises(RateLimited):
        http.send(READ)
    assert len(site.github.calls) == made


def test_a_second_refusal_in_a_row_doubles_the_wait(site: Site, http: ForgeHttp):
    site.github.limits.content_a_minute, site.github.limits.retry_after = 0, None
    waits = []
    for _ in range(3):
        with pytest.raises(RateLimited) as caught:
            http.send(status_call(site))
        waits.append(round(seconds_until(caught.value), -1))
        http._governor._held_until = monotonic()
        http.send(READ)
    assert waits == [60, 120, 240]


def test_a_right_that_is_missing_is_no_limit_and_is_named(site: Site, http: ForgeHttp):
    site.installation.permissions.clear()
    with pytest.raises(Denied, match=r"\(403\): Resource not .*; grant pull_requests=read to the"):
        http.send(ForgeCall("GET", ("repos", "acme", "site", "pulls")))
    assert len(site.github.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "problem", "calls"),
    [
        (502, b"<html>Server Error</html>", "no usable answer .*: status 502$", 2),
        (451, {"message": "Repository access blocked"}, r"\(451\): Repository access blocked$", 1),
    ],
)
def test_an_error_of_the_host_is_no_loop(
    site: Site, http: ForgeHttp, status: int, body: object, problem: str, calls: int
):
    site.github.refuse("/repos/acme/site", Answer(body, status), times=9)
    http._governor._limits = CallLimits()
    with pytest.raises(Unavailable, match=problem):
        http.send(READ)
    assert len(site.github.calls) == calls


def test_installations_do_not_share_their_limits(site: Site, http: ForgeHttp):
    site.github.limits.hourly["core"] = 1
    http.send(READ)
    other = Credentials(password=site.github.token("ann"))
    access = HostAccess("github.com", site.github.api, other, headers=http.access.headers)
    with closing(ForgeHttp(access)) as client:
        assert client.send(READ).status == 200
