"""What is said of a scenario that cannot be meant as it is written: all of it, with its line."""

from operator import itemgetter

import pytest

from fanout.cluster.file_cluster import FileCluster

SOUND = """\
apiVersion: fanout.dev/v1alpha1
kind: Scenario
metadata: {name: story}
spec:
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: plain}
  - name: prod
    after: {stages: [dev], soak: 1h}
    requires: [{name: signed, approval: {from: [sre]}}]
  promotion:
    autoPromotion: {stages: ["*"]}
    approvers: [{group: sre, subjects: [ann@example.com]}]
  revisions: [v1, v2]
  now: 2030-01-07T12:00:00Z
  variants:
  - {name: ams, stage: dev, revision: v1, published: -3h, ready: -2h}
  - {name: ber, stage: prod}
  - {name: cph, count: 2, stage: plain, revision: v1, published: -1h}
  evidence:
  - {at: -1h, stage: dev, check: e2e, status: passed, revision: v1}
  approvals:
  - {at: -1h, name: one, by: ann@example.com, stage: prod, check: signed, revision: v1}
  decisions:
  - {at: -1h, name: two, by: ann@example.com, stage: prod, action: Publish, revision: v1}
  events:
  - {at: +1h, evidence: {stage: dev, check: e2e, status: failed, revision: v1}}
  - {at: +2h, offline: [cph-001]}
  moments: [+3h]
  expect:
  - stages: [{stage: prod, candidate: v1}]
    variants: [{variant: ams, held: [soak], reasons: [SoakRunning]}]
"""

AMS = "{name: ams, stage: dev, revision: v1, published: -3h, ready: -2h}"
BAD = [
    ("neither a policy nor stages", "stages:\n  - {name: dev", "stages: []\n  x:\n  - {name: dev",
     ["spec: policy or stages is missing; add it", "spec.x: unknown field"]),
    ("both a policy and stages", "stages:\n  - {name: dev", "policy: a\n  stages:\n  - {name: dev",
     ["spec: policy and stages exclude each other; keep one of them"]),
    ("stages with a fault", "after: {stages: [dev]", "after: {stages: [dve]",
     ["spec.stages[2].after.stages[0]: there is no stage dve; did you mean dev?"]),
    ("an administrator's word with a fault", "autoPromotion: {stages: [\"*\"]}", "schedule: 61 * *",
     ["spec.promotion.schedule:"]),
    ("a group of approvers that nobody has declared", "from: [sre]", "from: [ops]",
     ["spec.stages[2].requires[0].approval.from[0]: there is no group ops under promotion"]),
    ("a variant in a stage that there is not", "ber, stage: prod", "ber, stage: prdo",
     ["spec.variants[1].stage: there is no stage prdo; did you mean prod?"]),
    ("a variant that is there twice", "name: ber", "name: cph-002",
     ["spec.variants[2].name: duplicate variant cph-002; rename one"]),
    ("a distance without a sign", "ready: -2h", "ready: 2h",
     [("spec.variants[0].ready: '2h' is not an instant; write it like 2030-01-31T16:00:00Z, or"
      " from `now` on like -30h or +15m")]),
    ("a distance in days", "ready: -2h", "ready: -2d",
     ["spec.variants[0].ready: 2d is in days, which are not always 24 hours"]),
    ("ready before it was published", "ready: -2h", "ready: -4h",
     ["spec.variants[0].ready: comes before published; put the times in order"]),
    ("published after `now`", AMS, "{name: ams, stage: dev, revision: v1, published: +1h}",
     ["spec.variants[0].published: is in the future of this state; use an event"]),
    ("ready and failed at once", "ready: -2h", "ready: -2h, failed: -1h",
     ["spec.variants[0].failed: ready and failed exclude each other; use withdrawn"]),
    ("taken back and never given", "ready: -2h", "withdrawn: -2h",
     ["spec.variants[0].withdrawn: withdrawn needs ready; add the time when it was ready"]),
    ("ready at no revision", "revision: v1, published: -3h, ready", "ready",
     ["spec.variants[0].ready: no revision is published; add revision"]),
    ("failed where nothing is verified", "v1, published: -1h}", "v1, failed: -1h}",
     ["spec.variants[2].failed: stage plain has no verification, so nothing can fail"]),
    ("stays out of order", "ready: -2h}",
     "ready: -2h, earlier: [{revision: v2, published: -2h}]}",
     ["spec.variants[0].published: is before the previous publication"]),
    ("a draft of an unknown revision", "stage: prod}\n", "stage: prod, draft: {revision: v3}}\n",
     ["spec.variants[1].draft.revision: there is no revision v3"]),
    ("released without a draft", "stage: prod}\n", "stage: prod, drafted: false, released: -1h}\n",
     ["spec.variants[1].released: a variant without a draft cannot be released; remove"]),
    ("a duration to become ready that nothing uses", "stage: prod}\n",
     "stage: prod, readyAfter: 10m}\n",
     ["spec.variants[1].readyAfter: has no effect without advance; add spec.advance"]),
    ("evidence of an unknown check", "e2e, status: passed", "e3e, status: passed",
     ["spec.evidence[0].check: stage dev has no check e3e; did you mean e2e?"]),
    ("evidence of a check that people approve", "{at: -1h, stage: dev, check: e2e",
     "{at: -1h, stage: prod, check: signed",
     ["spec.evidence[0].check: check signed of stage prod is of type approval, which"]),
    ("evidence of an unknown revision", "passed, revision: v1", "passed, revision: v7",
     ["spec.evidence[0].revision: there is no revision v7"]),
    ("evidence of nothing", "passed, revision: v1", "passed",
     ["spec.evidence[0].revision: evidence needs either a revision or a commit; set one"]),
    ("an unknown answer", "status: passed", "status: okay",
     ["spec.evidence[0].status: unsupported value okay; use passed, failed or pending"]),
    ("an approval that takes back another's", "name: one", "revokes: none",
     ["spec.approvals[0].revokes: there is no earlier record none"]),
    ("a decision that no gate is asked about", "action: Publish", "action: Resolve",
     ["spec.decisions[0].action: Resolve has no effect on gates; set draft.disputed"]),
    ("a decision to publish no revision", "action: Publish, revision: v1", "action: Publish",
     ["spec.decisions[0].revision: a decision to publish needs a revision; add it"]),
    ("a skip of no revision", "action: Publish, revision: v1", "action: Skip",
     ["spec.decisions[0].revision: a skip needs a revision; add it"]),
    ("an event before the one above it", "at: +2h", "at: +30m",
     ["spec.events[1].at: comes before `now`, or before the event above it"]),
    ("an event before `now`", "at: +1h", "at: -1m",
     ["spec.events[0].at: comes before `now`, or before the event above it"]),
    ("an event's record with a time of its own", "evidence: {stage", "evidence: {at: -1h, stage",
     ["spec.events[0].evidence.at: the time of the event applies; remove it"]),
    ("an event about an unknown variant", "[cph-001]", "[cph]",
     ["spec.events[1].offline[0]: there is no variant cph; did you mean"]),
    ("an event that brings what is there", "offline: [cph-001]", "revision: v2",
     ["spec.events[1].revision: revision v2 exists already; use a new name"]),
    ("a moment before `now`", "[+3h]", "[-3h]",
     ["spec.moments[0]: comes before `now`; use a later time"]),
    ("an expectation of an unknown stage", "{stage: prod, candidate", "{stage: pro, candidate",
     ["spec.expect[0].stages[0].stage: there is no stage pro; did you mean prod?"]),
    ("an expectation of an unknown revision", "candidate: v1", "candidate: v9",
     ["spec.expect[0].stages[0].candidate: there is no revision v9"]),
    ("an expectation of an unknown variant", "variant: ams", "variant: amsterdam",
     ["spec.expect[0].variants[0].variant: there is no variant amsterdam"]),
    ("an unknown class of reasons", "held: [soak]", "held: [soaking]",
     ["spec.expect[0].variants[0].held[0]: unsupported value soaking; use suspended, offline,"]),
    ("an unknown reason", "[SoakRunning]", "[SoakRuning]",
     ["spec.expect[0].variants[0].reasons[0]: there is no reason SoakRuning; did you mean"]),
    ("a field that there is not", "count: 2", "number: 2",
     ["spec.variants[2].number: unknown field"]),
    ("no moment at all", "now: 2030-01-07T12:00:00Z", "sweep: true",
     ["spec.now: is missing; add it"]),
    ("an instant without a zone", "now: 2030-01-07T12:00:00Z", "now: 2030-01-07T12:00:00",
     ["spec.now: '2030-01-07T12:00:00' is not an instant; write it like"]),
]  # fmt: skip


