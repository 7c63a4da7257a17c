"""Opens the cases of one policy: each variant at its place, and what is known of others it had.

A variant whose place changed is opened where it is to be. First, though, what was under way where
it was, or was to be before, is put on record: a pass may have been ended between a push and its
record, and a person may have merged a draft.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.upstream import OnConflict
from fanout.errors import Bug
from fanout.gates.facts import Hold
from fanout.package.merge.conflicts import NO_CHOICES, Choices, Side
from fanout.plan.cases import Case
from fanout.plan.disputes import Resolution, winners_for
from fanout.plan.found import Around, open_case
from fanout.plan.moving import Former, Leaving, Stray, author_of, awaited, exchange, occupied
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.status import Place, Status, VariantLine
from fanout.plan.trailers import Trailers
from fanout.ports import GitStore
from fanout.reconcile.adopt import with_origin
from fanout.reconcile.by_hand import ByHand
from fanout.reconcile.forgotten import forgotten, remembered
from fanout.reconcile.look import adopts, orphans
from fanout.reconcile.names import Named, repository_key
from fanout.reconcile.places import Owner, emptied, owner_of
from fanout.reconcile.publishers import published_for_another
from fanout.reconcile.reading import Reading, one_by_one
from fanout.reconcile.recalled import Recalled
from fanout.reconcile.rewound import OnRecord, compared, remembered_by_mistake
from fanout.reconcile.unfinished import before_publication
from fanout.reconcile.whereabouts import Known
from fanout.selection.model import VariantSpec
from fanout.selection.naming import draft_ref, drafts_under, tag_ref
from fanout.telemetry.barrier import BARRIER
from fanout.values import frozen, replace


@frozen
class _Move:
    """What a move has to know of the place that is left, and of the new one."""

    former: Former | None = None
    there: str | None = None  # tree at the new path that is known to be no publication of it
    partners: frozenset[str] = frozenset()
    hold: Hold | None = None


_STAYS = _Move()


@dataclass(slots=True)
class Opener:
    """Opens the cases of one policy, or of one variant written by hand."""

    git: GitStore
    install: str
    now: datetime
    named: Named
    status: Status
    known: Known
    resolutions: Sequence[Resolution]
    by_hand: ByHand
    recalled: Recalled
    on_record: OnRecord
    _strays: dict[str, list[Stray]] = field(default_factory=dict)
    _leaving: dict[tuple[str, str], OpenDraft] = field(default_factory=dict)  # by place and ref
    _wanted: dict[str, Place] = field(default_factory=dict)
    _merged: dict[str, Trailers | None] = field(default_factory=dict)  # drafts, by their tips
    _around: Around = field(init=False)  # what is known of everybody, and all of most variants

    def __post_init__(self) -> None:
        self._around = Around(
            install=self.install,
            now=self.now,
            collisions=self.known.refused,
            adopts=adopts(self.named),
            orphan=self.named.policy is None and orphans(self.named),
            choices=_by_rule(self.named),
        )

    def cases(self) -> tuple[Case, ...]:
        """All variants of the policy, in its order."""
        for variant in self.named.variants:
            self._wanted[variant.name] = self.named.places[variant.name], variant.path
        self._find_strays()
        self.recalled.only(self._wanted)
        in_order = sorted(self.named.variants, key=lambda spec: self._wanted[spec.name])
        with one_by_one(self.git) as reading:
            found = {spec.name: self._contained(spec, reading) for spec in in_order}
        return tuple(found[spec.name] for spec in self.named.variants)

    def emptied(self) -> frozenset[str]:
        """Remembered repositories in which nothing of the policy is any more."""
        views = (there.view for there in self.known.places.values())
        return emptied(owner_of(self.named), self.status, views, self.known.present)

    def _drafts(self, view: RepositoryView) -> list[OpenDraft]:
        """This policy's, whether their variants are wanted or not."""
        return [it for it in view.drafts.values() if it.trailers.policy == owner_of(self.named)]

    def _find_strays(self) -> None:
        """Drafts of this policy's variants where they are not to be."""
        prefix = drafts_under(self.install)
        for place, there in self.known.places.items():
            for draft in self._drafts(there.view):
                variant = draft.trailers.variant
                path = draft.ref.removeprefix(prefix).rpartition("/")[0]
                if self._wanted.get(variant, (place, path)) != (place, path):
                    stray = Stray(there.view, there.repository, path, draft)
                    self._strays.setdefault(variant, []).append(stray)
                    self._leaving[place, draft.ref] = draft

    def _contained(self, spec: VariantSpec, reading: Reading) -> Case:
        """The case; an internal error is that of this variant alone.

        Nothing is known of it then, so it is held as one whose repository cannot be read, and what
        is on record of it stays.
        """
        try:
            with BARRIER:
                return self._as_before(spec, reading)
        except Bug as error:
            view = self.known.views[repository_key(self.named.repositories[spec.name])]
            unread = RepositoryView(view.remote, view.branch, {}, failure=error)
            return open_case(spec, unread, self.status.variants.get(spec.name), self._around)

    def _as_before(self, spec: VariantSpec, reading: Reading) -> Case:
        """The case, opened anew where it may be another than it was in the pass before."""
        line = self.status.variants.get(spec.name)
        view = self.known.views[repository_key(self.named.repositories[spec.name])]
        if self._singled_out(spec.name):
            return self._looked_at(self._opening(spec, view, line, reading), reading)
        known = self.recalled.opened(spec, view, line)
        if known is not None and known.choices is self._around.choices:
            return known
        case = self._looked_at(self._opening(spec, view, line, reading), reading)
        return self.recalled.keep_opened(line, case)

    def _singled_out(self, name: str) -> bool:
        """Is anything known of it beside its spec, its line and its repository?"""
        return (
            bool(self._leaving or self.resolutions)
            or name in self._strays
            or name in self.known.refused
            or name in self.known.tenants
            or name in self.status.removed
        )

    def _opening(
        self, spec: VariantSpec, view: RepositoryView, line: VariantLine | None, reading: Reading
    ) -> Case:
        case = self._case(spec, view, line, reading)
        if not forgotten(case):
            return case
        case = remembered(case, reading, self._merged, self.now)
        case = remembered_by_mistake(case, self.on_record, reading)
        before = before_publication(spec, view, case.line, self.install, reading)
        return case if before is None else replace(case, unfinished=before)

    def _case(
        self, spec: VariantSpec, view: RepositoryView, line: VariantLine | None, reading: Reading
    ) -> Case:
        wanted = self._wanted[spec.name]
        if line is None or view.failure is not None or self._went(spec.name, line):
            return self._opened(spec, view, None if view.failure is None else line, reading)
        if line.repository not in self.known.places and _same_history(line, view, spec.path):
            line = _at_new_address(line, view.key)
        for place in (line.granted_place, line.place):
            under_way = self._under_way(spec, line, place, reading)
            if under_way is not None:
                return under_way
        if line.published is None and line.place != wanted:
            grant = line.grant if line.granted_place == wanted else None
            line = VariantLine(*wanted, grant, left=line.left)
        return self._opened(spec, view, line, reading)

    def _went(self, name: str, line: VariantLine) -> bool:
        """Was it removed, and the pass ended before that was on record? Then it begins anew."""
        removed, there = self.status.removed.get(name), self.known.places.get(line.repository)
        if removed is None or there is None or there.view.failure is not None:
            return False
        before = line.published is None or line.published.at <= removed
        return before and there.view.paths.get(line.path, NOTHING).tree is None

    def _under_way(
        self, spec: VariantSpec, line: VariantLine, place: Place | None, reading: Reading
    ) -> Case | None:
        """The case at a place where it is not to be, if it was published there unrecorded."""
        if place is None or place == self._wanted[spec.name]:
            return None
        there = self.known.places.get(place[0])
        if there is None or there.view.failure is not None:
            return None
        old = replace(spec, path=place[1], repository=there.repository)
        case = self._opened(old, there.view, line, reading)
        if not case.unrecorded:
            return None
        sentence = (
            f"{spec.name} is to be at {spec.path} in {spec.repository}; that it was published at"
            f" {place[1]} in {there.repository} is put on record first"
        )
        waits = Hold("PathChanged", sentence, who="the next pass")
        return replace(case, obstacle=None, waits=waits, strays=(), leavings=())

    def _opened(
        self, spec: VariantSpec, view: RepositoryView, line: VariantLine | None, reading: Reading
    ) -> Case:
        here = view.key, spec.path
        leavings = tuple(self._leavings(spec.name, line)) if line is not None else ()
        move = _STAYS
        if line is not None and line.published is not None and line.place != here:
            move = self._move(spec, view, line, leavings)
        taken = self._taken(spec, view, line)
        before = before_publication(spec, view, line, self.install, reading)
        plain = move is _STAYS and not leavings and taken is None and before is None
        if plain and not self._singled_out(spec.name):
            return open_case(spec, view, line, self._around)
        replaces, waits = self._in_the_way(spec, view)
        hold, tenant = move.hold, self.known.tenants.get(spec.name)
        if tenant is not None and not move.partners and here == self._wanted[spec.name]:
            if tenant.variant == spec.name or tenant.undeclared:
                hold = hold or occupied(spec, tenant)
            else:
                waits = occupied(spec, tenant)
        strays = (it for it in self._strays.get(spec.name, ()) if (it.view.key, it.path) != here)
        winners = winners_for(self.resolutions, spec.stage, spec.name)
        special = {
            "choices": replace(self._around.choices, by_key=winners),
            "former": move.former,
            "strays": tuple(strays),
            "leavings": leavings,
            "partners": move.partners,
            "replaces": replaces,
            "there": move.there,
            "hold": hold,
            "waits": waits,
            "taken": taken,
            "renderings": before,
        }
        return open_case(spec, view, line, replace(self._around, **special))

    def _in_the_way(self, spec: VariantSpec, view: RepositoryView) -> tuple[bool, Hold | None]:
        """Is the draft on its branch one that another variant leaves, and is it waited for?"""
        if not self._leaving:
            return False, None
        ref = draft_ref(self.install, spec.path, spec.policy or spec.name)
        other = self._leaving.get((view.key, ref))
        if other is None or other.trailers.variant == spec.name:
            return False, None
        return not other.carries, awaited(other) if other.carries else None

    def _taken(
        self, spec: VariantSpec, view: RepositoryView, line: VariantLine | None
    ) -> Hold | None:
        """What at the path was published for another policy, whatever is on record."""
        here = line is not None and line.place == (view.key, spec.path)
        known = line.published if line is not None and here else None
        if not here and line is not None and line.published is not None:
            return None  # a move, which takes nothing that is there already
        return published_for_another(
            self.git, self.install, self.named, spec, view, known, self.known.everyone
        )

    def _leavings(self, name: str, line: VariantLine) -> Iterator[Leaving]:
        owner = self.named.namespace, name
        for left in line.left:
            there = self.known.places.get(left.repository)
            if there is not None and there.view.failure is None:
                others = self.known.held.get((left.repository, left.path), owner) != owner
                yield Leaving(left, Former(there.view, there.repository, left.path), others)

    def _move(
        self,
        spec: VariantSpec,
        view: RepositoryView,
        line: VariantLine,
        leavings: Sequence[Leaving],
    ) -> _Move:
        there = self.known.places.get(line.repository)
        if there is None or there.view.failure is not None:
            problem = there.view.failure if there is not None else None
            return _Move(hold=_unreachable(spec, line, problem))
        former = Former(there.view, there.repository, line.path)
        me = self.named.namespace, spec.name
        holder = self.known.held.get(line.place, me)
        if holder != me:
            return _Move(former, hold=_displaced(spec, line, holder))
        here = view.key, spec.path
        for leaving in leavings:
            if leaving.left.place == here:
                edited = _edited_since(spec) if leaving.edited else None
                return _Move(former, leaving.left.tree, hold=edited)
        if not orphans(self.named):
            partners = exchange(spec.name, self._wanted, self.known.tenants)
            if partners:
                theirs = view.paths.get(spec.path, NOTHING).tree
                return _Move(former, theirs, partners)
        return _Move(former)

    def _looked_at(self, case: Case, reading: Reading) -> Case:
        if case.unrecorded:
            return self._with_tag(case, reading)
        if case.published is not None:
            case = compared(case, self.on_record, reading, self._merged)
            case = self.by_hand.looked_at(case, reading)
        takes_over = case.foreign and case.adopts and case.obstacle is None
        return with_origin(case, self.named, self.git) if takes_over else case

    def _with_tag(self, case: Case, reading: Reading) -> Case:
        """A publication that nobody recorded may have its tag: a pass was ended in between."""
        number = case.view.tags.get(case.spec.path, 0)
        if not number:
            return case
        tag = tag_ref(case.spec.path, number)
        reader, commit = reading(case.view.remote), case.view.refs[tag]
        known = reader.has(commit) and reader.paths(commit, [case.spec.path])
        if not known or known[case.spec.path].tree != case.state.tree or case.published is None:
            return case
        # the branch may have moved on with the same push
        return replace(case, tag=tag, published=replace(case.published, merge=commit))


