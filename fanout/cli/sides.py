"""The files of one variant as each side has them: upstream, fanout, the branch and the draft."""

from collections.abc import Callable
from typing import TypeVar

from fanout.cli.start import Program
from fanout.cli.variant import find_variant
from fanout.errors import InvalidInput, Stopped
from fanout.gates.facts import Hold
from fanout.package.merge.conflicts import Conflict
from fanout.package.merge.packages import Files
from fanout.plan.cases import Case
from fanout.plan.earlier import Earlier
from fanout.plan.repository import Remote
from fanout.reconcile.contents import Contents
from fanout.reconcile.look import remote_of, upstream_path
from fanout.reconcile.merge import Merger
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.rollback import Rollback
from fanout.reconcile.upstream import written_upstream
from fanout.values import frozen, replace
from fanout.variants.model import Rendered
from fanout.variants.render import render

_NOTHING: Files = {}
Value = TypeVar("Value")


def open_sides(program: Program, called: str) -> "Sides":
    """The sides of the variant of this name, target or place.

    Raises InvalidInput where there is no such variant or it has no candidate, and what its
    rendering, or merging people's changes into it, raises.
    """
    item, case = find_variant(program, called)
    if case.failure is not None:
        raise case.failure
    if case.returns and case.earlier is None:
        assert case.barred is not None, "it never had what it is to go back to"
        raise Stopped(
            f"{case.spec.name} is held: {case.barred.sentence}", reason=case.barred.reason
        )
    if not case.returns and (case.package is None or case.inputs is None):
        raise InvalidInput(
            f"{case.spec.name} has no candidate: its stage is {case.spec.stage or 'not given'}",
            reason="NoRevision",
            remedy="see `fanout explain`",
        )
    return Sides(program, item, _rendered(program, case))


@frozen
class Sides:
    """A variant with a candidate, rendered; a side that is not there has no files."""

    program: Program
    item: PolicyPass
    case: Case

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """What was in dispute when people's changes were merged into the rendering."""
        return self.case.merged.conflicts if self.case.merged else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What else people should know of that merge."""
        return self.case.merged.notes if self.case.merged else ()

    @property
    def undecided(self) -> tuple[Conflict, ...]:
        """Those of them that nobody has decided, on the draft or by a record."""
        decided = {item.key for item in self.case.disputes if item.decided}
        return tuple(item for item in self.conflicts if item.key not in decided)

    def refuse_without_draft(self) -> None:
        """Raises Stopped where it has no next draft: nobody can tell people's part in it."""
        case, found = self.case, self.case.reverted
        hold = case.obstacle
        if case.removed or (found is not None and (found.elsewhere or found.pristine is None)):
            hold = hold or case.undone
        if case.baseless and not case.foreign:
            at = f"{case.home.repository}:{case.home.path}"
            lost = Hold("BaseMissing", f"{at} has people's edits, and their base is lost")
            hold = hold or case.hold or lost
        if hold is not None:
            problem = f"{case.spec.name} is held and has no next draft: {hold.sentence}"
            raise Stopped(problem, reason=hold.reason)

    def upstream(self) -> Files:
        """Upstream's package at the candidate."""
        if self.case.package is None:  # it goes back
            return self._upstream_at(self.case.upstream_commit)
        content = self.case.package.upstream.files
        return {path: (entry.mode, data) for path, (entry, data) in content.items()}

    def upstream_before(self) -> Files:
        """Upstream's package at the revision that is published, where upstream still has it."""
        origin, published = self.case.origin, self.case.published
        if origin is not None:
            return self._tree(origin.upstream, origin.tree)
        return self._upstream_at(published.commit) if published is not None else _NOTHING

    def _upstream_at(self, commit: str) -> Files:
        upstream = self.item.named.upstream
        if upstream is None:
            return _NOTHING
        remote = remote_of(upstream)
        path = upstream_path(upstream, written_upstream(self.item.named).package)
        with self.program.world.git.reader(remote) as reader:
            tree = reader.paths(commit, [path])[path].tree if reader.has(commit) else None
        return self._tree(remote, tree)

    def rendering(self) -> Files:
        """What fanout makes of the candidate, without what people changed."""
        assert self.case.rendered is not None, "it has been rendered"
        return self._of(self.case.rendered)

    def rendered(self) -> Files:
        """The rendering with what people changed."""
        content = self.case.content
        assert content is not None, "it has been rendered"
        return self._of(content)

    def published(self) -> Files:
        """The package on the branch."""
        return self._tree(self.case.home.view.remote, self.case.own.tree)

    def since_published(self) -> tuple[Files, Files]:
        """What fanout published, and what it became; of a package that is taken over, what it was
        when it was cloned, and what it became as the merge takes it.
        """
        local = self.published()
        if self.case.foreign:
            change = _through(self.program, lambda it: it.taken_over(self.case, local))
            return change if change is not None else (_NOTHING, local)
        return self._tree(self.case.home.view.remote, self.case.pristine), local

    def drafted(self) -> tuple[Files, Files]:
        """What fanout wrote on the draft's branch, and what it became."""
        change = _through(self.program, lambda it: it.drafted(self.case))
        return change if change is not None else (_NOTHING, _NOTHING)

    def _of(self, content: Rendered) -> Files:
        package = self.case.package
        files = package.upstream.files.values() if package is not None else ()
        known = {entry.oid: data for entry, data in files}
        known |= content.blobs
        return {path: (entry.mode, known[entry.oid]) for path, entry in content.entries.items()}

    def _tree(self, remote: Remote, tree: str | None) -> Files:
        if not tree:
            return _NOTHING
        with self.program.world.git.reader(remote) as reader:
            files = reader.files(tree)
        return {path: (entry.mode, data) for path, (entry, data) in files.items()}


def _rendered(program: Program, case: Case) -> Case:
    """The case with its rendering, and in it what people changed."""
    if case.rendered is not None:
        return case
    if case.earlier is not None:
        return Rollback(program.world.git).rendered(_staying(case, case.earlier))
    assert case.package is not None, "the caller has looked"
    assert case.inputs is not None, "the caller has looked"
    package, spec, inputs = case.package, case.spec, case.inputs
    answers = program.reconciler.answers
    rendered = answers.through(lambda known: render(package, spec, inputs, known))
    case = replace(case, rendered=rendered)
    return _through(program, lambda it: it.merged(case)) if case.merges else case


def _staying(case: Case, earlier: Earlier) -> Case:
    """The case; where it has gone back already it stays as it is, with people's edits since."""
    if not case.in_force:
        return case
    tree = case.own.tree or earlier.tree
    return replace(case, earlier=replace(earlier, tree=tree, pristine=earlier.pristine or tree))


def _through(program: Program, work: Callable[[Merger], Value]) -> Value:
    """Do what a merger does, as often as it asks something of the world."""
    world, answers = program.world, program.reconciler.answers
    merger = Merger(world.git, world.counters, world.setup.limits, answers, Contents())
    return answers.through(lambda _: work(merger))
