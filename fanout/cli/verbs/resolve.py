"""`fanout resolve`: the conflicts of drafts are decided."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fanout.cli.naming import judged
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about,
    about_options,
    by_option,
    identity,
    reason_option,
    record,
    recorded_line,
)
from fanout.cli.repeated import decided_before
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput
from fanout.gates.wording import counted
from fanout.package.merge.conflicts import Side, Winners
from fanout.plan.cases import Case
from fanout.plan.disputes import RESOLVE, Dispute, read
from fanout.plan.repository import Identity
from fanout.reconcile.report import PolicyPass

_Groups = dict[tuple[str, frozenset[tuple[str, Side]]], list[str]]


@click.command()
@about_options
@click.option(
    "--take",
    "taken",
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
    taken: tuple[str, ...],
    reason: str,
    by: str | None,
) -> None:
    """Decide the conflicts of drafts.

    By default as they stand. `fanout diff` shows them with their keys, and whose value stands.
    What is decided holds until one of the three values changes. A commit on a draft decides the
    conflicts of the files that it changes, and otherwise if need be.
    """
    who = identity(by)
    everywhere, by_key = _read(taken)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, stage, variants)
        asked = _disputed(item, stage, spec.get("variants", ()), decided=bool(taken))
        groups = _groups(asked, everywhere, by_key)
        if not groups:
            decided = _disputed(item, stage, spec.get("variants", ()), decided=True)
            again = _recorded(item, _groups(decided, everywhere, by_key), spec, reason, who)
            for line in again:
                write(line)
            if again:
                return
            raise InvalidInput(
                f"no draft of {item.title} that is meant has such a conflict"
                if by_key
                else f"no draft of {item.title} that is meant has an undecided conflict",
                reason="NothingToDo",
                remedy="see `fanout get drafts`, and `fanout diff` for the keys",
            )
        for (revision, choices), names in sorted(groups.items(), key=lambda group: group[1]):
            decision = spec | _decision(revision, choices, names, reason)
            earlier = decided_before(item, decision, who, settings.now())
            name = earlier.name if earlier else record(program, item, "Decision", decision, who)
            about_them = f" for {counted(len(names), 'draft')} at {revision}"
            write(recorded_line(name, about_them, again=earlier is not None))


def _decision(
    revision: str, choices: frozenset[tuple[str, Side]], names: Sequence[str], reason: str
) -> dict[str, Any]:
    return {
        "action": RESOLVE,
        "revision": revision,
        "variants": list(names),
        "choices": {key: side.value for key, side in sorted(choices)},
        "reason": reason,
    }


def _recorded(
    item: PolicyPass, groups: _Groups, spec: dict[str, Any], reason: str, who: Identity
) -> list[str]:
    """Return a line for each of the decisions, if an earlier run has recorded them all."""
    assert item.facts is not None, "a policy that is judged has its facts"
    lines = []
    for (revision, choices), names in sorted(groups.items(), key=lambda group: group[1]):
        decision = spec | _decision(revision, choices, names, reason)
        found = decided_before(item, decision, who, item.facts.now)
        if found is None:
            return []
        about_them = f" for {counted(len(names), 'draft')} at {revision}"
        lines.append(recorded_line(found.name, about_them, again=True))
    return lines


def _read(taken: Sequence[str]) -> tuple[Side | None, Winners]:
    """The side for all conflicts, None where each keeps its winner, and those for some of them."""
    everywhere: Side | None = None
    by_key: dict[str, Side] = {}
    for text in taken:
        key, equals, word = text.rpartition("=")
        if word not in tuple(Side) or bool(key) != bool(equals):
            raise InvalidInput(
                f"--take {text} is neither a side nor a key with one",
                reason="InvalidSetting",
                remedy="write --take upstream, --take local or --take KEY=local",
            )
        if key:
            by_key[key] = Side(word)
        else:
            everywhere = Side(word)
    return everywhere, by_key


def _disputed(
    item: PolicyPass, stage: str, variants: Sequence[str], *, decided: bool
) -> list[tuple[Case, list[Dispute]]]:
    """The drafts that are meant, with their conflicts: those undecided, or with `decided` all."""
    found = []
    undecided = {
        variant.name
        for variant in (item.facts.variants if item.facts else ())
        if variant.draft is not None and variant.draft.disputed
    }
    for case in item.cases:
        spec, draft = case.spec, case.draft
        meant = stage in ("", spec.stage) and (not variants or spec.name in variants)
        if not meant or draft is None:
            continue
        disputes = [it for it in read(draft.trailers.conflicts) if it.key not in draft.settled]
        if disputes and (decided or spec.name in undecided):
            found.append((case, disputes))
    return found


def _groups(
    asked: Sequence[tuple[Case, list[Dispute]]], everywhere: Side | None, by_key: Winners
) -> _Groups:
    """Variants by revision and choices: what is recorded as one decision."""
    groups: _Groups = {}
    for case, disputes in asked:
        assert case.draft is not None, "it has disputes"
        choices = _choices(disputes, everywhere, by_key)
        if choices:
            key = (case.draft.trailers.revision, frozenset(choices.items()))
            groups.setdefault(key, []).append(case.spec.name)
    return groups


def _choices(
    disputes: Sequence[Dispute], everywhere: Side | None, by_key: Winners
) -> Mapping[str, Side]:
    if by_key and everywhere is None:
        return {it.key: by_key[it.key] for it in disputes if it.key in by_key}
    return {it.key: by_key.get(it.key, everywhere or it.winner) for it in disputes}
