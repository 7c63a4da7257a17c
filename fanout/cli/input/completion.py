"""Shell completion of arguments: resource types, names that files declare, and observed names.

Only files are read, and of those only the ones that declare a fanout object: a
completion must answer at once, and never write, so no repository is read and no
template is evaluated. Variants of policies, and revisions, are those of the last pass, which leaves
them in a file of the state directory; without it they are not offered. An error gives no names: a
shell would print it into the line that is being typed.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import click

from fanout.api.object_meta import GROUP
from fanout.api.stages import Stage
from fanout.cli.completion_index import read_index
from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_discovery import ManifestDiscovery
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError

STATE_TYPES = ("policies", "variants", "stages", "targets", "repositories", "drafts", "conflicts")
RECORD_TYPES = ("records", "evidence", "approvals", "decisions", "publications")
RESOURCE_TYPES = (*STATE_TYPES, *RECORD_TYPES)

ALIASES = {
    "policy": "policies",
    "upol": "policies",
    "upstreampolicy": "policies",
    "upstreampolicies": "policies",
    "variant": "variants",
    "pvar": "variants",
    "packagevariant": "variants",
    "packagevariants": "variants",
    "stage": "stages",
    "target": "targets",
    "repository": "repositories",
    "frepo": "repositories",
    "draft": "drafts",
    "conflict": "conflicts",
    "record": "records",
    "evidences": "evidence",
    "evid": "evidence",
    "approval": "approvals",
    "appr": "approvals",
    "decision": "decisions",
    "deci": "decisions",
    "publication": "publications",
}

_SIZE_LIMIT = 4_000_000  # bytes of declarations; more would take too long for a completion


def complete_resource_types(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete the resource type of `fanout get`; its other names where no type begins so."""
    return _matching(RESOURCE_TYPES, incomplete) or _matching(ALIASES, incomplete)


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of the resource type that was given before."""
    typed = str(ctx.params.get("resource_type") or "").lower()
    declared = _read_declared(ctx)
    match ALIASES.get(typed, typed):
        case "policies":
            return _matching((it.metadata.name for it in declared.policies), incomplete)
        case "repositories":
            return _matching((it.metadata.name for it in declared.repositories), incomplete)
        case "variants" | "drafts" | "conflicts":
            by_hand = [it.metadata.name for it in declared.variants]
            return _matching([*by_hand, *_list_variants(ctx, incomplete)], incomplete)
        case "targets":
            return _matching(_list_variants(ctx, incomplete), incomplete)
        case record_type if record_type in RECORD_TYPES:
            return complete_policies(ctx, param, incomplete)
        case "stages":
            return _matching(_policy_stages(declared), incomplete)
        case _:
            return []


def complete_variants(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete variants, of the policy and stage that were given before if there are any."""
    by_hand = [it.metadata.name for it in _read_declared(ctx).variants]
    names = [*_list_variants(ctx, incomplete), *([] if _typed_policy(ctx) else by_hand)]
    return _matching(names, incomplete)


def _list_variants(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Yield what variants may be called: by target, and once something is typed by name too."""
    typed_policy, stage = _typed_policy(ctx), ctx.params.get("stage") or ""
    for policy, names in read_index(_state_dir(ctx)).items():
        if typed_policy not in ("", policy):
            continue
        variants = [it for it in names.variants if stage in ("", it.stage)]
        counts = Counter(it.target for it in variants)
        for variant in variants:
            is_unique = counts[variant.target] == 1
            qualified = variant.target if typed_policy else f"{policy}/{variant.target}"
            yield qualified if is_unique else variant.name
            if incomplete and is_unique:
                yield variant.name


def complete_revisions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete revisions, newest first, of the policy that was given before."""
    typed = _typed_policy(ctx)
    index = read_index(_state_dir(ctx))
    revisions = [reversed(it.revisions) for name, it in index.items() if typed in ("", name)]
    return _matching(chain.from_iterable(revisions), incomplete)


def complete_checks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete checks of the policy and stage that were given before."""
    typed_stage = ctx.params.get("stage") or ""
    stages = (it for it in _list_stages(ctx) if typed_stage in ("", it.name))
    checks = (check for stage in stages for check in (*stage.requires, *stage.verification))
    return _matching((it.name for it in checks), incomplete)


def _typed_policy(ctx: click.Context) -> str:
    """Return the policy that was given before; "" if there is none.

    Where the option to complete has no value yet, click leaves arguments unassigned.
    """
    typed = ctx.params.get("policy")
    arguments = [it.name for it in ctx.command.params if isinstance(it, click.Argument)]
    if not typed and arguments[:1] == ["policy"] and ctx.args:
        typed = ctx.args[0]
    return str(typed or "")


def _state_dir(ctx: click.Context) -> Path:
    given = _option_values(ctx, "state_dir") or [os.environ.get("FANOUT_STATE_DIR")]
    return Path(given[-1] or ".fanout")


def complete_policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete policies and variants that were written by hand."""
    declared = _read_declared(ctx)
    objects = (*declared.policies, *declared.variants)
    return _matching((item.metadata.name for item in objects), incomplete)


def complete_promotions(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete PromotionPolicies."""
    return _matching((it.metadata.name for it in _read_declared(ctx).promotions), incomplete)


def complete_stages(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete stages of the policy that was given before, or of all policies."""
    return _matching((it.name for it in _list_stages(ctx)), incomplete)


def _list_stages(ctx: click.Context) -> Iterator[Stage]:
    typed_policy = _typed_policy(ctx)
    for policy in _read_declared(ctx).policies:
        if typed_policy in ("", policy.metadata.name):
            yield from policy.spec.stages


def complete_subjects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the argument of `fanout explain`: a policy, and behind a slash its stages."""
    if "/" in incomplete:
        stages = _policy_stages(_read_declared(ctx))
        return _matching([*stages, *_list_variants(ctx, incomplete)], incomplete)
    return complete_policies(ctx, param, incomplete)


def _policy_stages(declared: DeclaredObjects) -> Iterator[str]:
    for policy in declared.policies:
        for stage in policy.spec.stages:
            yield f"{policy.metadata.name}/{stage.name}"


def _matching(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _read_declared(ctx: click.Context) -> DeclaredObjects:
    """Read the declared objects of the files of `-f` or FANOUT_FILES; nothing if that fails."""
    names = [path for paths in _option_values(ctx, "files") for path in paths]
    names = names or os.environ.get("FANOUT_FILES", "").split(os.pathsep)
    # A search for bytes is far quicker than YAML, and most files of a repository declare other
    # kinds.
    group, declaring = f"{GROUP}/".encode(), []
    try:
        for path in ManifestDiscovery([Path(name) for name in names if name]).files:
            with suppress(OSError):
                if path.stat().st_size < _SIZE_LIMIT and group in path.read_bytes():
                    declaring.append(path)
        return FileCluster(declaring).read()
    except (FanoutError, OSError):
        return DeclaredObjects()


def _option_values(ctx: click.Context, name: str) -> list[Any]:
    """Return the values of a shared option before and behind the verb; the last one counts."""
    values: list[Any] = []
    context: click.Context | None = ctx
    while context is not None:
        values = [*filter(None, [context.params.get(name)]), *values]
        context = context.parent
    return values
