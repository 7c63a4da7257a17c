"""HTTP services that are asked for checks, right and wrong; the service is a real one."""

import contextlib
import json
import re
import socket
from time import monotonic, sleep

import pytest
from service import Page, service

from fanout.api.urls import origin_of_url
from fanout.errors import Denied
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.ports import TOKEN_USER, Credentials
from fanout.probes import HttpProbes, ProbeLimits

PATIENT = ProbeLimits(max_bytes=10_000)
QUICK = ProbeLimits(probe_seconds=0.5, max_bytes=10_000)
SECRETS = {
    "token": Credentials(TOKEN_USER, "tok-123"),
    "person": Credentials("ann", "pass-1"),
    "empty": Credentials("ann"),
    "odd": Credentials(TOKEN_USER, "tök-123"),
}


def secret(name):
    if name not in SECRETS:
        raise Denied(f"secret {name!r} was not found", reason="SecretUnusable")
    return SECRETS[name]


@pytest.fixture(scope="module")
def server():
    with service() as made:
        yield made


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def ask(*questions, limits=PATIENT):
    lent = {name: {origin_of_url(it.url) for it in questions} for name in (*SECRETS, "missing")}
    return HttpProbes(secret, lent, limits).ask(questions)


def failure_of(answer, server, path="/state"):
    assert isinstance(answer, ProbeFailure), answer
    assert answer.message.startswith(f"{server.url}{path}: ")
    return answer.message.removeprefix(f"{server.url}{path}: ")


def test_an_answer_is_status_and_body(server):
    server.pages["/state"] = Page('{"ok": true, "revision": "v2"}')
    assert ask(ProbeQuery(url=f"{server.url}/state")) == [
        ProbeResponse({"status": 200, "body": {"ok": True, "revision": "v2"}})
    ]


def test_a_missing_page_is_a_response(server):
    [answer] = ask(ProbeQuery(url=f"{server.url}/nowhere"))
    assert answer == ProbeResponse({"status": 404}, "its body is not JSON")


SILENT = [
    ("a server that fails says nothing", Page("{}", 500),
     "HTTP status 500, so the check has no result"),
    ("nor one that does not let us in", Page("{}", 403),
     "HTTP status 403, so the check has no result"),
    ("nor one that is too busy", Page("{}", 429),
     "HTTP status 429, so the check has no result"),
    ("a redirect to another host is not followed",
     Page("", 302, {"Location": "http://localhost:1/state"}),
     "it redirects to http://localhost:1, which is not followed"),
    ("nor one to another protocol", Page("", 302, {"Location": "https://127.0.0.1/state"}),
     "it redirects to https://127.0.0.1:443, which is not followed"),
    ("a redirect in a circle ends", Page("", 302, {"Location": "/state"}),
     "it redirects more than 3 times"),
    ("a huge answer is not read", Page(b"x" * 10_001),
     "no answer that can be read: the response has more than 10000 bytes"),
    ("an endless answer is not read", Page(b"x" * 1000, endless=True),
     "no answer that can be read: the response has more than 10000 bytes"),
    ("a slow answer is not waited for", Page(slow=True), "no answer within 0.5 s"),
    ("a compressed answer was not asked for",
     Page(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
     "no answer that can be read: the response is compressed, which was not requested"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "problem"), [row[1:] for row in SILENT], ids=[r[0] for r in SILENT]
)
def test_no_answer(server, page, problem):
    server.pages["/state"] = page
    [answer] = ask(ProbeQuery(url=f"{server.url}/state"), limits=QUICK if page.slow else PATIENT)
    assert failure_of(answer, server) == problem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("fine", "its body is not JSON"),
        ("", "its body is not JSON"),
        ('{"ok": NaN}', "its body is not JSON"),
        (b"\xff\xfe", "its body is not JSON"),
        ("[" * 5000 + "]" * 5000, "its body is not JSON"),
        ("[" * 100 + "]" * 100, "its body is nested too deeply"),
    ],
    ids=["text", "nothing", "not a number", "no text", "far too deep", "too deep"],
)
def test_a_body_that_cannot_be_read_leaves_the_status(server, body, problem):
    server.pages["/state"] = Page(body)
    limits = ProbeLimits(max_bytes=100_000)
    [answer] = HttpProbes(secret, {}, limits).ask([ProbeQuery(url=f"{server.url}/state")])
    assert answer == ProbeResponse({"status": 200}, problem)


