"""What one pass does to each repository: drafts, publications, the vendor branch, removals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, field

from fanout.package.blobs import Gathered
from fanout.plan.cases import Case
from fanout.plan.clearing import Clearing, vendor_drops
from fanout.plan.clearing import removal as leaving
from fanout.plan.departing import Departure, departing
from fanout.plan.disputes import written
from fanout.plan.observation import OpenDraft, RepositoryView
from fanout.plan.planner import PolicyPlan
from fanout.plan.rejected import lines_of, of_draft, paragraph
from fanout.plan.removal import Removal
from fanout.plan.repository import (
    DraftCommit,
    Identity,
    Merge,
    MergedDraft,
    RepositoryChange,
    StoredTree,
    VendorCommit,
)
from fanout.plan.steps import Planned, Step
from fanout.plan.trailers import (
    NONE,
    Trailers,
    draft_message,
    publication_message,
    with_paragraph,
    with_records,
)
from fanout.selection.naming import drafts_under, tag_ref, vendor_ref
from fanout.values import frozen, replace


@frozen
class Writing:
    """What is needed beside the steps to word and sign commits."""

    install: str
    identity: Identity
    messages: Mapping["Publication", str] = field(default_factory=dict)  # where a template gave one


@frozen
class Publication:
    """What is published together: one stage of one policy in one repository."""

    place: str  # identity of the Git repository
    namespace: str
    policy: str  # or the variant written by hand
    stage: str


@frozen
class _Work:
    """What is to be done in one repository."""

    view: RepositoryView
    steps: list[Planned] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    clearings: list[Clearing] = field(default_factory=list)
    going: list[tuple[Departure, Removal]] = field(default_factory=list)


def changes(plans: Sequence[PolicyPlan], writing: Writing) -> tuple[RepositoryChange, ...]:
    """One change per repository that has something to do, in order of URL."""
    places: dict[str, _Work] = {}
    for plan in plans:
        for planned in plan.steps:
            if planned.step is not Step.KEEP:
                view = planned.case.view
                places.setdefault(view.key, _Work(view)).steps.append(planned)
        for clearing in plan.clearings:
            view = clearing.view
            places.setdefault(view.key, _Work(view)).clearings.append(clearing)
        for departure in plan.departures:
            for removal in departure.removals:
                if (there := removal.view) is not None:
                    work = places.setdefault(there.key, _Work(there))
                    work.going.append((departure, removal))
    by_name = {(plan.namespace, plan.name): plan for plan in plans}
    for key, cases in sorted(publications(plans).items(), key=lambda item: astuple(item[0])):
        plan = by_name[key.namespace, key.policy]
        places[key.place].merges.append(_merge(key, cases, plan, writing))
    found = (_change(places[place], writing) for place in sorted(places))
    return tuple(change for change in found if change is not None)


def _change(work: _Work, writing: Writing) -> RepositoryChange | None:
    steps = sorted(work.steps, key=lambda item: item.case.spec.path)
    view = work.view
    writes = [item.case for item in steps if item.step is Step.WRITE]
    made = [item.case for item in steps if item.step in (Step.WRITE, Step.ADOPT)]
    removed = _removed(work)
    vendor = _vendor(work, steps, writing.install)
    tags = _missing_tags(steps)
    left = leaving(work.clearings)
    merges = (*work.merges, *((left,) if left is not None else ()), *departing(work.going))
    if not (writes or removed or vendor or merges or tags):
        return None
    change = RepositoryChange(
        remote=view.remote,
        identity=writing.identity,
        expected={},
        blobs=_blobs(made),
        trees=_pristine_trees(made),
        drafts=tuple(_draft(case, writing) for case in writes),
        branch=view.branch if merges else "",
        merges=merges,
        tags=tags,
        vendor=vendor,
        remove=tuple(removed),
        drafts_under=drafts_under(writing.install),
    )
    return _leased(change, view)


def _removed(work: _Work) -> list[str]:
    """Branches of drafts that go away, unless another variant's draft takes the same name."""
    written = {item.case.ref for item in work.steps if item.step is Step.WRITE}
    gone = [item.case.ref for item in work.steps if _clears(item)]
    gone += [item.draft.ref for item in work.clearings if item.draft is not None]
    gone += [draft.ref for _, removal in work.going for draft in removal.drafts]
    return sorted(set(gone) - written)


