"""`fanout resolve`: decide merge conflicts of drafts by recorded Decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fanout.cli.input.name_lookup import find_evaluated_policy
from fanout.cli.input.options import with_settings
from fanout.cli.output.printer import write_stdout
from fanout.cli.recording.record_options import (
    append_record,
    build_subject,
    by_option,
    find_equal_decision,
    format_recorded,
    reason_option,
    resolve_author,
    subject_options,
)
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.errors import InvalidInput
from fanout.gates.gate_wording import format_count
from fanout.package.merge.merge_conflicts import MergeSide, Winners
from fanout.plan.edits.merge_disputes import RESOLVE, MergeDispute, parse_disputes
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult

_Groups = dict[tuple[str, frozenset[tuple[str, MergeSide]]], list[str]]


@click.command()
@subject_options
@click.option(
    "--take",
    "side_choices",
    multiple=True,
    metavar="SIDE|KEY=SIDE",
    help="Whose value wins, upstream's or the local one: in all conflicts, or in that of this key.",
)
@reason_option
@by_option
@with_settings()
def command(
    settings: Settings,
    policy: str,
    stage: str,
    variants: tuple[str, ...],
    side_choices: tuple[str, ...],
    reason: str,
    by: str | None,
) -> None:
    """Decide the conflicts of drafts.

    By default as they stand. `fanout diff` shows them with their keys, and whose value stands.
    What is decided holds until one of the three values changes. A commit on a draft decides the
    conflicts of the files that it changes, and otherwise if need be.
    """
    author = resolve_author(by)
    default_side, by_key = _parse_sides(side_choices)
    with open_program(settings) as program:
        item = find_evaluated_policy(program, policy)
        spec = build_subject(item, stage, variants)
        drafts = _find_conflicts(
            item, stage, spec.get("variants", ()), include_decided=bool(side_choices)
        )
        groups = _group_choices(drafts, default_side, by_key)
        if not groups:
            # Nothing is left to decide, perhaps because an earlier run of this command decided it.
            all_drafts = _find_conflicts(
                item, stage, spec.get("variants", ()), include_decided=True
            )
            earlier_lines = _find_recorded(
                item, _group_choices(all_drafts, default_side, by_key), spec, reason, author
            )
            for line in earlier_lines:
                write_stdout(line)
            if earlier_lines:
                return
            raise InvalidInput(
                f"no draft of {item.title} that is meant has such a conflict"
                if by_key
                else f"no draft of {item.title} that is meant has an undecided conflict",
                reason="NothingToDo",
                remedy="see `fanout get drafts`, and `fanout diff` for the keys",
            )
        for (revision, choices), names in sorted(groups.items(), key=lambda group: group[1]):
            decision = spec | _build_decision(revision, choices, names, reason)
            earlier = find_equal_decision(item, decision, author, settings.now())
            name = (
                earlier.name
                if earlier
                else append_record(program, item, "Decision", decision, author)
            )
            subject = f" for {format_count(len(names), 'draft')} at {revision}"
            write_stdout(format_recorded(name, subject, is_repeated=earlier is not None))


def _build_decision(
    revision: str, choices: frozenset[tuple[str, MergeSide]], names: Sequence[str], reason: str
) -> dict[str, Any]:
    return {
        "action": RESOLVE,
        "revision": revision,
        "variants": list(names),
        "choices": {key: side.value for key, side in sorted(choices)},
        "reason": reason,
    }


def _find_recorded(
    item: PolicyResult, groups: _Groups, spec: dict[str, Any], reason: str, author: CommitIdentity
) -> list[str]:
    """Return a line per decision if an earlier run recorded all of them, else none."""
    assert item.facts is not None, "a policy that is judged has its facts"
    lines = []
    for (revision, choices), names in sorted(groups.items(), key=lambda group: group[1]):
        decision = spec | _build_decision(revision, choices, names, reason)
        earlier = find_equal_decision(item, decision, author, item.facts.now)
        if earlier is None:
            return []
        subject = f" for {format_count(len(names), 'draft')} at {revision}"
        lines.append(format_recorded(earlier.name, subject, is_repeated=True))
    return lines


def _parse_sides(side_choices: Sequence[str]) -> tuple[MergeSide | None, Winners]:
    """Return the side that wins all conflicts, and the sides by conflict key.

    The first is None if each conflict keeps its winner.
    """
    default_side: MergeSide | None = None
    by_key: dict[str, MergeSide] = {}
    for text in side_choices:
        key, equals, side_name = text.rpartition("=")
        if side_name not in tuple(MergeSide) or bool(key) != bool(equals):
            raise InvalidInput(
                f"--take {text} is neither a side nor a key with one",
                reason="InvalidSetting",
                remedy="write --take upstream, --take local or --take KEY=local",
            )
        if key:
            by_key[key] = MergeSide(side_name)
        else:
            default_side = MergeSide(side_name)
    return default_side, by_key


def _find_conflicts(
    item: PolicyResult, stage: str, variants: Sequence[str], *, include_decided: bool
) -> list[tuple[RenderedVariant, list[MergeDispute]]]:
    """Return the selected drafts with their undecided conflicts, or with all of them."""
    drafts = []
    undecided = {
        variant.name
        for variant in (item.facts.variants if item.facts else ())
        if variant.draft is not None and variant.draft.conflict_count
    }
    for variant in item.variants:
        spec, draft = variant.spec, variant.observed.draft
        is_selected = stage in ("", spec.stage) and (not variants or spec.name in variants)
        if not is_selected or draft is None:
            continue
        conflicts = [
            it
            for it in parse_disputes(draft.trailers.conflicts)
            if it.key not in draft.settled_keys
        ]
        if conflicts and (include_decided or spec.name in undecided):
            drafts.append((variant, conflicts))
    return drafts


def _group_choices(
    drafts: Sequence[tuple[RenderedVariant, list[MergeDispute]]],
    default_side: MergeSide | None,
    by_key: Winners,
) -> _Groups:
    """Return variant names by revision and choices.

    Each group is recorded as one decision.
    """
    groups: _Groups = {}
    for variant, conflicts in drafts:
        assert variant.observed.draft is not None, "it has disputes"
        choices = _choose_sides(conflicts, default_side, by_key)
        if choices:
            key = (variant.observed.draft.trailers.revision, frozenset(choices.items()))
            groups.setdefault(key, []).append(variant.spec.name)
    return groups


def _choose_sides(
    conflicts: Sequence[MergeDispute], default_side: MergeSide | None, by_key: Winners
) -> Mapping[str, MergeSide]:
    if by_key and default_side is None:
        return {it.key: by_key[it.key] for it in conflicts if it.key in by_key}
    return {it.key: by_key.get(it.key, default_side or it.winner) for it in conflicts}
