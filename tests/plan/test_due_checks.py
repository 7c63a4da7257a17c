"""At which commits the checks of a pass wait for a status."""

from typing import Any

import pytest
from reconcile.builders import EDGE_URL, NOW, open_draft, parsed, repository_state, variant_spec

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import CheckAnswer
from fanout.plan.evidence.due_checks import (
    StatusSubject,
    find_awaited_commits,
    has_status_checks,
)
from fanout.plan.observation.repository_state import PathState, repository_identity
from fanout.plan.records.policy_status import PublishedLine, VariantLine
from fanout.values import replace

CI = {"name": "ci", "commitStatus": {"context": "ci"}}
E2E = {"name": "e2e", "report": {}}
SPEC = variant_spec("ams")
DRAFT = open_draft(SPEC.name, SPEC.path)
MERGE, HEAD = "a" * 40, "b" * 40
PUBLISHED = PublishedLine(
    revision="v1", commit="1" * 40, digest="d1", tree="t1", at=NOW, merge=MERGE
)
PLACE = repository_identity(EDGE_URL, "refs/heads/main")


def stage(**checks: Any) -> Any:
    policy = parsed(
        "UpstreamPolicy",
        "monitoring",
        upstream={
            "repository": "blueprints", "package": "monitoring", "revision": {"latest": True}
        },
        targets=[{"repositories": [{"name": "edge"}], "template": {"stage": "dev"}}],
        stages=[{"name": "dev", **checks}],
    )  # fmt: skip
    return policy.spec.stages[0]


def answer(verdict: Verdict, digest: str = "d1", check: str = "ci") -> CheckAnswer:
    return CheckAnswer(check, digest, verdict, NOW)


def awaited(
    wanted: Any, *answers: CheckAnswer, tree: str = "t1", is_open: bool = True, **line: Any
):
    state = replace(repository_state(DRAFT), head=HEAD, path_states={SPEC.path: PathState(tree)})
    fields = {"repository": PLACE, "path": SPEC.path, "published": PUBLISHED, **line}
    subject = StatusSubject(
        spec=SPEC, stage=wanted, status_line=VariantLine(answers=answers, **fields)
    )
    heads = {DRAFT.ref: DRAFT.commit} if is_open else {}
    return find_awaited_commits([subject], state, heads, "default")


ROWS = [
    ("no check of a status", stage(verification=[E2E]), {}, set()),
    ("a draft requires it", stage(requires=[CI]), {}, {DRAFT.commit}),
    ("the request is not open", stage(requires=[CI]), {"is_open": False}, set()),
    ("after publication, at merge and head", stage(verification=[CI]), {}, {MERGE, HEAD}),
    ("the branch has another package", stage(verification=[CI]), {"tree": "t2"}, {MERGE}),
    ("nothing is published", stage(verification=[CI]), {"published": None}, set()),
    ("it was published elsewhere", stage(verification=[CI]), {"path": "sites/ber"}, set()),
]


@pytest.mark.parametrize(
    ("wanted", "fields", "commits"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_commits_whose_statuses_are_awaited(wanted, fields, commits):
    assert awaited(wanted, **fields) == commits


ANSWERS = [
    ("it passed", [answer(Verdict.PASSED)], set()),
    ("it failed, and may pass by another run", [answer(Verdict.FAILED)], {MERGE, HEAD}),
    ("what passed is another publication", [answer(Verdict.PASSED, "d0")], {MERGE, HEAD}),
    ("what passed is another check", [answer(Verdict.PASSED, check="e2e")], {MERGE, HEAD}),
]


@pytest.mark.parametrize(
    ("answers", "commits"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS]
)
def test_a_publication_is_asked_about_until_it_has_passed(answers, commits):
    assert awaited(stage(verification=[CI]), *answers) == commits


def test_stages_without_such_checks_are_none_of_it():
    assert not has_status_checks(stage(verification=[E2E]))
    assert has_status_checks(stage(requires=[CI]))
