"""Merge disputes of a draft: values changed on both sides, winners, rejected values.

A draft commit lists its disputes by the keys that the merge gives them: the same place and the same
three values have the same key. So a decision holds for later revisions until one of the values
changes. The commit also has a line for each rejected value; these lines go into the message of the
publication and the status of the variant, so that nobody has to merge again to read them. They show
no value of a Secret (docs/concepts/merge-conflicts.md). The outcomes of conflicts are read from
them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

from fanout.api.gate_vocabulary import Action, ConflictWinner
from fanout.api.record_objects import DecisionSpec
from fanout.api.text_fields import pluralize
from fanout.control_characters import escape_unprintable
from fanout.package.merge.merge_conflicts import ConflictChoices, MergeConflict, Winners
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.commit_text import disarm_references, restore_references
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.records.policy_records import RecordEntry
from fanout.values import Value, field, replace

FilesByPath = Mapping[str, object]  # content by path; equal values mean no change

NO_DISPUTES = "none"


class MergeDispute(Value):
    """One value that both sides changed, and the side that wins."""

    key: str
    winner: ConflictWinner
    is_decided: bool = False
    file: str = ""  # in the package; "" if not recorded


def build_disputes(
    conflicts: Iterable[MergeConflict], settled: Iterable[str]
) -> tuple[MergeDispute, ...]:
    """Build the disputes of a merge, by key; `settled` are keys decided by commits."""
    already_settled = frozenset(settled)
    by_key = {
        conflict.key: MergeDispute(
            conflict.key,
            conflict.winner,
            conflict.is_decided or conflict.key in already_settled,
            conflict.where.file,
        )
        for conflict in conflicts
    }
    return tuple(by_key[key] for key in sorted(by_key))


def format_disputes(disputes: Iterable[MergeDispute]) -> str:
    """Format disputes for a trailer: `key=winner`, or `key=winner?@file` if undecided."""
    words: list[str] = []
    for it in disputes:
        file = f"@{quote(it.file)}" if it.file else ""
        words.append(f"{it.key}={it.winner}" if it.is_decided else f"{it.key}={it.winner}?{file}")
    return " ".join(words) or NO_DISPUTES


def parse_disputes(text: str) -> tuple[MergeDispute, ...]:
    """Parse disputes from a trailer's value.

    Text that is not understood becomes an undecided dispute (fail closed).
    """
    disputes: list[MergeDispute] = []
    for word in text.split():
        key, _, outcome = word.partition("=")
        winner, _, file = outcome.partition("@")
        if (side := winner.removesuffix("?")) in tuple(ConflictWinner):
            is_decided = not winner.endswith("?")
            disputes.append(MergeDispute(key, ConflictWinner(side), is_decided, unquote(file)))
        elif word != NO_DISPUTES:
            disputes.append(MergeDispute(word, ConflictWinner.UPSTREAM))
    return tuple(disputes)


def settled_keys(
    disputes: Iterable[MergeDispute], written_files: FilesByPath, tip_files: FilesByPath
) -> frozenset[str]:
    """Return the keys of disputes that commits on a draft settled.

    `written_files` are those of fanout's commit, `tip_files` those of the draft's tip. A dispute
    about a file that is in neither, such as one that moved, is settled by any commit.
    """
    paths = written_files.keys() | tip_files.keys()
    changed = {path for path in paths if written_files.get(path) != tip_files.get(path)}
    return frozenset(it.key for it in disputes if it.file in changed or it.file not in paths)


def winners_of_variant(resolutions: Iterable[DecisionSpec], stage: str, variant: str) -> Winners:
    """Return the winners chosen for a variant, by key; the latest decision counts."""
    choices: dict[str, ConflictWinner] = {}
    for resolution in resolutions:
        if covers(resolution, stage, variant):
            choices |= resolution.choices
    return choices


def covers(resolution: DecisionSpec, stage: str, variant: str) -> bool:
    """Return whether a Resolve covers the variant."""
    names = resolution.variants
    return resolution.stage in ("", stage) and (not names or variant in names)


def read_resolutions(entries: Iterable[RecordEntry]) -> tuple[DecisionSpec, ...]:
    """Return the Resolve decisions among the record entries, in record order.

    Without winners one accepts the drafts of its revision as they are.
    """
    specs = (it.spec for it in entries if it.action is Action.RESOLVE)
    return tuple(it for it in specs if isinstance(it, DecisionSpec))


CONFLICTS_HEADING: Final = "Merge conflicts:"
_BULLET: Final = "* "
_MAX_LINES: Final = 50
_MAX_CHARACTERS: Final = 8000


def rejected_lines(conflicts: Iterable[MergeConflict]) -> tuple[str, ...]:
    """Return one line per conflict: key, place, value in force, rejected value.

    Two merges of one draft can meet the same conflict; it has one line.
    """
    # A line break in a file name would otherwise start a new line of the message, or a trailer.
    lines = {it.key: f"{it.key} {escape_unprintable(it.resolution)}" for it in conflicts}
    return tuple(lines.values())


def conflict_paragraph(lines: Sequence[str]) -> str:
    """Return the paragraph of a commit message that lists the lines, or "" without lines.

    It is cut at a line boundary, and a last line counts the omitted ones.
    """
    shown = "".join(f"{_BULLET}{line}\n" for line in limit_lines(lines))
    return disarm_references(f"{CONFLICTS_HEADING}\n{shown}") if lines else ""


def limit_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return as many lines as may be shown, with a last line that counts the omitted ones."""
    shown: list[str] = []
    characters = 0
    for line in lines[:_MAX_LINES]:
        characters += len(line) + 1
        if characters > _MAX_CHARACTERS:
            break
        shown.append(line)
    omitted = len(lines) - len(shown)
    return (*shown, f"and {pluralize(omitted, 'more conflict')}") if omitted else tuple(shown)


