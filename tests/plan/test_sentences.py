"""Sentences of plans, word for word, in small states that raise them."""

from typing import Any

import pytest
from forge_states import MAIN, REF, at, commit_id, drafted, forge, published, request
from reconcile.builders import sets_of

from fanout.api.gate_vocabulary import Action, CheckMethod, Verdict
from fanout.api.promotion_policy import MergeMethod, MergeStyle, PullRequest
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import CheckAnswer, Hold, VariantResult
from fanout.api.stages import Check
from fanout.errors import InvalidInput
from fanout.gates.record_facts import DecisionFacts, RecordPosition
from fanout.gates.release_holds import hold_sets
from fanout.gates.revision_history import RevisionHistory
from fanout.gates.rollback_pins import Pin
from fanout.package.kptfile import UpstreamLock
from fanout.plan.actions import ActionKind, RepositorySubject
from fanout.plan.changes.move_cleanup import (
    CleanupPermission,
    list_drafted_leftovers,
    remaining_holds,
)
from fanout.plan.changes.next_drafts import locate_draft
from fanout.plan.changes.package_removal import PackageRemoval, VariantRemoval, removal_actions
from fanout.plan.changes.planned_sets import PolicyCleanup
from fanout.plan.changes.policy_plan import PolicyPlan, plan_policy
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.edits.adoption_base import find_clone_edits
from fanout.plan.evidence.check_readings import build_reading, unusable_response
from fanout.plan.evidence.due_checks import DueCheck
from fanout.plan.evidence.probe_queries import ProbeResponse
from fanout.plan.gates.variant_facts import build_set_facts
from fanout.plan.history.earlier_publication import RevertedPublication, moved_away_hold
from fanout.plan.move_locations import (
    AbandonedLocation,
    MisplacedDraft,
    PathHolder,
    draft_branch_hold,
    occupied_path_hold,
)
from fanout.plan.observation.observed_request import (
    OtherRequest,
    RepositoryFacts,
    RepositoryName,
    RequestState,
)
from fanout.plan.observation.repository_state import (
    ObservedPath,
    OtherBranch,
    PathState,
    Remote,
    RepositoryState,
)
from fanout.plan.pull_requests.other_requests import plan_other_statuses
from fanout.plan.pull_requests.request_group import RequestGroup, group_orphaned
from fanout.plan.pull_requests.request_holds import (
    HOLD_LABEL,
    RequestHoldInputs,
    RequestSettings,
    find_join_hold,
    find_request_hold,
)
from fanout.plan.pull_requests.request_plan import plan_request
from fanout.plan.pull_requests.request_records import observe_request_lines
from fanout.plan.pull_requests.request_text import RequestText
from fanout.plan.records.policy_status import (
    PreviousLocationLine,
    RecordedStatus,
    RequestLine,
)
from fanout.plan.rendered_variant import RenderedVariant, without_candidate
from fanout.plan.selected_variant import SelectedVariant
from fanout.plan.variant_observation import ObservationContext, observe_variant
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace
from fanout.variants.render_model import RenderedPackage, RenderInputs, RenderLimits

LOCATION = "edge:sites/a"
A: Any = published("a", None)
DRAFT: Any = drafted("a", None).draft
DRAFT_OF_B: Any = drafted("b", None).draft
AT_V1 = RevertedPublication("is at v1", pristine_tree="p")
OTHER_PACKAGE = RevertedPublication("is at v1", is_other_package=True)
BEFORE = Pin("v1")
DECISION = DecisionFacts(
    "d1", at(0), "ann", DecisionSpec.model_construct(action=Action.ROLLBACK), order=0
)
LOCK = UpstreamLock("https://git.example.com/core.git", "monitoring", "0" * 40, "monitoring/v1")


def read(hold: Hold | None) -> tuple[str, str]:
    assert hold is not None
    return hold.message, hold.who


def by_hand(variant):
    """The same variant, written by hand."""
    return replace(variant, spec=replace(variant.spec, policy=""))


def with_state(variant, **fields):
    return replace(variant, repository_state=replace(variant.repository_state, **fields))


