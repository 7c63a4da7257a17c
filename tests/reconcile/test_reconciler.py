"""Memos of repositories, which a long-running process forgets once nobody declares them."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleet import Fleet
from forge_states import REMOTE, drafted
from reconcile.test_sentences import STATE, TAGGED, kptfile, mirror_of, observed

from fanout.gates.rollback_pins import Pin
from fanout.plan.observation.repository_state import PathState, Remote
from fanout.reconcile.edits import edit_detection
from fanout.reconcile.edits.edit_detection import DownstreamEditDetector
from fanout.reconcile.history import rollback_selection
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.history.rollback_selection import RollbackSelector
from fanout.reconcile.observation.repository_access import PackageContentCache
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.pull_requests.request_observer import RequestObserver
from fanout.values import replace

NONE: Any = None  # nothing is asked


def test_the_memo_of_a_repository_ends_with_its_declaration(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    with fleet.opened() as program:
        reconciler, now = program.reconciler, program.settings.now()

        def observed(mode: PassMode) -> list[str]:
            reconciler.plan_pass(program.read_declared(), now, mode)
            return sorted(Path(url).stem for url, _ in reconciler._observer._memos)

        assert observed(PassMode()) == ["core", "edge"]
        fleet.remove("site-cph.yaml")
        nothing = PassMode(subjects=frozenset({PassSubject("default", "other")}))
        assert observed(nothing) == ["core", "edge"], "it is declared, and the pass is of others"
        fleet.remove("repository-core.yaml")
        assert observed(nothing) == ["edge"]


def test_the_state_of_a_forge_ends_with_the_declaration_of_its_repository():
    state = drafted("ams", None).repository_state
    observer = RequestObserver(NONE, NONE, "default")
    observer._attached["edge"] = state, state
    observer.retain([REMOTE])
    assert [*observer._attached] == ["edge"]
    observer.retain([Remote("https://git.example.com/org/core.git")])
    assert not observer._attached


def test_findings_about_edits_have_a_bound(monkeypatch: pytest.MonkeyPatch):
    """Paths end without notice: a variant may move, or go with its policy."""
    monkeypatch.setattr(edit_detection, "_MAX_FINDINGS", 2)
    mirror = mirror_of({"t1": kptfile(), "t2": kptfile()}, states={"c1": PathState("t2")})
    detector, histories = (
        DownstreamEditDetector(PackageContentCache()),
        HistoryReader(lambda _: mirror),
    )
    for number in range(3):
        state = replace(TAGGED, branch=f"refs/heads/{number}")
        variant = observed(state, tree="t2")
        line = replace(variant.status_line, repository=state.identity)
        detector.add_edits(replace(variant, status_line=line), histories)
    assert [place for place, _ in detector._memo] == [state.identity]


def test_publications_to_roll_back_to_have_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rollback_selection, "_MAX_PUBLICATIONS", 2)
    git: Any = SimpleNamespace(reader=lambda _: nullcontext(mirror_of({"t1": kptfile()})))
    selector = RollbackSelector(git)
    for number in range(3):
        state = replace(STATE, branch=f"refs/heads/{number}")
        variant = observed(state)
        selector.choose_publications([variant], {variant.spec.name: Pin("v0")})
    assert [place for place, _, _ in selector._memo] == [state.identity]
