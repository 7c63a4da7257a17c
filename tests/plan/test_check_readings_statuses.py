"""What statuses of commits come to: whose counts, at which commit, and what is missing."""

from operator import itemgetter

import pytest
from forge_states import (
    HOST,
    at,
    commit_id,
    drafted,
    forge,
    published,
    request,
    status,
)
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Verdict
from fanout.api.stages import Check, CommitStatusCheck, Stage
from fanout.errors import Unavailable
from fanout.plan import plan_wording
from fanout.plan.evidence.check_readings import read_check
from fanout.plan.evidence.due_checks import find_due_checks
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ForgeState,
    find_newest_statuses,
)
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.values import replace

C1, M1, H1 = (commit_id(name)[:12] for name in ("c1", "m1", "h1"))


def check(*by, context="ci/test"):
    rule = {"context": context, "by": list(by)}
    return Check.model_validate({"name": "ci", "commitStatus": rule})


def read(variant, rule=None):
    """The reading of the check in `requires` and in `verification`, whichever is due."""
    rule = rule or check()
    stage = Stage.model_validate({"name": "prod", "verification": [rule], "requires": [rule]})
    [due] = find_due_checks([stage], [variant], {}, at(60))
    return read_check(due, ClusterObjectIndex(()), {})


def draft_with(*statuses, facts=None, commit="c1"):
    return drafted("a", forge(facts or request(), {commit: statuses}))


PASSED, FAILED, PENDING = Verdict.PASSED, Verdict.FAILED, Verdict.PENDING
DRAFTS = [
    ("success passes", [status()], [], PASSED, "ci"),
    ("failure fails", [status("failure")], [], FAILED, "ci"),
    ("pending is waited for", [status("pending")], [], PENDING, "ci"),
    ("neutral passes nothing", [status("neutral")], [], PENDING, "ci"),
    ("skipped passes nothing", [status("skipped")], [], PENDING, "ci"),
    ("stale is waited for", [status("stale")], [], PENDING, "ci"),
    ("cancelled is no failure", [status("cancelled")], [], PENDING, "ci"),
    ("an action of a person is waited for", [status("action required")], [], PENDING, "ci"),
    ("a newer skipped run hides an older success", [status(), status("skipped", "app", minute=2)],
     [], PENDING, "app"),
    ("none is waited for", [], [], PENDING, None),
    ("one of another context is none", [status(context="ci")], [], PENDING, None),
    ("without by the newest of anybody counts",
     [status("failure", "eve", minute=2), status()], [], FAILED, "eve"),
    ("in whatever order", [status(), status("failure", "eve", minute=2)], [], FAILED, "eve"),
    ("with by others are ignored", [status("failure", "eve", minute=2), status()], ["ci"], PASSED,
     "ci"),
    ("only others are none", [status(creator="eve")], ["ci"], PENDING, None),
    ("logins are the same in any case", [status(creator="CI")], ["Ci"], PASSED, "ci"),
    ("a login may have its host", [status()], [f"{HOST}/ci"], PASSED, "ci"),
    ("a login of another host is another", [status()], ["git.example.org/ci"], PENDING, None),
    ("an app may be named by its slug",
     [replace(status(creator="ci[bot]"), creator_aliases=frozenset({"ci"}))], ["ci"], PASSED,
     "ci[bot]"),
    ("or as the login that it has", [status(creator="ci[bot]")], [f"{HOST}/CI[bot]"], PASSED,
     "ci[bot]"),
    ("an app is not the person of its slug", [status(creator="ci[bot]")], ["ci"], PENDING, None),
    ("of several the newest counts",
     [status("failure", "app"), status(minute=2)], ["ci", "app"], PASSED, "ci"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "by", "verdict", "creator"),
    [row[1:] for row in DRAFTS],
    ids=map(itemgetter(0), DRAFTS),
)
def test_a_status_of_a_draft(statuses, by, verdict, creator):
    reading = read(draft_with(*statuses), check(*by))
    assert reading.verdict == verdict
    assert reading.observed_revision == (commit_id("c1") if creator else "")
    ignored = [f"{HOST}/{it.creator}" for it in statuses if it.context == "ci/test" and by]
    missing = f"there is no status ci/test{' by ' if by else ''}{''.join(by)} at {C1}"
    missing += f"; that of {''.join(ignored)} is ignored" if ignored else ""
    state = next((it.state for it in statuses if it.creator.lower() == creator), "")
    assert reading.message == (
        f"status ci/test at {C1} is {state}, by {HOST}/{creator}" if creator else missing
    )


RERUNS = [
    ("failure", FAILED, "; it can be run again on the forge"),
    ("cancelled", PENDING, "; it can be run again on the forge"),
    ("pending", PENDING, ""),
    ("success", PASSED, ""),
]


@pytest.mark.parametrize(("state", "verdict", "words"), RERUNS)
def test_a_run_that_can_be_repeated(state, verdict, words):
    run = replace(status(state), is_rerunnable=True)
    reading = read(draft_with(run))
    assert reading.verdict == verdict
    assert reading.message == f"status ci/test at {C1} is {state}, by {HOST}/ci{words}"