def obstacle(**fields):
    """The hold of a variant without publication in a repository with this state."""
    state = RepositoryState(
        remote=Remote("/edge"), branch=MAIN, refs={MAIN: "h"}, head="h", **fields
    )
    location = locate_draft(A.spec, state, "default", is_shared=False)
    return observe_variant(A.spec, state, None, ObservationContext(now=at(0)), location).obstacle


def removed(**fields):
    """The hold of a variant whose package was removed from the branch."""
    return replace(A, path_state=PathState(None), **fields).revert_hold


def without_base(recorded="", vendored=None):
    """The hold of a draft for a package with edits that cannot be told from upstream."""
    line = replace(A.published, pristine=recorded)
    renderings = {"sites/a": vendored} if vendored else {}
    variant = with_state(replace(A, published=line), published_renderings=renderings)
    return SelectedVariant(variant, "v3", inputs=RenderInputs("d3")).draft_hold


def occupied(policy="default/web", namespace="default", **fields):
    """The hold of a variant whose path another variant has."""
    occupant = PathHolder(
        owner=(namespace, "b"),
        policy=policy,
        place=("edge", "sites"),
        **{"is_moving": False, **fields},
    )
    return occupied_path_hold(A.spec, occupant)


OWN_DRAFT = "refs/heads/drafts/default/sites/a/monitoring"
NOBODYS, ANOTHERS = (OtherBranch(variant=name) for name in ("", "b"))
HOLDS = [
    (moved_away_hold(A.spec, "core:a", BEFORE),
     "a moves from core:a to edge:sites/a; roll it back to v1 before or after the move",
     "the policy's author (pin of stage prod)"),
    (moved_away_hold(A.spec, "core:a", Pin("v1", DECISION)),
     "a moves from core:a to edge:sites/a; roll it back to v1 before or after the move",
     "whoever may withdraw records: run `fanout withdraw monitoring d1 --reason WHY`"),
    (moved_away_hold(by_hand(A).spec, "core:a", Pin("v1", DECISION)),
     "a moves from core:a to edge:sites/a; roll it back to v1 before or after the move",
     "whoever may withdraw records: run `fanout withdraw a d1 --reason WHY`"),
    (replace(A, reverted_publication=OTHER_PACKAGE).revert_hold,
     "edge:sites/a is at v1, and v2 was published: it was reverted; restore it (`git revert`)",
     "the maintainers of edge"),
    (replace(A, reverted_publication=AT_V1).revert_hold,
     ("edge:sites/a is at v1, and v2 was published: it was reverted; restore it (`git revert`), or"
      " publish the next draft over it: `fanout promote monitoring --stage prod --variant a"
      " --reason WHY`"), "the maintainers of edge"),
    (by_hand(replace(A, reverted_publication=AT_V1)).revert_hold,
     ("edge:sites/a is at v1, and v2 was published: it was reverted; restore it (`git revert`), or"
      " publish the next draft over it: `fanout promote a --reason WHY`"),
     "the maintainers of edge"),
    (removed(),
     ("edge:sites/a was removed from the branch by hand; restore it (`git revert`) or remove its"
      " target and run `fanout remove monitoring a --reason WHY`"), "the maintainers of edge"),
    (removed(spec=by_hand(A).spec),
     ("edge:sites/a was removed from the branch by hand; restore it (`git revert`) or remove the"
      " PackageVariant"), "the maintainers of edge"),
    (removed(published=None, repository_state=replace(
        A.repository_state, published_renderings={"sites/a": "p"})),
     ("edge:sites/a was removed from the branch by hand; restore it (`git revert`) or remove"
      " published/sites/a from branch fanout/default/rendered to have it written again"),
     "the maintainers of edge"),
    (without_base(),
     ("edge:sites/a has edits and the vendor branch lacks it; restore that branch, or set"
      " adoptionPolicy: AdoptExisting to use its upstreamLock as base"), "the maintainers of edge"),
    (without_base("p", "q"),
     ("edge:sites/a has edits and the vendor branch has another rendering of it; restore that"
      " branch, or set adoptionPolicy: AdoptExisting to use its upstreamLock as base"),
     "the maintainers of edge"),
    (draft_branch_hold(DRAFT_OF_B),
     (f"branch {REF.removeprefix('refs/heads/')} has people's commits for variant b; its draft at"
      " the new path takes them first"), "the next pass"),
    (obstacle(path_states={"sites/a": PathState(None, "sites is a file")}),
     "edge:sites/a: sites is a file; remove it from the branch or change downstream.package",
     "the maintainers of edge"),
    (obstacle(unmanaged_drafts={OWN_DRAFT: NOBODYS}),
     ("branch drafts/default/sites/a/monitoring has commits of others and no draft of a; rename or"
      " delete it"), "the maintainers of edge"),
    (obstacle(unmanaged_drafts={OWN_DRAFT: ANOTHERS}),
     ("branch drafts/default/sites/a/monitoring has the draft of variant b, and none of a; rename"
      " or delete it to have the draft written again"), "the maintainers of edge"),
    (occupied(is_undeclared=True),
     ("edge:sites/a is not free: sites belongs to policy default/web, which is not declared;"
      " declare it again, or declare it without targets and run"
      " `fanout remove web --all-gone --reason WHY`"), "the policy's author"),
    (occupied(is_leaving=True),
     ("edge:sites/a is not free: variant b (default/web) leaves sites when it is ready at its new"
      " path"), "any promoter of variant b"),
    (occupied(is_moving=True),
     "edge:sites/a is not free: variant b (default/web) has not moved from sites yet",
     "any promoter of variant b"),
    (occupied(),
     ("edge:sites/a is not free: sites belongs to variant b (default/web), which has no target;"
      " run `fanout remove web b -n default --reason WHY`"), "any promoter of variant b"),
    (occupied("default/"),
     ("edge:sites/a is not free: sites belongs to variant b (default/), which has no target;"
      " run `fanout remove b -n default --reason WHY`"), "any promoter of variant b"),
]  # fmt: skip


