"""One stage half way through a rollout, in a few words: from v1, which is ready, to v2."""

from datetime import timedelta
from fractions import Fraction

from gates.worlds import FAILED, PASSED, draft, evidence_of, facts, published, stage, variant

from fanout.api.stages import Rollout


def rolling(**rollout) -> Rollout:
    """A rollout; durations in minutes, percents as text."""
    for name in ("max_in_flight", "max_failures"):
        if isinstance(rollout.get(name), str):
            rollout[name] = Fraction(int(rollout[name].rstrip("%")), 100)
    for name in ("min_ready", "progress_deadline"):
        if name in rollout:
            rollout[name] = timedelta(minutes=rollout[name])
    return Rollout(**rollout)


def waiting(name, **fields):
    """A variant at v1 with a draft of v2."""
    return variant(name, "prod", published("v1"), draft=draft("v2"), **fields)


def under_way(name, **fields):
    """Return a variant published at v2 without any report."""
    return variant(name, "prod", published("v2", 5), **fields)


def through(name, **fields):
    """Published at v2, and ready."""
    return variant(name, "prod", published("v2", 5), **fields)


def rollout_facts(rollout, variants, *records, **fields):
    rule = stage("prod", rollout=rollout, **fields.pop("rule", {}))
    good = [evidence_of("prod", PASSED, "v1")]
    return facts([rule], variants, *good, *records, revisions="v1 v2", **fields)


def ok(*names):
    return evidence_of("prod", PASSED, "v2", when=6, variants=names)


def bad(*names, when=6):
    return evidence_of("prod", FAILED, "v2", when=when, variants=names)


def released(decision):
    return list(decision.stages["prod"].released)
