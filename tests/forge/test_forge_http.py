"""What fanout's client makes of everything that a host may answer; no Gitea is needed for it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from forge_proxy import TLS, Fault, ForgeProxy, proxying

from fanout.errors import Denied, FanoutError, InvalidInput, RateLimited, Unavailable
from fanout.forge.forge_call import ForgeCall, ForgeResponse
from fanout.forge.forge_http import ForgeHttp, HostAccess, HttpLimits
from fanout.plan.pull_requests.call_limits import CallKind, CallLimits
from fanout.ports import Credentials
from fanout.telemetry.metrics import EventCounters, EventName

HOST = "git.example.com"
TOKEN = "canary-token-5b1f"
READ = ForgeCall("GET", ("repos", "org", "edge"))
WRITE = ForgeCall("POST", ("repos", "org", "edge", "pulls"), body={"a": 1}, kind=CallKind.WRITE)
QUICK = HttpLimits(seconds=0.5, connect_seconds=0.5, max_bytes=1000)
# Waiting for a limit is played by the governor's own tests; here it is an outcome at once.
IMPATIENT = CallLimits(patience=0.0)


@pytest.fixture
def proxy() -> Iterator[ForgeProxy]:
    with proxying() as server:
        yield server


@contextmanager
def client(
    proxy: ForgeProxy,
    *,
    limits: HttpLimits | None = None,
    calls: CallLimits | None = None,
    secret: Credentials | None = None,
    authority: str = "",
    api: str = "",
) -> Iterator[ForgeHttp]:
    secret = secret or Credentials(password=TOKEN)
    access = HostAccess(HOST, api or proxy.api, secret, "git-token", authority)
    made = ForgeHttp(access, calls, limits or HttpLimits(seconds=30))
    try:
        yield made
    finally:
        made.close()


def error_body(text: str) -> bytes:
    return json.dumps({"message": text}).encode()


# ---- answers -----------------------------------------------------------------------------------


def content_of(response: ForgeResponse) -> tuple[int, object]:
    return response.status, response.data


def test_a_call_is_sent_with_its_path_query_body_and_token(proxy):
    proxy.fail(Fault(201, b'{"number": 1}'))
    call = ForgeCall(
        "POST", ("repos", "org", "a b/c"), (("q", "x&y"),), {"title": "é"}, CallKind.WRITE
    )
    with client(proxy) as http:
        assert content_of(http.send(call)) == (201, {"number": 1})
    [seen] = proxy.seen
    assert (seen.method, seen.path) == ("POST", "/api/v1/repos/org/a%20b%2Fc?q=x%26y")
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["accept-encoding"] == "identity"


def test_a_user_and_a_password_are_sent_as_such(proxy):
    with client(proxy, secret=Credentials("bot", "pass")) as http:
        http.send(READ)
    assert proxy.seen[0].headers["authorization"] == "Basic Ym90OnBhc3M="


@pytest.mark.parametrize("status", [204, 200])
def test_an_answer_without_content(proxy, status):
    proxy.fail(Fault(status, b""))
    with client(proxy) as http:
        assert content_of(http.send(READ)) == (status, None)


def test_another_page_is_announced_by_the_link(proxy):
    proxy.fail(
        Fault(headers={"Link": '<https://x/y?page=2>; rel="next",<https://x/y>; rel="last"'})
    )
    with client(proxy) as http:
        assert http.send(READ).has_next_page
        assert not http.send(READ).has_next_page


def test_an_expected_status_is_an_answer(proxy):
    proxy.fail(Fault(409, error_body("there is one")), Fault(404, b"<html>none</html>"))
    call = ForgeCall("GET", ("x",), expected=frozenset({404, 409}))
    with client(proxy) as http:
        assert content_of(http.send(call)) == (409, {"message": "there is one"})
        assert content_of(http.send(call)) == (404, None)


def test_calls_are_counted_by_their_status_and_the_rest_of_the_limits_is_known(proxy):
    proxy.fail(Fault(200), Fault(404), Fault(201, b"{}"))
    events = EventCounters()
    limits = CallLimits(calls_per_minute=10, creations_per_hour=5)
    http = ForgeHttp(HostAccess(HOST, proxy.api, Credentials(password=TOKEN)), limits, None, events)
    assert http.remaining_calls() == {}
    http.send(READ)
    with pytest.raises(Denied):
        http.send(READ)
    http.send(ForgeCall("POST", ("x",), kind=CallKind.CREATION))
    assert http.remaining_calls() == {"calls": 7, "creations": 4}
    http.close()
    assert events.read(EventName.FORGE_CALL) == {
        (HOST, "GET", "200"): 1,
        (HOST, "GET", "404"): 1,
        (HOST, "POST", "201"): 1,
    }
    assert events.read(EventName.FORGE_SECONDS).keys() == {(HOST,)}


# ---- the table of errors -----------------------------------------------------------------------

MOVED = {"Location": "https://user:pass@other.example.com/repos/org/new?token=x"}
ERRORS = [
    # the answer, the error, its reason, what is said, how often a read is made
    (Fault(401, error_body("bad token")), Denied, "ForgeDenied", "does not accept the token", 1),
    (Fault(403, error_body("needs write")), Denied, "ForgeDenied", "(403): needs write", 1),
    (
        Fault(404, error_body("nope")),
        Denied,
        "ForgeDenied",
        "shows the account of fanout nothing",
        1,
    ),
    (Fault(405, error_body("not now")), Unavailable, "ForgeRefuses", "(405): not now", 1),
    (Fault(409, error_body("conflict")), Unavailable, "ForgeRefuses", "(409): conflict", 1),
    (Fault(422, error_body("invalid")), Unavailable, "ForgeRefuses", "(422): invalid", 1),
    (Fault(423, error_body("archived")), Unavailable, "ForgeUnavailable", "(423): archived", 1),
    (Fault(400, b"<html>"), Unavailable, "ForgeRefuses", "(400)", 1),
    (Fault(429), RateLimited, "RateLimited", "takes no more calls (429)", 1),
    (
        Fault(403, headers={"Retry-After": "30"}),
        RateLimited,
        "RateLimited",
        "takes no more calls (403)",
        1,
    ),
    (Fault(500, error_body("oops")), Unavailable, "ForgeUnavailable", "status 500: oops", 2),
    (Fault(502, b"<html>"), Unavailable, "ForgeUnavailable", "status 502", 2),
    (Fault(503), Unavailable, "ForgeUnavailable", "status 503", 2),
    (
        Fault(301, headers=MOVED),
        Unavailable,
        "ForgeUnavailable",
        "to https://other.example.com/repos/org/new",
        1,
    ),
    (
        Fault(302),
        Unavailable,
        "ForgeUnavailable",
        "has moved GET /repos/org/edge to http://127.0.0.1",
        1,
    ),
    (
        Fault(307, headers={"Location": "http://["}),
        Unavailable,
        "ForgeUnavailable",
        "cannot be read",
        1,
    ),
    (Fault(body=b"<html>"), Unavailable, "ForgeUnavailable", "the response is not JSON", 2),
    (Fault(body=b"\xff\xfe"), Unavailable, "ForgeUnavailable", "the response is not JSON", 2),
    (Fault(body=b"[" * 900), Unavailable, "ForgeUnavailable", "the response is not JSON", 2),
    (Fault(body=b"1" * 1001), Unavailable, "ForgeUnavailable", "more than 1000 bytes", 2),
    (Fault(missing=9), Unavailable, "ForgeUnavailable", "gave no usable answer", 2),
    (Fault(resets=True), Unavailable, "ForgeUnavailable", "gave no usable answer", 2),
    (Fault(delay=30), Unavailable, "ForgeUnavailable", "nothing within 0.5 s", 1),
    (Fault(drip="headers"), Unavailable, "ForgeUnavailable", "nothing within 0.5 s", 1),
    (Fault(body=b"1" * 900, drip="body"), Unavailable, "ForgeUnavailable", "within 0.5 s", 1),
    (
        Fault(headers={"Content-Encoding": "gzip"}),
        Unavailable,
        "ForgeUnavailable",
        "the response is compressed",
        2,
    ),
]


@pytest.mark.parametrize(
    ("fault", "family", "reason", "words", "reads"), ERRORS, ids=[row[3] for row in ERRORS]
)
def test_errors_of_reads(proxy, fault, family, reason, words, reads):
    proxy.fail(*[fault] * 2)
    with client(proxy, limits=QUICK, calls=IMPATIENT) as http:
        error = error_of(lambda: http.send(READ))
    assert isinstance(error, family)
    assert error.reason == reason
    assert words in str(error)
    assert len(proxy.seen) == reads


def test_a_host_that_hangs_costs_one_wait_and_a_write_goes_on_without_it(proxy):
    events, hasty = EventCounters(), HttpLimits(seconds=30, patience=0.3)
    access = HostAccess(HOST, proxy.api, Credentials(password=TOKEN))
    http = ForgeHttp(access, None, hasty, events)
    proxy.fail(Fault(201, delay=1))
    started = time.monotonic()
    assert "nothing within 0.3 s" in str(error_of(lambda: http.send(WRITE)))
    for _ in range(5):
        assert "no call was made" in str(error_of(lambda: http.send(READ)))
    assert time.monotonic() - started < 0.9
    time.sleep(1.5)
    http.close()
    assert events.read(EventName.FORGE_CALL) == {(HOST, "POST", "201"): 1}


@pytest.mark.parametrize(
    ("fault", "family", "reason", "words", "reads"), ERRORS, ids=[row[3] for row in ERRORS]
)
def test_a_write_is_made_once_whatever_comes_back(proxy, fault, family, reason, words, reads):
    proxy.fail(fault)
    with client(proxy, limits=QUICK) as http:
        error = error_of(lambda: http.send(WRITE))
    assert isinstance(error, family)
    assert error.reason == reason
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("row", ERRORS, ids=[row[3] for row in ERRORS])
def test_no_error_shows_the_token_or_a_header(proxy, row):
    fault = Fault(**{**vars(row[0]), "body": row[0].body})
    if fault.status >= 400:  # a server that sends back what it got
        fault.body = error_body(f"{TOKEN} and Authorization: Bearer {TOKEN}")
    proxy.fail(*[fault] * 2)
    with client(proxy, limits=QUICK, calls=IMPATIENT) as http:
        error: BaseException | None = error_of(lambda: http.send(READ))
    while error is not None:
        shown = f"{error} {error!r} {vars(error)}"
        assert TOKEN not in shown
        assert "user:pass" not in shown
        error = error.__cause__


def error_of(call: Callable[[], object]) -> FanoutError:
    with pytest.raises(FanoutError) as failure:
        call()
    return failure.value


def test_a_read_that_succeeds_the_second_time(proxy):
    for fault in (Fault(502), Fault(resets=True), Fault(body=b"<html>"), Fault(missing=9)):
        proxy.fail(fault)
        with client(proxy) as http:
            assert http.send(READ).status == 200


def test_a_redirect_is_not_followed_and_gets_no_token(proxy):
    with proxying() as other:
        moved = {"Location": f"{other.api}/repos/org/new"}
        proxy.fail(Fault(301, headers=moved), Fault(308, headers=moved))
        with client(proxy) as http:
            assert f"has moved GET /repos/org/edge to {other.api}/repos/org/new" in str(
                error_of(lambda: http.send(READ))
            )
            error_of(lambda: http.send(WRITE))
        assert other.seen == []


def test_an_answer_that_comes_late_but_in_time(proxy):
    proxy.fail(Fault(body=b'{"late": true}', delay=1.0))
    with client(proxy) as http:
        assert http.send(READ).data == {"late": True}


def test_a_call_has_twice_as_long_as_a_merge_in_a_large_repository():
    assert HttpLimits().seconds >= 2 * 30


def test_a_host_that_nobody_listens_at(proxy):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{free.getsockname()[1]}"
        with client(proxy, api=api) as http:
            assert error_of(lambda: http.send(READ)).reason == "ForgeUnavailable"


def test_a_host_that_fails_in_a_row_is_left_alone_for_a_while(proxy):
    proxy.fail(*[Fault(500)] * 10)
    with client(proxy) as http:
        for _ in range(10):
            error_of(lambda: http.send(WRITE))
        assert "earlier calls failed" in str(error_of(lambda: http.send(WRITE)))
    assert len(proxy.seen) == 3


def test_refusals_do_not_count_as_failures_of_the_host(proxy):
    proxy.fail(*[Fault(422)] * 5, *[Fault(301)] * 5)
    with client(proxy) as http:
        for _ in range(10):
            error_of(lambda: http.send(WRITE))
        assert http.send(WRITE).status == 200


# ---- limits ------------------------------------------------------------------------------------

RETRY_AFTER = [
    ("30", 30),
    ("0", 0),
    ("-5", 0),
    (None, 60),
    ("", 60),
    ("soon", 60),
    ("nan", 86400),
    ("inf", 86400),
    ("999999999", 86400),
    ("a date in two hours", 7200),
    ("Mon, 02 Mar 2020 09:00:00 GMT", 0),
]


@pytest.mark.parametrize(("text", "seconds"), RETRY_AFTER)
def test_retry_after(proxy, text, seconds):
    before = datetime.now(UTC)
    if text == "a date in two hours":
        text = format_datetime(before + timedelta(hours=2), usegmt=True)
    proxy.fail(Fault(429, headers={} if text is None else {"Retry-After": text}))
    with client(proxy) as http:
        error = error_of(lambda: http.send(WRITE))
    assert isinstance(error, RateLimited)
    # A date has whole seconds.
    assert before + timedelta(seconds=seconds - 1) <= error.until
    assert error.until <= datetime.now(UTC) + timedelta(seconds=seconds + 1)


def test_after_a_limit_no_call_is_made_before_its_time(proxy):
    proxy.fail(Fault(429, headers={"Retry-After": "3600"}))
    before = datetime.now(UTC)
    with client(proxy) as http:
        error_of(lambda: http.send(WRITE))
        error = error_of(lambda: http.send(READ))
    assert isinstance(error, RateLimited)
    assert before + timedelta(seconds=3500) < error.until
    assert error.until <= datetime.now(UTC) + timedelta(seconds=3601)
    assert f"for {HOST} is reached" in str(error)
    assert len(proxy.seen) == 1


def test_a_read_waits_for_a_short_limit_and_is_made_again(proxy):
    proxy.fail(Fault(429, headers={"Retry-After": "1"}))
    start = time.monotonic()
    with client(proxy) as http:
        assert http.send(READ).status == 200
    assert time.monotonic() - start >= 1.0
    assert len(proxy.seen) == 2


def test_calls_of_many_threads_share_the_limit_in_flight(proxy):
    running, most = [0], [0]
    proxy.next_fault = lambda _: slow_answer(running, most)
    with client(proxy, calls=CallLimits(in_flight=3)) as http:
        threads = [threading.Thread(target=http.send, args=(READ,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(proxy.seen) == 12
    assert most[0] <= 3


def slow_answer(running: list[int], most: list[int]) -> None:
    running[0] += 1
    most[0] = max(most[0], running[0])
    time.sleep(0.05)
    running[0] -= 1


def test_creations_beyond_the_share_of_a_policy_are_deferred(proxy):
    create = ForgeCall("POST", ("pulls",), kind=CallKind.CREATION, policy="large")
    other = ForgeCall("POST", ("pulls",), kind=CallKind.CREATION, policy="small")
    with client(proxy, calls=CallLimits(creations_per_hour=3)) as http:
        http.share_creations({"large": 9, "small": 1})
        for _ in range(2):
            http.send(create)
        assert isinstance(error_of(lambda: http.send(create)), RateLimited)
        http.send(other)
    assert len(proxy.seen) == 3


# ---- certificates and secrets ------------------------------------------------------------------


def test_a_certificate_is_verified_with_the_configured_authority():
    authority = (TLS / "certificate.pem").read_text()
    with proxying(uses_tls=True) as proxy:
        with client(proxy, authority=authority) as http:
            assert http.send(READ).status == 200
        with client(
            proxy, secret=Credentials(password=TOKEN, certificate_authority=authority)
        ) as http:
            assert http.send(READ).status == 200


def test_a_certificate_that_does_not_verify_is_refused_before_the_token_is_sent():
    with proxying(uses_tls=True) as proxy:
        with client(proxy) as http:
            error = error_of(lambda: http.send(READ))
        assert error.reason == "ForgeUnavailable"
        assert "CERTIFICATE_VERIFY_FAILED" in str(error)
        assert proxy.seen == []


def test_a_certificate_for_another_name_is_refused():
    authority = (TLS / "certificate.pem").read_text()
    with proxying(uses_tls=True) as proxy:
        api = proxy.api.replace("127.0.0.1", "localhost")
        with client(proxy, authority=authority, api=api) as http:
            assert error_of(lambda: http.send(READ)).reason == "ForgeUnavailable"
        assert proxy.seen == []


@pytest.mark.parametrize("password", ["", "line\nbreak", "snowman ☃"])
def test_a_secret_that_no_header_can_carry(proxy, password):
    with pytest.raises(Denied) as failure, client(proxy, secret=Credentials(password=password)):
        pass
    assert failure.value.reason == "SecretUnusable"
    assert f"{HOST} cannot be called: its secret has" in str(failure.value)
    assert not password or password not in str(failure.value)


def test_an_authority_that_is_no_certificate(proxy):
    with pytest.raises(InvalidInput, match="no certificate in PEM"), client(proxy, authority="x"):
        pass


# ---- the client's own life ---------------------------------------------------------------------


def test_a_closed_client_leaves_no_thread_and_opens_again(proxy):
    others = {*threading.enumerate()}  # of clients of other tests, whose calls go on

    def count_threads() -> int:
        return sum(it.name == "forge" for it in {*threading.enumerate()} - others)

    with client(proxy) as http:
        http.send(READ)
        assert count_threads() == 1
        http.close()
        assert count_threads() == 0
        assert http.send(READ).status == 200
    assert count_threads() == 0


def test_closing_gives_up_the_calls_of_other_threads(proxy):
    proxy.fail(*[Fault(delay=60)] * 2)
    failures = []
    with client(proxy, calls=CallLimits(in_flight=2)) as http:
        callers = [
            threading.Thread(target=lambda: failures.append(error_of(lambda: http.send(WRITE))))
            for _ in range(4)  # two of them wait for their turn
        ]
        for caller in callers:
            caller.start()
        while len(proxy.seen) < 2:
            time.sleep(0.01)
        http.close()
        for caller in callers:
            caller.join(30)
    assert [(type(it), it.reason) for it in failures] == [(Unavailable, "ForgeUnavailable")] * 4


def test_connections_are_kept_between_calls(proxy):
    with client(proxy) as http:
        for _ in range(5):
            http.send(READ)
    assert len({seen.peer for seen in proxy.seen}) == 1