@pytest.mark.parametrize(("hold", "message", "who"), HOLDS, ids=[it[1] for it in HOLDS])
def test_a_sentence_of_one_variant(hold, message, who):
    assert read(hold) == (message, who)


CORE = RepositoryState(remote=Remote("/core"), branch=MAIN, refs={MAIN: "h"}, head="h")
MOVING = replace(A, previous=ObservedPath(A.repository_state, "edge", "old/a"))
EDITED = replace(DRAFT, is_edited=True, ref="refs/heads/drafts/x")


def publishable(name, *, publish=True):
    return VariantResult(name=name, state="Proposed", publish=publish)


def moves(variant, *, publish=True):
    """The hold of a variant that moves while another one has its new path."""
    other = without_candidate(replace(published("b", None), draft_ref="refs/heads/drafts/b"))
    return last_hold(
        (without_candidate(variant), other), publishable("a"), publishable("b", publish=publish)
    )


def last_hold(variants, *results):
    """The last hold of the first variant after the sets of all are looked at."""
    sets = build_set_facts(variants, RequestHoldInputs(RequestSettings(), {}, at(1)))
    held = {it.name: it for it in results}
    hold_sets(sets, held, at(1))
    return held["a"].holds[-1]


EXCHANGING = replace(MOVING, exchange_partners=frozenset("b"))
MOVES = [
    (moves(replace(A, misplaced_drafts=(MisplacedDraft(CORE, "core", "a", EDITED),))),
     "branch drafts/x in core is removed first; its commits are in the draft", "the next pass"),
    (moves(EXCHANGING, publish=False),
     "edge:sites/a is the path of b until that moves; both move in one push",
     "any promoter of b"),
    (moves(with_state(EXCHANGING, forge=forge())),
     ("edge:sites/a is the path of b, which has another pull request; move one of them to a third"
      " path first"), "the policy's author"),
]  # fmt: skip


@pytest.mark.parametrize(("hold", "message", "who"), MOVES, ids=[it[1] for it in MOVES])
def test_a_sentence_of_a_move(hold, message, who):
    assert read(hold) == (message, who)


CLOSED = Hold("PublicationClosed", "publication is closed")


def leaving(tree="t", **fields):
    """A variant that has left a path, with a package of this tree still there."""
    state = replace(CORE, path_states={"old/a": PathState(tree)}, **fields)
    line = PreviousLocationLine(state.identity, "old/a", "t")
    abandoned = AbandonedLocation(line, ObservedPath(state, "core", "old/a"), False)
    return without_candidate(replace(A, abandoned=(abandoned,)))


