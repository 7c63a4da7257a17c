"""Events of hooks, and the repositories that they are about."""

import json

import pytest

from fanout.api.fanout_configuration import ForgeProgram
from fanout.forge.hook_events import find_event, needs_repository, read_repository

GITEA, GITHUB, GITLAB = ForgeProgram.GITEA, ForgeProgram.GITHUB, ForgeProgram.GITLAB
FULL_NAME = {"repository": {"full_name": "acme/site"}}
PROJECT = {
    "object_kind": "merge_request",
    "repository": {"name": "site"},
    "project": {"path_with_namespace": "group/sub/site"},
}
BODIES = [
    ("Gitea's", GITEA, FULL_NAME, "acme/site"),
    ("GitHub's", GITHUB, FULL_NAME, "acme/site"),
    ("GitLab's, of a group in a group", GITLAB, PROJECT, "group/sub/site"),
    ("GitLab's on GitHub", GITHUB, PROJECT, None),
    ("GitHub's on GitLab", GITLAB, FULL_NAME, None),
    ("a path on GitHub", GITHUB, {"repository": {"full_name": "a/b/c"}}, None),
    ("an empty group", GITLAB, {"project": {"path_with_namespace": "group//site"}}, None),
    ("no group", GITLAB, {"project": {"path_with_namespace": "site"}}, None),
    ("too many groups", GITLAB, {"project": {"path_with_namespace": "a/" * 30 + "b"}}, None),
    ("an installation", GITHUB, {"action": "suspend", "installation": {"id": 1}}, None),
]


@pytest.mark.parametrize(
    ("sentence", "program", "body", "name"), BODIES, ids=[it[0] for it in BODIES]
)
def test_the_repository_of(sentence, program, body, name):
    repository = read_repository(program, json.dumps(body).encode())
    assert (repository and str(repository)) == name


def test_the_owner_of_a_project_is_the_path_of_its_groups():
    repository = read_repository(GITLAB, json.dumps(PROJECT).encode())
    assert repository is not None
    assert (repository.owner, repository.name) == ("group/sub", "site")


EVENTS = [
    (GITEA, "X-Gitea-Event", "push", True),
    (GITEA, "X-Forgejo-Event", "push", True),
    (GITHUB, "X-GitHub-Event", "pull_request", True),
    (GITHUB, "x-github-event", "installation", False),
    (GITHUB, "x-github-event", "ping", False),
    (GITLAB, "X-Gitlab-Event", "Merge Request Hook", True),
    (GITEA, "x-gitea-event", "ping", True),
]


@pytest.mark.parametrize(("program", "header", "event", "needs"), EVENTS)
def test_the_event_says_whether_there_must_be_a_repository(program, header, event, needs):
    assert find_event(program, [("x", "y"), (header, event)]) == event
    assert needs_repository(program, event) is needs


def test_a_hook_without_an_event_has_no_name():
    assert find_event(GITHUB, [("x-gitea-event", "push")]) == ""
