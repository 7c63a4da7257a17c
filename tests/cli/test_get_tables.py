"""What the tables of `get` show of a rollout."""

from datetime import UTC, datetime

import pytest

from fanout.cli.output.get_tables import build_columns
from fanout.cli.output.printer import print_objects
from fanout.cli.settings import OutputFormat, Settings

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
STATUS = {
    "published": {},
    "conflicts": 0,
    "candidate": "v1",
    "gate": "Passed",
    "state": "Pending",
    "verdict": "Pending",
    "counts": {},
    "holds": [],
    "queued": [],
    "inFlight": 0,
    "halted": False,
}


def stage_view(**stated: object) -> dict[str, object]:
    return {"spec": {"policy": "web", "stage": "prod"}, "status": {**STATUS, **stated}}


ROLLOUTS = [
    pytest.param({}, "0", "Pending", "<none>", id="without a budget the number in flight is all"),
    pytest.param(
        {"inFlight": 2}, "2", "Pending", "<none>", id="as many are in flight as there are"
    ),
    pytest.param(
        {"inFlight": 3, "budget": 1},
        "3/1",
        "Pending",
        "<none>",
        id="more in flight than may be now",
    ),
    pytest.param({"budget": 0}, "0/0", "Pending", "<none>", id="a budget of nothing is shown"),
    pytest.param(
        {"halted": True, "state": "Halted"}, "0", "Halted", "<none>", id="a halted stage says so"
    ),
    pytest.param({"queued": ["v2", "v3"]}, "0", "Pending", "v2,v3", id="what is queued behind it"),
]


@pytest.mark.parametrize(("stated", "in_flight", "state", "queued"), ROLLOUTS)
def test_a_stage_shows_its_rollout_where_there_is_room(stated, in_flight, state, queued, capsys):
    print_objects(
        [stage_view(**stated)],
        build_columns("stages", NOW, wide=True),
        Settings(output=OutputFormat.WIDE),
    )
    head, row = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    cells = dict(
        zip(filter(None, map(str.strip, head)), filter(None, map(str.strip, row)), strict=True)
    )
    assert (cells["IN FLIGHT"], cells["STATE"], cells["QUEUED"]) == (in_flight, state, queued)


def test_the_narrow_table_has_no_room_for_it(capsys):
    print_objects([stage_view()], build_columns("stages", NOW, wide=True), Settings())
    assert "IN FLIGHT" not in capsys.readouterr().out