def read_errors(tmp_path, text):
    path = tmp_path / "story.yaml"
    path.write_text(text, encoding="utf-8")
    return [str(it).removeprefix(f"{path}:") for it in FileCluster([path]).read().faults]


def test_a_sound_scenario_has_no_faults(tmp_path):
    assert read_errors(tmp_path, SOUND) == []


@pytest.mark.parametrize(("_", "old", "new", "expected"), BAD, ids=map(itemgetter(0), BAD))
def test_a_mistaken_scenario_is_refused_with_all_its_errors(tmp_path, _, old, new, expected):
    assert SOUND.count(old) == 1, old
    text = SOUND.replace(old, new)
    errors = [line.partition(": Scenario/story: ") for line in read_errors(tmp_path, text)]
    assert all(number.isdigit() for number, _, _ in errors), errors
    sentences = [sentence for _, _, sentence in errors]
    for start in expected:
        assert any(one.startswith(start) for one in sentences), sentences
    assert len(sentences) == len(expected), sentences


def test_a_fault_names_the_line_that_it_is_in(tmp_path):
    text = SOUND.replace("[cph-001]", "[cph-004]")
    line = next(n for n, it in enumerate(text.splitlines(), 1) if "[cph-004]" in it)
    [fault] = read_errors(tmp_path, text)
    assert fault.startswith(f"{line}: ")


def test_a_policy_that_is_not_in_the_files(tmp_path):
    head, _, tail = SOUND.partition("  stages:\n")
    _, _, rest = tail.partition("  revisions:")
    text = f"{head}  policy: monitoring\n  revisions:{rest}"
    [fault] = read_errors(tmp_path, text)
    assert fault == (
        "5: Scenario/story: spec.policy: there is no UpstreamPolicy monitoring in this namespace;"
        " pass its file with -f"
    )


def test_each_record_of_an_event_is_checked_once_at_its_own_field(tmp_path):
    text = SOUND.replace(
        "  - {at: +1h, evidence: {stage: dev, check: e2e, status: failed, revision: v1}}",
        "  - at: +1h\n    evidence: {stage: dev, check: e3e, status: failed, revision: v1}\n"
        "    approval: {by: ann@example.com, stage: prod, check: signed, revision: v9}",
    )
    evidence, approval = read_errors(tmp_path, text)
    assert "spec.events[0].evidence.check: stage dev has no check e3e" in evidence
    assert "spec.events[0].approval.revision: there is no revision v9" in approval
