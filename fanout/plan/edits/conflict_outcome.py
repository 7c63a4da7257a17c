"""Outcomes of merge conflicts, read from the lines that drafts and publications have of them."""

import re
from collections.abc import Iterable, Mapping

from fanout.package.merge.merge_conflicts import ConflictChoices, MergeSide
from fanout.plan.draft_trailers import NO_VALUE
from fanout.plan.edits.merge_disputes import MergeDispute, parse_disputes, rejected_lines_of_draft
from fanout.plan.observation.repository_state import OpenDraft
from fanout.values import field

# A line of `MergeConflict.resolution`; older lines have no base, and some have no values.
_LINE = re.compile(
    r"(?P<key>[0-9a-f]{16}) (?P<place>.*): (?P<winner>upstream|local)(?P<taken> .*?)? stands,"
    r" (?P<loser>upstream|local)(?P<rejected> .*?)? not taken(?: \((?P<rest>.*?)\))?(?:;.*)?"
)
_BASE = "base "


class ConflictOutcome(MergeDispute, kw_only=True):
    """One merge conflict: its place, its values as text, and the side whose value is in force.

    `values` are by side, with the common one as `base`; a value that is not on record is left out.
    """

    is_edited: bool = False  # a commit on the draft decided it, with whatever value
    object: str = ""  # "Deployment/web"; "" for a plain file
    field_path: str = ""  # "spec.replicas"; "" for the whole object or file
    values: Mapping[str, str] = field(default_factory=dict)
    line: str = ""  # all of it in a sentence


def read_draft_outcomes(
    draft: OpenDraft, choices: ConflictChoices, undecided: int
) -> tuple[ConflictOutcome, ...]:
    """Return the conflicts of an open draft, by key.

    `undecided`: number of its conflicts that nothing decided; 0 also if a decision accepted the
    draft as a whole.
    """
    if draft.trailers.conflicts == NO_VALUE:
        return ()
    lines = {line.partition(" ")[0]: line for line in rejected_lines_of_draft(draft)}
    return tuple(
        _build_outcome(
            dispute,
            lines.get(dispute.key, ""),
            is_decided=not undecided
            or dispute.is_decided
            or dispute.key in choices.by_key
            or dispute.key in draft.settled_keys,
            is_edited=dispute.key in draft.settled_keys,
        )
        for dispute in parse_disputes(draft.trailers.conflicts)
    )


def read_published_outcomes(lines: Iterable[str]) -> tuple[ConflictOutcome, ...]:
    """Return the conflicts that the lines of a publication tell; all of them are decided."""
    matches = (_LINE.fullmatch(line) for line in lines)
    return tuple(
        _build_outcome(MergeDispute(it["key"], MergeSide(it["winner"])), it[0], is_decided=True)
        for it in matches
        if it is not None
    )


def _build_outcome(
    dispute: MergeDispute, line: str, *, is_decided: bool, is_edited: bool = False
) -> ConflictOutcome:
    match = _LINE.fullmatch(line)
    if match is None:
        return ConflictOutcome(
            key=dispute.key,
            winner=dispute.winner,
            is_decided=is_decided,
            is_edited=is_edited,
            file=dispute.file,
            line=line,
        )
    file, _, subject = match["place"].partition(": ")
    object_name, _, field_path = subject.partition(": ")
    values = {match["winner"]: match["taken"], match["loser"]: match["rejected"]}
    rest = match["rest"] or ""
    if rest.startswith(_BASE):
        values["base"] = rest.removeprefix(_BASE)
    return ConflictOutcome(
        key=dispute.key,
        winner=MergeSide(match["winner"]),
        is_decided=is_decided,
        is_edited=is_edited,
        file=file,
        object=object_name,
        field_path=field_path,
        values={side: value.strip() for side, value in values.items() if value},
        line=line,
    )
