"""What one pass does to each repository: drafts, publications, the vendor branch, removals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.plan.cases import Case
from fanout.plan.observation import RepositoryView
from fanout.plan.planner import PolicyPlan
from fanout.plan.repository import (
    DraftCommit,
    Identity,
    Merge,
    MergedDraft,
    RepositoryChange,
    VendorCommit,
)
from fanout.plan.steps import Planned, Step
from fanout.plan.trailers import Trailers, draft_message, publication_message
from fanout.selection.naming import drafts_under, tag_ref, vendor_ref


@dataclass(frozen=True, slots=True)
class Writing:
    """What the planner needs to know beside the steps to word and date commits."""

    install: str
    identity: Identity
    subjects: Mapping[str, str]  # variant → subject of its draft commit, where a template gave one
    upstream_times: Mapping[str, int]  # upstream commit → its time
    upstream_blobs: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """upstream commit → content of the upstream package's files, by blob id"""


def changes(plans: Sequence[PolicyPlan], writing: Writing) -> tuple[RepositoryChange, ...]:
    """One change per repository that has something to do, in order of URL."""
    by_place: dict[str, list[tuple[PolicyPlan, Planned]]] = {}
    for plan in plans:
        for planned in plan.steps:
            if planned.step is not Step.KEEP:
                by_place.setdefault(planned.case.view.key, []).append((plan, planned))
    found = (_change(by_place[place], writing) for place in sorted(by_place))
    return tuple(change for change in found if change is not None)


def _change(work: list[tuple[PolicyPlan, Planned]], writing: Writing) -> RepositoryChange | None:
    work.sort(key=lambda item: item[1].case.spec.path)
    steps = [planned for _, planned in work]
    view = steps[0].case.view
    writes = [item.case for item in steps if item.step is Step.WRITE]
    removed = [item.case for item in steps if _clears(item)]
    vendor = _vendor(view, steps, writing)
    if not (writes or removed or vendor or any(item.step is Step.PUBLISH for item in steps)):
        return None
    merges = tuple(_merges(work))
    change = RepositoryChange(
        remote=view.remote,
        identity=writing.identity,
        expected={},
        blobs=_blobs(writes, writing),
        drafts=tuple(_draft(case, writing) for case in writes),
        branch=view.branch if merges else "",
        merges=merges,
        vendor=vendor,
        remove=tuple(sorted(case.ref for case in removed if case.draft)),
        drafts_under=drafts_under(writing.install),
    )
    return _leased(change, view)


def _clears(planned: Planned) -> bool:
    """Does the draft's branch go away?"""
    step = planned.step
    return planned.case.draft is not None and step in (
        Step.PUBLISH,
        Step.SETTLE,
        Step.ADOPT,
        Step.REMOVE,
    )


def _leased(change: RepositoryChange, view: RepositoryView) -> RepositoryChange:
    """Every touched ref with what it was when it was observed."""
    touched = [draft.ref for draft in change.drafts] + list(change.remove)
    if change.merges:
        touched.append(change.branch)
        touched += [draft.tag for merge in change.merges for draft in merge.drafts]
    if change.vendor:
        touched.append(change.vendor.ref)
    expected = {ref: view.refs.get(ref, "") for ref in sorted(touched)}
    return RepositoryChange(
        remote=change.remote,
        identity=change.identity,
        expected=expected,
        blobs=change.blobs,
        drafts=change.drafts,
        branch=change.branch,
        merges=change.merges,
        vendor=change.vendor,
        remove=change.remove,
        drafts_under=change.drafts_under,
    )


def _draft(case: Case, writing: Writing) -> DraftCommit:
    assert case.rendered is not None, "a draft is rendered before it is written"
    assert case.inputs is not None, "and has inputs"
    spec = case.spec
    trailers = Trailers(
        install=writing.install,
        policy=f"{spec.namespace}/{spec.policy}",
        variant=spec.name,
        stage=spec.stage or "none",
        revision=case.revision,
        commit=case.upstream_commit,
        digest=case.inputs.digest,
        onto=case.onto,
    )
    subject = writing.subjects.get(spec.name) or default_subject(case)
    return DraftCommit(
        ref=case.ref,
        base=case.view.head,
        path=spec.path,
        entries=case.rendered.entries,
        tree=case.rendered.tree,
        message=draft_message(subject, trailers),
        when=max(writing.upstream_times[case.upstream_commit], case.view.head_time),
    )


