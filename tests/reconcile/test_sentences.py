"""Sentences of a pass, word for word, in small states that raise them."""

from contextlib import nullcontext
from typing import Any

import pytest
from gates.worlds import draft as gate_draft
from gates.worlds import facts, variant
from reconcile.builders import (
    COMMITS,
    EDGE_URL,
    NOW,
    UPSTREAM_URL,
    hand_written,
    open_draft,
    parsed,
    repository_state,
    resolved,
    tags,
    variant_name,
)

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold, VariantResult
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.package.tree_ids import TreeEntry
from fanout.plan.commit_statement import PublicationStatement
from fanout.plan.observation.repository_state import (
    EMPTY_PATH,
    Commit,
    PathState,
    RefListing,
)
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import (
    LostBranch,
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    RewoundBranch,
)
from fanout.plan.records.policy_status import (
    GrantLine,
    PreviousLocationLine,
    PublishedLine,
    RecordedStatus,
    VariantLine,
)
from fanout.plan.rendered_variant import RenderedVariant, without_candidate
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.edits.edit_detection import (
    DownstreamEditDetector,
    describe_edits,
    describe_leftover_draft,
    describe_lost_tag,
    find_tag_problems,
)
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.memo.policy_memo import VariantMemo
from fanout.reconcile.observation.repository_access import PackageContentCache
from fanout.reconcile.observation.upstream_packages import (
    UpstreamPackages,
    find_origin,
    find_revisions,
)
from fanout.reconcile.ownership.path_ownership import PathOwnershipIndex, PolicyPaths
from fanout.reconcile.ownership.publisher_check import find_publisher_hold
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.records.lost_records import (
    RecordBaseline,
    count_other_branches,
    find_lost_policies,
    mark_missing_records,
    refuse_lost_policy_state,
    refuse_missing_records,
    refuse_rewound_branch,
)
from fanout.reconcile.records.undeclared_policies import find_undeclared
from fanout.reconcile.selection.policy_resolution import repository_key, repository_place
from fanout.reconcile.variant_dependencies import VariantDependencies
from fanout.reconcile.variant_observer import VariantObserver
from fanout.selection.variant_spec import TargetFailure
from fanout.values import replace
from fanout.variants.render_model import RenderInputs, RenderLimits

AMS, BER = variant_name("ams"), variant_name("ber")
EDGE = parsed("Repository", "edge", url=EDGE_URL)
STATE = replace(repository_state(), head="h")
PLACE = repository_place(EDGE)
LOCK = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {{name: web}}
upstreamLock:
  type: git
  git: {{repo: {repo}, directory: {directory}, commit: "{commit}", ref: {ref}}}
