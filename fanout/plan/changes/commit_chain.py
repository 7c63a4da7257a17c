"""Commits on the branch of a set: they write packages, remove packages, or put them back.

What a branch writes and removes is read back from the lines of these messages alone
(`plan/commit_statement.py`). The times of all commits come from the inputs, not from the clock:
the same inputs give the same commit ids.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from fanout.plan.changes.package_removal import PackageRemoval, join_paths
from fanout.plan.commit_statement import (
    CommitStatement,
    format_message,
    parse_message,
    state_packages,
)
from fanout.plan.edits.merge_disputes import conflict_paragraph
from fanout.plan.observation.repository_state import BranchCommit, BranchUpdate, OpenDraft, SetState
from fanout.values import Value, replace

# Each commit of a chain has a version of its own of every directory above its packages. In one
# directory with all packages these are as long as the chain is, so a chain of any number of commits
# would cost the square of that number.
PACKAGES_PER_COMMIT = 16  # so that a page of a forge shows what a commit says and merges
MAX_COMMITS = 32  # of a chain; with more packages than they take, each commit takes more

Item = TypeVar("Item")


def split_by_commit(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the items of each commit of a chain, in order; none without items."""
    size = max(PACKAGES_PER_COMMIT, -(-len(items) // MAX_COMMITS))
    for start in range(0, len(items), size):
        yield items[start : start + size]


class WrittenPackage(Value):
    """A package as a commit is to write it."""

    draft: OpenDraft
    subject: str  # of a commit that writes this package alone
    timestamp: int  # of the upstream commit; 0: not known, and not needed
    taken: tuple[str, ...] = ()  # tips of drafts whose edits it takes over, as further parents

    @property
    def source(self) -> tuple[str, str]:
        """Return the upstream revision and commit, which all packages of a commit have."""
        return self.draft.trailers.revision, self.draft.trailers.commit


def write_packages(
    ref: str, packages: Iterable[WrittenPackage], base: str, floor: int
) -> Iterator[BranchCommit]:
    """Yield a chain of commits for each upstream commit, none older than `floor`."""
    ordered = sorted(packages, key=lambda it: (*it.source, it.draft.path))
    for (revision, _), group in groupby(ordered, lambda it: it.source):
        for chunk in split_by_commit(tuple(group)):
            drafts = [it.draft for it in chunk]
            subject = f"Update {len(chunk)} packages at {revision}"
            lines = [
                f"{it.path}: {line}" if it.is_shared else line
                for it in drafts
                for line in it.rejected_lines
            ]
            trees = {it.path: it.tree for it in drafts if it.tree is not None}
            assert len(trees) == len(chunk), "a package that people took out of a draft was edited"
            yield BranchCommit(
                trees_by_path=trees,
                message=format_message(
                    chunk[0].subject if len(chunk) == 1 else subject,
                    state_packages(ref, base, {it.path: it.trailers for it in drafts}),
                    conflict_paragraph(lines),
                ),
                timestamp=max(floor, *(it.timestamp for it in chunk)),
                more_parents=tuple(dict.fromkeys(tip for it in chunk for tip in it.taken)),
            )


def remove_packages(
    packages: Sequence[PackageRemoval], statement: CommitStatement, timestamp: int
) -> Iterator[BranchCommit]:
    """Yield a chain of commits that remove packages; `statement` is without their paths."""
    for chunk in split_by_commit(packages):
        paths = tuple(it.path for it in chunk)
        lines = [f"* {it.path}: {it.reason}" if it.reason else f"* {it.path}" for it in chunk]
        yield BranchCommit(
            dropped_paths=paths,
            message=format_message(
                f"Remove {join_paths(paths)}", replace(statement, removed=paths), "\n".join(lines)
            ),
            timestamp=timestamp,
        )


def restore_packages(
    subject: str,
    statement: CommitStatement,
    trees: Mapping[str, str | None],
    timestamp: int,
    body: str = "",
) -> BranchCommit:
    """Return the commit that gives paths back what the target branch has there: tree, or nothing.

    `statement` names the packages that leave the set.
    """
    return BranchCommit(
        trees_by_path={path: tree for path, tree in trees.items() if tree is not None},
        dropped_paths=tuple(path for path, tree in trees.items() if tree is None),
        message=format_message(subject, statement, body),
        timestamp=timestamp,
    )


def continue_branch(update: BranchUpdate, present: SetState) -> BranchUpdate:
    """Return the update of a branch that the server refuses to replace.

    It begins with a commit that has the branch as a parent, and the files of the target branch. A
    forge that rebases leaves out commits with several parents, and what they change.
    """
    first = update.commits[0]
    statement = parse_message(first.message)
    assert statement is not None, "a set begins with a commit of its own"
    joint = BranchCommit(
        message=format_message(
            "Begin again from the target branch",
            replace(statement, removed=()),
            "The server does not let this branch be replaced.",
        ),
        timestamp=max(first.timestamp, present.timestamp),
        more_parents=(present.commit,),
    )
    return replace(update, commits=(joint, *update.commits))
