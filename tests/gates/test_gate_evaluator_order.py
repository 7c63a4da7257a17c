"""What waits for others: a newer revision, a changed source object, a variant for another."""

import pytest
from gates.worlds import (
    PASSED,
    after,
    at,
    draft,
    evidence_of,
    facts,
    passed,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import VariantState
from fanout.api.results import Hold
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import DraftFacts, Publication

DEV = stage("dev")
OK = evidence_of("dev", PASSED)


def dev(*variants, **fields):
    return facts([DEV], variants, OK, revisions="v1 v2", **fields)


SERIAL = [
    pytest.param([variant("d", "dev", published("v1", 2))], "v1", id="v1 is in flight"),
    pytest.param([variant("d", "dev", published("v1"))], "v2", id="v1 is ready"),
]


@pytest.mark.parametrize(("variants", "candidate"), SERIAL)
def test_serialize_waits_for_what_is_in_flight(variants, candidate):
    decision = evaluate_gates(dev(*variants, serialize=True)).stages["dev"]
    assert decision.candidate == candidate
    assert decision.queued == (("v2",) if candidate == "v1" else ())
    assert evaluate_gates(dev(*variants)).stages["dev"].candidate == "v2"


def soaking(now, prod_has="v0", **fields):
    rules = [DEV, stage("prod", after("dev", soak=60))]
    variants = [variant("d", "dev", published("v1")), variant("p", "prod", published(prod_has))]
    history = {("dev", "v1"): passed(5)}
    return facts(rules, variants, OK, revisions="v0 v1 v2", history=history, now=now, **fields)


def test_serialize_lets_a_revision_soak_for_the_stages_after():
    assert evaluate_gates(soaking(30)).stages["dev"].candidate == "v2"
    assert evaluate_gates(soaking(30, serialize=True)).stages["dev"].candidate == "v1"
    assert evaluate_gates(soaking(65, serialize=True)).stages["dev"].candidate == "v2"


def test_a_stage_after_that_has_the_revision_is_not_waited_for():
    assert evaluate_gates(soaking(30, "v1", serialize=True)).stages["dev"].candidate == "v2"


def test_serialize_waits_with_other_inputs_too():
    it = variant("d", "dev", published("v1", 2), draft=draft("v1", "-new"))
    policy_facts = facts([DEV], [it], OK, serialize=True)
    assert reasons_of(evaluate_gates(policy_facts), "d") == ["Serialized"]
    assert evaluate_gates(facts([DEV], [it], OK)).variants["d"].publish


CLUSTER = "/ConfigMap/platform/sizes"


def reads(version):
    return {CLUSTER: version}


def sized(name, of, version, *, wants=""):
    """Published at v1 with one version of the object, and perhaps a draft with another."""
    has = Publication("v1", f"d-{version}", f"t-{version}", at(0), reads=reads(version))
    new = DraftFacts("v1", f"d-{wants}", f"t-{wants}", reads=reads(wants)) if wants else None
    return variant(name, of, has, draft=new)


SOURCES = [
    pytest.param(sized("d", "dev", "2"), True, id="dev is ready with it"),
    pytest.param(sized("d", "dev", "1", wants="2"), False, id="dev has the version before"),
    pytest.param(sized("d", "dev", "3"), False, id="dev has another version"),
    pytest.param(variant("d", "dev", published("v1")), True, id="dev does not read it"),
]


@pytest.mark.parametrize(("before", "goes"), SOURCES)
def test_a_changed_source_object_goes_through_the_stages_in_order(before, goes):
    rules = [DEV, stage("mid", after("dev")), stage("prod", after("mid"))]
    variants = [before, sized("p", "prod", "1", wants="2"), variant("m", "mid", published("v1"))]
    reports = [evidence_of(name, PASSED) for name in ("dev", "mid", "prod")]
    decision = evaluate_gates(facts(rules, variants, *reports))
    assert decision.variants["p"].publish is goes
    assert ("SourceAwaits" in reasons_of(decision, "p")) is not goes


def test_an_object_that_the_variant_has_already_is_not_asked_about():
    rules = [DEV, stage("prod", after("dev"))]
    has = Publication("v0", "d-v0", "t-v0", at(0), reads=reads("2"))
    p = variant("p", "prod", has, draft=DraftFacts("v1", "d-2", "t-2", reads=reads("2")))
    it = facts(rules, [sized("d", "dev", "1"), p], OK, revisions="v0 v1")
    assert evaluate_gates(it).variants["p"].publish


def test_a_variant_waits_for_those_it_depends_on():
    first = Hold("DependencyPending", "db is Verifying at v3", "somebody")
    it = variant("d", "dev", draft=draft("v1"), dependency_holds=(first,))
    decision = evaluate_gates(facts([DEV], [it]))
    assert reasons_of(decision, "d") == ["DependencyPending"]
    assert decision.variants["d"].state is VariantState.DRAFTED
    assert not decision.holds, "what moves there is another policy's to say"


def test_a_draft_names_all_that_it_waits_for_though_its_neighbours_wait_for_automation_alone():
    rules = [DEV, stage("prod", after("dev"), automatic=False)]
    awaited = Hold("DependencyPending", "db is Verifying at v3", "somebody")
    variants = [
        sized("d", "dev", "1", wants="2"),
        *(variant(name, "prod", draft=draft("v1")) for name in ("a", "z")),
        variant("p", "prod", draft=draft("v1"), dependency_holds=(awaited,)),
        sized("q", "prod", "1", wants="2"),
    ]
    decision = evaluate_gates(facts(rules, variants, OK))
    assert reasons_of(decision, "a") == reasons_of(decision, "z") == ["AutomationOff"]
    assert reasons_of(decision, "p") == ["DependencyPending", "AutomationOff"]
    assert reasons_of(decision, "q") == ["SourceAwaits", "AutomationOff"]
