"""Views as plain data, and their schemas: what is shown, and in which form."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import jsonschema
import pytest

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import NO_AGGREGATES, Condition, Hold, StageResult, build_ready
from fanout.api.view_base import INTERNAL, ViewModel, build_view_schema, dump_view, dump_views
from fanout.values import doc

NOON = datetime(2026, 3, 2, 12, 0, 0, 5, tzinfo=UTC)


class Shelf(ViewModel):
    """Things on a shelf."""

    upper_row: Annotated[tuple[Hold, ...], doc("Holds.")] = ()
    hidden: Annotated[int, INTERNAL] = 7
    note: Annotated[str | None, doc("A note.")] = None
    verdicts: Annotated[dict[str, Verdict], doc("Verdicts.")] = {}  # noqa: RUF012


def test_a_view_has_wire_names_and_leaves_out_what_is_unknown():
    shelf = Shelf((Hold("Halted", "too many failed"),), verdicts={"v1": Verdict.PASSED})
    assert dump_view(shelf) == {
        "upperRow": [{"reason": "Halted", "message": "too many failed", "who": ""}],
        "verdicts": {"v1": "Passed"},
    }
    assert dump_views([shelf, shelf]) == [dump_view(shelf)] * 2


def test_nulls_are_kept_for_those_who_ask_for_them():
    hold = Hold("Halted", "", since=NOON)
    assert dump_view(hold, nulls=True) == {
        "reason": "Halted",
        "message": "",
        "who": "",
        "since": "2026-03-02T12:00:00Z",
        "until": None,
    }
    assert dump_view(Shelf((hold,)), nulls=True)["upperRow"][0]["until"] is None


@pytest.mark.parametrize(
    "at", [NOON, NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))], ids=["utc", "india"]
)
def test_instants_are_whole_seconds_in_utc(at):
    assert dump_view(Hold("Halted", "", until=at))["until"] == "2026-03-02T12:00:00Z"


def test_a_field_without_output_is_in_no_schema():
    schema = build_view_schema(Shelf)
    assert set(schema["properties"]) == {"upperRow", "note", "verdicts"}
    assert "aggregates" not in build_view_schema(StageResult)["properties"]


def test_a_schema_accepts_what_is_shown_and_no_other_field():
    judge = jsonschema.Draft202012Validator(build_view_schema(StageResult))
    stage = StageResult(
        name="dev",
        candidate="v1",
        verdict=Verdict.PENDING,
        gate=Verdict.FAILED,
        verdicts={"v1": Verdict.PENDING},
        aggregates=NO_AGGREGATES,
        conditions=(build_ready("Halted", "it is"),),
        next=NOON,
    )
    shown = dump_view(stage)
    assert judge.is_valid(shown)
    assert not judge.is_valid({**shown, "aggregates": {}})
    assert not judge.is_valid({**shown, "verdict": "pending"}), "files have it in lower case"
    assert not judge.is_valid({name: it for name, it in shown.items() if name != "gate"})


def test_values_of_a_status_are_in_the_order_of_their_meaning():
    schema = build_view_schema(Condition)
    assert schema["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
