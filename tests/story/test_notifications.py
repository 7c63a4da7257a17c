"""Notifications: real addresses get each transition once, signed, and hold up no pass."""

import hmac
import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from editing import DEPLOYMENT, TEXT
from fleet import POLICY, PROMOTION, Fleet
from run_process import run_processes
from service import Page, Service, service

from fanout.cli.process_exit import ExitCode
from fanout.notify import CONTENT_TYPE, HttpEventSender, SendLimits

FAILURE = [("StageHalted", "dev", "v1"), ("VariantFailed", "dev", "v1")]
SEND = HttpEventSender.send
SECRET = "canary-of-the-notifications"
BROKEN = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: broken}
spec:
  upstream: {repository: nowhere, package: monitoring, revision: {semver: ">=1 <9"}}
  targets: [{repositories: [{name: edge, packageNames: [broken]}], template: {stage: dev}}]
  stages: [{name: dev}]
"""
APPROVED = POLICY.replace(
    "after: {stages: [dev], soak: 1h}",
    "after: {stages: [dev]}, requires: [{name: signed, approval: {from: [sre]}}]",
)


@dataclass
class Company:
    """A fleet whose notifications go to a real service."""

    fleet: Fleet
    site: Service

    def configure(self, **entry: object) -> None:
        chat = {"name": "chat", "url": f"{self.site.url}/chat", "secretRef": {"name": "chat"}}
        self.write([{**chat, **entry}])

    def write(self, entries: list[dict[str, object]]) -> None:
        path = self.fleet.root / "config.yaml"
        meta = {"apiVersion": "fanout.dev/v1alpha1", "kind": "FanoutConfiguration"}
        path.write_text(json.dumps({**meta, "notifications": entries}))
        self.fleet.options = ["--config", str(path)]

    def bodies(self, path: str = "/chat") -> list[dict[str, Any]]:
        return [json.loads(it.body) for it in self.site.asked if it.path == path]

    def events(self, path: str = "/chat") -> list[tuple[str, str, str]]:
        """Event, stage and revision of what an address got."""
        data = (it["data"] for it in self.bodies(path))
        return [(it["event"], it.get("stage", ""), it.get("revision", "")) for it in data]

    def new(self) -> list[tuple[str, str, str]]:
        """The events since the last call."""
        events = self.events()
        self.site.asked.clear()
        return events


@pytest.fixture
def site():
    with service() as made:
        made.pages["/chat"] = Page("", 204)
        yield made


@pytest.fixture
def company(tmp_path, site, monkeypatch):
    monkeypatch.setenv("FANOUT_SECRET_CHAT", SECRET)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    fleet.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made = Company(fleet, site)
    made.configure()
    return made


def publish(company: Company) -> None:
    """Sweep until nothing changes, a minute at a time."""
    for _ in range(4):
        company.fleet.later(minutes=1).sweep()


def test_each_transition_is_notified_of_once(company):
    fleet = company.fleet
    publish(company)
    assert company.new() == []
    fleet.report("dev", "v1", "failed")
    fleet.later(minutes=1).sweep()
    assert company.new() == FAILURE
    fleet.later(minutes=1).sweep()
    fleet.later(minutes=1).sweep()
    assert company.new() == []
    fleet.release("v2")
    publish(company)
    fleet.report("dev", "v2")
    publish(company)
    assert company.new() == [("StagePassed", "dev", "v2"), ("RolloutDone", "", "v2"),
                             ("StagePassed", "prod", "v2")]  # fmt: skip
    publish(company)
    assert company.new() == []


def test_an_event_is_a_signed_cloud_event(company):
    publish(company)
    company.fleet.report("dev", "v1", "failed")
    company.fleet.later(minutes=1).sweep()
    request = company.site.asked[-1]
    assert request.headers["content-type"] == CONTENT_TYPE
    expected = hmac.new(SECRET.encode(), request.body, "sha256").hexdigest()
    assert request.headers["x-signature"] == f"sha256={expected}"
    body = json.loads(request.body)
    data = body.pop("data")
    assert len(body.pop("id")) == 32
    assert body == {
        "specversion": "1.0",
        "source": "/fanout/default",
        "type": "dev.fanout.VariantFailed",
        "subject": "default/monitoring/dev",
        "time": company.fleet.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "datacontenttype": "application/json",
    }
    message = data.pop("message")
    variant = company.fleet.targets()["ams"]["variant"]
    assert message.startswith(f"1 variant failed v1 in stage dev ({variant}): ")
    assert data.pop("variants") == [variant]
    assert data == {
        "namespace": "default",
        "policy": "monitoring",
        "stage": "dev",
        "revision": "v1",
        "event": "VariantFailed",
        "variantCount": 1,
        "command": "fanout explain monitoring --namespace default",
    }


def test_many_variants_are_one_event(company):
    for number in range(25):
        company.fleet.site(f"site{number:02}", "dev", "edge")
    publish(company)
    company.fleet.report("dev", "v1", "failed")
    company.fleet.later(minutes=1).sweep()
    [failed] = [it["data"] for it in company.bodies() if it["data"]["event"] == "VariantFailed"]
    assert failed["variantCount"] == 26
    assert len(failed["variants"]) == 20


def test_a_stopped_policy_is_reported_and_its_end_and_return_too(company):
    publish(company)
    company.fleet.write("broken.yaml", BROKEN)
    company.fleet.later(minutes=1).sweep()
    assert company.new() == [("PolicyStopped", "", "")]
    company.fleet.later(minutes=1).sweep()
    company.fleet.remove("broken.yaml")
    company.fleet.later(minutes=1).sweep()
    assert company.new() == []
    company.fleet.write("broken.yaml", BROKEN)
    company.fleet.later(minutes=1).sweep()
    assert company.new() == [("PolicyStopped", "", "")]


def test_drafts_that_wait_for_approvals_are_reported(company):
    company.fleet.write("promotion.yaml", PROMOTION)
    company.fleet.write("policy.yaml", APPROVED)
    publish(company)
    company.fleet.report("dev", "v1")
    publish(company)
    assert ("ApprovalAwaited", "prod", "v1") in company.events()


def test_no_approval_is_requested_before_an_earlier_stage_passes(company):
    company.fleet.write("promotion.yaml", PROMOTION)
    company.fleet.write("policy.yaml", APPROVED)
    publish(company)
    company.fleet.site("cph", "prod", "edge")
    publish(company)
    assert company.new() == []
    company.fleet.report("dev", "v1")
    publish(company)
    assert ("ApprovalAwaited", "prod", "v1") in company.new()


def test_no_approval_is_requested_after_an_earlier_stage_failed(company):
    company.fleet.write("promotion.yaml", PROMOTION)
    company.fleet.write("policy.yaml", APPROVED)
    publish(company)
    company.fleet.report("dev", "v1", "failed")
    publish(company)
    company.new()
    company.fleet.site("cph", "prod", "edge")
    publish(company)
    view = company.fleet.run("explain", "monitoring/prod", "-o", "json").json["status"]
    assert {it["reason"] for it in view["blockers"]} == {"AfterFailed", "ApprovalMissing"}
    assert company.new() == []


def test_merge_conflicts_are_reported(company):
    publish(company)
    text = TEXT.replace("replicas: 1", "replicas: 7")
    company.fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    company.fleet.release("v2")
    publish(company)
    assert company.new() == [("MergeConflict", "dev", "v2")]


def failing(company: Company) -> None:
    """A fleet at rest, and then a check that fails."""
    publish(company)
    company.fleet.report("dev", "v1", "failed")
    company.fleet.later(minutes=1)


MOVED = Page("", 302, {"Location": "/other"})
REFUSALS = [
    ("fails", Page("", 500), "it answered with HTTP status 500"),
    ("forbids", Page(SECRET, 403), "it answered with HTTP status 403"),
    ("redirects", MOVED, "it redirects (302), which is not followed"),
    ("hangs", Page("", slow=True), "no answer within 0 s"),
    ("never stops", Page("x" * 65536, 500, endless=True), "it answered with HTTP status 500"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "page", "problem"), REFUSALS, ids=[it[0] for it in REFUSALS])
def test_an_address_that(company, monkeypatch, sentence, page, problem):
    """It changes nothing about the pass; the event waits and is delivered with the same id."""
    monkeypatch.setattr("fanout.notify.SendLimits", lambda: SendLimits(0.3, 2.0))
    company.site.pages |= {"/chat": page, "/other": Page("", 204)}
    failing(company)
    done = company.fleet.sweep()
    assert done.code == ExitCode.SOME_FAILED  # the check has failed; the address counts for nothing
    warning = f"warning: notification chat cannot be delivered: {problem}; waiting: 2"
    assert [it for it in done.err.splitlines() if "notification" in it] == [warning]
    assert SECRET not in done.err + done.out
    assert company.events("/other") == []
    first = company.bodies()
    company.site.pages["/chat"] = Page("", 204)
    company.site.asked.clear()
    company.fleet.sweep()
    assert company.events() == []  # the address has its pause
    company.fleet.later(minutes=1).sweep()
    assert sorted(company.events()) == [
        ("StageHalted", "dev", "v1"),
        ("VariantFailed", "dev", "v1"),
    ]
    assert first[0] in company.bodies()
    company.site.asked.clear()
    company.fleet.later(minutes=1).sweep()
    assert company.events() == []


def test_a_process_that_ends_between_delivery_and_its_record_delivers_again(company, monkeypatch):
    failing(company)

    def send_and_die(sender, batches):
        SEND(sender, batches)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HttpEventSender, "send", send_and_die)
        assert company.fleet.sweep().code == ExitCode.INTERRUPTED
    first = company.bodies()
    assert company.new() == FAILURE
    company.fleet.later(minutes=1).sweep()
    assert company.bodies() == first
    assert company.new() == FAILURE
    company.fleet.later(minutes=1).sweep()
    assert company.new() == []


def test_an_unreachable_address_is_reported(company):
    company.configure(url="http://127.0.0.1:9/chat")
    failing(company)
    done = company.fleet.sweep()
    assert "notification chat cannot be delivered: no answer (" in done.err


def test_an_event_is_never_sent_without_its_signature(company, monkeypatch):
    failing(company)
    monkeypatch.delenv("FANOUT_SECRET_CHAT")
    done = company.fleet.sweep()
    assert "notification chat cannot be delivered: " in done.err
    assert company.site.asked == []


def test_a_slow_address_delays_no_other_address(company, monkeypatch):
    monkeypatch.setattr("fanout.notify.SendLimits", lambda: SendLimits(0.3, 2.0))
    entry = {"secretRef": {"name": "chat"}}
    company.write(
        [
            {"name": "dead", "url": f"{company.site.url}/dead", **entry},
            {"name": "chat", "url": f"{company.site.url}/chat", **entry},
        ]
    )
    company.site.pages["/dead"] = Page("", slow=True)
    failing(company)
    company.fleet.sweep()
    assert len(company.events()) == 2


def test_an_address_that_stays_dead_gets_an_event_for_a_day_at_most(company):
    company.site.pages["/chat"] = Page("", 500)
    failing(company)
    company.fleet.sweep()
    attempts = len(company.site.asked)
    for _ in range(30):
        company.fleet.later(minutes=2).sweep()
    # Pauses double up to ten minutes.
    assert attempts < len(company.site.asked) < 15
    company.site.asked.clear()
    company.site.pages["/chat"] = Page("", 204)
    company.fleet.later(days=2).sweep()
    assert company.events() == []


def test_policies_and_events_are_filtered(company):
    entry = {"url": f"{company.site.url}/chat", "secretRef": {"name": "chat"}}
    others = {
        "others": {"policies": ["another"]},
        "halts": {"events": ["StageHalted"]},
        "mine": {"policies": ["default/monitoring"], "events": ["VariantFailed"]},
    }
    for name in others:
        company.site.pages[f"/{name}"] = Page("", 204)
    company.write(
        [{**entry, "name": it, "url": f"{company.site.url}/{it}", **others[it]} for it in others]
    )
    failing(company)
    company.fleet.sweep()
    assert company.events("/others") == []
    assert company.events("/halts") == [("StageHalted", "dev", "v1")]
    assert company.events("/mine") == [("VariantFailed", "dev", "v1")]


def test_a_present_state_is_not_sent_to_a_new_address_or_after_a_lost_state(company):
    company.fleet.options = []
    failing(company)
    company.fleet.sweep()
    company.configure()
    company.fleet.later(minutes=1).sweep()
    assert company.new() == []
    state = company.fleet.root / "state"
    for lose in (
        (state / "notifications.json").unlink,
        partial(shutil.rmtree, state / "rest"),
        partial((state / "notifications.json").write_text, "{}"),
    ):
        lose()
        company.fleet.later(minutes=1).sweep()
        company.fleet.later(minutes=1).sweep()
        assert company.new() == []
    company.fleet.release("v2")
    publish(company)
    company.fleet.report("dev", "v2", "failed")
    company.fleet.later(minutes=1).sweep()
    assert ("VariantFailed", "dev", "v2") in company.new()


def test_a_sweep_of_one_policy_makes_nothing_of_the_others_new(company):
    company.fleet.write("broken.yaml", BROKEN)
    company.fleet.sweep("monitoring")
    company.fleet.later(minutes=1).sweep()
    assert company.new() == []


def test_secrets_are_taken_out_of_events(company):
    publish(company)
    # A message quotes the name of the repository, which is the text of a secret.
    company.fleet.write("broken.yaml", BROKEN.replace("nowhere", SECRET))
    company.fleet.later(minutes=1).sweep()
    assert company.events()
    assert SECRET.encode() not in b"".join(it.body for it in company.site.asked)


def test_a_plan_sends_nothing(company):
    failing(company)
    company.fleet.plan()
    assert company.site.asked == []


@pytest.mark.parametrize("page", [Page("", 204), Page("", slow=True)], ids=["answers", "hangs"])
def test_run_delivers_beside_its_passes(company, page):
    company.site.pages["/chat"] = page
    publish(company)
    company.fleet.now = datetime.now(UTC)
    with run_processes(FANOUT_SECRET_CHAT=SECRET) as start:
        running = start(company.fleet, "--interval", "1s", *company.fleet.options)
        running.until(running.passes)
        company.fleet.report("dev", "v1", "failed")
        running.until(lambda: company.site.asked)
        asked_at = len(running.passes())
        running.until(lambda: len(running.passes()) > asked_at + 2)
        if not page.slow:
            running.until(lambda: len(company.site.asked) == 2)
            assert company.new() == FAILURE
        assert running.end() == ExitCode.OK
        assert SECRET not in running.path.read_text()
    if page.slow:
        company.site.pages["/chat"] = Page("", 204)
        company.site.asked.clear()
        company.fleet.now = datetime.now(UTC)
        company.fleet.later(minutes=30).sweep()
        assert len(company.events()) == 2
