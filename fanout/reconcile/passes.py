"""The pass, in its fixed order: names, records, listings, revisions, gates, renderings, plan.

Data flows down and never up. Each step is a function of what the steps before it yielded; between
them stand the questions to the world: evaluate, list, read. (Design §3.)
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.urls import canonical_url
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.plan.book import Book, BookKey
from fanout.plan.change import Writing, changes
from fanout.plan.observation import RepositoryView
from fanout.plan.planner import PolicyPlan, joined
from fanout.plan.repository import Listing, Look, RepositoryChange
from fanout.plan.rules import administrators
from fanout.reconcile.absence import doubt
from fanout.reconcile.answers import Answering
from fanout.reconcile.beginnings import refuse_lost_records
from fanout.reconcile.by_hand import ByHand
from fanout.reconcile.conditions import Conditions
from fanout.reconcile.contents import Contents
from fanout.reconcile.dependencies import Dependencies, Key, key_of
from fanout.reconcile.judge import Judge, Told
from fanout.reconcile.look import branch_conflicts, looks_at, remote_of
from fanout.reconcile.merge import Merger
from fanout.reconcile.messages import Messages, commit_messages
from fanout.reconcile.names import Named, book_key, branch_of, name_variants, repository_key
from fanout.reconcile.probing import Probing
from fanout.reconcile.quiet import Quiet, Seen
from fanout.reconcile.recalled import Recall
from fanout.reconcile.render import Renderer
from fanout.reconcile.report import Observed, PolicyPass, Rest
from fanout.reconcile.rollback import Rollback
from fanout.reconcile.spoken import spoken
from fanout.reconcile.undeclared import undeclared
from fanout.reconcile.unmatched import unmatched_selectors
from fanout.reconcile.upstream import Packages
from fanout.reconcile.views import Views
from fanout.reconcile.whereabouts import Whereabouts
from fanout.reconcile.world import World
from fanout.values import frozen
from fanout.variants.functions.scope import DEFINITION, scopes_of


class Subject(NamedTuple):
    """Whom a pass is about: a policy, or a variant written by hand."""

    namespace: str
    name: str


@frozen
class Mode:
    """What kind of pass it is. People name policies, the loop knows exactly whom it means."""

    publish: bool = True  # False: drafts are brought up to date and nothing is published
    sweep: bool = True  # False: where there is a schedule, automation publishes nothing
    only: frozenset[str] | None = None  # names of policies and hand-written variants; None: all
    namespace: str = ""  # "": all
    whom: frozenset[Subject] | None = None  # exactly these; None: all that are covered
    unswept: frozenset[Subject] = frozenset()  # for these it is no sweep

    def covers(self, named: Named) -> bool:
        """Is the policy, or the hand-written variant, part of the pass?"""
        return (
            (self.only is None or named.name in self.only)
            and self.namespace in ("", named.namespace)
            and (self.whom is None or (named.namespace, named.name) in self.whom)
        )

    def sweeps(self, named: Named) -> bool:
        """May automation publish it in this pass, where it has a schedule?"""
        return self.sweep and (named.namespace, named.name) not in self.unswept


class Reconciler:
    """Observes and plans; keeps between passes only what cannot have changed."""

    def __init__(self, world: World, *, stays: bool = False) -> None:
        """One that `stays` makes many passes, and keeps what speeds up all but the first."""
        self._world = world
        self._views = Views(world.git, world.setup.install)
        self._contents = Contents()
        self._by_hand = ByHand(self._contents)
        self._conditions = Conditions(world.sandbox)
        self._rollback = Rollback(world.git)
        self._quiet = Quiet()
        self._recall = Recall(stays)
        self._packages = Packages(world.git, world.setup.limits)
        self._answers = Answering(world.workshop)
        self._named: tuple[Declared, tuple[Named, ...]] | None = None

    @property
    def answers(self) -> Answering:
        """What was asked of the world for renderings."""
        return self._answers

    @property
    def packages(self) -> Packages:
        """Upstream packages as this process has read them."""
        return self._packages

    def observe(self, declared: Declared, now: datetime, mode: Mode) -> Observed:
        """One pass up to its plan.

        Raises Unavailable or Denied when records cannot be reached, InvalidInput when they are
        lost.
        """
        phase = self._world.counters.times.phase
        everyone = self._names(declared)
        with phase("records"):
            books = self._world.records.read_all([book_key(named) for named in everyone])
        covered = [item for item in everyone if mode.covers(item)]
        dependencies = Dependencies(everyone)
        named = dependencies.with_beside(covered)
        whereabouts = Whereabouts.of(everyone, named, books, declared.repositories)
        with phase("listings"):
            looks, listings = self._listings(named, whereabouts, books)
        with phase("views"):
            views = self._look(named, whereabouts, listings)
        seen = Seen(declared, mode.publish, listings, books)
        promotions = _promotions(named, declared)
        self._quiet.begin(map(key_of, everyone))
        self._recall.only(map(key_of, everyone))
        judge = self._judge(declared, now, publish=mode.publish)
        judged: dict[Key, PolicyPass] = {}
        planned: dict[Key, PolicyPlan | None] = {}
        for item in named:
            told = Told(
                named=item,
                book=books[book_key(item)],
                known=whereabouts.known(item, views),
                listings=listings,
                promotions=promotions[item.namespace, item.name],
                sweep=mode.sweeps(item),
                all_read=all_promotions_read(declared, item.namespace),
                doubt=doubt(declared),
                depends_on=dependencies.of(item, judged),
            )
            judged[key_of(item)], planned[key_of(item)] = self._answer(told, seen, judge)
        passes = [judged[key_of(item)] for item in covered]
        plans = [it for it in (planned[key_of(item)] for item in covered) if it is not None]
        missed = undeclared(books, declared, mode.namespace) if mode.only is None else ()
        messages, due = self._changes(plans, promotions, declared)
        return Observed(
            now=now,
            policies=tuple(passes),
            plans=tuple(plans),
            plan=joined(plans),
            changes=due,
            warnings=(*missed, *_doubts(covered, declared), *messages.warnings, *spoken(passes)),
            undeclared=missed,
            rest=self._rest(books, looks, listings, passes),
        )

    def _answer(self, told: Told, seen: Seen, judge: Judge) -> tuple[PolicyPass, PolicyPlan | None]:
        """What was said of the policy before, if it is so still; else it is judged."""
        key, world = key_of(told.named), self._world
        known = self._quiet.answer(key, told, seen, judge.now)
        if known is not None:
            return known, None
        with world.counters.times.phase("judging"):
            done, plan = judge.judge(told)
        world.counters.add("judged")
        self._quiet.keep(key, told, seen, done, plan)
        _place(done, seen.declared)
        return done, plan

    def _changes(
        self,
        plans: Sequence[PolicyPlan],
        promotions: Mapping[tuple[str, str], tuple[PromotionPolicy, ...]],
        declared: Declared,
    ) -> tuple[Messages, tuple[RepositoryChange, ...]]:
        """The commits of each repository, and what was said when their messages were made."""
        world, setup = self._world, self._world.setup
        with world.counters.times.phase("changes"):
            messages = commit_messages(plans, promotions, world.sandbox, declared)
            writing = Writing(setup.install, setup.identity, messages.texts)
            return messages, changes(plans, writing)

    def _judge(self, declared: Declared, now: datetime, *, publish: bool) -> Judge:
        self._conditions.begin()
        world = self._world
        renderer = Renderer(
            self._packages,
            declared.objects,
            world.counters,
            world.progress,
            Merger(world.git, world.counters, world.setup.limits, self._answers, self._contents),
            self._answers,
            self._rollback,
            scopes_of(declared.objects.of_kind(*DEFINITION).values()),
        )
        probing = Probing(world.sandbox, world.probes, declared.objects, now)
        return Judge(
            world.git,
            renderer,
            probing,
            world.setup,
            now,
            publish,
            self._by_hand,
            self._conditions,
            self._recall,
        )

    def _names(self, declared: Declared) -> tuple[Named, ...]:
        """Names depend on nothing but what was declared, so the same files are not asked twice."""
        if self._named is None or self._named[0] is not declared:
            before = self._named[1] if self._named is not None else ()
            with self._world.counters.times.phase("names"):
                self._named = (declared, name_variants(declared, self._world.sandbox, before))
            stages = (stage for policy in declared.policies for stage in policy.spec.stages)
            self._conditions.prepare(text for stage in stages for text in stage.propagate_when)
        return self._named[1]

    def _listings(
        self,
        named: Sequence[Named],
        whereabouts: Whereabouts,
        books: Mapping[BookKey, Book],
    ) -> tuple[tuple[Look, ...], Mapping[str, Listing | FanoutError]]:
        """One listing per repository; of everybody's where nothing at all is on record."""
        git, setup = self._world.git, self._world.setup
        recorded = setup.new_records or any(book.head for book in books.values())
        blank = "" if recorded else self._world.records.blank()
        asked = whereabouts.everyone if blank else named
        looks = looks_at(asked, whereabouts.others, setup.install)
        listings = git.look(looks) if looks else {}
        if blank:
            refuse_lost_records(blank, listings, setup.install)
        return looks, listings

    def _rest(
        self,
        books: Mapping[BookKey, Book],
        looks: tuple[Look, ...],
        listings: Mapping[str, Listing | FanoutError],
        passes: Sequence[PolicyPass],
    ) -> Rest | None:
        """What the pass has read, if nothing of all that is declared can have another answer."""
        heads = {key: book.head for key, book in books.items() if book.head}
        listed = {url: it for url, it in listings.items() if isinstance(it, Listing)}
        if not (heads and self._quiet.rests() and listed.keys() == listings.keys()):
            return None
        instants = (it.decision.next for it in passes if it.decision is not None)
        until = min((it for it in instants if it is not None), default=None)
        return Rest(heads, looks, listed, until)

    def _look(
        self,
        named: Sequence[Named],
        whereabouts: Whereabouts,
        listings: Mapping[str, Listing | FanoutError],
    ) -> dict[str, RepositoryView]:
        """The view of every downstream repository, by the identity of its Repository object."""
        unusable = branch_conflicts(whereabouts.everyone)
        paths: dict[str, list[str]] = {}
        repositories = {}
        for item in named:
            for variant in item.variants:
                repository = item.repositories[variant.name]
                repositories[repository_key(repository)] = repository
                paths.setdefault(canonical_url(repository.spec.url), []).append(variant.path)
        for others in whereabouts.elsewhere.values():
            for repository, formerly in others.values():
                repositories.setdefault(repository_key(repository), repository)
                paths.setdefault(canonical_url(repository.spec.url), []).extend(formerly)
        views: dict[str, RepositoryView] = {}
        by_url: dict[str, RepositoryView] = {}
        for key, repository in repositories.items():
            url, remote = canonical_url(repository.spec.url), remote_of(repository)
            answer = unusable.get(key, listings[remote.url])
            if isinstance(answer, FanoutError):
                views[key] = self._views.read(remote, branch_of(repository), answer, ())
                continue
            if url not in by_url:
                by_url[url] = self._views.read(remote, branch_of(repository), answer, paths[url])
            views[key] = by_url[url]
        return views


