"""Who goes by himself, and when: the first policy decides; what is not understood keeps shut."""

from operator import itemgetter

import pytest
from migrate.kargo_objects import WINDOW, config, imported, stage

from fanout.api.field_errors import FieldError

DEV, PROD = stage("dev"), stage("prod-eu", "dev", labels={"tier": "prod"})
JOIN = stage("prod-join", "dev", steps=[])


def on(**selector):
    return {"stageSelector": selector, "autoPromotionEnabled": True}


def off(**selector):
    return {"stageSelector": selector}


LABELS = {"matchLabels": {"tier": "prod"}}


def labelled(operator, *values, key="tier"):
    return on(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


POLICIES = [
    ("by the old field", [{"stage": "dev", "autoPromotionEnabled": True}], ["dev"]),
    ("not enabled", [{"stage": "dev"}], []),
    ("by name", [on(name="dev")], ["dev"]),
    ("a pattern stays one", [on(name="glob:prod*")], ["prod*"]),
    ("one that is not plain becomes names", [on(name="glob:de?")], ["dev"]),
    ("a regular expression, anywhere in the name", [on(name="regex:e")], ["dev", "prod-eu"]),
    ("another spelling", [on(name="regexp:^prod")], ["prod-eu"]),
    ("labels", [on(**LABELS)], ["prod-eu"]),
    ("labels and a name", [on(name="dev", **LABELS)], []),
    ("a label in a list", [labelled("In", "prod", "x")], ["prod-eu"]),
    ("a label not in a list, or not there", [labelled("NotIn", "prod")], ["dev"]),
    ("a label that is there", [labelled("Exists")], ["prod-eu"]),
    ("a label that is not", [labelled("DoesNotExist")], ["dev"]),
    ("the first decides against", [off(name="dev"), on(name="regex:.*")], ["prod-eu"]),
    ("the first decides for", [on(name="dev"), off(name="regex:.*")], ["dev"]),
    (
        "a pattern with an exception becomes names",
        [off(name="dev"), on(name="glob:*")],
        ["prod-eu"],
    ),
    ("a pattern before its exception stays", [on(name="glob:*"), off(name="dev")], ["*"]),
    ("the same, twice", [on(name="dev"), on(name="glob:dev")], ["dev"]),
    ("nothing after what cannot be read", [on(name="regex:("), on(name="dev")], []),
    ("what was decided before it stands", [on(name="dev"), on(name="glob:{a}")], ["dev"]),
    ("an operator that is none", [labelled("Near")], []),
    ("a selector that says nothing", [on()], []),
    ("a field that is not known", [on(named="dev")], []),
    ("neither field", [{"autoPromotionEnabled": True}], []),
    ("no Stage of the name", [on(name="gone")], []),
    ("a Stage that only joins", [on(name="prod-join")], []),
    ("true in text is not true", [{"stage": "dev", "autoPromotionEnabled": "true"}], []),
]


@pytest.mark.parametrize(("_", "policies", "names"), POLICIES, ids=map(itemgetter(0), POLICIES))
def test_policies_become_names_of_stages(_, policies, names):
    made, _lost, _noted = imported(DEV, PROD, JOIN, config(*policies))
    [promotion] = made.get("PromotionPolicy", [None])
    assert (promotion["spec"]["autoPromotion"]["stages"] if promotion else []) == names
    assert promotion is None or promotion["spec"]["policies"] == ["*"]


def test_a_stage_that_is_left_out_is_not_automatic():
    made, _, _ = imported(DEV, stage("prod", "nowhere"), config(on(name="glob:*")))
    assert made["PromotionPolicy"][0]["spec"]["autoPromotion"]["stages"] == ["dev"]


NAMED = [
    ("a Stage that is not there", on(name="gone"), True),
    ("a pattern that fits none", on(name="glob:qa*"), True),
    ("what cannot be read", on(name="regex:("), True),
    ("labels, which become names", on(**LABELS), False),
    ("a Stage that only joins", on(name="prod-join"), False),
    ("a pattern that fits Stages alone that only join", on(name="regex:join$"), False),
]


@pytest.mark.parametrize(("_", "policy", "is_lost"), NAMED, ids=map(itemgetter(0), NAMED))
def test_a_promotion_policy_that_changes_meaning_gets_a_remark(_, policy, is_lost):
    _, lost, noted = imported(DEV, PROD, JOIN, config(policy))
    assert ("project", "spec.promotionPolicies[0]") in (lost if is_lost else noted)


# ---- windows -------------------------------------------------------------------------------------

OSLO = "TZID=Europe/Oslo:"
NIGHT = {"schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Oslo"}
WINDOWS = [
    ("every day", {}, NIGHT),
    ("every day, said at length", {"rrule": "RRULE:FREQ=DAILY;INTERVAL=1;WKST=MO"}, NIGHT),
    ("some days", {"rrule": "FREQ=WEEKLY;BYDAY=FR,MO"}, NIGHT | {"schedule": "0 22 * * 1,5"}),
    ("the day it began on", {"rrule": "FREQ=WEEKLY"}, NIGHT | {"schedule": "0 22 * * 4"}),
    ("Sundays", {"rrule": "FREQ=DAILY;BYDAY=SU"}, NIGHT | {"schedule": "0 22 * * 0"}),
    (
        "UTC",
        {"dtstart": "20260101T010000Z", "dtend": "20260101T020000Z"},
        {"schedule": "0 1 * * *", "duration": "1h", "timeZone": "UTC"},
    ),
    (
        "no zone",
        {"dtstart": "20260101T010000", "dtend": "20260101T020000"},
        {"schedule": "0 1 * * *", "duration": "1h", "timeZone": "UTC"},
    ),
    (
        "a whole weekend",
        {"rrule": "FREQ=WEEKLY;BYDAY=TH", "dtend": f"{OSLO}20260105T060000"},
        NIGHT | {"schedule": "0 22 * * 4", "duration": "80h"},
    ),
    ("for all Stages, by a pattern", {"stageSelector": {"name": "glob:*"}}, NIGHT),
]


@pytest.mark.parametrize(("_", "change", "period"), WINDOWS, ids=map(itemgetter(0), WINDOWS))
def test_plain_recurrence_becomes_a_cron_line(_, change, period):
    for kind, word in (("Allow", "allow"), ("Deny", "deny")):
        window = WINDOW | {"kind": kind} | change
        made, lost, _ = imported(DEV, PROD, config(on(name="dev"), windows=[window]))
        [promotion] = made["PromotionPolicy"]
        assert promotion["spec"]["windows"] == [{word: period}]
        assert promotion["spec"]["autoPromotion"]["stages"] == ["dev"]
        assert "project" not in dict(lost)


NO_WINDOWS = [
    ("once", {"rrule": ""}),
    ("every month", {"rrule": "FREQ=MONTHLY"}),
    ("every second day", {"rrule": "FREQ=DAILY;INTERVAL=2"}),
    ("three times", {"rrule": "FREQ=DAILY;COUNT=3"}),
    ("until a day", {"rrule": "FREQ=DAILY;UNTIL=20270101T000000Z"}),
    ("at other hours", {"rrule": "FREQ=DAILY;BYHOUR=3"}),
    ("the last Friday", {"rrule": "FREQ=WEEKLY;BYDAY=-1FR"}),
    ("no rule", {"rrule": "daily"}),
    ("no text", {"rrule": {"a": "b"}}),
    ("no kind", {"kind": "Maybe"}),
    ("no beginning", {"dtstart": None}),
    ("no such day", {"dtstart": f"{OSLO}20260230T220000"}),
    ("within a minute", {"dtstart": f"{OSLO}20260101T220030"}),
    ("an end before it begins", {"dtend": f"{OSLO}20260101T210000"}),
    ("longer than a day, every day", {"dtend": f"{OSLO}20260103T060000"}),
    ("an end in another zone", {"dtend": "20260102T060000Z"}),
    ("a selector that cannot be read", {"stageSelector": {"name": "regex:("}}),
]


@pytest.mark.parametrize(("_", "change"), NO_WINDOWS, ids=map(itemgetter(0), NO_WINDOWS))
def test_without_its_window_nothing_goes_by_itself(_, change):
    everybody = config(on(name="glob:*"), windows=[WINDOW | change])
    made, lost, _ = imported(DEV, PROD, everybody)
    assert "PromotionPolicy" not in made
    assert ("project", "spec.promotionWindows[0]") in lost


def test_a_window_for_some_stages_keeps_those_alone_shut():
    window = WINDOW | {"stageSelector": LABELS}
    made, lost, _ = imported(DEV, PROD, config(on(name="glob:*"), windows=[window]))
    [promotion] = made["PromotionPolicy"]
    assert promotion["spec"] == {"policies": ["*"], "autoPromotion": {"stages": ["dev"]}}
    assert ("project", "spec.promotionWindows[0]") in lost


def test_a_zone_that_is_refused_leaves_the_object_out():
    def judge(data):
        windows = data["spec"].get("windows", ())
        return [FieldError(("spec", "windows", 0, "deny", "timeZone"), "is no zone", "")] * len(
            windows
        )

    made, lost, _ = imported(DEV, config(on(name="dev"), windows=[WINDOW]), by=judge)
    assert "PromotionPolicy" not in made
    assert ("project", "spec.promotionWindows[0].dtstart") in lost
