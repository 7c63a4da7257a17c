"""`fanout sweep -v` lists the actions that were done, one line each; without -v it counts them."""

from fleet import Fleet, Result


def lines(result: Result) -> list[list[str]]:
    """The words of each line of stdout."""
    return [line.split() for line in result.out.splitlines()]


def test_a_verbose_sweep_lists_the_actions_of_the_plan(fleet: Fleet):
    *planned, summary, refs = lines(fleet.plan())
    swept = fleet.sweep("-v")
    assert lines(swept)[:-1] == planned
    assert lines(swept)[-1] == ["3", "drafts", "written"]
    assert summary == ["Plan:", "3", "drafts", "to", "be", "written."]
    assert refs == ["5", "refs", "to", "push"]
    head, *rows = planned
    assert head == ["ACTION", "POLICY", "STAGE", "TARGET", "WHAT"]
    assert [row[:3] for row in rows] == [
        ["WriteDraft", "monitoring", stage] for stage in ("dev", "prod", "prod")
    ]
    assert sum(len(repo.drafts()) for repo in fleet.repos.values()) == len(rows)


def test_a_verbose_sweep_lists_each_kind_of_action(fleet: Fleet):
    fleet.sweep()
    swept = fleet.sweep("-v")
    actions = [row[0] for row in lines(swept)[1:-1]]
    assert sorted(actions) == ["Publish", "Release"]
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_a_verbose_sweep_lists_no_action_that_failed(fleet: Fleet):
    fleet.repos["core"].hook("pre-receive", "exit 1")
    swept = fleet.sweep("-v")
    listed = [row for row in lines(swept) if row[0] == "WriteDraft"]
    assert sorted(" ".join(row).rpartition("sites/")[2][:3] for row in listed) == ["ams", "ber"]
    assert fleet.repos["core"].drafts() == []


def test_a_sweep_without_v_counts_its_actions(fleet: Fleet):
    assert fleet.sweep().out == "3 drafts written\n"