def _promotions(
    named: Sequence[Named], declared: Declared
) -> dict[tuple[str, str], tuple[PromotionPolicy, ...]]:
    found = ((item, promotions_of(item, declared.promotions)) for item in named)
    return {(item.namespace, item.name): promotions for item, promotions in found}


def _doubts(covered: Sequence[Named], declared: Declared) -> tuple[str, ...]:
    """What is told of the files before anything is looked at."""
    policies = [item.policy for item in covered if item.policy is not None]
    unmatched = map(str, unmatched_selectors(declared, policies))
    return (*_switched_off(covered, declared), *unmatched)


def _place(item: PolicyPass, declared: Declared) -> None:
    """Give a problem of the policy itself the file and line of its field."""
    written = item.named.policy or item.named.written
    problem = item.problem
    if written is None or problem is None or problem.where.file:
        return
    if problem.where.object == written.identity:
        problem.where = declared.where(written, problem.where.field)


def promotions_of(
    named: Named, promotions: Sequence[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """The PromotionPolicies that name the policy, or the hand-written variant."""
    if named.policy is not None:
        return administrators(named.policy, promotions)
    return tuple(
        promotion
        for promotion in promotions
        if promotion.metadata.namespace == named.namespace and named.name in promotion.spec.variants
    )


def all_promotions_read(declared: Declared, namespace: str) -> bool:
    """Is every PromotionPolicy of the namespace usable, as far as one can tell?"""
    return not declared.unread and not any(
        key.kind == "PromotionPolicy" and key.namespace == namespace for key in declared.left_out
    )


def _switched_off(named: Sequence[Named], declared: Declared) -> tuple[str, ...]:
    """Why automation is off although somebody may have switched it on."""
    namespaces = {item.namespace for item in named}
    lost = [
        f"{key.kind} {key.namespace}/{key.name}"
        for key in declared.left_out
        if key.kind == "PromotionPolicy" and key.namespace in namespaces
    ]
    return tuple(
        f"nothing is promoted automatically while {what} cannot be read: a PromotionPolicy may"
        " restrict what others allow; correct it"
        for what in (*declared.unread, *dict.fromkeys(lost))
    )
