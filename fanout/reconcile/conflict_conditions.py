"""What a variant's conditions say of merge conflicts: those undecided, and the values not taken."""

from collections.abc import Iterator, Sequence

from fanout.api.reasons import Reason
from fanout.gates.wording import counted
from fanout.plan.cases import Case
from fanout.plan.rejected import bounded, of_draft


def conflict_conditions(case: Case, undecided: int) -> Iterator[tuple[str, Reason, str]]:
    """Yield type, reason and message of each condition about merge conflicts.

    `undecided` is how many conflicts of the open draft nobody has decided. Values that were decided
    against are told of the draft and of what is published.
    """
    parts: list[str] = []
    lines = of_draft(case.draft) if case.draft is not None else ()
    if case.draft is not None and lines:
        about = f"in the draft of {case.draft.trailers.revision}"
        if undecided:
            told = f"{counted(undecided, 'undecided merge conflict')} {about}"
            yield "MergeConflict", Reason.MERGE_CONFLICT, _list(told, lines)
        else:
            parts.append(_list(f"decided merge conflicts {about}", lines))
    if case.published is not None and case.published.rejected:
        about = f"merge conflicts decided in {case.published.revision}, which is published"
        parts.append(_list(about, case.published.rejected))
    if parts:
        yield "ConflictsDecided", Reason.CONFLICT_DECIDED, "\n".join(parts)


def _list(about: str, lines: Sequence[str]) -> str:
    return "\n".join((f"{about}:", *bounded(lines)))
