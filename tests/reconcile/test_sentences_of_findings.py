"""Sentences of findings and calls that concern several objects, word for word."""

from types import SimpleNamespace
from typing import Any

import pytest
from forge_states import HOST, REF, request
from reconcile.builders import NOW, parsed, repository_state

from fanout.api.fanout_configuration import ForgeHost
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Denied, Unavailable
from fanout.plan.actions import ActionKind, RequestChange, RequestStatus
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.observed_request import RepositoryFacts, RepositoryName, StatusState
from fanout.plan.observation.repository_state import Remote
from fanout.plan.records.policy_status import RequestLine
from fanout.reconcile.execution.plan_execution import _yield_warnings
from fanout.reconcile.pull_requests.forge_reading import ForgeReader, HostedRepository
from fanout.reconcile.pull_requests.request_execution import RequestOutcome, execute_requests
from fanout.reconcile.pull_requests.request_memo import HostMemo
from fanout.reconcile.validation.configuration_findings import find_forge_findings

URL = "https://git.example.com/org/edge.git"


def repository(forge_type):
    return parsed("Repository", "edge", url=URL, forge={"type": forge_type})


def host(program):
    fields = {"host": "git.example.com", "type": program, "secretRef": {"name": "x"}}
    return ForgeHost.model_validate(fields)


FORGES = [
    ("none", [], None),
    ("gitea", [host("gitea")], None),
    ("gitea", [],
     ("the host git.example.com is not configured as a forge",
      ("ask an administrator to add it to forges of the FanoutConfiguration, or set forge.type:"
       " none"))),
    ("gitea", [host("github")],
     ("git.example.com is github in the FanoutConfiguration, not gitea", "write github")),
]  # fmt: skip


@pytest.mark.parametrize(("forge_type", "hosts", "expected"), FORGES)
def test_a_forge_that_is_not_configured(forge_type, hosts, expected):
    declared = DeclaredObjects(repositories=(repository(forge_type),))
    findings = [(it.problem, it.remedy) for it in find_forge_findings(declared, hosts)]
    assert findings == ([expected] if expected else [])


EDGE = Remote(URL)
NO_GIT: Any = None  # nothing is read from it
HEAD = "refs/heads/drafts/x"
STATUS = RequestStatus("fanout", StatusState.SUCCESS, "it is published")


def test_a_status_of_a_branch_that_was_deleted():
    change = RequestChange(
        remote=EDGE, repository="r", policy="platform/web", head_ref=HEAD, status=STATUS
    )
    server = SimpleNamespace(host="git.example.com")
    server.for_policy = lambda _: server
    forges = SimpleNamespace(forge_of=lambda _: (server, None))
    [outcome] = execute_requests(forges, [change], lambda *_: None, NOW).values()
    error = outcome.errors[ActionKind.SET_STATUS]
    assert error.problem == "drafts/x was deleted during the pass"


OUTCOMES = [
    (RequestOutcome(), []),
    (RequestOutcome(unknown_reviewers=("ann", "bob")),
     [f"{URL}: cannot request a review from ann, bob"]),
    (RequestOutcome(hold_label_error=Denied("no right")),
     [(f"{URL}: cannot create the label fanout/hold, which holds pull requests: no right; or create"
       " it by hand")]),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "warnings"), OUTCOMES)
def test_a_warning_about_a_pull_request(outcome, warnings):
    assert list(_yield_warnings({(EDGE.key, HEAD): outcome})) == warnings


def test_a_repository_that_is_archived():
    name = RepositoryName("org", "edge")
    facts = RepositoryFacts(name, True, frozenset())
    server = SimpleNamespace(
        host=HOST,
        identify=ForgeIdentity,
        request=lambda *_: request().request,
        repository=lambda _: facts,
    )
    hosted = HostedRepository(
        state=repository_state(url=URL),
        recorded={REF: RequestLine(number=7, state="open")},
        granted_heads=frozenset(),
        status_subjects=(),
        owned_paths=None,
        forge=server,
        name=name,
    )
    reader = ForgeReader(
        git=NO_GIT, install="default", memo=HostMemo(), instant=NOW, repository=hosted
    )
    with pytest.raises(Unavailable) as error:
        reader.read_state()
    assert error.value.problem == f"repository org/edge is archived on {HOST}"
