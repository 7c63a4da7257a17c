"""What people changed in published packages or lost beside them, in words.

None of it holds anything by itself; it is told before the next revision meets it.
"""

from collections.abc import Iterable, Iterator

from fanout.api.reasons import Reason
from fanout.gates.wording import counted
from fanout.plan.cases import Case
from fanout.plan.soundness import remedied
from fanout.selection.naming import install_of, vendor_ref


def edited(case: Case) -> str:
    """That the published package has people's edits in it."""
    return f"{case.home.repository}:{case.home.path} has edits of people, which drafts take over"


def broken(case: Case) -> str:
    """What people have broken in the published package, with file and line."""
    first, *more = case.faults
    others = f" (and {len(more)} more)" if more else ""
    apart = "" if first.where.file else " "
    return f"{case.home.repository}:{apart}{remedied(first)} on the branch{others}"


def tag_trouble(case: Case) -> tuple[Reason, str] | None:
    """That the tag of what is published is gone or points elsewhere, and what to do; None: neither.

    Told of published variants alone: a tag is made by the push that publishes.
    """
    published, view = case.published, case.home.view
    if published is None or case.unrecorded or view.failure is not None:
        return None
    if not (published.tag and published.merge):
        return None
    ref = f"refs/tags/{published.tag}"
    found = view.refs.get(ref, "")
    if found == published.merge:
        return None
    what = f"tag {published.tag}"
    put_back = f"`git push {view.remote.url} {published.merge}:{ref}`"
    if found:
        return Reason.TAG_MOVED, (
            f"{what} of {case.home.repository} points to {found[:12]}, and {published.revision} was"
            f" published with it at {published.merge}; delete it and put it back: {put_back}"
        )
    return Reason.TAG_MISSING, (
        f"{what} is gone from {case.home.repository}, and {published.revision} was published with"
        f" it; put it back: {put_back}"
    )


def draft_left(case: Case) -> str:
    """That the branch of a published draft is still there, and what to do; "" where it is not."""
    if case.draft is None or case.draft.carries or not case.in_force:
        return ""
    branch = case.ref.removeprefix("refs/heads/")
    return (
        f"branch {branch} of {case.spec.repository} has a draft that is published, and is still"
        " there; each sweep tries to remove it. If the server refuses deletions, let its owner"
        " allow them below drafts/, or remove the branch by hand"
    )


def lost_renderings(cases: Iterable[Case]) -> Iterator[tuple[str, str]]:
    """Repositories in which the renderings of published packages are gone, and what it means."""
    places: dict[str, list[Case]] = {}
    for case in cases:
        if _lost(case):
            places.setdefault(case.home.repository, []).append(case)
    for repository, those in places.items():
        branch = vendor_ref(install_of(those[0].ref)).removeprefix("refs/heads/")
        merged = sum(case.baseless for case in those)
        held = (
            f"; {merged} in which people's edits were merged will be held (BaseMissing) when a"
            " draft is due"
            if merged
            else ""
        )
        sentence = (
            f"branch {branch} does not have the renderings of"
            f" {counted(len(those), 'published package')} any more, from which people's edits are"
            f" told; restore the branch: push it from a clone that has it{held}"
        )
        yield repository, sentence


def _lost(case: Case) -> bool:
    return (
        case.published is not None
        and not case.unrecorded
        and case.own.tree is not None
        and case.home.view.failure is None
        and case.vendored is None
    )
