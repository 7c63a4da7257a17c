"""One policy of a pass: its revisions, cases, candidates, renderings, decisions and plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.upstream_policy import InFlight
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.answer import PolicyDecision, State
from fanout.gates.evaluate import candidates, ready, suspended
from fanout.gates.facts import Dependency, PolicyFacts, StageHistory
from fanout.gates.going_back import going_back
from fanout.gates.instants import from_the_future
from fanout.gates.pins import Pin
from fanout.gates.records import Records
from fanout.gates.removal import closed
from fanout.gates.rules import HAND_WRITTEN, StageRule
from fanout.plan.book import Book, Recorded, accepted, standing
from fanout.plan.cases import Case
from fanout.plan.clearing import Leave, Leftovers, clearings, staying
from fanout.plan.dates import ahead, corrected, dated, redated
from fanout.plan.disputes import resolutions
from fanout.plan.draft_times import reported_stages, with_draft_times
from fanout.plan.facts import Question, facts, foreseen, records, with_removals
from fanout.plan.holding_back import held_back
from fanout.plan.planner import PolicyPlan, plan_policy
from fanout.plan.repository import Listing
from fanout.plan.rules import calendars, finishing, hand_written_rule, stage_rules
from fanout.plan.status import Status
from fanout.plan.steps import Planned, Step, plan_step
from fanout.plan.trailers import NONE
from fanout.ports import GitStore
from fanout.reconcile.beginnings import found_again, refuse_lost_book
from fanout.reconcile.by_hand import ByHand
from fanout.reconcile.conditions import Conditions
from fanout.reconcile.dependencies import abouts, key_of
from fanout.reconcile.evidence import prove
from fanout.reconcile.gone import Asked, departures, gone_variants, with_hold
from fanout.reconcile.look import orphans
from fanout.reconcile.names import Named
from fanout.reconcile.opening import Opener
from fanout.reconcile.probing import Probing
from fanout.reconcile.recalled import Recall, Recalled
from fanout.reconcile.render import Renderer
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.rewound import OnRecord, refuse_put_back, refuse_unrecorded
from fanout.reconcile.stopped import stopped
from fanout.reconcile.upstream import revisions, with_lost_tags
from fanout.reconcile.whereabouts import Known
from fanout.reconcile.world import Setup
from fanout.telemetry.barrier import BARRIER
from fanout.values import frozen, replace

History = Mapping[tuple[str, str], StageHistory]


@frozen
class Told:
    """What the judge is told about one policy."""

    named: Named
    book: Book
    known: Known
    listings: Mapping[str, Listing | FanoutError]
    promotions: Sequence[PromotionPolicy]
    sweep: bool
    depends_on: tuple[Dependency, ...] = ()  # of a variant written by hand
    all_read: bool = True  # False: a PromotionPolicy of the namespace may be missing
    doubt: str = ""  # why nobody can be sure that a target is gone


@frozen
class Judge:
    """Judges one policy after the other at one moment."""

    git: GitStore
    renderer: Renderer
    probing: Probing
    setup: Setup
    now: datetime
    publish: bool
    by_hand: ByHand
    conditions: Conditions
    recall: Recall

    def judge(self, told: Told) -> tuple[PolicyPass, PolicyPlan | None]:
        """The policy in this pass, and its plan unless something stops the policy as a whole."""
        status = Status()
        try:
            with BARRIER:
                recorded = _status(told, self._recalled(told))
                status = corrected(recorded, self.now)
                told = replace(told, book=_dated(told.book, self.now, recorded))
                if told.book.head:
                    refuse_put_back(_title(told.named), told.book.rewound)
                if told.named.problem is not None:
                    raise told.named.problem
                allowed = revisions(told.named, told.listings, status.revisions)
                done, plan = self._judge(told, status, allowed)
                return done, redated(
                    plan, recorded, status, _seen_ahead(told.book, self.now, recorded)
                )
        except FanoutError as problem:
            return self._stopped(told, status, problem), None

    def _stopped(self, told: Told, status: Status, problem: FanoutError) -> PolicyPass:
        """A policy in which nothing can go on, with what records and repositories show of it."""
        try:
            with BARRIER:
                cases = self._opener(told, status).cases()
                gone = gone_variants(told.named, status, told.known.views.values())
        except FanoutError:  # the repositories cannot be read either
            cases, gone = (), ()
        return PolicyPass(
            told.named,
            told.book,
            status=status,
            cases=cases,
            rules=self._rules(told),
            decision=stopped(self._rules(told), cases, status, problem),
            views=tuple(told.known.views.values()),
            gone=gone,
            problem=problem,
        )

    def _judge(
        self, told: Told, status: Status, allowed: Mapping[str, str]
    ) -> tuple[PolicyPass, PolicyPlan]:
        named = told.named
        opener = self._opener(told, status)
        with self.renderer.counters.times.phase("opening"):
            cases = with_lost_tags(named, opener.cases(), told.listings)
        found = self._beginning(told, cases)
        refuse_unrecorded(_title(named), told.book, cases)
        refuse_put_back(_title(named), told.book.rewound)  # where not even repositories show it
        said = with_removals(records(_about(told), self.now), status.removed)
        readings = self.probing.readings(named, cases)
        proven = prove((it.commit for it in said.evidence if it.commit), cases, self.git, readings)
        question = self._question(told, status, allowed, said)
        recalled = self._recalled(told)
        before = facts(question, cases, proven, chosen=False, known=recalled.before)
        pins = going_back(before)
        cases = self.renderer.choose(named, cases, candidates(before), allowed, pins, recalled)
        cases = self.renderer.render(cases, suspended(before))
        told_facts = facts(question, cases, proven, known=recalled.told)
        decision = self.conditions.decide(told_facts)
        waiting = held_back(cases, decision)
        if waiting:
            told_facts = facts(question, waiting, proven)
            decision, cases = self.conditions.decide(told_facts), waiting
        drafted = self._foreseen(told, cases, told_facts, decision, allowed, pins)
        steps = [
            plan_step(case, decision.variants[case.spec.name], publish=self.publish)
            for case in drafted
        ]
        history = _remembered(named, status, decision)
        views = tuple(told.known.views.values())
        leaves = self._leaves(told, steps, told_facts)
        clear = tuple(it for item, leave in leaves for it in clearings(item, leave))
        gone = gone_variants(named, status, views)
        asked = Asked(told_facts, standing(told.book.records), told.doubt, act=self.publish)
        removals, going = departures(named, status, told.known, gone, asked)
        leftovers = Leftovers(clear, going, opener.emptied(), found)
        newest = told.book.records[-1].name if told.book.records else NONE
        moment = replace(said.moment(self.now), records=newest)
        plan = plan_policy(named.namespace, named.name, steps, status, history, moment, leftovers)
        plan = with_draft_times(plan, reported_stages(question.rules), self.now)
        done = PolicyPass(
            named=named,
            book=told.book,
            status=status,
            revisions=allowed,
            cases=cases,
            rules=question.rules,
            facts=told_facts,
            decision=with_hold(decision, removals),
            views=views,
            publishing=frozenset(it.case.spec.name for it in steps if it.step is Step.PUBLISH),
            staying={
                item.case.spec.name: tuple(staying(item.case, leave)) for item, leave in leaves
            },
            gone=gone,
            removals=removals,
        )
        return done, plan

    def _question(
        self, told: Told, status: Status, allowed: Mapping[str, str], said: Records
    ) -> Question:
        """What the gates are to judge, as far as no repository says it."""
        named = told.named
        return Question(
            name=named.name,
            rules=self._rules(told),
            revisions=tuple(allowed),
            records=said,
            history=_history(named, status),
            now=self.now,
            suspended=named.policy.spec.suspend if named.policy else False,
            sweep=told.sweep,
            resolutions=resolutions(_counting(told, self.now)),
            serialize=_serializes(named),
            calendars=calendars(told.promotions),
            finishing=finishing(told.promotions),
            unread=not told.all_read,
            heard=said.moment(self.now).heard,
            drafts=status.drafts,
            about=abouts(named, told.depends_on),
        )

    def _rules(self, told: Told) -> tuple[StageRule, ...]:
        named = told.named
        if named.policy is not None:
            rules = stage_rules(named.policy, told.promotions, self.conditions.condition)
        else:
            rules = (hand_written_rule(named.name, told.promotions),)
        # Fail closed: what could not be read may have been there to restrict somebody.
        return tuple(replace(rule, automatic=rule.automatic and told.all_read) for rule in rules)

    def _beginning(self, told: Told, cases: Sequence[Case]) -> frozenset[str]:
        """Where it was at work, as far as a new beginning has to put that on record."""
        if told.book.head:
            return frozenset()
        about = (told.named, told.known.views, cases, self.git)
        if self.setup.new_records:
            return found_again(*about, self.setup.install)
        refuse_lost_book(*about)
        return frozenset()

    def _opener(self, told: Told, status: Status) -> Opener:
        return Opener(
            git=self.git,
            install=self.setup.install,
            now=self.now,
            named=told.named,
            status=status,
            known=told.known,
            resolutions=resolutions(_counting(told, self.now)),
            by_hand=self.by_hand,
            recalled=self._recalled(told),
            on_record=self._on_record(told),
        )

    def _on_record(self, told: Told) -> OnRecord:
        decision = accepted(_about(told))
        names = {record.name for record in told.book.records}
        if self.setup.new_records:
            return OnRecord(names, self.now, self.now)
        return OnRecord(names, decision.at if decision is not None else None, self.now)

    def _recalled(self, told: Told) -> Recalled:
        return self.recall.of(key_of(told.named))

    def _leaves(
        self, told: Told, steps: Sequence[Planned], told_facts: PolicyFacts
    ) -> list[tuple[Planned, Leave]]:
        """The variants that have something at another place, and whether it may go."""
        moved = [item for item in steps if item.case.strays or item.case.leavings]
        if not moved:
            return []
        automatic = {rule.name for rule in told_facts.stages if rule.automatic}
        there, stopped = ready(told_facts), suspended(told_facts)
        shut = closed(told_facts.calendars, told_facts.now, unread=told_facts.unread)
        return [
            (
                item,
                Leave(
                    publish=self.publish,
                    ready=item.case.spec.name in there,
                    automatic=item.case.spec.stage in automatic,
                    sweep=told.sweep,
                    closed=shut,
                    orphan=orphans(told.named),
                ),
            )
            for item in moved
            if item.case.spec.name not in stopped
        ]

    def _foreseen(
        self,
        told: Told,
        cases: tuple[Case, ...],
        told_facts: PolicyFacts,
        decision: PolicyDecision,
        allowed: Mapping[str, str],
        pins: Mapping[str, Pin],
    ) -> tuple[Case, ...]:
        """The cases with the drafts that are due once this pass has published what it publishes.

        A stage without verification has passed with its publication; the next stage's drafts then
        follow in the same pass. (Design §3: drafts are up to date after one pass.)
        """
        if not self.publish or not any(item.publish for item in decision.variants.values()):
            return cases
        wanted = candidates(foreseen(told_facts, decision))
        before = {name: stage.candidate for name, stage in decision.stages.items()}
        moved = {name for name, revision in wanted.items() if before.get(name) != revision}
        busy = {
            name
            for name, item in decision.variants.items()
            if item.publish or item.state is State.SUSPENDED
        }
        later = {
            case.spec.name
            for case in cases
            if case.spec.stage in moved and case.spec.name not in busy
        }
        if not later:
            return cases
        return tuple(
            self._draft_again(told, case, wanted, allowed, pins)
            if case.spec.name in later
            else case
            for case in cases
        )

    def _draft_again(
        self,
        told: Told,
        case: Case,
        wanted: Mapping[str, str],
        allowed: Mapping[str, str],
        pins: Mapping[str, Pin],
    ) -> Case:
        [chosen] = self.renderer.choose(told.named, [case], wanted, allowed, pins, Recalled())
        [rendered] = self.renderer.render([chosen])
        return rendered


def _status(told: Told, recalled: Recalled) -> Status:
    """What is on record. Fail closed: what cannot be read holds the policy."""
    if told.book.failure is not None:
        raise told.book.failure
    if told.book.unreadable:
        raise InvalidInput(told.book.unreadable[0], reason="RecordUnreadable")
    try:
        return recalled.status(told.book.status)
    except ValueError as error:
        raise InvalidInput(
            f"the status on record has a line that cannot be understood: {error}",
            reason="RecordUnreadable",
            remedy="use the newer fanout that wrote it, or restore the line from the commit before",
        ) from error


# Hand-written variants of a namespace share one book; each keeps its history under its own name.


def _title(named: Named) -> str:
    return f"{named.namespace}/{named.name}"


def _dated(book: Book, now: datetime, recorded: Status) -> Book:
    return replace(book, records=dated(book.records, now, recorded.ahead))


def _seen_ahead(book: Book, now: datetime, recorded: Status) -> frozenset[str]:
    """The records on record that this or an earlier pass has seen dated ahead."""
    names = {record.name for record in ahead(book.records, now)}
    if not recorded.ahead:
        return frozenset(names)
    return frozenset(names | (recorded.ahead & {record.name for record in book.records}))


def _counting(told: Told, now: datetime) -> Sequence[Recorded]:
    """Those about the policy that are not dated ahead."""
    return [record for record in _about(told) if not from_the_future(record.at, now)]


def _about(told: Told) -> Sequence[Recorded]:
    found = standing(told.book.records)
    if told.named.policy is not None:
        return found
    name = told.named.name
    return [record for record in found if name in record.spec.get("variants", ())]


def _history(named: Named, status: Status) -> History:
    if named.policy is not None:
        return status.history
    own = status.history.items()
    return {(HAND_WRITTEN, rev): item for (name, rev), item in own if name == named.name}


def _remembered(named: Named, status: Status, decision: PolicyDecision) -> History:
    if named.policy is not None:
        return decision.history
    foreign = {key: item for key, item in status.history.items() if key[0] != named.name}
    return foreign | {(named.name, rev): item for (_, rev), item in decision.history.items()}


def _serializes(named: Named) -> bool:
    return named.policy is not None and named.policy.spec.in_flight is InFlight.SERIALIZE
