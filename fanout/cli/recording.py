"""What the verbs that record something share: who says it, about what, and where it is kept."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from fanout.api.meta import API_VERSION
from fanout.cli.completing import complete_policies, complete_stages
from fanout.cli.naming import refuse_unknown_stage, variant_called
from fanout.cli.start import Program
from fanout.errors import InvalidInput
from fanout.git.identity import configured_identity
from fanout.plan.book import Recorded
from fanout.plan.cases import Case
from fanout.plan.repository import Identity
from fanout.reconcile.names import book_key
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass, Report

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

policy_argument: Option = click.argument("policy", shell_complete=complete_policies)
reason_option: Option = click.option("--reason", required=True, help="Why; it is recorded.")
by_option: Option = click.option(
    "--by",
    metavar='"NAME <ADDRESS>"',
    help="Who says it; by default the author of your commits.  [FANOUT_BY]",
)


def about_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """POLICY, --stage and --variant: what a record is about; `about` makes its fields of them."""
    return policy_argument(scope_options(function))


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--stage and --variant: what of a policy a record is about."""
    stage = click.option(
        "--stage",
        metavar="STAGE",
        shell_complete=complete_stages,
        default="",
        help="The stage that it is about.",
    )
    variants = click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        help="A variant that it is about, by any of its names; may be given more than once. All, if"
        " not said.",
    )
    return stage(variants(function))


def identity(by: str | None) -> Identity:
    """Who records: --by, then FANOUT_BY, then the author that Git would write into a commit."""
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
    found = configured_identity(os.environ)
    if found is None:
        raise InvalidInput(
            "nobody is known to say this",
            reason="InvalidSetting",
            remedy='say --by "Name <address>", or configure user.name and user.email in Git',
        )
    return found


def about(item: PolicyPass, stage: str, variants: Sequence[str]) -> dict[str, Any]:
    """The fields of a record that say what it is about; names are checked."""
    refuse_unknown_stage(item, stage)
    chosen = sorted({variant_called(item, called, stage).spec.name for called in variants})
    if item.named.policy is None:
        return {"variants": [item.named.name]}
    return {
        "policy": item.named.name,
        **({"stage": stage} if stage else {}),
        **({"variants": chosen} if chosen else {}),
    }


def trees_to_see(cases: Sequence[Case], revision: str) -> list[str]:
    """The trees of the drafts of a revision that are up to date: what people can have looked at."""
    return sorted(
        {
            case.draft.tree
            for case in cases
            if case.draft is not None
            and case.draft.tree
            and case.standing
            and case.draft.trailers.revision == revision
        }
    )


def about_of(earlier: Recorded) -> dict[str, Any]:
    """The same for a record that takes back an earlier one."""
    return {
        name: earlier.spec[name] for name in ("policy", "stage", "variants") if name in earlier.spec
    }


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


def carried_out(
    program: Program, item: PolicyPass, spec: Mapping[str, Any], by: Identity, earlier: str = ""
) -> tuple[str, Report]:
    """Record a Decision and run the pass that acts on it: its name, and what came of it.

    The pass is no sweep: where there is a schedule, automation publishes nothing in it. `earlier`
    is the name of an equal decision that is on record already: nothing is recorded then.
    """
    said = {key: it for key, it in spec.items() if it}
    name = earlier or record(program, item, "Decision", said, by)
    return name, program.sweep(decided(item))


def recorded_line(name: str, about: str, *, again: bool) -> str:
    """The line that names a decision, and says whether an earlier run has recorded it."""
    return f"decision.fanout.dev/{name} {'already recorded' if again else 'recorded'}{about}\n"


def decided(item: PolicyPass) -> Mode:
    """The pass that acts on what was decided about one policy."""
    return Mode(sweep=False, only=frozenset([item.named.name]), namespace=item.named.namespace)