def parse_conflict_paragraph(message: str) -> tuple[str, ...]:
    """Return the lines that `conflict_paragraph` wrote into a message."""
    for part in restore_references(message).split("\n\n"):
        heading, *lines = part.strip("\n").split("\n")
        if heading == CONFLICTS_HEADING:
            return tuple(line.removeprefix(_BULLET) for line in lines)
    return ()


def rejected_lines_of_draft(draft: OpenDraft) -> tuple[str, ...]:
    """Return the lines of an open draft, marking those settled by a later commit.

    For drafts of older versions of fanout, only files and winners are available.
    """
    if draft.trailers.conflicts == NO_VALUE:
        return ()
    lines = draft.rejected_lines or tuple(
        f"{it.key}{f' {escape_unprintable(it.file)}:' if it.file else ''} {it.winner} stands"
        for it in parse_disputes(draft.trailers.conflicts)
    )
    return tuple(
        f"{line}; a commit on the draft has decided it since"
        if line.partition(" ")[0] in draft.settled_keys
        else line
        for line in lines
    )


# A line of `MergeConflict.resolution`; older lines have no base, and some have no values.
_CONFLICT_LINE = re.compile(
    r"(?P<key>[0-9a-f]{16}) (?P<place>.*): (?P<winner>upstream|local)(?P<taken> .*?)? stands,"
    r" (?P<loser>upstream|local)(?P<rejected> .*?)? not taken(?: \((?P<rest>.*?)\))?(?:;.*)?"
)
_BASE_PREFIX = "base "


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
    matches = (_CONFLICT_LINE.fullmatch(line) for line in lines)
    return tuple(
        _build_outcome(
            MergeDispute(it["key"], ConflictWinner(it["winner"])), it[0], is_decided=True
        )
        for it in matches
        if it is not None
    )


def _build_outcome(
    dispute: MergeDispute, line: str, *, is_decided: bool, is_edited: bool = False
) -> ConflictOutcome:
    outcome = ConflictOutcome(
        key=dispute.key,
        winner=dispute.winner,
        is_decided=is_decided,
        is_edited=is_edited,
        file=dispute.file,
        line=line,
    )
    if (match := _CONFLICT_LINE.fullmatch(line)) is None:
        return outcome
    file, _, subject = match["place"].partition(": ")
    object_name, _, field_path = subject.partition(": ")
    values = {match["winner"]: match["taken"], match["loser"]: match["rejected"]}
    rest = match["rest"] or ""
    if rest.startswith(_BASE_PREFIX):
        values["base"] = rest.removeprefix(_BASE_PREFIX)
    return replace(
        outcome,
        winner=ConflictWinner(match["winner"]),
        file=file,
        object=object_name,
        field_path=field_path,
        values={side: value.strip() for side, value in values.items() if value},
    )