NEWEST = [
    ("the newest of one creator", [status("failure"), status(minute=2)], [1]),
    ("one for each creator", [status(), status("failure", "eve", minute=2)], [1, 0]),
    ("one for each context", [status(), status(context="ci/lint", minute=2)], [1, 0]),
    ("of one instant the first given", [status("failure"), status()], [0]),
]


@pytest.mark.parametrize(
    ("statuses", "expected"), [row[1:] for row in NEWEST], ids=map(itemgetter(0), NEWEST)
)
def test_statuses_and_runs_are_one_list(statuses, expected):
    assert find_newest_statuses(statuses) == tuple(statuses[it] for it in expected)


def test_the_description_of_a_status_is_one_short_line():
    described = CommitStatus(
        "ci/test", status().state, "ci", at(1), "12 of 12\n passed " + "x" * 500
    )
    sentence = read(draft_with(described)).message
    assert f"by git.example.com/ci: 12 of 12 passed {'x' * 90}" in sentence
    assert len(sentence) < 250


MISSING = [
    ("a repository without a forge", drafted("a", None),
     ("Repository edge has no forge, so statuses of commits cannot be read; let the pipeline run"
     " `fanout report` instead")),
    ("a forge that did not answer",
     drafted("a", ForgeState(host=HOST, failure=Unavailable("no answer in 30s"))),
     f"{HOST} could not be read: no answer in 30s"),
    ("a draft without a request", drafted("a", forge()), plan_wording.REQUEST_NOT_OPEN),
    ("a status of a commit that is not the head", draft_with(status(), commit="c0"),
     f"there is no status ci/test at {C1}"),
    ("a status of the commit that was pushed before",
     draft_with(status(), facts=request(head="c2")),
     f"there is no status ci/test at {commit_id('c2')[:12]}"),
    ("a publication whose commit is not known",
     published("a", forge(statuses={"h1": [status()]}), merge="", head_tree="tree-b"),
     "the commit of the publication is not known"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "sentence"), [row[1:] for row in MISSING], ids=map(itemgetter(0), MISSING)
)
def test_a_missing_status_is_awaited_by_name(variant, sentence):
    reading = read(variant)
    assert (reading.verdict, reading.message) == (PENDING, sentence)


PUBLISHED = [
    ("at the merge", {"m1": [status()]}, None, PASSED, "m1"),
    ("at the head of the branch", {"h1": [status()]}, None, PASSED, "h1"),
    ("the newer of both", {"m1": [status()], "h1": [status("failure", minute=2)]}, None, FAILED,
     "h1"),
    ("the newer of both, the other way",
     {"m1": [status(minute=2)], "h1": [status("failure")]}, None, PASSED, "m1"),
    ("not at a head that has something else at the path",
     {"m1": [status()], "h1": [status("failure", minute=2)]}, "tree-b", PASSED, "m1"),
    ("only that", {"h1": [status()]}, "tree-b", PENDING, ""),
    ("not at the draft", {"c1": [status()]}, None, PENDING, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "head_tree", "verdict", "seen"),
    [row[1:] for row in PUBLISHED],
    ids=map(itemgetter(0), PUBLISHED),
)
def test_a_status_of_a_publication(statuses, head_tree, verdict, seen):
    reading = read(published("a", forge(statuses=statuses), head_tree=head_tree))
    assert reading.verdict is verdict
    assert reading.observed_revision == (commit_id(seen) if seen else "")
    if verdict is PENDING and head_tree is None:
        assert reading.message == f"there is no status ci/test at {M1} or {H1}"


STATUSES = st.lists(
    st.builds(
        status,
        st.sampled_from(["success", "pending", "failure"]),
        st.sampled_from(["ci", "app", "eve", "mallory"]),
        minute=st.integers(0, 10_000),
        context=st.sampled_from(["ci/test", "fanout", "other"]),
    ),
    max_size=8,
    unique_by=lambda it: it.instant,
)


@given(STATUSES, STATUSES)
def test_statuses_of_other_creators_change_no_reading(statuses, more):
    accepted = [it for it in statuses if it.creator in ("ci", "app") and it.context == "ci/test"]
    others = [it for it in more if it.creator in ("eve", "mallory") or it.context != "ci/test"]
    rule = check("ci", "app")
    alone, among = (read(draft_with(*it), rule) for it in (accepted, [*accepted, *others]))
    assert (alone.verdict, alone.observed_revision) == (among.verdict, among.observed_revision)


@given(STATUSES, st.randoms())
def test_the_newest_counts_in_any_order(statuses, random):
    shuffled = list(statuses)
    random.shuffle(shuffled)
    assert read(draft_with(*shuffled)) == read(draft_with(*statuses))


@pytest.mark.parametrize("context", ["fanout", "fanout/eu"])
def test_a_check_of_a_status_that_fanout_sets_is_refused(context):
    with pytest.raises(ValueError, match=f"{context} is a status that fanout sets itself"):
        CommitStatusCheck(context=context)
    assert CommitStatusCheck(context=f"ci/{context}").context == f"ci/{context}"
    assert CommitStatusCheck(context="fanout-tests").context == "fanout-tests"
