"""The upstream side of a pass: which revisions a rule allows, and the package at each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fanout.api.repository import Repository
from fanout.api.upstream import RevisionRule, Upstream
from fanout.errors import Bug, FanoutError, InvalidInput, Where
from fanout.package.limits import in_package
from fanout.package.revision import Revision, allowed, parse_range, releases, tagged
from fanout.plan.cases import Case
from fanout.plan.repository import Listing, Look
from fanout.ports import GitStore
from fanout.reconcile.look import remote_of, upstream_path
from fanout.reconcile.names import Named
from fanout.reconcile.rereading import read_again
from fanout.values import replace
from fanout.variants.model import Limits, UpstreamPackage
from fanout.variants.prepare import prepare
from fanout.variants.prepared import PreparedPackage

KEPT = 16  # prepared packages: a few policies times the revisions that are under way


def written_upstream(named: Named) -> Upstream:
    """What the policy, or the hand-written variant, says about its upstream."""
    spec = named.policy.spec if named.policy else named.written.spec if named.written else None
    if spec is None:
        raise Bug("neither a policy nor a variant was named")
    return spec.upstream


def revisions(
    named: Named, listings: Mapping[str, Listing | FanoutError], pins: Mapping[str, str]
) -> dict[str, str]:
    """Revision name → commit of all that the rule allows, oldest first.

    `pins` are the commits under which revisions were used before. Raises what the listing came to,
    and InvalidInput: nothing fits the rule, or a tag was moved (design §1).
    """
    upstream = written_upstream(named)
    assert named.upstream is not None, "a policy without its upstream is not asked"
    listing = listings[named.upstream.spec.url]
    if isinstance(listing, FanoutError):
        raise listing
    rule = upstream.revision
    if rule.commit:
        return {rule.commit: rule.commit}
    path = upstream_path(named.upstream, upstream.package)
    found = dict(_fitting(listing.refs, path, rule))
    if not found:
        raise _nothing_fits(named, path, rule)
    for name, commit in found.items():
        if pins.get(name, commit) != commit:
            raise InvalidInput(
                f"tag {path}/{name} pointed to {pins[name]} when it was used and now points to"
                f" {commit}",
                reason="TagMoved",
                remedy="put the tag back, and release the change under a new one",
                where=_where(named, "revision"),
            )
    return found


def with_lost_tags(
    named: Named, cases: tuple[Case, ...], listings: Mapping[str, Listing | FanoutError]
) -> tuple[Case, ...]:
    """The cases; those whose published revision has no tag upstream any more name it.

    Without its tag a revision is none that any rule allows: the candidate goes back to an older
    one, and nobody would hear why.
    """
    assert named.upstream is not None, "a policy without its upstream is not asked"
    listing = listings[named.upstream.spec.url]
    if isinstance(listing, FanoutError):
        return cases
    tags = _tags(listing.refs)
    path = upstream_path(named.upstream, written_upstream(named).package)
    published = {it.published.revision: it.published.commit for it in cases if it.published}
    lost = {
        name: f"{path}/{name}".lstrip("/")
        for name, commit in published.items()
        if name != commit and not tagged(tags, path, name)
    }
    if not lost:
        return cases
    return tuple(
        replace(case, lost_tag=lost.get(case.published.revision, "")) if case.published else case
        for case in cases
    )


def tag_lost(case: Case) -> str:
    """That the tag of what is published is gone, and what to do."""
    assert case.published is not None, "it has lost a tag"
    return (
        f"tag {case.lost_tag} is gone from {case.spec.upstream_repository}, and"
        f" {case.published.revision} is published; put the tag back ({case.published.commit}), or"
        " release a newer revision: automation never goes back"
    )


def _tags(refs: Mapping[str, str]) -> dict[str, str]:
    prefix = "refs/tags/"
    return {ref.removeprefix(prefix): oid for ref, oid in refs.items() if ref.startswith(prefix)}


def _fitting(refs: Mapping[str, str], path: str, rule: RevisionRule) -> list[tuple[str, str]]:
    tags = _tags(refs)
    if rule.tag:
        return tagged(tags, path, rule.tag)
    return allowed(tags, path, parse_range(rule.semver)) if rule.semver else releases(tags, path)


def _nothing_fits(named: Named, path: str, rule: RevisionRule) -> InvalidInput:
    assert named.upstream is not None, "a policy without its upstream is not asked"
    where = named.upstream.spec.url
    if rule.tag:
        return InvalidInput(
            f"repository {where} has no tag {path}/{rule.tag}",
            reason="TagMissing",
            remedy="push the tag, or name one that exists",
            where=_where(named, "revision.tag"),
        )
    wanted = f"the range {rule.semver}" if rule.semver else "`latest`, which takes no prerelease"
    return InvalidInput(
        f"repository {where} has no tag {path}/v<N> that fits {wanted}",
        reason="NoRevision",
        remedy="release a revision, or widen the range",
        where=_where(named, "revision"),
    )


def _where(named: Named, field_name: str) -> Where:
    declared = named.policy or named.written
    identity = declared.identity if declared else named.name
    return Where(identity, f"spec.upstream.{field_name}")


def _prepare(
    upstream: UpstreamPackage, limits: Limits, scopes: Mapping[tuple[str, str], bool]
) -> PreparedPackage:
    """Parse it; what is wrong in a file is told with the package that the file is in."""
    try:
        return prepare(upstream, limits, scopes)
    except InvalidInput as error:
        if not error.where.file:
            raise
        place = f"{upstream.directory} at {upstream.revision.name} of {upstream.repository}"
        lines = "\n".join(f"{place}: {line}" for line in str(error).splitlines())
        raise InvalidInput(lines, reason=error.reason) from error


def _has_scopes(known: PreparedPackage, scopes: Mapping[tuple[str, str], bool]) -> bool:
    """Whether the package was prepared with what declared definitions say of its kinds."""
    stated = {kind: scopes[kind] for kind in known.unknown & scopes.keys()}
    return stated == {(group, kind): scope for group, kind, scope in known.declared_scopes}


@dataclass(slots=True)
class Packages:
    """Upstream packages, parsed once per revision; one per process."""

    git: GitStore
    limits: Limits
    _prepared: dict[tuple[str, str, str], PreparedPackage] = field(default_factory=dict)

    def get(
        self,
        repository: Repository,
        package: str,
        name: str,
        commit: str,
        scopes: Mapping[tuple[str, str], bool],
    ) -> PreparedPackage:
        """The package at a revision; `scopes` are those of kinds by declared definitions.

        Raises InvalidInput (file:line) and what Git raises.
        """
        path = upstream_path(repository, package)
        key = (repository.spec.url, path, f"{name}@{commit}")
        known = self._prepared.get(key)
        if known is None or not _has_scopes(known, scopes):
            look = Look(remote_of(repository), ("refs/heads/*", f"refs/tags/{path}/*"))
            upstream = read_again(
                self.git, look, lambda: self._read(repository, path, name, commit)
            )
            self._prepared[key] = _prepare(upstream, self.limits, scopes)
            for old in list(self._prepared)[:-KEPT]:
                del self._prepared[old]
        return self._prepared[key]

    def _read(self, repository: Repository, path: str, name: str, commit: str) -> UpstreamPackage:
        with self.git.reader(remote_of(repository)) as reader:
            if not reader.has(commit):
                raise InvalidInput(
                    f"repository {repository.spec.url} has no commit {commit} on any branch",
                    reason="NoRevision",
                    remedy="push the commit to a branch, or name one that exists",
                )
            state = reader.paths(commit, [path])[path]
            if state.tree is None:
                raise InvalidInput(
                    f"there is no directory {path} at {name} ({commit}) of"
                    f" {repository.spec.url}{': ' + state.problem if state.problem else ''}",
                    reason="NoRevision",
                    remedy="correct spec.upstream.package, or the tag",
                )
            try:
                files = reader.files(state.tree)
            except InvalidInput as error:
                shown = path or "the root directory"
                place = f"{shown} at {name} of {repository.spec.url}"
                raise in_package(error, place) from error
            released = reader.commit(commit)
            return UpstreamPackage(
                repository=repository.spec.url,
                directory=path,
                revision=Revision(name, commit, released.when),
                tree=state.tree,
                files=files,
                author=released.author,
            )