"""


def kptfile(repo=UPSTREAM_URL, directory="monitoring", revision="v1"):
    commit, ref = COMMITS[revision], f"monitoring/{revision}"
    return LOCK.format(repo=repo, directory=directory, commit=commit, ref=ref).encode()


class MemoryMirror:
    """A mirror in memory: Kptfiles by package tree, path states and messages by commit."""

    limits = RenderLimits()

    def __init__(self, kptfiles=None, states=None, messages=None):
        self.kptfiles = kptfiles or {}
        self.states = states or {}
        self.messages = messages or {}

    def reader(self, _):
        return nullcontext(self)

    def has(self, oid):
        return oid in {**self.kptfiles, **self.states, **self.messages}

    def entry(self, tree, _):
        return TreeEntry("100644", tree) if self.kptfiles[tree] else None

    def blob(self, oid):
        return self.kptfiles[oid]

    def files(self, tree, _):
        return {"Kptfile": (TreeEntry("100644", tree), self.kptfiles[tree])}

    def paths(self, commit, paths):
        return dict.fromkeys(paths, self.states[commit])

    def commit(self, oid):
        return Commit(oid=oid, tree="t", parents=(), timestamp=int(NOW.timestamp()),
                      committer="a <a@b>", message=self.messages.get(oid, ""))  # fmt: skip


def mirror_of(*content, **fields) -> Any:
    return MemoryMirror(*content, **fields)


def policy(*targets, **fields):
    """A policy with these targets, all in one repository."""
    names = [variant_name(it) for it in targets]
    fields = {
        "repositories": dict.fromkeys(names, EDGE),
        "place_by_variant": dict.fromkeys(names, PLACE),
        **fields,
    }
    return resolved(*targets, **fields)


POLICY = policy("ams")
[SPEC] = POLICY.variants
PUBLISHED = PublishedLine(
    revision="v1", commit=COMMITS["v1"], digest="d1", tree="t1", at=NOW, merge="a" * 40,
    tag="sites/ams/v1",
)  # fmt: skip
LINE = VariantLine(repository=PLACE, path="sites/ams", published=PUBLISHED, stage="dev")


def observed(state=STATE, *, tree="t1", published=PUBLISHED, **fields):
    """The variant of ams, published unless it is said otherwise."""
    state = replace(state, path_states={"sites/ams": PathState(tree)})
    return ObservedVariant(
        spec=SPEC,
        repository_state=state,
        draft_ref="refs/heads/drafts/default/sites/ams/monitoring",
        path_state=PathState(tree),
        status_line=replace(LINE, published=published),
        published=published,
        **fields,
    )


# ---- revisions and tags upstream


REVISIONS = [
    ({"tag": "v9"}, {}, "TagMissing",
     f"repository {UPSTREAM_URL} has no tag monitoring/v9"),
    ({"semver": ">=5"}, {}, "NoRevision",
     f"no tag monitoring/v<N> of repository {UPSTREAM_URL} matches the range >=5"),
    ({"latest": True}, None, "NoRevision",
     (f"no tag monitoring/v<N> of repository {UPSTREAM_URL} matches `latest`, which excludes"
      " prereleases")),
    ({"latest": True}, {"v1": "abab"}, "TagMoved",
     f"tag monitoring/v1 pointed to abab when it was used, and now points to {COMMITS['v1']}"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "used", "reason", "problem"), REVISIONS)
def test_a_rule_that_allows_no_revision(rule, used, reason, problem):
    listed = tags("v1") if used is not None else tags("v1.0.0-rc.1")
    with pytest.raises(InvalidInput) as error:
        find_revisions(
            policy("ams", revision=rule),
            {UPSTREAM_URL: listed},
            RecordedStatus(revisions=used or {}),
        )
    assert (error.value.reason, error.value.problem) == (reason, problem)


V1 = COMMITS["v1"]
DIRECTORIES = [
    (mirror_of(), f"repository {UPSTREAM_URL} has no commit {V1} on any branch"),
    (mirror_of(states={V1: EMPTY_PATH}),
     f"{UPSTREAM_URL} has no directory monitoring at v1 ({V1})"),
    (mirror_of(states={V1: PathState(None, "monitoring is a file")}),
     f"{UPSTREAM_URL} has no directory monitoring at v1 ({V1}): monitoring is a file"),
]  # fmt: skip


@pytest.mark.parametrize(("mirror", "problem"), DIRECTORIES, ids=[it[1] for it in DIRECTORIES])
def test_a_revision_without_the_package(mirror, problem):
    packages = UpstreamPackages(mirror, RenderLimits())
    with pytest.raises(InvalidInput) as error:
        packages.get_package(POLICY, "v1", V1, {})
    assert error.value.problem == problem


# ---- tags of publications


PUSH = f"in a clone of edge, run `git push origin {'a' * 40}:refs/tags/sites/ams/v1`"
TAGS = [
    ({}, PUBLISHED, "TagMissing",
     f"tag sites/ams/v1 is missing from edge, but v1 was published with it; {PUSH}"),
    ({"refs/tags/sites/ams/v1": "b" * 40}, PUBLISHED, "TagMoved",
     (f"tag sites/ams/v1 of edge points to {'b' * 12}, not to the publication of v1; delete the tag"
      f" and, {PUSH}")),
    ({}, replace(PUBLISHED, tag="", lost_tags={"sites/ams/v0": "c0"}), "TagMissing",
     ("tag sites/ams/v0 of an earlier publication is missing from edge; in a clone of edge, run"
      " `git push origin c0:refs/tags/sites/ams/v0`")),
]  # fmt: skip


@pytest.mark.parametrize(("refs", "published", "reason", "sentence"), TAGS)
def test_a_tag_of_a_publication(refs, published, reason, sentence):
    variant = observed(replace(STATE, refs=refs), published=published)
    assert list(find_tag_problems(variant)) == [(reason, sentence)]


def test_a_lost_upstream_tag():
    assert describe_lost_tag(observed(missing_tag="monitoring/v1")) == (
        f"tag monitoring/v1 is missing from blueprints, but v1 is published; restore the tag ({V1})"
        " or release a newer revision, because automation never downgrades"
    )


# ---- edits and adoption


def test_an_edited_package_and_a_remaining_branch():
    assert describe_edits(observed()) == (
        "edge:sites/ams was edited outside fanout; the edits are carried into the next draft"
    )
    variant = observed(draft=open_draft(AMS, "sites/ams"))
    selected = SelectedVariant(variant, "v1", inputs=RenderInputs("d1"))
    assert describe_leftover_draft(RenderedVariant(selected)) == (
        "branch drafts/default/sites/ams/monitoring of edge is published but still exists; each"
        " sweep tries to delete it. If the server denies deletions, allow them below drafts/, or"
        " delete the branch by hand"
    )


NUMBERED = replace(STATE, publication_numbers={"sites/ams": 1})
TAGGED = replace(NUMBERED, refs={"refs/tags/sites/ams/v1": "c1"})
REVERTED = [
    (STATE, {"t1": kptfile(), "t2": kptfile("/web", "other")}, "is a clone of other in /web"),
    (STATE, {"t1": kptfile(revision="v2"), "t2": kptfile(revision="v1")},
     "has the Kptfile of v1"),
    (TAGGED, {"t1": kptfile(), "t2": kptfile()}, "has the content of tag sites/ams/v1"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "kptfiles", "description"), REVERTED)
def test_a_publication_that_was_taken_back(state, kptfiles, description):
    mirror = mirror_of(kptfiles, states={"c1": PathState("t2")})
    detector = DownstreamEditDetector(PackageContentCache())
    histories = HistoryReader(lambda _: mirror)
    variant = detector.add_edits(observed(state, tree="t2"), histories)
    assert variant.revert_hold is not None
    assert variant.revert_hold.message.startswith(
        f"edge:sites/ams {description}, and v1 was published: it was reverted; "
    )


REMEDY = "choose another path, or correct its upstreamLock"
ADOPTED = [
    (mirror_of({"t1": kptfile("/web", "other")}), "PathTaken",
     ("edge:sites/ams is a clone of other in /web, but the upstream of its variant is monitoring in"
      f" {UPSTREAM_URL}; {REMEDY}")),
    (mirror_of({"t1": kptfile()}), "AdoptionBaseMissing",
     (f"edge:sites/ams cannot be adopted: no branch or tag of {UPSTREAM_URL} contains commit {V1}"
      " with monitoring; ")),
    (mirror_of({"t1": b""}), "AdoptionBaseMissing",
     "edge:sites/ams cannot be adopted: sites/ams/Kptfile: the package has no Kptfile; "),
]  # fmt: skip


@pytest.mark.parametrize(("mirror", "reason", "sentence"), ADOPTED, ids=[it[2] for it in ADOPTED])
def test_a_package_that_cannot_be_adopted(mirror, reason, sentence):
    hold: Any = find_origin(observed(published=None), POLICY, mirror).obstacle
    assert (hold.reason, hold.who) == (reason, "the maintainers of edge")
    assert hold.message.startswith(sentence)


# ---- packages of others, and moves


def statement(owner):
    """The statement of a publication at the path, for this policy."""
    trailers = replace(open_draft(AMS, "sites/ams").trailers, policy=owner)
    return PublicationStatement(path="sites/ams", number=1, merge="m1", trailers=trailers)


def publisher(owner="", *others, lock=b""):
    """The hold of a variant at whose path a package of this owner was published."""
    state = replace(
        STATE,
        published_renderings={"sites/ams": "t1"},
        publication_numbers={"sites/ams": 1},
        publication_statements={"sites/ams": statement(owner)} if owner else {},
        path_states={"sites/ams": PathState("t1")},
    )
    mirror = mirror_of({"t1": lock}, messages={"m1": ""})
    return find_publisher_hold(mirror, "default", POLICY, SPEC, state, None, [POLICY, *others])


OTHER_URL = "https://git.example.com/mirror.git"
MIRRORED = replace(
    POLICY,
    name="web",
    repositories={AMS: parsed("Repository", "mirror", url=OTHER_URL)},
)
PUBLISHERS = [
    (publisher("other/web"),
     (f"edge:sites/ams holds a package that was published for a policy in another namespace; choose"
      f" another path for {AMS}"), "the policy's author"),
    (publisher("platform/web"),
     (f"edge:sites/ams holds a package that was published for platform/web and was not removed;"
      f" choose another path for {AMS}, or delete the package from the branch"),
     "the maintainers of edge"),
    (publisher("platform/web", MIRRORED),
     (f"edge:sites/ams holds a package that was published for platform/web: Repository/edge and"
      f" Repository/mirror are one repository with two URLs, {EDGE_URL} and {OTHER_URL}; use one"
      " URL in both, and change downstream.package of one variant"), "the policy's author"),
    (publisher(lock=kptfile("/web", "other")),
     (f"edge:sites/ams holds a clone of other in /web that was not published for {AMS}; choose"
      " another path, or delete the package from the branch"), "the maintainers of edge"),
]  # fmt: skip


@pytest.mark.parametrize(("hold", "sentence", "who"), PUBLISHERS, ids=[it[1] for it in PUBLISHERS])
def test_a_package_of_another_policy(hold, sentence, who):
    assert (hold.message, hold.who) == (sentence, who)


def move(line, state=STATE, **lines):
    """The variant of ams, as it is observed with this line and lines of others."""
    status = RecordedStatus(variants={AMS: line, **lines})
    paths = PolicyPaths.build([POLICY], {POLICY.records_key: PolicyRecords(status=status)})
    index = PathOwnershipIndex(all_policies=[POLICY], policy_paths=paths, former_by_policy={})
    observer = VariantObserver(
        git=mirror_of(),
        install="default",
        now=NOW,
        resolved_policy=POLICY,
        status=status,
        path_ownership=index.for_policy(POLICY, {repository_key(EDGE): state}),
        resolutions=(),
        edit_detector=DownstreamEditDetector(PackageContentCache()),
        variant_memo=VariantMemo(),
        record_baseline=RecordBaseline((), None, NOW),
    )
    [variant] = observer.observe_variants()
    return variant


OLD = replace(LINE, path="old/ams", published=replace(PUBLISHED, tag=""))
AT_OLD = replace(STATE, path_states={"old/ams": PathState("t1")})
DECLARE = "declare the Repository with this URL and branch so that the package can move"
EDITED = replace(AT_OLD, path_states={"old/ams": PathState("t1"), "sites/ams": PathState("edited")})
MOVES = [
    (move(replace(OLD, repository="/core#refs/heads/main")),
     (f"{AMS} is at old/ams in /core#refs/heads/main, for which the namespace has no Repository;"
      f" {DECLARE}"), "the policy's author"),
    (move(OLD, AT_OLD, **{BER: OLD}),
     (f"the former path old/ams of {AMS} belongs to variant {BER} now, but {AMS} is not at its new"
      " path yet; merge its draft by hand"), "the maintainers of edge"),
    (move(replace(OLD, left=(PreviousLocationLine(PLACE, "sites/ams", "t0"),)), EDITED),
     (f"edge:sites/ams, the former path of {AMS}, was edited since; copy the edits to its present"
      " path and remove the package, or choose another path"), "the maintainers of edge"),
]  # fmt: skip


@pytest.mark.parametrize(("variant", "sentence", "who"), MOVES, ids=[it[1] for it in MOVES])
def test_a_move_that_cannot_be_made(variant, sentence, who):
    assert (variant.obstacle.message, variant.obstacle.who) == (sentence, who)


def test_a_move_waits_for_the_record_of_a_publication():
    grant = GrantLine(revision="v1", commit=V1, digest="d1", tree="t1", at=NOW)
    line = VariantLine(repository=PLACE, path="old/ams", grant=grant, stage="dev")
    assert move(line, AT_OLD).wait_hold.message == (
        f"{AMS} moves from edge:old/ams to edge:sites/ams after the publication at edge:old/ams is"
        " recorded"
    )


# ---- records


def test_repositories_show_that_all_records_were_lost():
    branch = "refs/heads/fanout/default/rendered"
    listings = {EDGE_URL: RefListing({branch: "c"})}
    [error] = find_lost_policies(
        "there is no repository /r", [POLICY], [EDGE], listings, "default"
    ).values()
    assert error.problem == (
        f"there is no repository /r, but {EDGE_URL} has branch fanout/default/rendered of this"
        " installation"
    )


NO_RECORDS = PolicyRecords()


def policy_inputs(records=NO_RECORDS, state=STATE):
    """What is evaluated of the policy with these records and this state of its repository."""
    paths = PolicyPaths.build([POLICY], {POLICY.records_key: records})
    index = PathOwnershipIndex(all_policies=[POLICY], policy_paths=paths, former_by_policy={})
    return PolicyInputs(
        resolved_policy=POLICY,
        policy_state=records,
        path_ownership=index.for_policy(POLICY, {repository_key(EDGE): state}),
        listings={},
        promotions=(),
        is_sweep=True,
    )


def test_a_draft_shows_that_the_records_of_a_policy_were_lost():
    inputs = policy_inputs(state=repository_state(open_draft(AMS, "sites/ams")))
    with pytest.raises(InvalidInput) as error:
        refuse_lost_policy_state(inputs, [], mirror_of())
    assert error.value.problem == (
        f"the policy has no records, but {EDGE_URL} has its draft"
        " drafts/default/sites/ams/monitoring"
    )


@pytest.mark.parametrize(
    ("others", "names"), [(1, "1 with another name"), (2, "2 with other names")]
)
def test_other_branches_may_have_the_records(others, names):
    lost = LostBranch("fanout/default/a/b", "/r", others)
    records = PolicyRecords(lost_branch=lost)
    with pytest.raises(InvalidInput) as error, count_other_branches(records):
        raise InvalidInput("no records")
    assert error.value.problem == f"no records; /r has no branch fanout/default/a/b, but {names}"


def record(name, **fields):
    spec = DecisionSpec.model_construct(
        **{"policy": "monitoring", "action": Action.SUSPEND, **fields}
    )
    return RecordEntry(name=name, at=NOW, by="Ann <a@b>", spec=spec)


BRANCH = f"branch x of /r was reset: it does not contain commit {'c' * 12}, its last known head"
ONE = "Decision d{} of Ann <a@b>: Suspend"
REWOUND = [
    (None, BRANCH),
    ((), f"{BRANCH}; no record is missing, only status"),
    ((record("d0"),), f"{BRANCH}; missing: {ONE.format(0)}"),
    ((record("d0", stage="prod", revision="v2"),),
     f"{BRANCH}; missing: {ONE.format(0)} v2 stage prod"),
    (tuple(record(f"d{it}") for it in range(7)),
     f"{BRANCH}; missing: {'; '.join(ONE.format(it) for it in range(5))} and 2 more"),
]  # fmt: skip


@pytest.mark.parametrize(("records", "problem"), REWOUND)
def test_a_branch_of_records_that_was_put_back(records, problem):
    rewound = RewoundBranch("branch x of /r", "c" * 40, records)
    with pytest.raises(InvalidInput) as error:
        refuse_rewound_branch(policy_inputs(PolicyRecords(rewound=rewound)))
    assert error.value.problem == problem
    assert error.value.remedy == (
        "restore the branch; or, to continue from what the repositories have published, run"
        " `fanout accept-records monitoring -n platform --reason WHY`"
    )


UNRECORDED = [
    (1, f"publication sites/ams/v1 ({'a' * 12}) of edge is missing from the records"),
    (3, f"publication sites/ams/v1 ({'a' * 12}) of edge is missing from the records (and 2 more)"),
]


@pytest.mark.parametrize(("number", "sentence"), UNRECORDED)
def test_publications_whose_records_are_missing(number, sentence):
    mirror = mirror_of(messages={"a" * 40: "Publish\n\nFanout-Records: e1\n"})
    baseline = RecordBaseline((), None, NOW)
    variants = [mark_missing_records(observed(), baseline, lambda _: mirror)] * number
    with pytest.raises(InvalidInput) as error:
        refuse_missing_records(policy_inputs(PolicyRecords(head="b" * 40)), tuple(variants))
    assert error.value.problem == (
        f"{sentence}: the records were reset to an older state (commit {'b' * 12})"
    )


RELEASED = replace(LINE, published=None)
UNDECLARED = [
    (RecordsKey("platform", "web"), {"a": LINE, "b": RELEASED, "c": RELEASED},
     ("policy platform/web is not declared but has 1 published variant and 2 released; declare it"
      " again, or, to remove it, declare it with targets that match nothing and run"
      " `fanout remove web --all-gone --reason WHY`")),
    (RecordsKey("platform", ""), {"own": LINE},
     (f"PackageVariant platform/own is not declared, but its package is still published"
      f" ({PLACE}, sites/ams) and is not updated; declare it again, or run"
      " `fanout remove own --reason WHY`")),
    (RecordsKey("platform", ""), {"own": RELEASED},
     (f"PackageVariant platform/own is not declared, but it has records ({PLACE}, sites/ams) and is"
      " not updated; declare it again, or run `fanout remove own --reason WHY`")),
]  # fmt: skip


@pytest.mark.parametrize(("key", "lines", "warning"), UNDECLARED)
def test_a_policy_on_record_that_is_not_declared(key, lines, warning):
    state = PolicyRecords(status=RecordedStatus(variants=lines))
    assert find_undeclared({key: state}, DeclaredObjects(), "") == (warning,)


# ---- dependencies


def result(of, **results):
    decision = PolicyEvaluation(stages={}, variants=results, history={})
    return {
        of.key: PolicyResult(resolved_policy=of, policy_state=PolicyRecords(), decision=decision)
    }


A, B = hand_written("a", "b"), hand_written("b")
PENDING = Hold("VerificationPending", "check e2e is pending", "ci")
HELD = VariantResult(name="b", state=VariantState.HELD)
VERIFYING = VariantResult(name="b", state=VariantState.VERIFYING, candidate="v1", holds=(PENDING,))
FAILING = replace(POLICY, failures=(TargetFailure("ber", "ExpressionError", "no path"),))


def on_target(target, of="monitoring"):
    """A variant written by hand that depends on a target of a policy."""
    declared = parsed(
        "PackageVariant",
        "x",
        upstream={"repository": "b", "package": "m", "revision": {"latest": True}},
        downstream={"repository": "edge", "package": "x"},
        dependsOn=[{"policy": of, "target": target}],
    )
    return replace(hand_written("a"), package_variant=declared)


DEPENDENCIES = [
    ([A, B], {}, "waits for variant b, which was not evaluated", ""),
    ([A, B], result(B, b=HELD), "waits for variant b, which is Held", ""),
    ([A, B], result(B, b=VERIFYING),
     "waits for variant b, which is Verifying at v1: check e2e is pending", "ci"),
    ([A], {}, "waits for variant b, which does not exist", None),
    ([A, hand_written("b", "a")], {}, "variants form a cycle: a → b → a", None),
    ([on_target("ams", "other")], {},
     "waits for UpstreamPolicy other, which does not exist", None),
    ([on_target("ber"), FAILING], {},
     "waits for target ber of monitoring, which has no variant: no path", None),
    ([on_target("amz"), POLICY], {},
     "waits for target amz, which UpstreamPolicy monitoring does not have; did you mean ams?",
     None),
    ([on_target("zzzzzz"), POLICY], {},
     ("waits for target zzzzzz, which UpstreamPolicy monitoring does not have; correct"
      " spec.dependsOn, or add the target"), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policies", "results", "sentence", "who"), DEPENDENCIES, ids=[it[2] for it in DEPENDENCIES]
)
def test_a_dependency_that_is_not_ready(policies, results, sentence, who):
    dependencies = VariantDependencies(policies)
    dependencies.with_dependencies(policies)
    [hold] = dependencies.find_holds(policies[0], results)
    author = "the author of the variant (dependsOn)"
    assert (hold.message, hold.who) == (sentence, author if who is None else who)


# ---- problems


def conflicts(number, *, by_hand=False, is_accepted=False):
    """The problems of a pass with a draft that has so many undecided conflicts."""
    spec = replace(SPEC, policy="") if by_hand else SPEC
    draft = variant("x", "dev", draft=replace(gate_draft("v1"), conflict_count=number))
    return PolicyResult(
        resolved_policy=POLICY,
        policy_state=PolicyRecords(),
        variants=(without_candidate(replace(observed(STATE), spec=spec, tag="")),),
        facts=facts([], [replace(draft, name=AMS)]),
        publishing=frozenset({AMS} if is_accepted else ()),
    ).problems


FIX = (
    f"run `fanout diff {AMS} --three-way`, then commit a fix to the draft or run"
    f" `fanout resolve monitoring --variant {AMS} --reason WHY`"
)
CONFLICTS = [
    (conflicts(1), f"1 undecided merge conflict in its draft; {FIX}",
     f"1 undecided merge conflict; run `fanout explain monitoring/dev/{AMS}`"),
    (conflicts(2), f"2 undecided merge conflicts in its draft; {FIX}",
     f"2 undecided merge conflicts; run `fanout explain monitoring/dev/{AMS}`"),
    (conflicts(2, by_hand=True), f"2 undecided merge conflicts in its draft; {FIX}",
     f"2 undecided merge conflicts; run `fanout explain {AMS}`"),
    (conflicts(2, is_accepted=True),
     "its draft is published with 2 merge conflicts that a person accepted", ""),
]  # fmt: skip


@pytest.mark.parametrize(("problems", "message", "reminder"), CONFLICTS)
def test_a_problem_of_undecided_conflicts(problems, message, reminder):
    [problem] = (it for it in problems if it.reason == "MergeConflict")
    assert (problem.message, problem.again) == (message, reminder)