def default_subject(case: Case) -> str:
    """The subject of a draft commit where no commitTemplate is given."""
    spec = case.spec
    verb = "Update" if case.state.tree else "Add"
    return f"{verb} {spec.path} at {spec.upstream_package} {case.revision}"


def _blobs(writes: Iterable[Case], writing: Writing) -> dict[str, bytes]:
    blobs: dict[str, bytes] = {}
    for commit in sorted({case.upstream_commit for case in writes}):
        blobs.update(writing.upstream_blobs[commit])
    for case in writes:
        assert case.rendered is not None, "a draft is rendered before it is written"
        blobs.update(case.rendered.blobs)
    return blobs


def _merges(work: Sequence[tuple[PolicyPlan, Planned]]) -> Iterable[Merge]:
    """One publication per policy and stage. (Design §5, "What is published together".)"""
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for plan, planned in work:
        if planned.step is Step.PUBLISH:
            key = (plan.namespace, plan.name, planned.case.spec.stage)
            groups.setdefault(key, []).append(planned.case)
    granted = {
        planned.case.spec.name: grant.at
        for plan, planned in work
        if (line := plan.planned.variants.get(planned.case.spec.name)) and (grant := line.grant)
    }
    for (namespace, name, stage), cases in sorted(groups.items()):
        yield Merge(
            drafts=tuple(_merged(case) for case in cases),
            message=publication_message(
                f"{namespace}/{name}",
                stage,
                ", ".join(sorted({case.revision for case in cases})),
                [case.spec.path for case in cases],
            ),
            when=max(int(granted[case.spec.name].timestamp()) for case in cases),
        )


def _merged(case: Case) -> MergedDraft:
    assert case.draft is not None, "only a standing draft is published"
    assert case.draft.tree is not None, "a draft has its package"
    number = case.view.tags.get(case.spec.path, 0) + 1
    return MergedDraft(
        commit=case.draft.commit,
        path=case.spec.path,
        tree=case.draft.tree,
        tag=tag_ref(case.spec.path, number),
    )


def _vendor(
    view: RepositoryView, steps: Sequence[Planned], writing: Writing
) -> VendorCommit | None:
    """The next commit of the branch with the pristine renderings, if it changes."""
    put: dict[str, str] = {}
    drop: list[str] = []
    times = [view.vendor_time, view.head_time]
    for planned in steps:
        case, step = planned.case, planned.step
        path = case.spec.path
        pending = view.drafted.get(path)
        if step is Step.WRITE:
            assert case.rendered is not None, "a draft is rendered before it is written"
            put[f"drafts/{path}"] = case.rendered.tree
            times.append(writing.upstream_times[case.upstream_commit])
        elif pending is not None:
            drop.append(f"drafts/{path}")
            if step in (Step.PUBLISH, Step.SETTLE):
                put[f"published/{path}"] = pending
        if step is Step.ADOPT and case.state.tree:
            put[f"published/{path}"] = case.state.tree
        if case.unrecorded and step is Step.WRITE and pending is not None:
            put[f"published/{path}"] = pending
    put = {path: tree for path, tree in put.items() if _pristine(view, path) != tree}
    if not put and not drop:
        return None
    return VendorCommit(
        ref=vendor_ref(writing.install),
        parent=view.vendor,
        put=dict(sorted(put.items())),
        drop=tuple(sorted(drop)),
        message="Keep the pristine renderings\n",
        when=max(times),
    )


def _pristine(view: RepositoryView, directory: str) -> str | None:
    kind, _, path = directory.partition("/")
    return (view.published if kind == "published" else view.drafted).get(path)
