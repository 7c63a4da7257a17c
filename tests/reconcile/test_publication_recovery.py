"""What a forge merged of a released draft, by the Kptfiles of the branch and of the release."""

from types import SimpleNamespace
from typing import Any

import pytest
from forge_states import at, drafted, forge

from fanout.package.kptfile import KPTFILE
from fanout.package.tree_ids import TreeEntry
from fanout.plan.observation.repository_state import PathState
from fanout.plan.records.policy_status import PublishedLine
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.records.publication_recovery import has_other_content
from fanout.values import replace

URL, FIRST, SECOND = "https://git.example.com/blueprints.git", "a" * 40, "b" * 40


def kptfile(url: str, directory: str, commit: str, ref: str) -> bytes:
    git = f"repo: {url}, directory: {directory}, commit: {commit}, ref: {ref}"
    return f"apiVersion: kpt.dev/v1\nkind: Kptfile\nupstreamLock: {{git: {{{git}}}}}\n".encode()


RELEASED = (URL, "/monitoring", FIRST, "v1")
CONTENTS = [
    ("what was released, with edits", RELEASED, False),
    ("the same, spelled otherwise", (URL.removesuffix(".git"), "monitoring/", FIRST, "v1"), False),
    ("another commit", (URL, "/monitoring", SECOND, "v1"), True),
    ("another tag of the commit", (URL, "/monitoring", FIRST, "v2"), True),
    ("another package at the commit", (URL, "/logging", FIRST, "v1"), True),
    ("a fork of the repository", (URL.replace("git.", "fork."), "/monitoring", FIRST, "v1"), True),
]


@pytest.mark.parametrize(("_", "present", "expected"), CONTENTS, ids=[it[0] for it in CONTENTS])
def test_content_that_a_forge_merged_of_a_release(_, present: Any, expected: bool):
    blobs = {"present": kptfile(*present), "pristine": kptfile(*RELEASED)}
    reader: Any = SimpleNamespace(
        has=blobs.__contains__,
        entry=lambda tree, path: TreeEntry("100644", tree) if path == KPTFILE else None,
        blob=blobs.__getitem__,
    )
    published = PublishedLine(
        revision="v1", commit=FIRST, digest="d1", tree="present", at=at(0), pristine="pristine"
    )
    variant = replace(
        drafted("ams", forge()),
        published=published,
        is_unrecorded=True,
        path_state=PathState("present"),
    )
    assert has_other_content(variant, "", HistoryReader(lambda _: reader)) is expected
