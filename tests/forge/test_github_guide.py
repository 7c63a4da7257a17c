"""The table of docs/guides/github.md: each call of the client, and the permission it needs."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from github_calls import PERMISSIONS
from github_description import CALLS, find_call
from github_place import NAME, Place

from fanout.plan.observation.observed_request import CommitStatus, RequestEdit, StatusState

pytest.importorskip("graphql")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "github.md"
ROW = re.compile(
    r"^\| [^|]+ \| `((?:GET|POST|PATCH|PUT|DELETE) /[^`]+)` \| ([^|]+) \|$", re.MULTILINE
)
GRAPHQL = "POST /graphql"


def listed() -> dict[str, dict[str, str]]:
    """Permissions of each call in the table; conditions on them left out."""
    return {
        call: dict(re.findall(r"(\w+): (read|write)", text.partition(";")[0]))
        for call, text in ROW.findall(GUIDE.read_text(encoding="utf-8"))
        if call != GRAPHQL
    }


def test_each_listed_call_is_described_and_needs_what_the_table_says():
    for call, permissions in listed().items():
        assert call in CALLS
        assert permissions == PERMISSIONS[call], call


def test_each_call_of_the_client_is_listed(place: Place):
    opened = place.open(is_draft=True)
    forge = place.forge
    forge.login()
    forge.repository(NAME)
    forge.edit_request(NAME, opened, RequestEdit(title="T", text="t", is_draft=False))
    forge.add_labels(NAME, opened, {"a"})
    forge.request_reviews(NAME, 1, {"ann"})
    status = CommitStatus("fanout", StatusState.SUCCESS, "", datetime.now(UTC))
    forge.set_status(NAME, opened.head_commit, status)
    forge.statuses(NAME, opened.head_commit)
    forge.reviews(NAME, 1)
    forge.changed_paths(NAME, 1)
    forge.branch(NAME, "main")
    forge.open_requests(NAME)
    forge.poll_requests([NAME])
    forge.closed_by(NAME, opened)
    place.merge(place.seen(opened))
    list(forge.closed_requests(NAME, "ann"))
    made = {it.rpartition(" ")[0] for it in place.site.github.calls}
    names = {
        find_call(method, path.partition("?")[0]).name
        for method, path in (it.split() for it in made)
        if f"{method} {path}" != GRAPHQL
    }
    assert names == listed().keys()
