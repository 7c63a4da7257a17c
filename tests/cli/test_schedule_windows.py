"""`fanout schedule windows`: given by flags, and declared."""

import json
from pathlib import Path

import pytest

from fanout.cli.main import run_arguments

OFFICE = '{schedule: "0 8 * * 1-5", until: "0 16 * * 1-5"}'
PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  policies: ["*"]
  {spec}
---
"""


def out_of(capsys, *arguments: str) -> str:
    assert run_arguments(["schedule", "windows", *arguments]) == 0
    return capsys.readouterr().out


def rows(text: str) -> list[str]:
    """Publication, local time and until of each row."""
    split = [line.split() for line in text.splitlines()[1:]]
    return [f"{row[0]} from {row[2]} until {' '.join(row[4:])}" for row in split]


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    spec = f"timeZone: Europe/Oslo\n  windows: [{{allow: {OFFICE}}}]"
    text = PROMOTION.format(name="office", namespace="platform", spec=spec)
    spec = 'windows: [{deny: {schedule: "0 12 * * *", duration: 1h}}]'
    text += PROMOTION.format(name="noon", namespace="platform", spec=spec)
    text += PROMOTION.format(name="open", namespace="platform", spec="merge: Direct")
    text += PROMOTION.format(name="noon", namespace="other", spec=spec)
    text += PROMOTION.format(name="broken", namespace="platform", spec=spec.replace("1h", "1d"))
    (tmp_path / "a.yaml").write_text(text)
    return tmp_path


def test_windows_open_and_close_through_a_change_of_clocks(capsys):
    out = out_of(
        capsys,
        *("--allow", "0 22 * * *", "--duration", "8h", "--time-zone", "Europe/Oslo"),
        *("--after", "2026-03-27T12:00:00Z", "-n", "4"),
    )
    assert rows(out) == [
        "open from 2026-03-27T22:00:00+01:00 until 2026-03-28T05:00:00Z",
        "closed from 2026-03-28T06:00:00+01:00 until 2026-03-28T21:00:00Z",
        "open from 2026-03-28T22:00:00+01:00 until 2026-03-29T05:00:00Z",
        "closed from 2026-03-29T07:00:00+02:00 until 2026-03-29T20:00:00Z",
    ]


def test_allow_and_deny_may_be_repeated(capsys):
    out = out_of(
        capsys,
        *("--allow", "0 8 * * *", "--allow", "0 9 * * *", "--deny", "0 9 25 12 *"),
        *("--duration", "1h", "--after", "2026-12-24T12:00:00Z", "-n", "4"),
    )
    assert [line.split(" until ")[0] for line in rows(out)] == [
        "open from 2026-12-25T08:00:00+00:00",
        "closed from 2026-12-25T09:00:00+00:00",
        "open from 2026-12-26T08:00:00+00:00",
        "closed from 2026-12-26T10:00:00+00:00",
    ]


def test_declared_ones_are_open_when_all_are_and_shown_in_the_first_one_s_zone(capsys, policies):
    out = out_of(
        capsys,
        *("-f", str(policies), "--namespace", "platform", "office", "noon"),
        *("--after", "2026-11-23T00:00:00Z", "-n", "4"),
    )
    assert [line.split(" until ")[0] for line in rows(out)] == [
        "open from 2026-11-23T08:00:00+01:00",
        "closed from 2026-11-23T13:00:00+01:00",
        "open from 2026-11-23T14:00:00+01:00",
        "closed from 2026-11-23T16:00:00+01:00",
    ]


def test_at_a_time_it_says_whether_until_when_and_by_which_window(capsys, policies):
    arguments = ("-f", str(policies), "office", "--at", "2026-11-22T12:00:00Z")
    assert json.loads(out_of(capsys, *arguments, "-o", "json")) == {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "WindowView",
        "metadata": {"name": "2026-11-22T12:00:00Z"},
        "spec": {"timeZone": "Europe/Oslo"},
        "status": {
            "local": "2026-11-22T13:00:00+01:00",
            "weekday": "Sun",
            "open": False,
            "until": "2026-11-23T07:00:00Z",
            "promotionPolicy": "office",
            "window": "'0 8 * * 1-5' until '0 16 * * 1-5' in Europe/Oslo",
            "message": "publication is closed outside of the allowed time of PromotionPolicy office"
            ": '0 8 * * 1-5' until '0 16 * * 1-5' in Europe/Oslo",
        },
    }
    assert "outside of the allowed time" in out_of(capsys, *arguments)


def test_windows_that_never_change_are_explained_beside_an_empty_list(capsys):
    assert (
        run_arguments(
            ["schedule", "windows", "--deny", "@daily", "--duration", "24h", "-o", "name"]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        (
            "nothing changes within five years: "
            "publication is closed by a denied time: '@daily' for 24h in UTC\n"
        ),
    )


WINDOW = ["--allow", "@daily", "--duration", "1h"]
REFUSED = [
    ("nothing", [], "no window is given"),
    ("no length", ["--allow", "@daily"], "set either --duration or --until"),
    ("two lengths", [*WINDOW, "--until", "@hourly"], "set either --duration or --until"),
    ("days", ["--deny", "@daily", "--duration", "1d"], "--duration: 1d is in days"),
    ("no time", ["--deny", "@daily", "--duration", "0s"], "--duration: the duration is zero"),
    ("over a year", ["--deny", "@daily", "--duration", "9000h"], "--duration: 9000h is longer"),
    ("31 February", ["--deny", "0 0 31 2 *", "--duration", "1h"], "--deny: schedule '0 0 31 2 *'"),
    ("no end", ["--allow", "@daily", "--until", "0 24 * * *"], "--until: schedule '0 24 * * *'"),
    ("no zone", [*WINDOW, "--time-zone", "Europe/Olso"], "did you mean 'Europe/Oslo'?"),
    ("two times", [*WINDOW, "--at", "x", "--after", "y"], "--at and --after exclude each other"),
    ("no instant", [*WINDOW, "--at", "today"], "--at: 'today' is not a time"),
    ("in two ways", ["office", *WINDOW], "keep one of them"),
    ("nobody", ["-f", "DIR", "offices"], "there is no PromotionPolicy offices; there are: "),
    ("one that is broken", ["-f", "DIR", "broken"], "has an error"),
    ("one of two namespaces", ["-f", "DIR", "noon"], "several namespaces have"),
    ("one without windows", ["-f", "DIR", "open"], "PromotionPolicy open has no windows"),
]


@pytest.mark.parametrize(
    ("_", "arguments", "message"), REFUSED, ids=[f"{row[0]} is refused" for row in REFUSED]
)
def test_unusable_arguments_of_windows_are_refused(_, arguments, message, policies, capsys):
    words = [str(policies) if word == "DIR" else word for word in arguments]
    assert run_arguments(["schedule", "windows", *words]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_the_views_are_in_the_schema(capsys):
    assert run_arguments(["schema", "WindowView"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"open", "until", "window", "message"} <= set(
        schema["$defs"]["WindowViewStatus"]["properties"]
    )


def test_a_policy_without_windows_is_named_beside_a_policy_with_windows(policies, capsys):
    line = ["schedule", "windows", "-f", str(policies), "--after", "2026-03-02T00:00:00Z"]
    assert run_arguments([*line, "office"]) == 0
    alone, _ = capsys.readouterr()
    assert run_arguments([*line, "office", "open"]) == 0
    out, err = capsys.readouterr()
    assert out == alone
    assert err.startswith("PromotionPolicy open has no windows: ")
