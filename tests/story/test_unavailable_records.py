"""The records repository cannot be reached: drafts go on, and nothing is released."""

from contextlib import suppress
from pathlib import Path

from companies import company
from fleet import Fleet

from fanout.cluster.policy_state_store import PolicyStateStore
from fanout.errors import FanoutError
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


READING = (("status",), ("get", "policies"), ("get", "variants", "-o", "json"), ("explain",))


def tell(fleet: Fleet) -> list[tuple[int, bool]]:
    """Exit codes of the commands that read, and whether they name the refusal."""
    results = [fleet.later(minutes=1).run(*line) for line in READING]
    return [(it.code, "branches are closed" in it.err) for it in results]


def test_commands_that_read_say_that_the_records_repository_refuses_pushes(fleet: Fleet):
    assert [is_named for _, is_named in tell(fleet)] == [False] * 4
    fleet.release("v2")
    fleet.records().hook("pre-receive", "echo branches are closed >&2; exit 1")
    refused = fleet.later(minutes=1).sweep()
    assert "branches are closed" in refused.err
    assert tell(fleet) == [(3, True)] * 4
    assert all(tag.endswith("/v1") for tag in fleet.repos["edge"].tags())
    (fleet.records().path / "hooks" / "pre-receive").unlink()
    fleet.later(minutes=1).sweep()
    assert [is_named for _, is_named in tell(fleet)] == [False] * 4


def test_a_process_that_goes_on_forgets_a_refusal_when_a_push_goes_through(fleet: Fleet):
    with fleet.opened() as program:
        fleet.release("v2")
        fleet.records().hook("pre-receive", "echo branches are closed >&2; exit 1")
        with suppress(FanoutError):
            program.sweep(ALL)
        assert "branches are closed" in program.world.records.find_push_refusal()
        (fleet.records().path / "hooks" / "pre-receive").unlink()
        program.sweep(ALL)
        assert program.world.records.find_push_refusal() == ""
