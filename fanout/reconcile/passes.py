"""The pass, in its fixed order: names, records, listings, revisions, gates, renderings, plan.

Data flows down and never up. Each step is a function of what the steps before it yielded; between
them stand the questions to the world: evaluate, list, read. (Design §3.)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from fanout.api.urls import canonical_url
from fanout.cluster.declared import Declared
from fanout.cluster.findings import folded
from fanout.errors import Bug, FanoutError
from fanout.plan.book import Book, BookKey
from fanout.plan.change import Writing
from fanout.plan.observation import RepositoryView
from fanout.plan.planner import PolicyPlan, joined
from fanout.plan.repository import Listing, Look
from fanout.reconcile.absence import doubt
from fanout.reconcile.answers import Answering
from fanout.reconcile.beginnings import refuse_lost_records
from fanout.reconcile.by_hand import ByHand
from fanout.reconcile.changing import changes_of, with_stopped
from fanout.reconcile.conditions import Conditions
from fanout.reconcile.contents import Contents
from fanout.reconcile.dependencies import Key, key_of
from fanout.reconcile.judge import Judge, Told
from fanout.reconcile.look import remote_of
from fanout.reconcile.merge import Merger
from fanout.reconcile.messages import Messages, commit_messages
from fanout.reconcile.names import (
    Named,
    book_key,
    branch_of,
    name_variants,
    repository_key,
    unnamed,
)
from fanout.reconcile.probing import Probing
from fanout.reconcile.promotions import all_promotions_read, promotions_of, switched_off
from fanout.reconcile.quiet import Quiet, Seen
from fanout.reconcile.recalled import Recall
from fanout.reconcile.render import Renderer
from fanout.reconcile.report import Observed, PolicyPass, Rest
from fanout.reconcile.rollback import Rollback
from fanout.reconcile.scope import Declarations, Scope, scope_of
from fanout.reconcile.spoken import spoken
from fanout.reconcile.undeclared import undeclared
from fanout.reconcile.unmatched import unmatched_selectors
from fanout.reconcile.upstream import Packages
from fanout.reconcile.views import Views
from fanout.reconcile.world import World
from fanout.telemetry.barrier import BARRIER, run_contained
from fanout.values import frozen, replace
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


@frozen
class _Judging:
    """What the judging of every policy of a pass is given."""

    scope: Scope
    mode: Mode
    seen: Seen
    views: Mapping[str, RepositoryView]
    judge: Judge

    def told(self, named: Named, judged: Mapping[Key, PolicyPass]) -> Told:
        """What the judge is told about one policy; `judged` are those before it."""
        scope, declared = self.scope, self.seen.declared
        return Told(
            named=named,
            book=scope.books[book_key(named)],
            known=scope.whereabouts.known(named, self.views),
            listings=self.seen.listings,
            promotions=promotions_of(named, declared.promotions),
            sweep=self.mode.sweeps(named),
            all_read=all_promotions_read(declared, named.namespace),
            doubt=doubt(declared),
            depends_on=scope.dependencies.of(named, judged),
        )


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
        self._named: tuple[Declared | None, tuple[Named, ...]] | None = None

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
        phase, install = self._world.counters.times.phase, self._world.setup.install
        everyone = self._names(declared)
        with phase("records"):
            books = self._world.records.read_all([book_key(named) for named in everyone])
        made_of = Declarations(declared.repositories, mode.covers, install)
        scope = scope_of(everyone, books, made_of)
        with phase("listings"):
            looks, listings = self._listings(scope)
        with phase("views"):
            views = self._look(scope, listings)
        seen = Seen(declared, mode.publish, listings, scope.books)
        self._quiet.begin(map(key_of, scope.everyone))
        self._recall.only(map(key_of, scope.everyone))
        judging = _Judging(scope, mode, seen, views, self._judge(declared, now, mode.publish))
        judged = {key_of(it): _without_answer(it, scope) for it in scope.stopped}
        planned: dict[Key, PolicyPlan | None] = dict.fromkeys(judged)
        for item in scope.named:
            judged[key_of(item)], planned[key_of(item)] = self._contained(item, judging, judged)
        passes = [judged[key_of(item)] for item in scope.covered]
        plans = [it for it in (planned[key_of(item)] for item in scope.covered) if it is not None]
        messages = self._messages(scope.covered, plans, declared)
        writing = Writing(install, self._world.setup.identity, messages.texts)
        with phase("changes"):
            due, faulty = changes_of(plans, writing)
        missed: tuple[str, ...] = ()
        if mode.only is None:
            missed = _sentences(partial(undeclared, scope.books, declared, mode.namespace))
        observed = Observed(
            now=now,
            policies=tuple(passes),
            plans=tuple(plans),
            plan=joined(plans),
            changes=due,
            writing=writing,
            warnings=(
                *missed,
                *_sentences(partial(_doubts, scope.covered, declared)),
                *messages.warnings,
                *_sentences(partial(spoken, passes)),
            ),
            undeclared=missed,
            rest=self._rest(scope.books, looks, listings, passes),
        )
        return with_stopped(observed, faulty)

    def _contained(
        self, named: Named, judging: "_Judging", judged: Mapping[Key, PolicyPass]
    ) -> tuple[PolicyPass, PolicyPlan | None]:
        """What is to be said and done of one; an internal error is its own, whatever caused it."""
        try:
            with BARRIER:
                return self._answer(judging.told(named, judged), judging.seen, judging.judge)
        except Bug as problem:
            return _without_answer(unnamed(named, problem), judging.scope), None

    def _answer(self, told: Told, seen: Seen, judge: Judge) -> tuple[PolicyPass, PolicyPlan | None]:
        """What was said of the policy before, if it is so still; else it is judged."""
        key, world = key_of(told.named), self._world
        known = self._quiet.answer(key, told, seen, judge.now)
        if known is not None:
            return known, None
        with world.counters.times.phase("judging"):
            done, plan = judge.judge(told)
        world.counters.add("judged")
        done = _with_upstream(done, seen.listings)
        self._quiet.keep(key, told, seen, done, plan)
        _place(done, seen.declared)
        return done, plan

    def _messages(
        self, covered: Sequence[Named], plans: Sequence[PolicyPlan], declared: Declared
    ) -> Messages:
        """The commit messages, and what is wrong with the templates of those that have none."""
        whose = {(plan.namespace, plan.name) for plan in plans}
        named = {(it.namespace, it.name): it for it in covered}
        promotions = {it: promotions_of(named[it], declared.promotions) for it in sorted(whose)}
        with self._world.counters.times.phase("changes"):
            work = partial(commit_messages, plans, promotions, self._world.sandbox, declared)
            messages = run_contained(work)
        if isinstance(messages, FanoutError):  # what commits say is no reason to hold them
            return Messages({}, (f"commits have the default message: {messages}",))
        return messages

    def _judge(self, declared: Declared, now: datetime, publish: bool) -> Judge:
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
            stages = [stage for policy in declared.policies for stage in policy.spec.stages]
            texts = (text for stage in stages for text in stage.propagate_when)
            # Many at once is quick; what fails here is prepared, and told, policy by policy.
            run_contained(partial(self._conditions.prepare, texts))
        named = self._named[1]
        if not all(item.complete for item in named):
            # What failed may have failed for want of memory, and is asked again.
            self._named = (None, named)
        return named

    def _listings(
        self, scope: Scope
    ) -> tuple[tuple[Look, ...], Mapping[str, Listing | FanoutError]]:
        """One listing per repository; of everybody's where nothing at all is on record."""
        git, setup = self._world.git, self._world.setup
        recorded = setup.new_records or any(book.head for book in scope.books.values())
        blank = "" if recorded else self._world.records.blank()
        looks = scope.look_everywhere(setup.install) if blank else scope.looks
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
        self, scope: Scope, listings: Mapping[str, Listing | FanoutError]
    ) -> dict[str, RepositoryView]:
        """The view of every downstream repository, by the identity of its Repository object."""
        paths: dict[str, list[str]] = {}
        repositories = {}
        for item in scope.named:
            for variant in item.variants:
                repository = item.repositories[variant.name]
                repositories[repository_key(repository)] = repository
                paths.setdefault(canonical_url(repository.spec.url), []).append(variant.path)
        for others in scope.whereabouts.elsewhere.values():
            for repository, formerly in others.values():
                repositories.setdefault(repository_key(repository), repository)
                paths.setdefault(canonical_url(repository.spec.url), []).extend(formerly)
        views: dict[str, RepositoryView] = {}
        by_url: dict[str, RepositoryView] = {}
        for key, repository in repositories.items():
            url, remote = canonical_url(repository.spec.url), remote_of(repository)
            answer = scope.unusable.get(key, listings[remote.url])
            if isinstance(answer, FanoutError):
                views[key] = self._views.read(remote, branch_of(repository), answer, ())
                continue
            if url not in by_url:
                by_url[url] = self._views.read(remote, branch_of(repository), answer, paths[url])
            views[key] = by_url[url]
        return views


