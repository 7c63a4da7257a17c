"""The figures on the page about rate limits are those of the code."""

import re
from pathlib import Path

import pytest
import yaml

from fanout.api.fanout_configuration import FanoutConfiguration, ForgeHost, ForgeProgram
from fanout.forge.governor import CircuitBreaker
from fanout.plan.actions import RequestChange, RequestStatus
from fanout.plan.observation.observed_request import RequestDraft, StatusState
from fanout.plan.observation.repository_state import Remote
from fanout.plan.pull_requests.call_estimate import estimate_calls
from fanout.plan.pull_requests.call_limits import MINUTE, CallLimits, HostLimits, limits_of_host

PAGE = (Path(__file__).parents[1] / "docs/reference/rate-limits.md").read_text(encoding="utf-8")
HOST = "git.example.com"


def rows_below(head: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    _, _, text = PAGE.partition(f"| {head} |")
    lines = text.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def host(program: str, **settings: int) -> ForgeHost:
    fields = {"host": HOST, "type": program, "secretRef": {"name": "token"}, **settings}
    return ForgeHost.model_validate(fields)


def time_for(requests: int, limits: CallLimits) -> str:
    """What a plan says about the time for opening so many requests."""
    changes = [
        RequestChange(
            remote=Remote(f"https://{HOST}/org/edge.git"),
            repository="edge",
            policy="platform/monitoring",
            head_ref=f"refs/heads/drafts/default/{number}",
            opening=RequestDraft("drafts/default/x", "main", "title", "text", is_draft=True),
            status=RequestStatus("fanout", StatusState.PENDING, "waits"),
        )
        for number in range(requests)
    ]
    estimate = estimate_calls({}, changes, lambda _: HostLimits(HOST, limits))
    sentence = next(estimate.sentences())
    time = re.search(r": (within|about .*?)(?: at)? the host's limits", sentence)
    assert time is not None, sentence
    return f"{estimate.hosts[0].calls} {time[1]}"


def test_the_limits_of_each_program():
    limits_by_program = {
        row[0].strip("`"): [int(cell) for cell in row[1:]] for row in rows_below("program")
    }
    limits = {name: limits_of_host(host(name)) for name in limits_by_program}
    assert limits_by_program == {
        name: [it.calls_per_minute, it.creations_per_hour] for name, it in limits.items()
    }
    assert ForgeProgram.GITEA.value in limits_by_program


@pytest.mark.parametrize("row", rows_below("variants"), ids=lambda row: " ".join(row[:2]))
def test_the_page_s_durations_of_requests_are_computed(row):
    variants, drafts, requests, calls, gitea, small = row
    assert int(requests) == int(variants) // int(drafts.split()[0])
    hundred = limits_of_host(host("gitea", creationsPerHour=100))
    assert time_for(int(requests), limits_of_host(host("gitea"))) == f"{calls} {gitea}"
    assert time_for(int(requests), hundred) == f"{calls} {small}"


def test_the_other_figures():
    limits, breaker = CallLimits(), CircuitBreaker()
    assert f"at most {limits.in_flight} at once" in PAGE
    assert limits.patience == MINUTE
    for _ in range(3):
        breaker.record_failure(0.0)
    assert breaker.is_open(29.0)
    assert not breaker.is_open(30.0)


def test_the_configuration_that_is_shown_is_valid():
    text = PAGE.partition("```yaml\n")[2].partition("```")[0]
    configuration = FanoutConfiguration.model_validate(yaml.safe_load(text))
    limits = limits_of_host(configuration.forges[0])
    assert (limits.calls_per_minute, limits.creations_per_hour) == (300, 100)