def _missing_tags(steps: Sequence[Planned]) -> dict[str, str]:
    """Tags for what a person published: what is in force is tagged, whoever merged it."""
    return {
        publication_tag(item.case): item.case.view.head
        for item in steps
        if item.case.unrecorded and item.step is not Step.ADOPT and not item.case.tag
    }


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
    touched = [draft.ref for draft in change.drafts] + [*change.remove, *change.tags]
    if change.merges:
        touched.append(change.branch)
        touched += [draft.tag for merge in change.merges for draft in merge.drafts]
    if change.vendor:
        touched.append(change.vendor.ref)
    expected = {ref: view.refs.get(ref, "") for ref in sorted(touched)}
    return replace(change, expected=expected)


def _draft(case: Case, writing: Writing) -> DraftCommit:
    assert case.content is not None, "a draft is rendered before it is written"
    assert case.rendered is not None, "and what it was before people's edits is known"
    assert case.inputs is not None, "and has inputs"
    spec = case.spec
    taken = _taken(case)
    trailers = Trailers(
        install=writing.install,
        policy=f"{spec.namespace}/{spec.policy}",
        variant=spec.name,
        stage=spec.stage or "none",
        revision=case.revision,
        commit=case.upstream_commit,
        digest=case.inputs.digest,
        onto=case.onto,
        tree=case.content.tree,
        conflicts=written(case.disputes),
        takes=" ".join(sorted([draft.commit for _, draft in taken])),
        rendered=case.rendered.tree,
    )
    return DraftCommit(
        ref=case.ref,
        base=case.view.head,
        path=spec.path,
        entries=case.content.entries,
        tree=case.content.tree,
        message=draft_message(_subject(case), trailers, paragraph(_conflicts(case))),
        when=max(case.upstream_time, case.view.head_time),
        also=tuple([draft.commit for view, draft in taken if view.key == case.view.key]),
    )


def _conflicts(case: Case) -> tuple[str, ...]:
    return lines_of(case.merged.conflicts) if case.merged is not None else ()


def _subject(case: Case) -> str:
    spec = case.spec
    if case.returns:
        return f"Take {spec.path} back to {spec.upstream_package} {case.revision}"
    verb = "Adopt" if case.foreign else "Update" if case.state.tree else "Add"
    what = spec.path
    if case.moves:
        verb, what = "Move", f"{case.home.path} to {spec.path}"
    return f"{verb} {what} at {spec.upstream_package} {case.revision}"


def _taken(case: Case) -> list[tuple[RepositoryView, OpenDraft]]:
    """The drafts with people's work whose place the new one takes, and where they are."""
    drafts = [(case.view, case.draft)] if case.draft is not None else []
    drafts += [(stray.view, stray.draft) for stray in case.strays]
    return [(view, draft) for view, draft in drafts if draft.carries]


def _blobs(made: Iterable[Case]) -> Gathered:
    """All content that may be needed; the writer leaves out what is there already."""
    blobs = Gathered()
    packages = {id(case.package): case.package for case in made if case.package is not None}
    for package in packages.values():
        blobs.add({entry.oid: data for entry, data in package.upstream.files.values()})
    for case in made:
        assert case.rendered is not None, "a draft is rendered before it is written"
        blobs.add(case.rendered.blobs)
        if case.merged is not None:
            blobs.add(case.merged.content.blobs)
    return blobs


def _pristine_trees(made: Iterable[Case]) -> tuple[StoredTree, ...]:
    """Renderings that nothing holds as they are, because people's edits are in it."""
    return tuple(
        StoredTree(case.rendered.entries, case.rendered.tree)
        for case in made
        if case.merged is not None and case.rendered is not None
    )


def publications(plans: Sequence[PolicyPlan]) -> dict[Publication, list[Case]]:
    """What is published together. (Design §5: one merge commit per stage.)"""
    groups: dict[Publication, list[Case]] = {}
    for plan in plans:
        for planned in plan.steps:
            if planned.step is Step.PUBLISH:
                case = planned.case
                key = Publication(case.view.key, plan.namespace, plan.name, case.spec.stage)
                groups.setdefault(key, []).append(case)
    for cases in groups.values():
        cases.sort(key=lambda case: case.spec.path)
    return groups


