"""Which packages other people's requests change, and the status that fanout sets on them."""

import pytest

from fanout.plan.actions import RequestStatus
from fanout.plan.observation.observed_request import StatusState
from fanout.plan.pull_requests.other_requests import build_other_status, find_changed_packages

OWNED = ["sites/a", "sites/b", "sites/b/nested"]


@pytest.mark.parametrize(
    ("changed", "owned", "packages"),
    [
        ([], OWNED, []),
        (["README.md", "sites/README.md", "sites/c/x.yaml"], OWNED, []),
        (["sites/a/x.yaml"], OWNED, ["sites/a"]),
        (["sites/a-b/x.yaml", "sites/ax"], OWNED, []),
        (["sites/A/X.yaml"], OWNED, ["sites/a"]),
        (["sites/b/nested/x.yaml"], OWNED, ["sites/b", "sites/b/nested"]),
        (["sites/a"], OWNED, ["sites/a"]),
        (["sites"], OWNED, OWNED),
        (["README.md", "sites/b/x.yaml", "sites/a/x.yaml"], OWNED, ["sites/a", "sites/b"]),
        (["README.md"], [""], [""]),
        (["README.md"], [], []),
    ],
    ids=[
        *("nothing", "beside packages", "a file", "a name that begins alike", "another case"),
        *("inside two", "a file in place of a package", "a file in place of the directory above"),
        *("several", "a package that is the repository", "no packages"),
    ],
)
def test_packages_that_a_request_changes(changed: list[str], owned: list[str], packages: list[str]):
    assert find_changed_packages(changed, owned) == tuple(packages)


@pytest.mark.parametrize(
    ("packages", "state", "sentence"),
    [
        ((), StatusState.SUCCESS, "it changes no package that fanout manages"),
        (("a",), StatusState.FAILURE, "it changes a package that fanout manages: a"),
        (("",), StatusState.FAILURE, "it changes a package that fanout manages: /"),
        (
            ("a", "b", "c"),
            StatusState.FAILURE,
            "it changes packages that fanout manages: a and 2 more",
        ),
    ],
    ids=["none", "one", "the repository", "several"],
)
def test_status_of_a_request(packages: tuple[str, ...], state: StatusState, sentence: str):
    assert build_other_status(packages, "default") == RequestStatus("fanout", state, sentence)


def test_a_long_path_is_cut():
    status = build_other_status(("a" * 255, "b"), "two")
    assert (status.context, len(status.description)) == ("fanout/two", 140)
