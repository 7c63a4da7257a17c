"""The token of fanout's account shows nowhere, whatever the host answers, and to whichever call.

The proxy in front of a real Gitea fails each call of a life once, with answers that have the token
in them. All that fanout printed or wrote is searched for it: outputs, files, records, repositories,
and what the host shows of pull requests.
"""

import json
import os
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from unittest import mock
from urllib.parse import quote

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from forge_proxy import Fault, ForgeProxy, proxying
from gitea_server import Gitea
from run_process import run_processes

from fanout.cli.process_exit import ExitCode

WEBHOOK_SECRET = "c4nary-of-the-webhook-s3cret"
WEBHOOK = {"FANOUT_SECRET_HOOKS": WEBHOOK_SECRET}
REQUEST = "\n  pullRequest: {labels: [deployment], reviewers: [ann, nobody-here]}\n"
SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge")}

LOOKING = (
    ("plan", "-o", "json"),
    ("plan", "-vvv"),
    ("get", "variants", "-o", "yaml"),
    ("explain", "monitoring", "-vvv"),
    ("validate", "-vvv"),
)
LIMIT = 200  # sweeps
IN_A_ROW = 2

pytestmark = pytest.mark.forge


def faults(header: str, token: str) -> list[Fault]:
    """Answers of a host that repeats what it was sent."""
    words = json.dumps({"message": f"bad header Authorization: {header} of {token}"}).encode()
    place = {"Location": f"https://{quote(header)}@elsewhere.example.com/?token={token}"}
    return [
        Fault(500, words),
        Fault(401, words),
        Fault(404, words),
        Fault(422, words),
        Fault(302, b"{}", place),
        Fault(200, f"<html>{header} {token}".encode()),
        Fault(200, words, missing=9),
        Fault(200, words, {"X-Token\r\n": f"{token}\0"}),  # what no client can parse
        Fault(resets=True),
        Fault(forwards=True, resets=True),
    ]


class Failing:
    """A proxy that fails two calls in a row of those that follow; the kinds take turns.

    One alone would be overcome by asking again, and three in a row close the host for a while.
    """

    def __init__(self, proxy: ForgeProxy, kinds: list[Fault]) -> None:
        self.kinds, self.turn, self.ahead, self.left = kinds, 0, 0, 0
        proxy.next_fault = self.next_fault

    def fail(self, number: int) -> None:
        """Fail the calls before which so many are answered."""
        self.ahead, self.left = number, IN_A_ROW

    @property
    def is_unused(self) -> bool:
        return self.left == IN_A_ROW

    def renewed(self) -> int:
        """Let further calls fail if all that should have; return how many did."""
        if not self.left:
            self.fail(1)
        return self.turn

    def next_fault(self, _: str) -> Fault | None:
        self.ahead -= 1
        if not self.left or self.ahead >= 0:
            return None
        self.left -= 1
        self.turn += 1
        return self.kinds[self.turn % len(self.kinds)]


@pytest.fixture
def proxy(gitea: Gitea) -> Iterator[ForgeProxy]:
    with proxying(gitea.url) as server:
        yield server


@pytest.fixture
def fleet(gitea: Gitea, proxy: ForgeProxy, tmp_path: Path) -> ForgeFleet:
    """Two stages, requests with labels and reviewers, and a secret for webhooks."""
    made = ForgeFleet.on(gitea, tmp_path, SITES, api=proxy.api)
    config = tmp_path / "config.yaml"
    hooks = "webhookSecretRef: {name: hooks}, secretRef:"
    config.write_text(config.read_text().replace("secretRef:", hooks))
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.write("promotion.yaml", PROMOTION.rstrip() + REQUEST)
    return made


def canaries(fleet: ForgeFleet) -> list[str]:
    """The secrets, as they are and as they are sent."""
    token = fleet.gitea.tokens[fleet.bot]
    pair = b64encode(f"{fleet.bot}:{token}".encode()).decode()
    return [token, token[4:], pair, quote(pair), WEBHOOK_SECRET]


@pytest.fixture
def failing(fleet: ForgeFleet, proxy: ForgeProxy) -> Failing:
    token, _, pair, *_ = canaries(fleet)
    return Failing(proxy, faults(f"Basic {pair}", token))