REMAINING = [
    (leaving("edited"), {},
     ("the former path core:old/a was edited: copy the edits to edge:sites/a, then run"
      " `fanout remove monitoring a --edited --reason WHY`")),
    (without_candidate(by_hand(leaving("edited").observed)), {},
     ("the former path core:old/a was edited: copy the edits to edge:sites/a, then run"
      " `fanout remove a --edited --reason WHY`")),
    (leaving(), {"is_ready": True},
     ("the former path core:old/a still exists and automatic promotion is off: run"
      " `fanout remove monitoring a --reason WHY`")),
    (leaving(), {"is_ready": True, "is_automatic": True, "window_hold": CLOSED},
     "the former path core:old/a still exists: publication is closed"),
]  # fmt: skip


@pytest.mark.parametrize(("variant", "fields", "message"), REMAINING)
def test_a_sentence_of_a_former_path(variant, fields, message):
    assert [it.message for it in remaining_holds(variant, CleanupPermission(**fields))] == [message]


def test_a_former_path_joins_a_pull_request_when_the_variant_is_ready():
    step = DecidedVariant(leaving(forge=forge()), VariantStep.KEEP)
    [removal] = list_drafted_leftovers(step, CleanupPermission(is_automatic=True))
    assert read(removal.hold) == ("old/a is removed when a is ready at its new path", "")


def pending(**fields):
    return VariantResult(name="b", state="Released", **fields)


SHARED = [
    (pending(), "b in the same draft cannot be published yet", ""),
    (pending(holds=(Hold("Halted", "", "ann"),)),
     "b in the same draft cannot be published yet", "ann"),
    (pending(holds=(Hold("Halted", "S", "ann"),)),
     "b in the same draft cannot be published yet: S", "ann"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "message", "who"), SHARED)
def test_a_sentence_of_a_draft_that_variants_share(other, message, who):
    variants = tuple(without_candidate(drafted(name, forge())) for name in "ab")
    assert read(last_hold(variants, publishable("a"), other)) == (message, who)


def shown(**fields):
    """The pull request, with other fields."""
    facts = request()
    return replace(facts, request=replace(facts.request, **fields))


ALLOWED = RepositoryFacts(RepositoryName("org", "edge"), False, frozenset({MergeStyle.MERGE}))
SQUASHED = RequestSettings(declared=PullRequest(merge_style=MergeStyle.SQUASH))
HEAD = commit_id("c1")
REQUESTS = [
    (forge(shown(labels=frozenset({HOLD_LABEL}))), RequestSettings(),
     "its pull request 7 has the label fanout/hold; remove the label",
     "the person who set the label"),
    (forge(request()), RequestSettings(merge=MergeMethod.MANUAL),
     "its pull request 7 is ready to be merged by a person", "the maintainers of edge"),
    (replace(forge(request()), repository=ALLOWED), SQUASHED,
     "org/edge forbids merging by Squash; allow it there or change mergeStyle",
     "an administrator"),
    (forge(shown(base_branch="trunk")), RequestSettings(),
     ("its pull request 7 (https://git.example.com/org/edge/pulls/7) is to branch trunk, not to"
      " main; the next sweep sets it back"), "the next pass"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "settings", "message", "who"), REQUESTS)
def test_a_sentence_of_a_pull_request(state, settings, message, who):
    repository = drafted("a", state).repository_state
    inputs = RequestHoldInputs(settings, {}, at(1))
    hold = find_request_hold(repository, REF, HEAD, "edge", inputs)
    assert read(hold) == (message, who)


def test_a_variant_that_would_join_a_pull_request_under_review():
    variant = drafted("a", forge(shown(is_draft=False)))
    state = replace(variant.repository_state, sets=sets_of(DRAFT_OF_B))
    hold = find_join_hold(replace(variant, repository_state=state, draft=None), DRAFT)
    assert read(hold) == (
        "pull request 7 of its stage is under review; the variant is in the next one",
        "the maintainers of edge",
    )


EMPTY_PLAN = PolicyPlan(
    namespace="default",
    name="monitoring",
    steps=(),
    actions=(),
    recorded=RecordedStatus(),
    planned=RecordedStatus(),
)


