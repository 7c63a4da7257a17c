"""Publications of a policy as one downstream repository shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.plan.history.publication_commit import PublicationCommit, parse_publication_commit
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import ObjectReader
from fanout.reconcile.rollback.publication_history import PublicationHistory, PublicationMemo
from fanout.selection.ref_names import parse_publication_number
from fanout.values import Value, field


class RepositoryHistory(Value):
    """Commits of publications, publications that are not on record, and packages of reports."""

    commits: Mapping[str, PublicationCommit] = field(default_factory=dict)  # by commit id
    unrecorded: tuple[RecordedPublication, ...] = ()
    # Commits that reports name, by stage, path and tree of the package there.
    reported: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)

    def find_commit(self, publication: RecordedPublication) -> PublicationCommit | None:
        """Return the commit of a publication; None if it could not be read."""
        return self.commits.get(publication.line.merge)

    def find_reported(self, publication: RecordedPublication) -> Sequence[str]:
        """Return the commits of reports at which the package is the published one."""
        tree = publication.line.tree
        return self.reported.get((publication.stage, publication.path, tree), ())


def read_repository_history(
    reader: ObjectReader,
    state: RepositoryState,
    variants: Iterable[RenderedVariant],
    recorded: Sequence[RecordedPublication],
    reported_commits: Mapping[str, Iterable[str]],
    own_identity: str,
) -> RepositoryHistory:
    """Read what the mirror of one repository shows.

    `recorded`: its publications on record; `reported_commits`: commits that evidence names, by
    stage; `own_identity`: "name <email>" of fanout's commits. Raises Unavailable, InvalidInput.
    """
    unrecorded = tuple(_find_unrecorded(reader, state, variants, recorded))
    publications = (*recorded, *unrecorded)
    merges = {it.line.merge for it in publications if it.line.merge}
    commits = {
        oid: parse_publication_commit(reader.commit(oid), own_identity)
        for oid in sorted(merges)
        if reader.has(oid)
    }
    paths: dict[str, set[str]] = {}
    for publication in publications:
        paths.setdefault(publication.stage, set()).add(publication.path)
    reported: dict[tuple[str, str, str], list[str]] = {}
    for stage in paths.keys() & reported_commits.keys():
        for oid in sorted(it for it in reported_commits[stage] if reader.has(it)):
            for path, package in reader.paths(oid, sorted(paths[stage])).items():
                if package.tree is not None:
                    reported.setdefault((stage, path, package.tree), []).append(oid)
    return RepositoryHistory(commits, unrecorded, reported)


def _find_unrecorded(
    reader: ObjectReader,
    state: RepositoryState,
    variants: Iterable[RenderedVariant],
    recorded: Iterable[RecordedPublication],
) -> Iterator[RecordedPublication]:
    """Yield publications that the repository shows and the records do not have."""
    numbers: dict[str, set[int]] = {}
    merges: dict[str, set[str]] = {}
    for publication in recorded:
        path = publication.path
        number = parse_publication_number(publication.line.tag, path)
        numbers.setdefault(path, set()).add(number)
        merges.setdefault(path, set()).add(publication.line.merge)
    memo = PublicationMemo()
    for spec in (variant.spec for variant in variants):
        newest = state.publication_numbers.get(spec.path, 0)
        missing = set(range(1, newest + 1)) - numbers.get(spec.path, set())
        publications = PublicationHistory(reader, state, spec, memo)
        for number in sorted(missing):
            line = publications.describe_numbered(number)
            if line is not None and line.merge not in merges.get(spec.path, ()):
                yield RecordedPublication(
                    variant=spec.name,
                    stage=spec.stage,
                    repository=state.identity,
                    path=spec.path,
                    line=line,
                    is_recovered=True,
                )
