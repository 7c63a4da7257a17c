"""How long the calls of a pass take at the limits of each host."""

import json

import pytest

from fanout.api.fanout_configuration import ForgeHost
from fanout.plan.actions import RequestChange, RequestStatus
from fanout.plan.observation.observed_request import RequestDraft, StatusState
from fanout.plan.observation.repository_state import Remote
from fanout.plan.pull_requests.call_estimate import estimate_calls
from fanout.plan.pull_requests.call_limits import CallLimits, HostLimits, limits_of_host
from fanout.values import replace

SMALL = CallLimits(calls_per_minute=60, creations_per_hour=10)
GITHUB = limits_of_host(
    ForgeHost.model_validate({"host": "x", "type": "github", "secretRef": {"name": "token"}})
)


def opened(
    number: int, *, host: str = "git.example.com", repository: str = ""
) -> list[RequestChange]:
    """So many requests to open, each with a label and a status, in as many repositories."""
    draft = RequestDraft("drafts/x", "main", "title", "text", is_draft=True)
    status = RequestStatus("fanout", StatusState.PENDING, "waits")
    return [
        RequestChange(
            remote=Remote(f"https://{host}/org/{repository or f'edge{index}'}.git"),
            repository=f"https://{host}/org/{repository or f'edge{index}'}#refs/heads/main",
            policy="platform/monitoring",
            head_ref="refs/heads/drafts/x",
            opening=draft,
            added_labels=("fanout",),
            status=status,
        )
        for index in range(number)
    ]


def limits_by(limits: CallLimits):
    """The limits of every host of example.com."""

    def limits_of(url: str) -> HostLimits | None:
        host = url.split("/")[2] if "://" in url else ""
        return HostLimits(host, limits) if host.endswith("example.com") else None

    return limits_of


ESTIMATES = [
    ("nothing", 0, SMALL, {}, []),
    ("refs without requests", 0, SMALL, {"/srv/edge.git": 200}, ["200 refs to push"]),
    (
        "calls within the limits",
        10,
        SMALL,
        {"https://git.example.com/org/edge0.git": 1},
        ["git.example.com: 10 requests, 50 calls, 1 ref: within the host's limits"],
    ),
    (
        "calls of four minutes",
        50,
        CallLimits(calls_per_minute=60, creations_per_hour=1000),
        {},
        ["git.example.com: 50 requests, 250 calls, 0 refs: about 4 minutes at the host's limits"],
    ),
    (
        "one creation more than an hour takes",
        11,
        SMALL,
        {},
        ["git.example.com: 11 requests, 55 calls, 0 refs: about 60 minutes at the host's limits"],
    ),
    (
        "writes a second apart",
        101,
        GITHUB,
        {},
        ["git.example.com: 101 requests, 505 calls, 0 refs: about 7 minutes at the host's limits"],
    ),
    (
        "statuses and labels are content of an hour",
        126,
        GITHUB,
        {},
        ["git.example.com: 126 requests, 630 calls, 0 refs: about 60 minutes at the host's limits"],
    ),
    (
        "creations of ten hours, and refs of a host without requests",
        101,
        SMALL,
        {"https://git.example.com/org/edge0.git": 5, "https://other.org/org/edge.git": 2},
        [
            "git.example.com: 101 requests, 505 calls, 5 refs: about 10 hours at the host's limits",
            "2 refs to push elsewhere",
        ],
    ),
]


@pytest.mark.parametrize(
    ("number", "limits", "refs", "sentences"),
    [it[1:] for it in ESTIMATES],
    ids=[it[0] for it in ESTIMATES],
)
def test_an_estimate(number, limits, refs, sentences):
    estimate = estimate_calls(refs, opened(number), limits_by(limits))
    assert list(estimate.sentences()) == sentences


def test_the_label_of_holds_takes_two_calls_for_each_repository_with_a_new_request():
    changes = opened(3, repository="edge")
    kept = replace(changes[0], opening=None, added_labels=(), closes=True)
    limits = limits_by(CallLimits(60, 1000))
    [estimate] = estimate_calls({}, changes, limits).hosts
    assert estimate.calls == 3 * 3 + 2
    [estimate] = estimate_calls({}, [kept], limits).hosts
    assert estimate.calls == 2, "none is opened"


def test_each_host_has_its_own_limits_and_line():
    changes = opened(2) + opened(61, host="code.example.com")
    estimate = estimate_calls({}, changes, limits_by(CallLimits(60, 1000)))
    assert [(it.host, it.requests, it.calls, it.seconds) for it in estimate.hosts] == [
        ("code.example.com", 61, 305, 300),
        ("git.example.com", 2, 10, 0),
    ]
    assert json.loads(json.dumps(estimate.as_json()))["hosts"][0] == {
        "host": "code.example.com",
        "requests": 61,
        "calls": 305,
        "refs": 0,
        "seconds": 300,
    }


LIMITS = [
    ({}, 1200, 1200),
    ({"callsPerMinute": 60}, 60, 1200),
    ({"creationsPerHour": 10}, 1200, 10),
]


@pytest.mark.parametrize(("settings", "calls", "creations"), LIMITS)
def test_limits_are_those_of_the_program_unless_they_are_configured(settings, calls, creations):
    host = {"host": "git.example.com", "type": "gitea", "secretRef": {"name": "token"}}
    limits = limits_of_host(ForgeHost.model_validate({**host, **settings}))
    assert (limits.calls_per_minute, limits.creations_per_hour) == (calls, creations)
