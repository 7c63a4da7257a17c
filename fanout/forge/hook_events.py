"""Events that hooks are about, by their headers and bodies. Only signed ones are read."""

import json
from collections.abc import Sequence

from fanout.api.fanout_configuration import ForgeProgram
from fanout.plan.observation.observed_request import RepositoryName

MAX_NAME = 255  # characters of an owner or a repository, more than any forge allows
_MAX_GROUPS = 21  # names in a path: GitLab has twenty levels of groups

_EVENT_HEADERS = {
    ForgeProgram.GITEA: ("x-gitea-event", "x-forgejo-event"),
    ForgeProgram.GITHUB: ("x-github-event",),
    ForgeProgram.GITLAB: ("x-gitlab-event",),
}
# GitHub sends these of an App, or of an organization, whatever events are chosen.
_WITHOUT_REPOSITORY = frozenset(
    {
        "github_app_authorization",
        "installation",
        "installation_repositories",
        "installation_target",
        "meta",
        "organization",
        "ping",
    }
)


def find_event(program: ForgeProgram, headers: Sequence[tuple[str, str]]) -> str:
    """Return the event of a hook as its host names it; "" without a name."""
    names = _EVENT_HEADERS[program]
    return next((value for name, value in headers if name.lower() in names), "")


def needs_repository(program: ForgeProgram, event: str) -> bool:
    """Return whether a hook of this event that names no repository is none of the program."""
    return program is not ForgeProgram.GITHUB or event not in _WITHOUT_REPOSITORY


def read_repository(program: ForgeProgram, body: bytes) -> RepositoryName | None:
    """Return the repository that a signed body names, or None if it names none."""
    try:
        event = json.loads(body)
    # RecursionError: brackets in brackets. Both encodings and numbers are a ValueError.
    except (ValueError, RecursionError):
        return None
    keys = ("repository", "full_name")
    if program is ForgeProgram.GITLAB:
        keys = ("project", "path_with_namespace")
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    if not isinstance(event, str):
        return None
    names = event.split("/")
    most = _MAX_GROUPS if program is ForgeProgram.GITLAB else 2
    usable = 2 <= len(names) <= most and all(0 < len(it) <= MAX_NAME for it in names)
    return RepositoryName("/".join(names[:-1]), names[-1]) if usable else None
