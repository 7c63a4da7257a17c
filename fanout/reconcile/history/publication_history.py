"""History of a variant's publications, as its downstream repository keeps it.

Every publication has a tag, or a statement on the vendor branch, or both. The statement
describes it, or else the merged draft in its trailers. If a person merged it in another way, for
example by squashing, and nothing is stated, Kptfile and rendering branch describe it.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, islice

from fanout.package.kptfile import UpstreamLock
from fanout.plan.commit_statement import (
    NO_VALUE,
    PackageStatement,
    PublicationStatement,
    parse_message,
)
from fanout.plan.history.earlier_publication import (
    EarlierPublication,
    is_other_state,
    locked_revision,
)
from fanout.plan.observation.repository_state import EMPTY_PATH, Commit, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import PublishedLine
from fanout.ports import ObjectReader
from fanout.reconcile.observation.repository_access import OpenReader
from fanout.reconcile.observation.repository_observer import list_statements
from fanout.reconcile.observation.set_reader import read_packages
from fanout.reconcile.observation.upstream_packages import find_upstream_lock
from fanout.selection.ref_names import parse_publication_number, tag_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value, field, replace

_MAX_EDIT_COMMITS = 64  # commits by people on top of a draft
MAX_BRANCH_COMMITS = 10_000  # of a branch that are looked through
_DIGEST_LENGTH = 40  # of a digest


def walk_branch(reader: ObjectReader, head: str) -> Iterator[Commit]:
    """Yield the commits of a branch by first parents, newest first, as far as the mirror has them.

    At most `MAX_BRANCH_COMMITS`: anybody who may push can have pushed the branch.
    """
    oid = head
    for _ in range(MAX_BRANCH_COMMITS):
        if not oid or not reader.has(oid):
            return
        commit = reader.commit(oid)
        yield commit
        oid = commit.parents[0] if commit.parents else ""


def list_renderings(reader: ObjectReader, vendor: str, directory: str) -> Iterator[str]:
    """Yield the trees that the rendering branch had at a directory, newest first."""
    previous_tree = ""
    for commit in walk_branch(reader, vendor):
        tree = reader.paths(commit.oid, [directory])[directory].tree
        if tree is not None and tree != previous_tree:
            yield tree
            previous_tree = tree


def find_rendering(
    reader: ObjectReader,
    vendor: str,
    directory: str,
    lock: UpstreamLock,
    left_out: Collection[str | None] = (),
) -> str:
    """Return the newest rendering of the same upstream state that was at a directory, or "".

    `left_out`: trees that do not count.
    """
    compared = {*left_out}
    for tree in list_renderings(reader, vendor, directory):
        if tree not in compared:
            compared.add(tree)
            rendered = find_upstream_lock(reader, tree)
            if rendered is not None and not is_other_state(rendered, lock):
                return tree
    return ""


_StatementKey = tuple[str, int]  # path and number of a publication


class PublicationMemo(Value):
    """Statements of commits about publications, read once for all variants that share them."""

    # by draft tip: many drafts share a merge
    trailers_by_tip: dict[str, Mapping[str, PackageStatement]] = field(default_factory=dict)
    # by the newest vendor commit that has statements
    statements: dict[str, Mapping[_StatementKey, PublicationStatement]] = field(
        default_factory=dict
    )

    def find_statement(
        self, reader: ObjectReader, repository_state: RepositoryState, path: str, number: int
    ) -> PublicationStatement | None:
        """Return the statement about a publication, or None if there is none."""
        if (newest := repository_state.last_statements) and newest not in self.statements:
            by_key: dict[_StatementKey, PublicationStatement] = {}
            for _, message in list_statements(reader, newest):
                for statement in message.statements:
                    by_key.setdefault((statement.path, statement.number), statement)
            self.statements[newest] = by_key
        return self.statements[newest].get((path, number)) if newest else None

    def read_trailers(self, reader: ObjectReader, tip: str) -> Mapping[str, PackageStatement]:
        """Return what a branch, which is merged, states of its packages, by variant."""
        if tip not in self.trailers_by_tip:
            commits = islice(walk_branch(reader, tip), _MAX_EDIT_COMMITS)
            newest = next(filter(None, (parse_message(it.message) for it in commits)), None)
            if newest is None:
                packages: Mapping[str, PackageStatement] = {}
            elif not newest.base:  # the draft of one variant, by an earlier version
                packages = newest.packages
            else:
                branch = newest.ref, newest.policy, newest.stage
                packages = read_packages(
                    reader, tip, lambda it: (it.ref, it.policy, it.stage) == branch
                )
            self.trailers_by_tip[tip] = {it.variant: it for it in packages.values()}
        return self.trailers_by_tip[tip]

    def find_commit(
        self, reader: ObjectReader, repository_state: RepositoryState, path: str, number: int
    ) -> str:
        """Return the commit of a publication by its tag, else by its statement, else ""."""
        if tagged := repository_state.refs.get(tag_ref(path, number), ""):
            return tagged
        statement = self.find_statement(reader, repository_state, path, number)
        return statement.merge if statement is not None else ""


class PublicationHistory(Value):
    """Publications of one variant at its path."""

    reader: ObjectReader
    repository_state: RepositoryState
    spec: VariantSpec
    memo: PublicationMemo
    recorded_number: int = 0  # of the newest publication on record

    def list_revisions(self) -> tuple[str, ...]:
        """Return the revision of each publication that is on the branch, newest first."""
        publications = self._list_by_commits() if self._lacks_commits() else self._list_by_numbers()
        return tuple(publication.revision for publication, _, _ in publications)

    def describe_numbered(self, number: int) -> PublishedLine | None:
        """Return the publication with this number, dated by its commit, if it was the variant's.

        None if no draft of the variant was merged there, or if that never was on the branch.
        """
        commit, trailers, publication = self._read_publication(number)
        if not commit or trailers is None or publication is None or not self._is_on_branch(commit):
            return None
        at = datetime.fromtimestamp(self.reader.commit(commit).timestamp, UTC)
        return self._build_line(publication, number, commit, at)

    def find_newest(self, at: datetime) -> PublishedLine | None:
        """Return the newest publication as its statement or its draft describes it.

        None if neither does: a person may have merged it in another way. `at` is the time that
        it gets.
        """
        present_tree = self.repository_state.path_states.get(self.spec.path, EMPTY_PATH).tree
        # Downwards past tags and statements that point nowhere on the branch: an interrupted push
        # leaves such.
        for number in self._numbers():
            commit, trailers, publication = self._read_publication(number)
            if not commit or not (
                self._tree_at(commit) == present_tree or self._is_on_branch(commit)
            ):
                continue
            if trailers is None or publication is None:
                return None
            return self._build_line(publication, number, commit, at)
        return None

    def _build_line(
        self, publication: EarlierPublication, number: int, commit: str, at: datetime
    ) -> PublishedLine:
        tag = tag_ref(self.spec.path, number)
        return PublishedLine(
            revision=publication.revision,
            commit=publication.commit,
            digest=publication.digest,
            tree=publication.tree,
            at=at,
            merge=commit,
            tag=tag.removeprefix("refs/tags/") if tag in self.repository_state.refs else "",
            pristine=publication.pristine_tree,
        )

    def _numbers(self) -> range:  # newest first
        return range(self.repository_state.publication_numbers.get(self.spec.path, 0), 0, -1)

    def _find_commit(self, number: int) -> str:
        return self.memo.find_commit(self.reader, self.repository_state, self.spec.path, number)

    def _tree_at(self, commit: str) -> str | None:
        return self.reader.paths(commit, [self.spec.path])[self.spec.path].tree

    def _is_on_branch(self, commit: str) -> bool:
        # A tag alone proves no publication: a server crash during a push leaves only some refs.
        return self.reader.contains(self.repository_state.head, commit)

    def find_last(self, revision: str) -> EarlierPublication | None:
        """Return the last publication of a revision, as it was when it was last in force.

        The publication includes people's edits from before the next one.
        """
        untagged = self._list_by_commits() if self._lacks_commits() else ()
        publications = chain(self._list_by_numbers(), untagged)
        match = next((it for it in publications if it[0].revision == revision), None)
        if match is None:
            return None
        publication, last_commit, replaced_tree = match
        last_tree = self._tree_at(last_commit) if self.reader.has(last_commit) else None
        if last_tree == publication.tree:
            return publication
        published_lock = find_upstream_lock(self.reader, publication.tree)
        # The last commit before the next publication may not be in the mirror, or be a revert by a
        # person; the tree that the next draft was based on is the second witness.
        for tree in (last_tree, replaced_tree):
            if tree is None or tree in ("", NO_VALUE):
                continue
            lock = find_upstream_lock(self.reader, tree)
            if published_lock and lock and not is_other_state(lock, published_lock):
                return replace(publication, tree=tree)
        return publication

    def find_merge_since(self, commit: str) -> PackageStatement | None:
        """Return the trailers of the variant's draft that was merged last since a commit, if any.

        "" stands for the begin of the branch. None also where that does not descend from the commit
        any more.
        """
        for merge, trailers in self._list_merges(stop=commit):
            is_descendant = not commit or self.reader.contains(merge.oid, commit)
            return trailers if is_descendant else None
        return None

    def _lacks_commits(self) -> bool:
        """Return whether a publication has neither tag nor statement, or its commit is another's.

        Only then the branch is walked, which reads each of its commits.
        """
        # Numbers are assigned without gaps.
        numbers = self._numbers()
        newest_number = max(
            len(numbers),
            self.recorded_number,
            int(self.spec.path in self.repository_state.published_renderings),
        )
        return len({self._find_commit(number) for number in numbers} - {""}) < newest_number

    def _list_by_commits(self) -> Iterator[tuple[EarlierPublication, str, str]]:
        """Yield publications by the branch commits that merged a draft of the variant."""
        last_commit, replaced_tree = self.repository_state.head, ""
        for commit, trailers in self._list_merges():
            tree = self._tree_at(commit.oid)
            publication = self._describe_publication(tree, trailers) if tree is not None else None
            if publication is not None:
                yield publication, last_commit, replaced_tree
            last_commit, replaced_tree = _first_parent(commit), trailers.onto

    def _list_merges(self, stop: str = "") -> Iterator[tuple[Commit, PackageStatement]]:
        """Yield the branch commits down to `stop` that merged a draft of the variant."""
        for commit in walk_branch(self.reader, self.repository_state.head):
            if commit.oid == stop:
                return
            first_parent, tree = _first_parent(commit), self._tree_at(commit.oid)
            if tree is not None and not (first_parent and self._tree_at(first_parent) == tree):
                trailers = self._find_trailers(commit)
                if trailers is not None:
                    yield commit, trailers

    def _list_by_numbers(self) -> Iterator[tuple[EarlierPublication, str, str]]:
        """Yield each publication with its last commit and the tree that replaced it."""
        last_commit, replaced_tree = self.repository_state.head, ""
        for number in self._numbers():
            commit, trailers, publication = self._read_publication(number)
            if not commit:
                continue
            if publication is not None:
                yield publication, last_commit, replaced_tree
            last_commit = _first_parent(self.reader.commit(commit))
            replaced_tree = trailers.onto if trailers is not None else ""

    def _read_publication(
        self, number: int
    ) -> tuple[str, PackageStatement | None, EarlierPublication | None]:
        if not (commit := self._find_commit(number)) or not self.reader.has(commit):
            return "", None, None
        statement = self.memo.find_statement(
            self.reader, self.repository_state, self.spec.path, number
        )
        if statement is not None and (statement.merge, statement.trailers.variant) == (
            commit,
            self.spec.name,
        ):
            trailers: PackageStatement | None = statement.trailers
        else:
            trailers = self._find_trailers(self.reader.commit(commit))
        tree = self._tree_at(commit)
        publication = self._describe_publication(tree, trailers) if tree is not None else None
        return commit, trailers, publication

    def _describe_publication(
        self, tree: str, trailers: PackageStatement | None
    ) -> EarlierPublication | None:
        lock = None
        pristine = trailers.rendered if trailers is not None else ""
        if not pristine or not self.reader.has(pristine):
            lock = find_upstream_lock(self.reader, tree)
            pristine = self._find_rendering(lock) if lock is not None else ""
        if trailers is not None:
            return EarlierPublication(
                trailers.revision, trailers.commit, trailers.digest, tree, pristine
            )
        if lock is None or not pristine:
            return None  # a person's commit
        return _describe_by_lock(lock, tree, pristine)

    def _find_trailers(self, commit: Commit) -> PackageStatement | None:
        """Return the trailers of the variant's draft that a commit published, or None."""
        # A person may have fast-forwarded the branch to the draft.
        is_draft = parse_message(commit.message) is not None
        tips = (*([commit.oid] if is_draft else []), *commit.parents[1:])
        # A squash has no trailers, but the forge knows the head that it was made from. The last
        # commit of a rebase may lack what the head has.
        forge, tree = self.repository_state.forge, self._tree_at(commit.oid)
        requests = [facts.request for facts in forge.requests.values()] if forge else []
        heads = (
            it.head_commit
            for it in requests
            if it.merged_commit == commit.oid
            and self.reader.has(it.head_commit)
            and self._tree_at(it.head_commit) == tree
        )
        for tip in (*tips, *heads):
            trailers = self.memo.read_trailers(self.reader, tip).get(self.spec.name)
            if trailers is not None:
                return trailers
        return None

    def describe_drafted(self, tree: str, rendering: str) -> EarlierPublication | None:
        """Return what a package is that a person made of a drafted rendering; None without lock."""
        lock = find_upstream_lock(self.reader, rendering)
        return _describe_by_lock(lock, tree, rendering) if lock is not None else None

    def find_drafted(self, tree: str) -> str:
        """Return the newest drafted rendering of the upstream state of a package, or ""."""
        lock = find_upstream_lock(self.reader, tree)
        return self._find_rendering(lock, "drafts") if lock is not None else ""

    def _find_rendering(self, lock: UpstreamLock, kind: str = "published") -> str:
        directory = f"{kind}/{self.spec.path}"
        return find_rendering(self.reader, self.repository_state.vendor_head, directory, lock)


class HistoryReader(Value):
    """Reader of the histories of several variants, which share mirrors and statements."""

    open_reader: OpenReader
    memo: PublicationMemo = field(default_factory=PublicationMemo)

    def open(self, variant: ObservedVariant) -> PublicationHistory:
        """Return the history of a variant. Raises what `open_reader` raises."""
        tag = variant.published.tag if variant.published is not None else ""
        return PublicationHistory(
            self.open_reader(variant.repository_state.remote),
            variant.repository_state,
            variant.spec,
            self.memo,
            parse_publication_number(tag, variant.spec.path),
        )


def _first_parent(commit: Commit) -> str:
    return commit.parents[0] if commit.parents else ""


def _describe_by_lock(lock: UpstreamLock, tree: str, pristine: str) -> EarlierPublication:
    # Its inputs are not recorded, so its digest must equal no other.
    digest = sha256(f"published {pristine}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return EarlierPublication(
        locked_revision(lock, lock.directory), lock.commit, digest, tree, pristine
    )
