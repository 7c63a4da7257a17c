"""The records repository cannot be reached: drafts go on, and nothing is released."""

from pathlib import Path

from companies import company
from fleet import Fleet

from fanout.cluster.policy_state_store import PolicyStateStore
from fanout.reconcile.pass_scope import PassMode

ALL = PassMode()


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root)
    made.settle()
    return made


def test_drafts_go_on_without_the_records_and_nothing_is_released(fleet: Fleet):
    records = fleet.records().path
    with fleet.opened() as program:
        store = program.world.records
        assert isinstance(store, PolicyStateStore)
        store._keeps_last_read = True  # as in the controller
        program.sweep(ALL)
        published = fleet.published()
        head = fleet.records().refs()
        fleet.release("v2")
        moved = records.rename(records.with_name("elsewhere.git"))
        records.write_text("no repository")
        for _ in range(3):
            report = program.sweep(ALL)
            assert "nothing is released" in report.pass_plan.warnings[0]
        drafts = [it for it in fleet.repos["edge"].refs() if "/drafts/default/sites/" in it]
        assert drafts
        assert fleet.repos["edge"].refs().keys() >= set(drafts)
        records.unlink()
        moved.rename(records)
        assert fleet.records().refs() == head
        assert fleet.published() == published
        assert program.sweep(ALL).pass_plan.warnings == ()
    fleet.settle()
    assert "v2" in fleet.published().values()


def test_a_removed_target_stays_while_records_are_unavailable(fleet: Fleet):
    records = fleet.records().path
    with fleet.opened() as program:
        store = program.world.records
        assert isinstance(store, PolicyStateStore)
        store._keeps_last_read = True
        program.sweep(ALL)
        files = {name: set(repo.files()) for name, repo in fleet.repos.items()}
        fleet.remove("site-ams.yaml")
        moved = records.rename(records.with_name("elsewhere.git"))
        records.write_text("no repository")
        for _ in range(2):
            program.sweep(ALL)
        assert {name: set(repo.files()) for name, repo in fleet.repos.items()} == files
        records.unlink()
        moved.rename(records)