def test_a_redirect_on_the_same_host_is_followed(server):
    server.pages["/old"] = Page("", 301, {"Location": "/state"})
    server.pages["/state"] = Page('{"ok": 1}')
    assert ask(ProbeQuery(url=f"{server.url}/old")) == [
        ProbeResponse({"status": 200, "body": {"ok": 1}})
    ]


def test_a_missing_service_is_asked_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        first, second = HttpProbes(secret, {}, ProbeLimits(concurrency=1)).ask(
            [ProbeQuery(url=f"{url}/a"), ProbeQuery(url=url)]
        )
    assert isinstance(first, ProbeFailure)
    assert isinstance(second, ProbeFailure)
    assert first.message.startswith(f"{url}/a: it cannot be reached: ")
    assert second.message.startswith(f"{url}: it cannot be reached: ")


def test_a_service_that_accepts_no_connection_cannot_be_reached():
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        where = full.getsockname()
        for _ in range(3):  # nobody accepts them: there is no room for more
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(where)
        url = f"http://127.0.0.1:{where[1]}"
        # On a busy machine the second half of the time, for the answer, must not end first.
        limits = ProbeLimits(probe_seconds=4, max_bytes=10_000)
        answers = ask(ProbeQuery(url=f"{url}/a"), ProbeQuery(url=f"{url}/b"), limits=limits)
    why = "it cannot be reached: no connection within 2 s"
    assert answers == [ProbeFailure(f"{url}/a: {why}"), ProbeFailure(f"{url}/b: {why}")]


def test_costs_of_probes_and_silent_services_are_reported(server):
    server.pages["/state"] = Page("1")
    reports: list[str] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        questions = [
            ProbeQuery(url=f"{server.url}/state"),
            ProbeQuery(url=f"{url}/a?key=1"),
            ProbeQuery(url=f"{url}/b"),
        ]
        HttpProbes(secret, {}, PATIENT, reports.append).ask(questions)
    [line] = reports
    assert re.fullmatch(rf"3 probes took [0-9.]+ s; 2 got no answer, from {url}", line)


def test_a_service_without_http_gives_no_response():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        [answer] = ask(ProbeQuery(url=url), limits=QUICK)
    assert answer == ProbeFailure(f"{url}: no answer within 0.5 s")


def test_equal_questions_are_asked_once(server):
    server.pages["/state"] = Page("1")
    server.asked.clear()
    question = ProbeQuery(url=f"{server.url}/state")
    assert (
        ask(question, question, ProbeQuery(url=f"{server.url}/state"))
        == [ProbeResponse({"status": 200, "body": 1})] * 3
    )
    assert len(server.asked) == 1


def test_many_are_asked_and_each_gets_its_own_answer(server):
    for number in range(40):
        server.pages[f"/{number}"] = Page(str(number))
    answers = ask(*(ProbeQuery(url=f"{server.url}/{number}") for number in range(40)))
    assert [answer.value["body"] for answer in answers] == list(range(40))


def test_a_query_without_remaining_time_is_not_sent(server):
    server.pages["/state"] = Page(slow=True)
    server.pages["/next"] = Page("1")
    limits = ProbeLimits(probe_seconds=0.3, batch_seconds=0.3, concurrency=1)
    questions = [ProbeQuery(url=f"{server.url}/state"), ProbeQuery(url=f"{server.url}/next")]
    first, second = HttpProbes(secret, {}, limits).ask(questions)
    assert failure_of(first, server) == "no answer within 0.3 s"
    problem = failure_of(second, server, "/next")
    assert problem == "the request was not sent: the other requests took all of 0.3 s"


