"""The middle steps of a pass: each variant with its candidate, and the renderings that are due."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.errors import Bug, FanoutError
from fanout.gates.pins import Pin
from fanout.plan.cases import Case, chosen
from fanout.reconcile.adopt import not_adopted
from fanout.reconcile.answers import Answering
from fanout.reconcile.merge import Merger
from fanout.reconcile.names import Named
from fanout.reconcile.recalled import Recalled
from fanout.reconcile.rollback import Rollback
from fanout.reconcile.upstream import Packages, written_upstream
from fanout.selection.objects import ObjectIndex
from fanout.telemetry.barrier import BARRIER, Barrier
from fanout.telemetry.counters import Counters
from fanout.telemetry.progress import Progress
from fanout.values import frozen, replace
from fanout.variants.prepared import PreparedPackage
from fanout.variants.questions import Question, Unanswered
from fanout.variants.render import render
from fanout.variants.resolve import resolve

_RENDERING = Barrier(Unanswered)  # a question is no error: the rendering goes on with its answer
BATCH = 100  # renderings whose questions are asked together


@frozen
class Renderer:
    """Gives cases their candidate; renders those whose draft is not what it should be."""

    packages: Packages
    objects: ObjectIndex
    counters: Counters
    progress: Progress
    merger: Merger
    answers: Answering
    rollback: Rollback
    scopes: Mapping[tuple[str, str], bool]  # of kinds, by declared definitions

    def choose(
        self,
        named: Named,
        cases: Iterable[Case],
        candidates: Mapping[str, str],
        revisions: Mapping[str, str],
        pins: Mapping[str, Pin],
        recalled: Recalled,
    ) -> tuple[Case, ...]:
        """The cases at their stage's candidate, or at the pin that the variant has.

        A package that is no package fails its variants.
        """
        cases = tuple(cases)
        with self.counters.times.phase("choosing"):
            back = self.rollback.chosen(cases, pins)
            wanted = {
                candidates.get(case.spec.stage, "") for case in cases if case.spec.name not in back
            }
            prepared: dict[str, PreparedPackage | FanoutError] = {}
            for name in sorted(wanted - {""}):
                prepared[name] = self._prepare(named, name, revisions.get(name, ""))
            return tuple(
                back.get(case.spec.name)
                or self._chosen(case, candidates.get(case.spec.stage, ""), prepared, recalled)
                for case in cases
            )

    def render(self, cases: Iterable[Case], suspended: Collection[str] = ()) -> tuple[Case, ...]:
        """The cases with the renderings that are due; one that fails is its variant's outcome.

        Nothing is due for the variants named in `suspended`.
        """
        wanted = [(case, case.wants_draft and case.spec.name not in suspended) for case in cases]
        number = sum(due for _, due in wanted)
        timing = self.counters.times.phase("rendering")
        with timing, self.progress.task("rendering", number) as advance:
            done: list[Case] = []
            for start in range(0, len(wanted), BATCH):
                done += self._batch(wanted[start : start + BATCH], advance)
                self.answers.trim()
            return tuple(done)

    def _batch(
        self, wanted: Sequence[tuple[Case, bool]], advance: Callable[[], None]
    ) -> Iterator[Case]:
        """The cases; what their renderings ask of the world is asked for all of them at once."""
        found = {number: case for number, (case, due) in enumerate(wanted) if not due}
        self.counters.add("renders", sum(due and not case.returns for case, due in wanted))
        while len(found) < len(wanted):
            questions: list[Question] = []
            for number, (case, _) in enumerate(wanted):
                if number not in found:
                    try:
                        found[number] = self._rendered(case)
                        advance()
                    except Unanswered as stop:
                        questions.append(stop.question)
            self.answers.ask(questions)
        return (found[number] for number in range(len(wanted)))

    def _prepare(self, named: Named, name: str, commit: str) -> PreparedPackage | FanoutError:
        assert named.upstream is not None, "a policy without its upstream is not rendered"
        try:
            with BARRIER:
                package = written_upstream(named).package
                return self.packages.get(named.upstream, package, name, commit, self.scopes)
        except FanoutError as error:
            return error

    def _chosen(
        self,
        case: Case,
        revision: str,
        prepared: Mapping[str, PreparedPackage | FanoutError],
        recalled: Recalled,
    ) -> Case:
        """The case at its candidate; an internal error is that of this variant alone."""
        try:
            with BARRIER:
                return self._at(case, revision, prepared, recalled)
        except Bug as error:
            return replace(case, revision=revision, failure=error)

    def _at(
        self,
        case: Case,
        revision: str,
        prepared: Mapping[str, PreparedPackage | FanoutError],
        recalled: Recalled,
    ) -> Case:
        package = prepared.get(revision)
        if package is None:
            return replace(case, revision=revision)
        if isinstance(package, FanoutError):
            return replace(case, revision=revision, failure=package)
        known = recalled.chosen(case)
        if known is not None and (known.revision, known.package) == (revision, package):
            inputs = resolve(package, case.spec, self.objects, known.inputs)
            if inputs is known.inputs:
                return known
        else:
            inputs = resolve(package, case.spec, self.objects)
        return recalled.keep_chosen(case, chosen(case, revision, package, inputs))

    def _rendered(self, case: Case) -> Case:
        try:
            with _RENDERING:
                return self._content(case)
        except FanoutError as error:
            if error.reason == Reason.ADOPTION_BASE_MISSING and not case.returns:
                return not_adopted(case, error)
            return replace(case, failure=error)

    def _content(self, case: Case) -> Case:
        """The case with its content. Raises Unanswered, or what its rendering raises."""
        if case.returns:
            return self.rollback.rendered(case)
        assert case.package is not None, "wants_draft has looked"
        assert case.inputs is not None, "wants_draft has looked"
        content = render(case.package, case.spec, case.inputs, self.answers.known)
        rendered = replace(case, rendered=content)
        if not case.merges:
            return rendered
        with self.counters.times.phase("merging"):
            return self.merger.merged(rendered)