def test_a_package_without_a_variant_holds_its_branch():
    states = {"edge": replace(CORE, sets=sets_of(DRAFT))}
    [group] = group_orphaned(EMPTY_PLAN, states, {})
    sentence = "sites/a is on the branch, but its variant no longer exists"
    assert read(group.hold) == (sentence, "the next pass")


def test_a_pull_request_of_others_that_cannot_be_read():
    unread = OtherRequest(number=7, head_commit=HEAD, problem="S")
    state = replace(CORE, forge=replace(forge(), other_requests=(unread,)))
    subject = RepositorySubject(
        namespace="default", policy="monitoring", repository="edge", state=state
    )
    planned = plan_other_statuses([subject], "default")
    assert planned.warnings == ("edge: pull request 7 gets no status of fanout: S",)


def due(method, **spec):
    """A check of a machine that is to be asked."""
    check = Check.model_validate({"name": "health", method: spec})
    return DueCheck(variant="a", check=check, digest="d1", variables={}, namespace="default")


def test_an_index_into_a_vector_of_several_series():
    query = {"address": "http://127.0.0.1/", "query": "up", "cel": "result[0].value > 0"}
    series = ProbeResponse([{"value": 1}] * 3)
    assert unusable_response(due(CheckMethod.PROMETHEUS, **query), series) == (
        "the query yields 3 series in arbitrary order, so an index selects any of them; aggregate"
        " in the query, or use result.all(...)"
    )


UNKNOWN = ExpressionFailure("ExpressionError", "no field seen")
READINGS = [
    (True, "v1", "", "Deployment web: object.ok is true"),
    (False, "v1", "", "Deployment web: object.ok is false"),
    (True, UNKNOWN, "",
     "Deployment web: the observed revision is unknown: object.seen: no field seen"),
    (True, UNKNOWN, "the answer is empty",
     ("Deployment web: the observed revision is unknown: object.seen: no field seen;"
      " the answer is empty")),
    (True, "", "",
     "Deployment web: the observed revision is unknown: object.seen yields no text"),
    (None, "v1", "", "Deployment web: object.ok is neither true nor false"),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "observed", "note", "message"), READINGS)
def test_a_sentence_of_a_reading(outcome, observed, note, message):
    rule = {"apiVersion": "v1", "kind": "ConfigMap", "name": "state"}
    item = due(CheckMethod.OBJECT, **rule, cel="object.ok", observedRevision="object.seen")
    response = ProbeResponse({}, note=note)
    assert build_reading(item, "Deployment web", response, outcome, observed).message == message


KPTFILE = b"""\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: web}
pipeline: {mutators: [{image: "git.example.com/unknown:v1"}]}
"""


def package(name):
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{at: {name}}}\n"
    return {"Kptfile": ("100644", KPTFILE), "settings.yaml": ("100644", text.encode())}


def test_an_object_that_a_pipeline_may_have_renamed():
    with pytest.raises(InvalidInput) as refusal:
        find_clone_edits(package("one"), package("other"), RenderLimits(), {})
    assert refusal.value.problem.startswith(
        "the object may be from upstream under another name; the pipeline that would show it cannot"
        " run: "
    )


ANSWERED = CheckAnswer("e2e", "d0", Verdict.PASSED, at(0))
PASSED = {("prod", "v1"): RevisionHistory(passed=at(0))}
LEFT = {("prod", "v1"): RevisionHistory(passed=at(0), left=at(5))}


def details(variant=A, recorded=None, *, step=VariantStep.KEEP, before=None, after=None):
    """What the plan of a policy with one variant records, in words."""
    content = RenderedPackage(entries={}, blobs={}, tree="tree-a")
    selected = RenderedVariant(SelectedVariant(variant, "v2", inputs=RenderInputs("d1")), content)
    name = "monitoring" if variant.spec.policy else "a"
    status = RecordedStatus(variants={"a": recorded or variant.status_line}, history=before or {})
    plan = plan_policy(
        "default",
        name,
        [DecidedVariant(selected, step)],
        status,
        after or {},
        RecordPosition(at(9)),
        PolicyCleanup(),
    )
    return [it.detail for it in plan.actions]


