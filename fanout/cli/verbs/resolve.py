"""`fanout resolve`: decide merge conflicts of drafts by recorded Decisions."""

from collections.abc import Mapping
from typing import Any

import click

from fanout.api.gate_vocabulary import Action, ConflictWinner
from fanout.api.text_fields import pluralize
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import invalid_setting, nothing_to_do
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    reason_option,
    subject_options,
    with_request,
)
from fanout.package.merge.merge_conflicts import Winners
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.edits.merge_disputes import parse_disputes
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
    default_side: ConflictWinner | None = None  # wins all conflicts; None: each keeps its winner
    by_key: dict[str, ConflictWinner] = {}
    for text in side_choices:
        key, equals, side_name = text.rpartition("=")
        if side_name not in tuple(ConflictWinner) or bool(key) != bool(equals):
            raise invalid_setting(
                f"--take {text} is neither SIDE nor KEY=SIDE",
                "write --take upstream, --take local or --take KEY=local",
            )
        if key:
            by_key[key] = ConflictWinner(side_name)
        else:
            default_side = ConflictWinner(side_name)
    with open_record_session(request) as session:
        item = session.item
        spec = session.build_subject() | {"action": Action.RESOLVE.value, "reason": request.reason}
        decisions = _list_decisions(
            item, spec, default_side, by_key, include_decided=bool(side_choices)
        )
        if not decisions:
            # Nothing is left to decide, perhaps because an earlier run of this command decided it.
            decisions = _list_decisions(item, spec, default_side, by_key, include_decided=True)
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


def _list_decisions(
    item: PolicyResult,
    spec: Mapping[str, Any],
    default_side: ConflictWinner | None,
    by_key: Winners,
    *,
    include_decided: bool,
) -> list[dict[str, Any]]:
    """Return the decisions about undecided conflicts, or about all, by names of their variants.

    Drafts of a revision with equal choices are decided together.
    """
    undecided = {
        variant.name
        for variant in (item.facts.variants if item.facts else ())
        if variant.draft is not None and variant.draft.conflict_count
    }
    stage, names = spec.get("stage", ""), spec.get("variants", ())
    groups: dict[tuple[str, frozenset[tuple[str, ConflictWinner]]], list[str]] = {}
    for variant in item.variants:
        name, draft = variant.spec.name, find_release_draft(variant)
        is_selected = stage in ("", variant.spec.stage) and (not names or name in names)
        if not is_selected or draft is None or not (include_decided or name in undecided):
            continue
        choices = {
            it.key: by_key.get(it.key, default_side or it.winner)
            for it in parse_disputes(draft.trailers.conflicts)
            if it.key not in draft.settled_keys
            and (it.key in by_key or not by_key or default_side is not None)
        }
        if choices:
            group = (draft.trailers.revision, frozenset(choices.items()))
            groups.setdefault(group, []).append(name)
    return [
        {
            **spec,
            "revision": revision,
            "variants": variants,
            "choices": {key: side.value for key, side in sorted(choices)},
        }
        for (revision, choices), variants in sorted(groups.items(), key=lambda group: group[1])
    ]
