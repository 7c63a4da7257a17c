"""What a shell offers for an argument: nouns, and names that files declare.

Only files are read, and of those only the ones that declare something of ours: a completion must
answer at once, and never write, so no repository is asked and no template is evaluated. Variants
that a policy makes are therefore not offered.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from fanout.api.meta import GROUP
from fanout.cli.nouns import ALIASES, NOUNS, RECORDS
from fanout.cluster.declared import Declared
from fanout.cluster.discovery import discover
from fanout.cluster.files import FileCluster

_MOST = 4_000_000  # bytes of declarations; nobody waits for more


def complete_nouns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """What can be listed."""
    return _beginning(NOUNS, incomplete)


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the noun that was given before."""
    what = str(ctx.params.get("what") or "").lower()
    declared = _declared(ctx)
    match ALIASES.get(what, what):
        case "policies":
            return _beginning((it.metadata.name for it in declared.policies), incomplete)
        case "repositories":
            return _beginning((it.metadata.name for it in declared.repositories), incomplete)
        case "variants" | "drafts":
            return _beginning((it.metadata.name for it in declared.variants), incomplete)
        case noun if noun in RECORDS:
            return complete_policies(ctx, param, incomplete)
        case "stages":
            return _beginning(_stages(declared), incomplete)
        case _:
            return []


def complete_policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Policies, and variants that were written by hand."""
    declared = _declared(ctx)
    both = (*declared.policies, *declared.variants)
    return _beginning((item.metadata.name for item in both), incomplete)


def complete_promotions(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """PromotionPolicies."""
    return _beginning((it.metadata.name for it in _declared(ctx).promotions), incomplete)


def complete_stages(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Stages of the policy that was given before, or of all."""
    said = ctx.params.get("policy")
    found = (
        stage.name
        for policy in _declared(ctx).policies
        if said in (None, policy.metadata.name)
        for stage in policy.spec.stages
    )
    return _beginning(found, incomplete)


def complete_subjects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What can be explained: a policy, and behind a slash its stages."""
    if "/" in incomplete:
        return _beginning(_stages(_declared(ctx)), incomplete)
    return complete_policies(ctx, param, incomplete)


def _stages(declared: Declared) -> Iterator[str]:
    for policy in declared.policies:
        for stage in policy.spec.stages:
            yield f"{policy.metadata.name}/{stage.name}"


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _declared(ctx: click.Context) -> Declared:
    """What the files of `-f` declare, wherever on the line it stands."""
    said: list[Any] = []
    context: click.Context | None = ctx
    while context is not None:
        said += context.params.get("files") or ()
        context = context.parent
    said = said or os.environ.get("FANOUT_FILES", "").split(os.pathsep)
    found = discover([Path(name) for name in said if name]).files
    return FileCluster([path for path in found if _declares(path)]).read()


def _declares(path: Path) -> bool:
    try:
        return path.stat().st_size < _MOST and f"{GROUP}/".encode() in path.read_bytes()
    except OSError:
        return False
