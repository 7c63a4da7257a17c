"""What a decision does now, in one line for whoever has just made it."""

from collections.abc import Collection, Sequence

from fanout.cli.naming import meant
from fanout.cli.waiting import in_force
from fanout.gates.rules import Verdict
from fanout.gates.wording import counted, listed, stage_named
from fanout.plan.actions import Kind
from fanout.plan.book import Recorded
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass, Report
from fanout.values import frozen


@frozen
class Effect:
    """What a decision did in the pass that followed it."""

    sentence: str = ""  # for people; "" where something stopped the policy: the pass tells that
    any: bool = False  # whether anything that was asked for happened, or was in force already


def changed(
    before: PolicyPass, report: Report, stage: str, revision: str, names: Sequence[str]
) -> Effect:
    """Compare variants and their stage's verdict with how they stood before the decision."""
    item = _judged(report)
    if item is None or item.decision is None or before.decision is None:
        return Effect()
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        was, now = before.decision.variants.get(name), item.decision.variants.get(name)
        if was is not None and now is not None:
            groups.setdefault((was.state.value, now.state.value), []).append(name)
    parts = [f"{listed(those)}: {_turned(*states)}" for states, those in groups.items()]
    verdicts = [
        decision.stages[stage].verdicts.get(revision, Verdict.PENDING).value
        for decision in (before.decision, item.decision)
        if stage in decision.stages
    ]
    if stage and len(set(verdicts)) > 1:
        parts.append(f"{revision} in {stage_named(stage)}: {_turned(*verdicts)}")
    turned = any(was != now for was, now in groups) or len(set(verdicts)) > 1
    return Effect("; ".join(parts), turned)


def _turned(was: str, now: str) -> str:
    return f"{now} as before" if was == now else f"{now}, no longer {was}"


def promoted(
    report: Report,
    stage: str,
    variants: Sequence[str],
    revision: str,
    trees: Collection[str],
    earlier: Recorded | None = None,
) -> Effect:
    """Whether a promotion has been carried out, or for how many it stands. `trees`: its drafts.

    `earlier` is its record where it is run again: what followed since is an effect of it.
    """
    item = _judged(report)
    if item is None:
        return Effect()
    those = meant(item, stage, variants)
    done = _done(report, Kind.PUBLISH)
    left = sum(
        case.spec.name not in done and not in_force(case, revision)
        for case in those
        if not trees or (case.draft is not None and case.draft.tree in trees)
    )
    steps = done | _done(report, Kind.RELEASE) | _done(report, Kind.WRITE_DRAFT)
    followed = steps & {case.spec.name for case in those}
    if left:
        its = "its gates open" if left == 1 else "their gates open"
        sentence = f"the decision stands for {counted(left, 'variant')}, to be published when {its}"
        since = earlier is not None and any(_followed(case, revision, earlier) for case in those)
        return Effect(sentence, bool(followed) or since)
    return Effect("the decision is carried out" if done else "", any=True)


def _followed(case: Case, revision: str, decision: Recorded) -> bool:
    """Whether the variant was drafted, released or published for the revision since it was said."""
    published, grant, draft = case.published, case.line.grant, case.draft
    if published is not None and published.revision == revision and published.at >= decision.at:
        return True
    if grant is not None and grant.revision == revision and grant.at >= decision.at:
        return True
    drafted = draft is not None and draft.trailers.revision == revision
    return drafted and not decision.spec.get("trees")  # there was none when it was recorded


def returned(report: Report, stage: str, variants: Sequence[str], revision: str) -> Effect:
    """How many are back, and until when they stay."""
    item = _judged(report)
    if item is None:
        return Effect()
    those, done = meant(item, stage, variants), _done(report, Kind.PUBLISH)
    back = sum(_is_back(case, revision, done) for case in those)
    sentence = (
        f"the decision stands: {back} of {counted(len(those), 'variant')} at {revision}, to stay"
        " there until it is withdrawn or something else is promoted"
    )
    return Effect(sentence, bool(back))


def _is_back(case: Case, revision: str, done: Collection[str]) -> bool:
    return case.spec.name in done or in_force(case, revision)


def _done(report: Report, kind: Kind) -> frozenset[str]:
    """The variants for which an action of this kind was done."""
    return frozenset(
        outcome.action.variant
        for outcome in report.outcomes
        if outcome.done and outcome.action.kind is kind
    )


def _judged(report: Report) -> PolicyPass | None:
    """The one policy of the pass, unless something stopped it."""
    return next((it for it in report.observed.policies if it.problem is None), None)