def _without_answer(named: Named, scope: Scope) -> PolicyPass:
    """A policy of which nothing more is known than what stopped it."""
    return PolicyPass(named, scope.books[book_key(named)], problem=named.problem)


def _with_upstream(item: PolicyPass, listings: Mapping[str, Listing | FanoutError]) -> PolicyPass:
    """The pass of a policy with why its upstream repository could not be listed."""
    upstream = item.named.upstream
    listing = listings.get(remote_of(upstream).url) if upstream is not None else None
    return replace(item, upstream_failure=listing) if isinstance(listing, FanoutError) else item


def _sentences(work: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """The sentences; where an internal error keeps them from being told, that."""
    found = run_contained(lambda: tuple(work()))
    return (str(found),) if isinstance(found, FanoutError) else found


def _doubts(covered: Sequence[Named], declared: Declared) -> tuple[str, ...]:
    """What is told of the files before anything is looked at."""
    policies = [item.policy for item in covered if item.policy is not None and item.complete]
    unmatched = (line for _, line in folded(unmatched_selectors(declared, policies)))
    return (*switched_off(covered, declared), *unmatched)


def _place(item: PolicyPass, declared: Declared) -> None:
    """Give a problem of the policy itself the file and line of its field."""
    written = item.named.policy or item.named.written
    problem = item.problem
    if written is None or problem is None or problem.where.file:
        return
    if problem.where.object == written.identity:
        problem.where = declared.where(written, problem.where.field)