def test_a_question_by_post_sends_its_body(server):
    server.pages["/ask"] = Page("{}")
    server.asked.clear()
    body = json.dumps({"app": "web"})
    ask(
        ProbeQuery(url=f"{server.url}/ask", method="POST", body=body, headers=(("X-Team", "edge"),))
    )
    [asked] = server.asked
    assert (asked.method, asked.body) == ("POST", body.encode())
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-team"] == "edge"


@pytest.mark.parametrize(
    ("name", "sent"),
    [("token", "Bearer tok-123"), ("person", "Basic YW5uOnBhc3MtMQ=="), ("", None)],
    ids=["a token alone", "user and password", "none"],
)
def test_credentials_come_from_the_secret(server, name, sent):
    server.pages["/state"] = Page("{}")
    server.asked.clear()
    ask(ProbeQuery(url=f"{server.url}/state", secret=name))
    assert server.asked[0].headers.get("authorization") == sent


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing", "secret 'missing' was not found"),
        ("empty", "its secret has neither a password nor a token"),
        ("odd", "its secret has characters that no header has"),
    ],
    ids=["is not there", "has no password", "cannot be sent"],
)
def test_without_a_usable_secret_nobody_is_asked(server, name, problem):
    server.asked.clear()
    [answer] = ask(ProbeQuery(url=f"{server.url}/state", secret=name))
    assert failure_of(answer, server) == problem
    assert server.asked == []


@pytest.mark.parametrize(
    "lent",
    [{}, {"token": ["http://127.0.0.1:1"]}, {"person": ["ORIGIN"]}],
    ids=["that nobody lent", "that is for another service", "that is another one"],
)
def test_a_secret_stays_here(server, lent):
    server.asked.clear()
    own = {name: [server.url if it == "ORIGIN" else it for it in at] for name, at in lent.items()}
    [answer] = HttpProbes(secret, own).ask([ProbeQuery(url=f"{server.url}/state", secret="token")])
    assert failure_of(answer, server) == (
        f"checks may not send the secret token there; an administrator lists it with {server.url}"
        " under checkSecrets of the FanoutConfiguration"
    )
    assert server.asked == []


def test_a_response_with_the_secret_is_not_read(server):
    server.pages["/state"] = Page('{"you": "Bearer tok-123"}')
    [answer] = ask(ProbeQuery(url=f"{server.url}/state?echo=1", secret=""))
    assert answer == ProbeResponse({"status": 404}, "its body is not JSON")
    [answer] = ask(ProbeQuery(url=f"{server.url}/state", secret="token"))
    assert failure_of(answer, server) == "the response contains the secret of the request"


def test_the_query_of_an_address_is_not_shown(server):
    [answer] = ask(ProbeQuery(url="http://127.0.0.1:1/state?key=abc"))
    assert "abc" not in answer.message


def test_services_that_hang_are_awaited_once_and_a_late_one_answers_the_next_time():
    with service() as slow:
        slow.pages["/state"] = Page('{"ok": true}')
        late, fast = ProbeQuery(url=f"{slow.url}/late"), ProbeQuery(url=f"{slow.url}/state")
        slow.pages["/late"] = Page('{"late": true}', slow=True)
        probes = HttpProbes(secret, {}, ProbeLimits(probe_seconds=60), patience=5)
        started = monotonic()
        failure, answer = probes.ask([late, fast])
        assert failure_of(failure, slow, "/late") == "no answer yet; the request goes on"
        assert answer == ProbeResponse({"status": 200, "body": {"ok": True}})
        for _ in range(20):
            assert isinstance(probes.ask([late])[0], ProbeFailure)
        assert monotonic() - started < 9
        slow.closing.set()
        sleep(0.5)
        assert probes.ask([late]) == [ProbeResponse({"status": 200, "body": {"late": True}})]
        assert [it.path for it in slow.asked].count("/late") == 1
