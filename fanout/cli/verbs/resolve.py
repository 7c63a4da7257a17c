"""`fanout resolve`: decide merge conflicts of drafts by recorded Decisions."""

from collections.abc import Sequence
from typing import Any

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.text_fields import pluralize
from fanout.cli.command_errors import invalid_setting, nothing_to_do
from fanout.cli.input.options import VerbCommand
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    reason_option,
    subject_options,
    with_request,
)
from fanout.package.merge.merge_conflicts import MergeSide, Winners
from fanout.plan.drafts.next_draft import find_release_draft
from fanout.plan.edits.merge_disputes import MergeDispute, parse_disputes
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult


@click.command(cls=VerbCommand)
@subject_options
@click.option(
    "--take",
    "side_choices",
    multiple=True,
    metavar="SIDE|KEY=SIDE",
    help="Use the value of this side, upstream or local. SIDE alone decides all "
    "conflicts, and KEY=SIDE decides the conflict with this key; can be repeated.",
)
@reason_option
@with_request()
def command(request: RecordRequest, side_choices: tuple[str, ...]) -> None:
    """Resolve merge conflicts of drafts.

    Without --take, accepts the values in the drafts. `fanout diff` shows each conflict with its
    key, and the side whose value is in the draft. A decision about a conflict holds until the base,
    upstream or local value changes. A commit on the draft branch also resolves all conflicts in the
    files that the commit changes.
    """
    default_side, by_key = _parse_sides(side_choices)
    with open_record_session(request) as session:
        item = session.item
        spec = session.build_subject() | {"action": Action.RESOLVE.value, "reason": request.reason}

        def build_decisions(*, include_decided: bool) -> list[dict[str, Any]]:
            names = spec.get("variants", ())
            drafts = _find_conflicts(item, request.stage, names, include_decided=include_decided)
            return [spec | it for it in _group_choices(drafts, default_side, by_key)]

        decisions = build_decisions(include_decided=bool(side_choices))
        if not decisions:
            # Nothing is left to decide, perhaps because an earlier run of this command decided it.
            decisions = build_decisions(include_decided=True)
            if not decisions or not all(map(session.find_equal_decision, decisions)):
                conflict = "such a conflict" if by_key else "an undecided conflict"
                raise nothing_to_do(
                    f"no selected draft of {item.title} has {conflict}",
                    "run `fanout get drafts`, and `fanout diff VARIANT` for the keys",
                )
        for decision in decisions:
            drafts = pluralize(len(decision["variants"]), "draft")
            session.record_once(decision, f" for {drafts} at {decision['revision']}")
        session.print_consequences()


def _parse_sides(side_choices: Sequence[str]) -> tuple[MergeSide | None, Winners]:
    """Return the side that wins all conflicts, if one does, and the sides by conflict key."""
    default_side: MergeSide | None = None
    by_key: dict[str, MergeSide] = {}
    for text in side_choices:
        key, equals, side_name = text.rpartition("=")
        if side_name not in tuple(MergeSide) or bool(key) != bool(equals):
            raise invalid_setting(
                f"--take {text} is neither SIDE nor KEY=SIDE",
                "write --take upstream, --take local or --take KEY=local",
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
        spec, draft = variant.spec, find_release_draft(variant)
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
) -> list[dict[str, Any]]:
    """Return the decisions, each for the variants of a revision with equal choices."""
    groups: dict[tuple[str, frozenset[tuple[str, MergeSide]]], list[str]] = {}
    for variant, conflicts in drafts:
        draft = find_release_draft(variant)
        assert draft is not None, "only a draft has conflicts"
        choices = {it.key: by_key.get(it.key, default_side or it.winner) for it in conflicts}
        if by_key and default_side is None:
            choices = {key: side for key, side in choices.items() if key in by_key}
        if choices:
            key = (draft.trailers.revision, frozenset(choices.items()))
            groups.setdefault(key, []).append(variant.spec.name)
    return [
        {
            "revision": revision,
            "variants": names,
            "choices": {key: side.value for key, side in sorted(choices)},
        }
        for (revision, choices), names in sorted(groups.items(), key=lambda group: group[1])
    ]