LINE = A.status_line
TAGGED = replace(A.published, tag="sites/a/v2")
UNPUBLISHED = replace(LINE, published=None)
RECORDS = [
    (details(recorded=replace(LINE, answers=(ANSWERED,))),
     "that check e2e of a must be answered again"),
    (details(recorded=replace(LINE, path="old/a")),
     "that a is at edge:sites/a, no longer at old/a"),
    (details(step=VariantStep.ADOPT), "that a is at v2 with its present inputs already"),
    (details(replace(A, is_unrecorded=True)), "that a is published at v2"),
    (details(recorded=UNPUBLISHED), "that a is published at v2, as the vendor branch shows"),
    (details(replace(A, status_line=replace(LINE, published=TAGGED)), UNPUBLISHED),
     "that a is published at v2, as its tag shows"),
    (details(recorded=replace(LINE, stage="dev")), "that a is in stage prod now"),
    (details(replace(A, spec=replace(A.spec, stage="")), replace(LINE, stage="dev")),
     "that a is in no stage now"),
    (details(after=PASSED), "that stage prod has passed v1"),
    (details(after=LEFT), "that stage prod has moved on from v1"),
    (details(before=PASSED), "that stage prod does not pass v1 any more"),
    (details(by_hand(A), before=PASSED), "that variant a does not pass v1 any more"),
]  # fmt: skip


@pytest.mark.parametrize(("detail", "expected"), RECORDS, ids=[it[1] for it in RECORDS])
def test_a_detail_of_a_record(detail, expected):
    assert detail == [expected]


WAITS = Hold("SweepAwaited", "it waits")
BY_PERSON = shown(state=RequestState.CLOSED)
LINES = [
    (RequestState.OPEN, BY_PERSON, "that pull request 7 is closed by a person"),
    (RequestState.CLOSED, request(), "that pull request 7 is open again"),
    (RequestState.OPEN, replace(BY_PERSON, closed_by="fanout"),
     "that pull request 7 is closed by fanout"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "facts", "detail"), LINES)
def test_a_detail_of_a_pull_request(state, facts, detail):
    variant = drafted("a", forge(facts))
    key = variant.repository_state.identity, REF
    status = RecordedStatus(requests={key: RequestLine(number=7, state=state.value)})
    _, details = observe_request_lines(status, [variant], (), at(9))
    assert details == (detail,)


def test_details_of_a_cleanup_after_a_move():
    moved = "its variant is sites/a in edge now"
    leftover = PackageRemoval(
        variant="a",
        repository_state=CORE,
        repository="core",
        path="old/a",
        reason=moved,
        left_line=PreviousLocationLine(CORE.identity, "old/a", "t"),
    )
    sentence = "that a has left core:old/a"
    for package, details in (
        (replace(leftover, tree="t"), [moved]),
        (replace(leftover, drafts=(DRAFT,)), [moved, sentence]),
        (replace(leftover, drafts=(DRAFT,), left_line=None), [moved]),
    ):
        removal = VariantRemoval(
            namespace="default", policy="monitoring", variant="a", packages=(package,)
        )
        assert [it.detail for it in removal_actions(removal)] == details


TEXT = RequestText("Promote v2", "text", "digest")
UPDATES = [
    (request(), RequestSettings(declared=PullRequest(labels=("x", "y"))), None,
     "its text, ready for review, label x, label y"),
    (shown(is_draft=False), RequestSettings(), WAITS, "its text, draft"),
    (shown(base_branch="trunk"), RequestSettings(), WAITS, "back to branch main, its text"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "settings", "hold", "detail"), UPDATES)
def test_a_detail_of_an_update_of_a_pull_request(facts, settings, hold, detail):
    variant = drafted("a", forge(facts))
    group = RequestGroup(
        namespace="default",
        policy="monitoring",
        stage="prod",
        repository="edge",
        state=replace(variant.repository_state, refs={REF: HEAD}),
        ref=REF,
        members=(DecidedVariant(without_candidate(variant), VariantStep.KEEP),),
        hold=hold,
    )
    planned = plan_request(group, TEXT, settings)
    actions = planned.actions if planned is not None else ()
    [update] = (it for it in actions if it.kind is ActionKind.UPDATE_REQUEST)
    assert update.detail == detail