def _merge(key: Publication, cases: Sequence[Case], plan: PolicyPlan, writing: Writing) -> Merge:
    released = [plan.planned.variants[case.spec.name].grant for case in cases]
    grants = [grant for grant in released if grant is not None]
    message = with_paragraph(
        writing.messages.get(key) or default_message(key, cases), paragraph(_rejected(cases))
    )
    known = sorted({grant.records for grant in grants} - {"", NONE})  # names sort by time
    newest = known[-1] if known else grants[0].records
    return Merge(
        drafts=tuple(_merged(case) for case in cases),
        message=with_records(message, newest) if newest else message,
        when=max(int(grant.at.timestamp()) for grant in grants),
    )


def _rejected(cases: Sequence[Case]) -> list[str]:
    """The values that drafts published together have not taken; of several, each with its path."""
    return [
        f"{case.spec.path}: {line}" if len(cases) > 1 else line
        for case in cases
        if case.draft is not None
        for line in of_draft(case.draft)
    ]


def default_message(key: Publication, cases: Sequence[Case]) -> str:
    """The message of a publication where no commitTemplate is given."""
    return publication_message(
        f"{key.namespace}/{cases[0].spec.policy}",
        key.stage,
        ", ".join(sorted({case.revision for case in cases})),
        [case.spec.path for case in cases],
    )


def _merged(case: Case) -> MergedDraft:
    assert case.draft is not None, "only a standing draft is published"
    assert case.draft.tree is not None, "a draft has its package"
    return MergedDraft(
        commit=case.draft.commit,
        path=case.spec.path,
        tree=case.draft.tree,
        tag=publication_tag(case),
        last_tag=last_tag(case),
        last_commit=case.view.refs.get(last_tag(case), ""),
    )


def last_tag(case: Case) -> str:
    """The newest publication tag at a variant's path, "" where there is none."""
    number = case.view.tags.get(case.spec.path, 0)
    return tag_ref(case.spec.path, number) if number else ""


def publication_tag(case: Case) -> str:
    """The tag that the next publication of a variant gets: N is the highest listed plus one."""
    return tag_ref(case.spec.path, case.view.tags.get(case.spec.path, 0) + 1)


def _vendor(work: _Work, steps: Sequence[Planned], install: str) -> VendorCommit | None:
    """The next commit of the branch with the pristine renderings, if it changes."""
    view = work.view
    put: dict[str, str] = {}
    drop = vendor_drops(work.clearings, install)
    drop += [path for _, removal in work.going for path in removal.forgets]
    times = [view.vendor_time, view.head_time]
    for planned in steps:
        case, step = planned.case, planned.step
        path = case.spec.path
        pending = case.drafted_rendering
        if step is Step.WRITE:
            assert case.rendered is not None, "a draft is rendered before it is written"
            put[f"drafts/{path}"] = case.rendered.tree
            times.append(case.upstream_time)
        elif pending is not None:
            drop.append(f"drafts/{path}")
            if step in (Step.PUBLISH, Step.SETTLE):
                put[f"published/{path}"] = pending
        if step is Step.ADOPT:
            assert case.rendered is not None, "what is in force already is known by rendering it"
            put[f"published/{path}"] = case.rendered.tree
        if case.unrecorded and step is Step.WRITE and pending is not None:
            put[f"published/{path}"] = pending
        elif case.unfinished is not None and step is Step.WRITE:
            # nothing of the push that was cut off is to be taken for published any more
            if case.unfinished.published is not None:
                put[f"published/{path}"] = case.unfinished.published
            else:
                drop.append(f"published/{path}")
    put = {path: tree for path, tree in put.items() if _pristine(view, path) != tree}
    drop = [path for path in drop if _pristine(view, path) is not None]
    if not put and not drop:
        return None
    return VendorCommit(
        ref=vendor_ref(install),
        parent=view.vendor,
        put=dict(sorted(put.items())),
        drop=tuple(sorted(set(drop) - put.keys())),
        message="Keep the pristine renderings\n",
        when=max(times),
    )


def _pristine(view: RepositoryView, directory: str) -> str | None:
    kind, _, path = directory.partition("/")
    return (view.published if kind == "published" else view.drafted).get(path)
