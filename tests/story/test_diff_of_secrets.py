"""`fanout diff` shows that a Secret differs, and none of its values."""

from pathlib import Path

from companies import company
from fleet import Fleet

SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\nstringData:\n  password: {}\n"


@company
def fleet(root: Path) -> Fleet:
    """The published package and the next draft have different passwords."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    made.release("v2", {"login.yaml": SECRET.format("first-word")})
    made.later(minutes=5).settle()
    made.release("v3", {"login.yaml": SECRET.format("second-word")})
    made.later(minutes=5).sweep("--drafts-only")
    return made


def test_a_changed_value_is_masked_on_both_sides(fleet: Fleet):
    result = fleet.run("diff", "sites/ams")
    assert result.code == 0, result.err
    assert '-  password: "*** (before)"\n+  password: "*** (after)"' in result.out
    assert "-word" not in result.out
    assert fleet.run("diff", "sites/ams", "--detailed-exitcode").code == 2


def test_no_other_comparison_shows_it(fleet: Fleet):
    for options in (
        ("--against", "upstream"),
        ("--against", "draft"),
        ("--three-way",),
        ("--three-way", "--against", "upstream"),
    ):
        result = fleet.run("diff", "sites/ams", *options)
        assert result.code == 0, (options, result.err)
        assert "-word" not in result.out, options


def test_another_spelling_of_a_value_is_a_change_without_lines(fleet: Fleet):
    quoted = SECRET.format('"second-word"')
    fleet.later(minutes=5).settle()
    fleet.release("v4", {"login.yaml": quoted})
    fleet.later(minutes=5).sweep("--drafts-only")
    result = fleet.run("diff", "sites/ams", "--detailed-exitcode")
    assert result.code == 2, result.out
    assert "-word" not in result.out