def test_commands_show_no_secret(fleet: ForgeFleet, failing: Failing):
    outputs = list(life(fleet, failing))
    assert failing.turn > len(failing.kinds), "each kind of failure was there"
    assert set(fleet.published().values()) == {"v2"}, "the failures were overcome"
    shown = b"\0".join([*(text.encode() for text in outputs), *written(fleet)])
    for witness in (b"drafts/default", b"Fanout-Policy", b"gave no usable answer", b"replicas: 2"):
        assert witness in shown, "what is searched has what was said and written"
    assert not [it for it in canaries(fleet) if it.encode() in shown]


def test_a_running_process_shows_no_secret(fleet: ForgeFleet, failing: Failing):
    options = ("-vv", "--interval", "1s", "--hooks", "127.0.0.1:0", *fleet.options)
    failing.fail(0)
    with run_processes(**WEBHOOK, **fleet.environment()) as start:
        running = start(fleet, *options)
        running.until(lambda: any(it["event"] == "Receiving webhooks" for it in running.log()))
        (line,) = (it for it in running.log() if it["event"] == "Receiving webhooks")
        send_hook(f"http://{line['address']}/hooks/{fleet.gitea.host}")
        running.until(lambda: failing.renewed() > len(failing.kinds))
        assert running.end() == ExitCode.OK
        log = running.path.read_text()
    assert "gave no usable answer" in log
    shown = b"\0".join([log.encode(), *written(fleet)])
    assert not [it for it in canaries(fleet) if it.encode() in shown]


def send_hook(url: str) -> None:
    """Send a hook that is wrongly signed and has the secret in its body and its header."""
    headers = {"X-Gitea-Signature": WEBHOOK_SECRET, "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps({"s": WEBHOOK_SECRET}).encode(), headers)
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(request, timeout=60)
    with refused.value as answer:
        assert WEBHOOK_SECRET not in answer.read().decode()


def life(fleet: ForgeFleet, failing: Failing) -> Iterator[str]:
    """Two revisions, with commands that look at them; yield all that is printed."""
    with mock.patch.dict(os.environ, WEBHOOK):
        for revision in ("v1", "v2"):
            if revision != "v1":
                fleet.release(revision)
            yield from sweeps(fleet, failing)
            fleet.report("dev", revision)
            yield from sweeps(fleet, failing)
            for arguments in LOOKING:
                failing.fail(1)
                done = fleet.run(*arguments)
                yield done.out + done.err


def sweeps(fleet: ForgeFleet, failing: Failing) -> Iterator[str]:
    """Sweep until nothing is left to do, failing another call each time."""
    number = 0
    for _ in range(LIMIT):
        failing.fail(number)
        swept = fleet.later(minutes=1).sweep("-vvv", "-o", "json")
        yield swept.out + swept.err
        number += 1
        if failing.is_unused:  # the sweep made fewer calls
            if not swept.json["outcomes"]:
                return
            number = 0
    raise AssertionError("the sweeps do not come to an end")


def written(fleet: ForgeFleet) -> Iterator[bytes]:
    """Everything in files and repositories, and on the host's pages of pull requests."""
    clones = fleet.root / "clones"  # of people
    for path in sorted(fleet.root.rglob("*")):
        if path.is_file() and clones not in path.parents:
            yield path.read_bytes()
    bare = [path.parent for path in fleet.root.rglob("HEAD") if (path.parent / "objects").is_dir()]
    for directory in (*bare, *(repo.path for repo in fleet.repos.values())):
        for command in (("cat-file", "--batch-all-objects", "--batch"), ("for-each-ref",)):
            yield subprocess.run(
                ["git", *command], cwd=directory, capture_output=True, check=True
            ).stdout
    for name in fleet.repos:
        if name == "blueprints":
            continue
        for request in fleet.requests(name):
            comments = fleet.gitea.get(f"{fleet.path(name)}/issues/{request['number']}/timeline")
            statuses = fleet.gitea.get(f"{fleet.path(name)}/commits/{request['commit']}/statuses")
            yield json.dumps([request, comments, statuses]).encode()
