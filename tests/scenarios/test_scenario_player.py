"""Laws of playing: past and present are one, and all that the gates look at can be said."""

import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields

from fanout.api.scenario import Scenario
from fanout.api.validators.object_validation import validate_object
from fanout.gates.gate_facts import DraftFacts, PolicyFacts, Publication, VariantFacts
from fanout.gates.gate_rules import PropagationCondition
from fanout.scenarios.scenario_player import build_moment_view, play_scenario
from fanout.scenarios.scenario_world import find_policy


def scenario(text: str) -> Scenario:
    head = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "told"},
    }
    model, faults = validate_object({**head, "spec": yaml.safe_load(text)})
    assert faults == ()
    assert isinstance(model, Scenario)
    return model


def played(text: str):
    played_scenario = scenario(text)
    policy = find_policy(played_scenario, (), ())
    assert policy is not None
    return play_scenario(
        played_scenario, policy, lambda text: PropagationCondition(text, lambda _: True)
    )


STAGES = """
stages:
- {name: dev, verification: [{name: e2e, report: {}}]}
- {name: join, controlFlow: true, after: {stages: [dev], soak: 20m}}
- name: prod
  after: {stages: [join], soak: 30m}
  verification: [{name: e2e, report: {}}]
revisions: [v1, v2]
"""
STAYS = st.tuples(
    st.sampled_from(["dev", "prod"]),
    st.sampled_from(["v1", "v2"]),
    st.one_of(st.none(), st.integers(10, 290)),  # ready so many minutes after publication
    st.one_of(st.none(), st.integers(10, 290)),  # and withdrawn so many after that
)


@given(st.lists(STAYS, min_size=1, max_size=5))
def test_a_stated_past_equals_the_same_past_played(stays):
    past, here, events = [], [], []
    for number, (stage, revision, ready, withdrawn) in enumerate(stays):
        instants = [] if ready is None else [("ready", "passed", ready)]
        if ready is not None and withdrawn is not None and ready + withdrawn <= 300:
            instants.append(("withdrawn", "failed", ready + withdrawn))
        whole = f"- {{name: v{number}, stage: {stage}, revision: {revision}, published: "
        checks = "".join(f", {name}: -{300 - minutes}m" for name, _, minutes in instants)
        past.append(f"{whole}-300m{checks}}}")
        here.append(f"{whole}+0s}}")
        events += [(minutes, number, stage, revision, status) for _, status, minutes in instants]
    event_lines = [
        f"- {{at: +{minutes}m, evidence: {{stage: {stage}, variants: [v{number}], check: e2e,"
        f" status: {status}, revision: {revision}}}}}"
        for minutes, number, stage, revision, status in sorted(events)
    ]
    then = "\n".join([STAGES, "now: 2030-01-07T12:00:00Z", "variants:", *past])
    lines = [STAGES, "now: 2030-01-07T07:00:00Z", "variants:", *here, "moments: [+300m]"]
    now = "\n".join([*lines, *(["events:", *event_lines] if event_lines else [])])
    assert build_moment_view(played(then)[-1]) == build_moment_view(played(now)[-1])


EVERYTHING = """
stages:
- {name: dev, verification: [{name: e2e, report: {}}], rollout: {groups: [{matchLabels: {a: b}}]}}
promotion:
  schedule: 0 1 * * *
  autoPromotion: {stages: [dev]}
  windows: [{deny: {schedule: "0 0 1 1 *", duration: 1h}}]
  atClose: Finish
inFlight: Serialize
suspend: true
sweep: false
revisions: [v1, v2]
now: 2030-01-07T12:00:00Z
history: [{stage: dev, revision: v1, passed: -2h}]
evidence: [{at: -1h, stage: dev, check: e2e, status: pending, revision: v1}]
variants:
- name: a
  stage: dev
  priority: 1
  earlier: [{revision: v1, digest: before, published: -2h}]
  revision: v1
  commits: [0123456789012345678901234567890123456789]
  reads: {v1/ConfigMap/a: one}
  takenBack: true
  suspended: true
  offline: true
  removed: -3h
  dependsOn: [{name: other}]
  held: {message: no place}
  released: -1m
  draft:
    current: false
    disputed: 1
    adopts: true
    moves: true
    reads: {v1/ConfigMap/a: two}
    authors: [ann@example.com]
    commits: [0123456789012345678901234567890123456789]
- {name: b, stage: dev, broken: {message: cannot be rendered}}
- name: c
  stage: checked
  revision: v1
  published: -1h
  answers: [{check: probe, status: passed, at: -30m}]
"""


REPORTED_AS_IT_IS_PUBLISHED = """
stages: [{name: dev, verification: [{name: e2e, report: {}}]}]
revisions: [v1]
now: 2030-01-07T12:00:00Z
variants: [{name: a, stage: dev}]
evidence: [{at: +1m, by: ci, stage: dev, check: e2e, status: passed, revision: v1}]
events: [{at: +1m, publish: true}, {at: +2m}]
"""


def test_evidence_at_the_instant_of_a_publication_is_about_the_revision_before():
    decided = played(REPORTED_AS_IT_IS_PUBLISHED)[-1].decision
    assert decided.variants["a"].state == "Verifying"


# What is on which branch, and in which pull request, is no matter of a scenario; nor what waits for
# a draft: scenarios write the drafts of suspended variants, too. What waits at a
# publication follows from the decisions.
OF_REPOSITORIES = {"sets", "publish_hold", "release_hold", "outdated", "waiting"}


def test_all_that_the_gates_look_at_can_be_stated():
    """A field that the evaluator gets one day, and no scenario can set, is found here."""
    checked = (
        "- {name: checked, verification: [{name: probe, settle: 1s, freshFor: 1h, http: {url:"
        ' "https://example.com", cel: "true"}}]}\n'
    )
    text = EVERYTHING.replace("promotion:", f"{checked}promotion:", 1)
    worlds = [played(text)[-1].facts, played(f"{text}unread: true\n")[-1].facts]
    worlds.append(played(REPORTED_AS_IT_IS_PUBLISHED)[-1].facts)
    variants = [it for facts in worlds for it in facts.variants]
    drafts = [it.draft for it in variants if it.draft]
    publications = [it.published for it in variants if it.published]
    for kind, generated in (
        (PolicyFacts, worlds),
        (VariantFacts, variants),
        (DraftFacts, drafts),
        (Publication, publications),
    ):
        for one in fields(kind):
            if one.name in OF_REPOSITORIES:
                continue
            default = one.default if one.default_factory is NODEFAULT else one.default_factory()
            assert any(getattr(it, one.name) != default for it in generated), f"{kind}: {one.name}"