def _same_history(line: VariantLine, view: RepositoryView, path: str) -> bool:
    """Is it the repository that the line means, at another address or on another branch?"""
    published = line.published
    return (
        published is not None
        and line.path == path
        and bool(published.tag)
        and view.refs.get(f"refs/tags/{published.tag}") == published.merge
    )


def _at_new_address(line: VariantLine, key: str) -> VariantLine:
    before, grant = line.repository, line.grant
    if grant is not None and grant.repository == before:
        grant = replace(grant, repository=key)
    left = tuple(replace(it, repository=key) if it.repository == before else it for it in line.left)
    return replace(line, repository=key, grant=grant, left=left)


def _unreachable(spec: VariantSpec, line: VariantLine, problem: object) -> Hold:
    told = f": {problem}" if problem else ", and no Repository that may be used is there"
    return Hold(
        "PathChanged",
        f"{spec.name} is at {line.path} in {line.repository}{told}; it is needed to take the"
        " package along: declare it with this url and branch",
        who=author_of(spec),
    )


def _displaced(spec: VariantSpec, line: VariantLine, other: Owner) -> Hold:
    return Hold(
        "PathTaken",
        f"{line.path}, where {spec.name} was, is that of variant {other[1]} now, and"
        f" {spec.name} is not at its new path yet; merge its draft by hand",
        who="the maintainers of " + spec.repository,
    )


def _edited_since(spec: VariantSpec) -> Hold:
    return Hold(
        "EditedDownstream",
        f"{spec.repository}:{spec.path}, which {spec.name} has left, was changed since; take the"
        " changes to where it is now and remove it, or choose another path",
        who="the maintainers of " + spec.repository,
    )


_BY_RULE: Mapping[OnConflict, Choices] = {
    OnConflict.HOLD: NO_CHOICES,
    OnConflict.UPSTREAM_WINS: Choices(otherwise=Side.UPSTREAM),
    OnConflict.LOCAL_WINS: Choices(otherwise=Side.LOCAL),
}


def _by_rule(named: Named) -> Choices:
    """The winners that `onConflict` names, for every conflict that no person decides."""
    declared = named.policy or named.written
    return _BY_RULE[declared.spec.on_conflict] if declared else NO_CHOICES
