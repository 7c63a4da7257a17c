"""Servers that take connections and never answer: whoever does not need them goes on at once."""

from datetime import UTC, datetime
from functools import partial
from statistics import median
from time import monotonic, sleep

import pytest
from fleet import POLICY, PROMOTION, Fleet
from forge_proxy import Fault, proxying
from http_git import serving
from run_process import run_processes
from service import Page, service

from fanout.cli.process_exit import ExitCode
from fanout.git.remote_workers import RemoteTimeout

UNVERIFIED = POLICY.replace(", verification: [{name: e2e, report: {}}]", "").replace(
    ", soak: 1h", ""
)
# By where it hangs: requests with this in their path get no answer.
HANGS = {"listing": "/info/refs", "fetch": "/git-upload-pack", "push": "/git-receive-pack"}
SLOW = ["slow1", "slow2", "slow3", "slow4"]


@pytest.fixture
def start():
    with run_processes(GIT_ALLOW_PROTOCOL="file:http") as begin:
        yield begin


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:http")
    with serving(tmp_path / "git") as made:
        made.old = True  # the listing is one request, and the fetch another one
        yield made


@pytest.fixture
def fleet(tmp_path, server):
    """One policy for a repository on disk, and one for repositories behind the server."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), **{it: ("dev", it) for it in SLOW}})
    for name in ("ams", *SLOW):
        path = fleet.root / "policies" / f"site-{name}.yaml"
        of = "edge" if name == "ams" else "slow"
        path.write_text(path.read_text().replace("{tier: dev}", f"{{tier: dev, of: {of}}}"))
    for name in SLOW:
        text = (fleet.root / "policies" / f"repository-{name}.yaml").read_text()
        url = server.url(f"{name}.git")
        fleet.write(f"repository-{name}.yaml", text.replace(str(fleet.repos[name].path), url))
    kind = "kind: Cluster}"
    chosen = "kind: Cluster, matchLabels: {{of: {}}}}}"
    fleet.write("policy.yaml", UNVERIFIED.replace(kind, chosen.format("edge")))
    slow = UNVERIFIED.replace("name: monitoring}\nspec", "name: slow}\nspec")
    fleet.write("policy-slow.yaml", slow.replace(kind, chosen.format("slow")))
    fleet.now = datetime.now(UTC)
    return fleet


def published(fleet, repository="edge"):
    return sorted(fleet.repos[repository].tags())


def hang(fleet, server, part):
    """Make the server hang, and give it something to do in this part."""
    server.silence(HANGS[part])
    for name in SLOW:
        fleet.repos[name].commit("main", {"note.txt": "by hand\n"})


@pytest.mark.parametrize("part", HANGS)
def test_a_sweep_serves_the_others_and_names_what_it_left_out(fleet, server, part, monkeypatch):
    monkeypatch.setattr("fanout.cli.startup.COMMAND_PATIENCE", RemoteTimeout(2, 2, is_shared=True))
    server.silence(HANGS[part])
    started = monotonic()
    first, second = fleet.sweep(), fleet.sweep()
    assert monotonic() - started < 20
    assert published(fleet) == ["sites/ams/v1"]
    assert (first.code, second.code) == (ExitCode.SOME_FAILED, ExitCode.SOME_FAILED)
    for name in SLOW:
        assert published(fleet, name) == []
        assert name in first.err + first.out


@pytest.mark.parametrize("part", HANGS)
def test_changes_of_others_do_not_wait_and_the_rest_is_made_up_when_the_server_answers(
    fleet, server, start, part
):
    running = start(fleet, "--interval", "20s")
    running.until(lambda: all(published(fleet, name) for name in ("edge", *SLOW)))
    hang(fleet, server, part)
    fleet.release("v2")
    running.until(lambda: "sites/ams/v2" in published(fleet))
    seconds = []
    for number in range(3, 8):
        started = monotonic()
        fleet.site("ams", "dev, of: edge", "edge", retention=f"{number}d")
        running.until(partial(has_published, fleet, number))
        seconds.append(monotonic() - started)
        sleep(0.5)
    # Of which files take half a second until they count as written.
    assert median(seconds) < 3, seconds
    assert [len(published(fleet, name)) for name in SLOW] == [1] * len(SLOW)
    server.before = lambda _: None
    server.closing.set()
    running.until(lambda: all(len(published(fleet, name)) == 2 for name in SLOW))
    assert running.end() == ExitCode.OK
    reasons = {line.get("reason") for line in running.log()} | {running.path.read_text()}
    assert "has not answered within" in str(reasons)


CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- {{host: "{host}", type: gitea, api: "{api}", secretRef: {{name: gitea}}}}
"""
FAULTS = {
    "gives no answer": Fault(delay=300),
    "takes calls later": Fault(status=429, headers={"Retry-After": "20"}),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_changes_of_others_do_not_wait_for_a_forge(fleet, server, start, fault):
    (server.root / "org").symlink_to(".")
    for name in SLOW:
        text = (fleet.root / "policies" / f"repository-{name}.yaml").read_text()
        text = text.replace(server.url(), server.url("org")).removesuffix("}\n")
        fleet.write(f"repository-{name}.yaml", f"{text}, forge: {{type: gitea}}}}\n")
    secret = fleet.root / "state" / "secrets" / "gitea"
    secret.parent.mkdir(parents=True)
    secret.write_text("token")
    secret.chmod(0o600)
    with proxying() as proxy:
        proxy.next_fault = lambda _: fault
        host = server.url().removeprefix("http://")
        configuration = fleet.root / "fanout.yaml"
        configuration.write_text(CONFIGURATION.format(host=host, api=proxy.api))
        running = start(fleet, "--interval", "1h", "--config", str(configuration))
        running.until(lambda: published(fleet) and proxy.seen)
        seconds = []
        for number in range(2, 7):
            started = monotonic()
            fleet.site("ams", "dev, of: edge", "edge", retention=f"{number}d")
            running.until(partial(has_published, fleet, number))
            seconds.append(monotonic() - started)
        assert max(seconds) < 10, seconds
        assert median(seconds) < 3, seconds
        if fault.status == 429:  # it is called again at the time that it names, not by the interval
            calls = len(proxy.seen)
            running.until(lambda: len(proxy.seen) > calls)
        proxy.closing.set()
        assert running.end() == ExitCode.OK


def test_a_check_is_answered_although_no_round_waited_for_it(tmp_path, start):
    with service() as slow:
        slow.pages["/state"] = Page('{"ok": true}', slow=True)
        http = f"{{url: '{slow.url}/state', cel: response.body.ok}}"
        check = f"{{name: e2e, freshFor: 10m, settle: 1s, http: {http}}}"
        fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
        policy = POLICY.replace("{name: e2e, report: {}}", check, 1).replace(", soak: 1h", "")
        fleet.write("policy.yaml", policy)
        fleet.now = datetime.now(UTC)
        running = start(fleet, "--interval", "1h")
        running.until(lambda: slow.asked and "sites/ams/v1" in published(fleet))
        sleep(4)  # until the round has left the request
        slow.closing.set()
        running.until(lambda: "sites/ber/v1" in published(fleet))
        assert running.end() == ExitCode.OK


def has_published(fleet, number):
    return len(published(fleet)) == number


@pytest.mark.parametrize("part", HANGS)
def test_a_signal_ends_a_process_while_servers_hang(fleet, server, start, part):
    server.silence(HANGS[part])
    running = start(fleet)
    running.until(lambda: published(fleet) == ["sites/ams/v1"])
    sleep(1)
    started = monotonic()
    assert running.end() == ExitCode.OK
    assert monotonic() - started < 8


def test_a_suspension_binds_a_push_that_hangs(fleet, server, start, monkeypatch):
    """The server takes connections, and nothing that is sent over them."""
    monkeypatch.setattr("fanout.cli.startup.COMMAND_PATIENCE", RemoteTimeout(1, 1, is_shared=True))
    fleet.options = ("--records", str(fleet.root / "records.git"))
    fleet.write("promotion.yaml", PROMOTION.replace('policies: ["*"]', "policies: [monitoring]"))
    # A state directory of its own: a command waits for the mirror that the loop pushes from.
    running = start(fleet, "--interval", "20s", *fleet.options, name="-loop")
    running.until(lambda: all(fleet.repos[name].drafts() for name in SLOW))
    server.silence("info/refs?service=git-receive-pack")
    fleet.now = datetime.now(UTC)
    fleet.run("promote", "slow", "--stage", "dev", "--revision", "v1", "--reason", "go")
    running.until(lambda: "publish slow1:sites/slow1 at v1" in running.path.read_text())
    fleet.now = datetime.now(UTC)
    assert fleet.run("suspend", "slow", "--reason", "a fault").code in (
        ExitCode.OK,
        ExitCode.SOME_FAILED,
    )
    sleep(4)  # until the loop has read it
    server.before = lambda _: None
    server.closing.set()
    sleep(4)
    assert [published(fleet, name) for name in SLOW] == [[]] * len(SLOW)
    assert running.end() == ExitCode.OK
