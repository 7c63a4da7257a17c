"""Paths that other installations have drafts at, in one repository.

The branch of a draft of one variant is named by its path. What a draft of a stage has, only its
commits say: such a branch of another installation is fetched once for each commit.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from fanout.errors import InvalidInput
from fanout.plan.observation.repository_state import RefListingRequest
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.set_reader import is_statement_for, read_packages
from fanout.selection.ref_names import drafts_prefix, is_stage_draft

_RENDERING_BRANCH_PATTERN = re.compile(r"refs/heads/fanout/([^/]+)/rendered")

DraftedPaths = Mapping[tuple[str, str], frozenset[str]]
"""Paths of stage drafts of other installations, by ref and commit."""


def find_other_installations(
    refs: Mapping[str, str], install: str, paths: Collection[str], drafted_paths: DraftedPaths
) -> dict[str, str]:
    """Return those of the paths that another installation has a draft at, with its name."""
    wanted_paths = set(paths)
    install_by_path: dict[str, str] = {}
    for other, ref in _list_drafts(refs, install):
        draft_paths = drafted_paths.get((ref, refs[ref]), frozenset())
        if not is_stage_draft(other, ref):
            draft_paths = frozenset([ref.removeprefix(drafts_prefix(other)).rpartition("/")[0]])
        install_by_path |= dict.fromkeys(draft_paths & wanted_paths, other)
    return install_by_path


def read_drafted_paths(
    git: GitStore,
    request: RefListingRequest,
    refs: Mapping[str, str],
    install: str,
    known_paths: DraftedPaths,
) -> DraftedPaths:
    """Return the paths of the stage drafts of other installations that the listing has.

    `request` is the one that the repository was listed with; `known_paths` are those of the
    pass before. A branch that cannot be fetched or read counts for nothing.
    """
    drafts = {
        (ref, refs[ref]) for other, ref in _list_drafts(refs, install) if is_stage_draft(other, ref)
    }
    new_drafts = drafts - known_paths.keys()
    paths = {key: known_paths[key] for key in drafts & known_paths.keys()}
    if not new_drafts:
        return paths
    with git.reader(request.remote) as reader:
        missing_refs = sorted(ref for ref, commit in new_drafts if not reader.has(commit))
    if missing_refs:
        patterns = (*request.mirrored_patterns, *missing_refs)
        git.list_refs([RefListingRequest(request.remote, patterns)])
    with git.reader(request.remote) as reader:
        for ref, commit in new_drafts:
            try:
                # Without the target branch, which may be another one for another installation.
                draft_paths = (
                    _read_paths(reader, ref, commit) if reader.has(commit) else frozenset()
                )
            except InvalidInput:  # it is not for this installation to say what is wrong with it
                draft_paths = frozenset()
            paths[ref, commit] = draft_paths
    return paths


def _read_paths(reader: ObjectReader, ref: str, commit: str) -> frozenset[str]:
    return frozenset(read_packages(reader, commit, lambda it: is_statement_for(ref, it)))


def _list_drafts(refs: Mapping[str, str], install: str) -> Iterator[tuple[str, str]]:
    """Yield the drafts of other installations, which are known by their rendering branches."""
    installs = {match[1] for ref in refs if (match := _RENDERING_BRANCH_PATTERN.fullmatch(ref))}
    for other in sorted(installs - {install}):
        yield from ((other, ref) for ref in refs if ref.startswith(drafts_prefix(other)))
