"""People who approve have several names, and count once."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.approver_names import check_subject, join_people, parse_subject
from fanout.api.field_errors import InvalidValue
from fanout.api.validators.object_validation import validate_object

GOOD = [
    ("an address", "Ann@Example.com", ("ann@example.com",)),
    ("name and address", "Ann B <ann@example.com>", ("ann@example.com",)),
    ("a login with its host", "git.example.com/Ann", ("git.example.com/ann",)),
    ("a host with a port", "127.0.0.1:3000/ann", ("127.0.0.1:3000/ann",)),
    ("an application", "github.com/renovate[bot]", ("github.com/renovate[bot]",)),
    ("address and login", "ann@example.com git.example.com/ann",
     ("ann@example.com", "git.example.com/ann")),
    ("login and address", "git.example.com/ann  ann@example.com",
     ("git.example.com/ann", "ann@example.com")),
    ("name, address, login and another address",
     "Ann <ann@example.com> git.example.com/ann ann@users.example.org",
     ("ann@example.com", "git.example.com/ann", "ann@users.example.org")),
    ("a user of a cluster, whose name has capitals", "user:Ann", ("user:Ann",)),
    ("a service account", "user:system:serviceaccount:ci:e2e",
     ("user:system:serviceaccount:ci:e2e",)),
    ("address and user", "Ann <Ann@example.com> user:Ann", ("ann@example.com", "user:Ann")),
    ("a group of a cluster", "group:Platform Team", ("group:Platform Team",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "names"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD]
)
def test_a_subject_has_names(subject, names):
    check_subject(subject)
    assert parse_subject(subject) == names


BAD = [
    ("a name alone", "ann", "is not an identity"),
    ("a login alone", "@ann", "is not an identity"),
    ("a team of nowhere", "@example/sre", "is not an identity"),
    ("a host alone", "git.example.com/", "is not an identity"),
    ("name and address without brackets", "Ann ann@example.com", "is not an identity"),
    ("a bracket that is not closed", "Ann <ann@example.com", "is not an identity"),
    ("two addresses in brackets", "Ann <a@example.com> <b@example.com>", "is not an identity"),
    ("brackets without an address", "Ann <ann> git.example.com/ann", "is not an identity"),
    ("empty brackets alone", "<>", "is not an identity"),
    ("blanks", "  ", "is not an identity"),
    ("a URL", "https://git.example.com/ann", "is not an identity"),
    ("a user without a name", "user:", "is not an identity"),
    ("a group without a name", "group:", "is not a group of a cluster"),
    ("a group of two lines", "group:a\nb", "is not a group of a cluster"),
    ("a team", "git.example.com/example/sre",
     "git.example.com/example/sre is a team, which is not supported yet"),
    ("a team beside an address", "ann@example.com git.example.com/example/sre",
     "git.example.com/example/sre is a team, which is not supported yet"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "problem"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_a_subject_is_refused(subject, problem):
    with pytest.raises(InvalidValue) as refused:
        check_subject(subject)
    assert problem in refused.value.problem


def test_subjects_that_share_a_name_are_one_person():
    subjects = ["h/ann", "Ann <ann@example.com> h/ann", "ann@example.com i/ann", "bob@example.com"]
    ann = dict.fromkeys(["h/ann", "i/ann", "ann@example.com"], "ann@example.com")
    for order in permutations(subjects):
        assert join_people(order) == {**ann, "bob@example.com": "bob@example.com"}


def test_a_person_is_counted_by_address():
    assert set(join_people(["a.example/zoe zoe@example.com b@example.com"]).values()) == {
        "b@example.com"
    }
    assert join_people(["b.example/zoe a.example/zoe"]) == dict.fromkeys(
        ["b.example/zoe", "a.example/zoe"], "a.example/zoe"
    )


NAMES = st.sampled_from(["a@x.org", "b@x.org", "c@x.org", "h/a", "h/b", "h/c"])
SUBJECTS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map(" ".join), max_size=6)


@given(SUBJECTS, st.randoms())
def test_people_do_not_depend_on_the_order_of_subjects(subjects, random):
    people = join_people(subjects)
    shuffled = list(subjects)
    random.shuffle(shuffled)
    assert join_people(shuffled) == people
    for subject in subjects:
        assert len({people[name] for name in parse_subject(subject)}) == 1


def test_people_of_scenarios_are_people():
    promotion = {"approvers": [{"group": "sre", "subjects": ["git.example.com/example/sre"]}]}
    data = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {
            "stages": [{"name": "dev"}],
            "revisions": ["v1"],
            "now": "2030-01-07T12:00:00Z",
            "variants": [{"name": "dev-1", "stage": "dev"}],
            "promotion": promotion,
        },
    }
    _, [fault] = validate_object(data)
    assert fault.field == "spec.promotion.approvers[0].subjects[0]"
    assert fault.problem == "git.example.com/example/sre is a team, which is not supported yet"
