"""What was observed, as objects and views for people and machines; `fanout get` prints them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from fanout.api.labels import Label
from fanout.api.meta import API_VERSION
from fanout.api.reasons import Reason
from fanout.api.views import (
    DraftView,
    HoldView,
    OtherRevisionView,
    StageView,
    TargetView,
    View,
    ViewMeta,
)
from fanout.cluster.declared import Declared
from fanout.gates.answer import State, VariantDecision
from fanout.gates.facts import Hold
from fanout.plan.cases import Case
from fanout.plan.found import unreadable
from fanout.plan.status import written
from fanout.reconcile.conflict_conditions import conflict_conditions
from fanout.reconcile.damage import broken, draft_left, edited, tag_trouble
from fanout.reconcile.gone import told
from fanout.reconcile.names import place_of
from fanout.reconcile.readiness import conditions, failed
from fanout.reconcile.remove import places_of
from fanout.reconcile.report import Observed, PolicyPass
from fanout.reconcile.upstream import tag_lost
from fanout.selection.model import TargetFailure
from fanout.selection.targets import usable_by
from fanout.values import replace

Plain = dict[str, Any]


def stages(observed: Observed) -> list[Plain]:
    """A StageView for every stage of every policy that could be judged."""
    return [
        _plain(
            StageView(
                metadata=_meta(
                    item,
                    f"{item.named.name}/{name}" if name else item.named.name,
                    {**_policy_labels(item), **_own_labels(item, name)},
                ),
                policy=_policy(item),
                stage=name,
                candidate=stage.candidate,
                verdict=stage.verdict.value,
                gate=stage.gate.value,
                verdicts={rev: verdict.value for rev, verdict in stage.verdicts.items()},
                counts={state.value: number for state, number in stage.counts.items() if number},
                queued=stage.queued,
                others=tuple(
                    OtherRevisionView(
                        revision=other.revision, newer=other.newer, holds=_holds(other.holds)
                    )
                    for other in stage.others
                ),
                in_flight=stage.aggregates.in_flight,
                budget=stage.budget,
                halted=stage.halted,
                holds=_holds(stage.holds),
                next=_instant(stage.next),
            )
        )
        for item in observed.policies
        if item.decision is not None
        for name, stage in item.decision.stages.items()
    ]


def targets(observed: Observed, declared: Declared) -> list[Plain]:
    """A TargetView for every target, those that failed and those that are gone among them.

    One that is gone says where its package or draft still is.
    """
    views: list[Plain] = []
    for item in observed.policies:
        places = dict(places_of(item)) if item.gone else {}
        usable = usable_by(item.named.namespace, declared.repositories)
        names = {place_of(repository): name for name, repository in usable.items()}
        for case, decision in _decided(item):
            views.append(_plain(_target(item, case, decision)))
        views += [_plain(_without(item, it, State.FAILED)) for it in item.named.failures]
        failures = told(item.named, item.gone, item.removals)
        for gone, failure in zip(item.gone, failures, strict=True):
            place, path = places.get(gone.name, ("", ""))
            view = _without(item, failure, State.HELD, (names.get(place, place), path), gone.stage)
            holds = (*view.holds, *_holds(item.removals.holds.get(gone.name, ())))
            views.append(_plain(view.model_copy(update={"holds": holds})))
    return views


def drafts(observed: Observed) -> list[Plain]:
    """A DraftView for every open draft of a variant that is wanted."""
    return [
        _plain(_draft(item, case, decision, disputed.get(case.spec.name, 0)))
        for item in observed.policies
        for disputed in (item.disputed,)
        for case, decision in _decided(item)
        if case.draft is not None
    ]


def variants(observed: Observed) -> list[Plain]:
    """Every variant as the PackageVariant it is, with its status."""
    return [
        _variant(item, case, decision, disputed.get(case.spec.name, 0))
        for item in observed.policies
        for disputed in (item.disputed,)
        for case, decision in _decided(item)
    ]


def policies(observed: Observed) -> list[Plain]:
    """Every UpstreamPolicy with its status."""
    return [_policy_object(item) for item in observed.policies if item.named.policy is not None]


def _policy_object(item: PolicyPass) -> Plain:
    assert item.named.policy is not None, "asked of policies only"
    body: Plain = item.named.policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
    holds = item.decision.holds if item.decision else ()
    decision = item.decision
    body["status"] = {
        "observedGeneration": item.named.policy.metadata.generation or 0,
        "conditions": conditions(item, holds),
        "variants": len(item.cases),
        "failedTargets": len(item.named.failures),
        "failedVariants": len(failed(item)),
        "goneVariants": len(item.gone),
        "editedVariants": sum(case.shows_edits for case in item.cases),
        "brokenVariants": sum(bool(case.faults) for case in item.cases),
        "stages": [
            {"name": name, "candidate": stage.candidate, "verdict": stage.verdict.value}
            for name, stage in (decision.stages.items() if decision else ())
        ],
    }
    if decision and decision.next:
        body["status"]["next"] = written(decision.next)
    return body


def _variant(item: PolicyPass, case: Case, decision: VariantDecision, undecided: int) -> Plain:
    spec, published = case.spec, case.published
    body: Plain = {
        "apiVersion": API_VERSION,
        "kind": "PackageVariant",
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": _variant_labels(item, case),
            "annotations": dict(spec.annotations),
        },
        "spec": {
            "upstream": {"repository": spec.upstream_repository, "package": spec.upstream_package},
            "downstream": {"repository": spec.repository, "package": spec.path},
        },
        "status": {
            "target": spec.target,
            "state": decision.state.value,
            "candidate": decision.candidate,
            "conditions": _variant_conditions(case, decision, undecided),
            "checks": [
                {"name": check.name, "verdict": check.verdict.value, "message": check.sentence}
                for check in decision.checks
            ],
        },
    }
    if item.named.policy is not None:
        body["spec"] |= {"policyRef": {"name": spec.policy}, "stage": spec.stage}
    if published is not None:
        body["status"]["published"] = {
            "revision": published.revision,
            "digest": published.digest,
            "tree": published.tree,
            **({} if case.unrecorded else {"at": written(published.at)}),
            "commit": published.merge,
            "tag": published.tag,
            "outOfBand": published.out_of_band,
        }
    if case.moves:
        old = case.home
        body["status"]["published"] |= {"repository": old.repository, "package": old.path}
    left = [leaving.at for leaving in case.leavings if not leaving.vacant]
    if left:
        body["status"]["left"] = [{"repository": it.repository, "package": it.path} for it in left]
    if case.draft is not None:
        body["status"]["draft"] = {
            "branch": case.ref.removeprefix("refs/heads/"),
            "revision": case.draft.trailers.revision,
            "tree": case.draft.tree or "",
        }
    return body


def _variant_conditions(case: Case, decision: VariantDecision, undecided: int) -> list[Plain]:
    hold = decision.holds[0] if decision.holds else None
    conditions = [
        {
            "type": "Ready",
            "status": "True" if decision.state is State.READY else "False",
            "reason": hold.reason if hold else decision.state.value,
            "message": hold.sentence if hold else f"it is {decision.state.value}",
        }
    ]
    if case.published is not None and case.published.out_of_band:
        message = "a person merged the draft without its gates"
        conditions.append(
            {"type": "OutOfBand", "status": "True", "reason": "OutOfBand", "message": message}
        )
    conditions += [_holds_too(*told) for told in conflict_conditions(case, undecided)]
    if case.shows_edits:
        conditions.append(_holds_too("Edited", "EditedDownstream", edited(case)))
    if case.undone is not None:
        conditions.append(_holds_too("Reverted", case.undone.reason, case.undone.sentence))
    conditions += [_holds_too(reason, reason, told) for reason, told in _tags(case).items()]
    if left := draft_left(case):
        conditions.append(_holds_too("DraftLeft", Reason.DELETION_REFUSED, left))
    if case.faults:
        conditions.append(_holds_too("Broken", Reason.PACKAGE_BROKEN, broken(case)))
    return conditions


def _tags(case: Case) -> dict[str, str]:
    """What became of upstream's tag and of the publication's, by reason: one condition for each."""
    found: dict[str, str] = {}
    if case.lost_tag:
        found[Reason.TAG_MISSING] = tag_lost(case)
    if (own := tag_trouble(case)) is not None:
        reason, told = own
        found[reason] = "; ".join(filter(None, (found.get(reason), told)))
    return found


def _holds_too(name: str, reason: str, message: str) -> Plain:
    return {"type": name, "status": "True", "reason": str(reason), "message": message}


def _target(item: PolicyPass, case: Case, decision: VariantDecision) -> TargetView:
    spec = case.spec
    return TargetView(
        metadata=_meta(
            item,
            spec.target,
            {
                **item.named.labels.get(spec.target, {}),
                **_own_labels(item, spec.stage, spec.repository),
            },
        ),
        policy=_policy(item),
        target=spec.target,
        variant=spec.name,
        stage=spec.stage,
        repository=spec.repository,
        path=spec.path,
        state=decision.state.value,
        holds=_holds(decision.holds),
    )


def _without(
    item: PolicyPass,
    failure: TargetFailure,
    state: State,
    at: tuple[str, str] = ("", ""),
    stage: str = "",
) -> TargetView:
    """`at` is the repository and the path where something of it is; `stage`, where it was last."""
    return TargetView(
        metadata=_meta(
            item,
            failure.target,
            {
                **item.named.labels.get(failure.target, {}),
                **_own_labels(item, stage, at[0]),
            },
        ),
        policy=_policy(item),
        target=failure.target,
        stage=stage,
        repository=at[0],
        path=at[1],
        state=state.value,
        holds=(HoldView(reason=failure.reason, message=failure.problem),),
    )


def _draft(item: PolicyPass, case: Case, decision: VariantDecision, conflicts: int) -> DraftView:
    assert case.draft is not None, "asked of variants with a draft"
    spec, draft = case.spec, case.draft
    return DraftView(
        metadata=_meta(item, spec.name, _variant_labels(item, case)),
        policy=_policy(item),
        variant=spec.name,
        stage=spec.stage,
        repository=spec.repository,
        path=spec.path,
        branch=case.ref.removeprefix("refs/heads/"),
        commit=draft.commit,
        tree=draft.tree or "",
        revision=draft.trailers.revision,
        digest=draft.trailers.digest,
        conflicts=conflicts,
        edited=draft.edited,
        current=case.standing,
        state=decision.state.value,
        holds=_holds(decision.holds),
    )


def _decided(item: PolicyPass) -> Iterable[tuple[Case, VariantDecision]]:
    if item.decision is None:
        return ()
    return ((case, _seen(case, item.decision.variants[case.spec.name])) for case in item.cases)


def _seen(case: Case, decision: VariantDecision) -> VariantDecision:
    """The decision as it is shown: the gates go by what is on record, and where the repository
    cannot be read nobody can say that it is still so."""
    failure = case.home.view.failure or case.view.failure
    if failure is None:
        return decision
    hold = unreadable(failure, f"the maintainers of {case.spec.repository}")
    holds = (hold, *(it for it in decision.holds if it != hold))
    state = State.HELD if decision.state is State.READY else decision.state
    return replace(decision, state=state, holds=holds)


def _policy(item: PolicyPass) -> str:
    return item.named.name if item.named.policy is not None else ""


def _meta(item: PolicyPass, name: str, labels: Mapping[str, str]) -> ViewMeta:
    return ViewMeta(name=name, namespace=item.named.namespace, labels=dict(labels))


def _policy_labels(item: PolicyPass) -> Mapping[str, str]:
    declared = item.named.policy or item.named.written
    return declared.metadata.labels if declared else {}


def _variant_labels(item: PolicyPass, case: Case) -> dict[str, str]:
    written, spec = item.named.written, case.spec
    own = _own_labels(item, spec.stage, spec.repository)
    return {**(written.metadata.labels if written else {}), **spec.labels, **own}


def _own_labels(item: PolicyPass, stage: str = "", repository: str = "") -> dict[str, str]:
    """What fanout itself says of everything that a policy has, so that `-l` can ask for it."""
    own = {Label.POLICY: _policy(item), Label.STAGE: stage, Label.REPOSITORY: repository}
    return {key.value: text for key, text in own.items() if text}


def _holds(holds: Iterable[Hold]) -> tuple[HoldView, ...]:
    return tuple(
        HoldView(
            reason=hold.reason,
            message=hold.sentence,
            who=hold.who,
            since=_instant(hold.since),
            until=_instant(hold.until),
        )
        for hold in holds
    )


def _instant(moment: datetime | None) -> str | None:
    return written(moment) if moment else None


def _plain(view: View) -> Plain:
    return view.model_dump(by_alias=True, mode="json", exclude_none=True)
