"""What the verbs that record something share: who says it, about what, and where it is kept."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from fanout.api.meta import API_VERSION
from fanout.cli.start import Program
from fanout.errors import InvalidInput
from fanout.git.identity import configured_identity
from fanout.plan.repository import Identity
from fanout.reconcile.passes import Mode, book_key
from fanout.reconcile.report import PolicyPass

by_option = click.option(
    "--by",
    metavar='"NAME <ADDRESS>"',
    help="Who says it; by default as Git is configured.  [FANOUT_BY]",
)


def identity(by: str | None) -> Identity:
    """Who records: --by, then FANOUT_BY, then Git's user.name and user.email."""
    said = by or os.environ.get("FANOUT_BY")
    if said:
        name, bracket, rest = said.partition("<")
        if not bracket or not rest.endswith(">") or not name.strip() or not rest[:-1].strip():
            raise InvalidInput(
                f"{said!r} names nobody",
                reason="InvalidSetting",
                remedy='write --by "Name <address>"',
            )
        return Identity(name.strip(), rest[:-1].strip())
    found = configured_identity()
    if found is None:
        raise InvalidInput(
            "nobody is known to say this",
            reason="InvalidSetting",
            remedy='say --by "Name <address>", or configure user.name and user.email in Git',
        )
    return found


def judged(program: Program, policy: str) -> PolicyPass:
    """The policy (or hand-written variant) of this name as it stands. Raises InvalidInput."""
    mode = Mode(only=frozenset([policy]), namespace=program.settings.namespace)
    found = program.observe(mode).policies
    if len(found) != 1:
        problem = "there is no policy" if not found else "several namespaces have a policy"
        raise InvalidInput(
            f"{problem} {policy}",
            reason="NotFound",
            remedy="see `fanout get policies`" if not found else "name one with -n",
        )
    if found[0].problem is not None:
        raise found[0].problem
    return found[0]


def about(item: PolicyPass, stage: str, variants: Sequence[str]) -> dict[str, Any]:
    """The fields of a record that say what it is about; names are checked."""
    known = {name for case in item.cases for name in names_of(item, case.spec.name)}
    for variant in variants:
        if variant not in known:
            raise InvalidInput(
                f"{item.title} has no variant {variant}",
                reason="NotFound",
                remedy="see `fanout get variants`",
            )
    chosen = sorted({_name(item, variant) for variant in variants})
    if item.named.policy is None:
        return {"variants": [item.named.name]}
    stages = [rule.name for rule in item.facts.stages] if item.facts else []
    if stage and stage not in stages:
        raise InvalidInput(
            f"{item.title} has no stage {stage}",
            reason="NotFound",
            remedy=f"choose one of: {', '.join(stages)}",
        )
    return {
        "policy": item.named.name,
        **({"stage": stage} if stage else {}),
        **({"variants": chosen} if chosen else {}),
    }


def names_of(item: PolicyPass, variant: str) -> tuple[str, ...]:
    """All that a variant may be called on the command line."""
    for case in item.cases:
        spec = case.spec
        if spec.name == variant:
            return (spec.name, spec.target, f"{spec.repository}:{spec.path}", spec.path)
    return ()


def _name(item: PolicyPass, called: str) -> str:
    for case in item.cases:
        if called in names_of(item, case.spec.name):
            return case.spec.name
    return called


def record(
    program: Program, item: PolicyPass, kind: str, spec: Mapping[str, Any], by: Identity
) -> str:
    """Append one record; answers its name."""
    body = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"namespace": item.named.namespace},
        "spec": dict(spec),
    }
    key = book_key(item.named)
    return program.world.records.append(key, [body], by, program.settings.now())[0]
