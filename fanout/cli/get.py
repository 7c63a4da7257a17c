"""`fanout get`: the observed state, as tables or as objects."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from fanout.cli import get_records
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import Column, Object, show
from fanout.cli.settings import Format, Settings
from fanout.cli.start import Program, open_program
from fanout.cli.telling import tell_faults
from fanout.errors import InvalidInput
from fanout.reconcile import present
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Observed


def _hold(item: Object) -> str:
    holds = item.get("holds") or ()
    return str(holds[0]["reason"]) if holds else ""


def _message(item: Object) -> str:
    holds = item.get("holds") or ()
    return str(holds[0]["message"]) if holds else ""


def _condition(item: Object, field: str) -> str:
    conditions: Sequence[Object] = item.get("status", {}).get("conditions") or ({},)
    return str(conditions[0].get(field, ""))


_NAME = Column("NAME", lambda item: item["metadata"]["name"])
_POLICY = Column("POLICY", lambda item: item.get("policy"))
_STAGE = Column("STAGE", lambda item: item.get("stage"))
_WHY = Column("WAITS FOR", _hold)
_SENTENCE = Column("MESSAGE", _message, wide=True)
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "policies": (
        _NAME,
        Column("READY", lambda item: _condition(item, "status")),
        Column("REASON", lambda item: _condition(item, "reason")),
        Column("VARIANTS", lambda item: item["status"]["variants"]),
        Column("FAILED", lambda item: item["status"]["failedTargets"]),
        Column("MESSAGE", lambda item: _condition(item, "message")),
    ),
    "variants": (
        _NAME,
        Column("STAGE", lambda item: item["spec"].get("stage")),
        Column("REPOSITORY", lambda item: item["spec"]["downstream"]["repository"]),
        Column("PATH", lambda item: item["spec"]["downstream"]["package"]),
        Column("PUBLISHED", lambda item: item["status"].get("published", {}).get("revision")),
        Column("CANDIDATE", lambda item: item["status"]["candidate"]),
        Column("STATE", lambda item: item["status"]["state"]),
        Column("REASON", lambda item: _condition(item, "reason"), wide=True),
        Column("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
    "stages": (
        _POLICY,
        _STAGE,
        Column("CANDIDATE", lambda item: item["candidate"]),
        Column("GATE", lambda item: item["gate"]),
        Column("VERDICT", lambda item: item["verdict"]),
        Column(
            "VARIANTS",
            lambda item: ",".join(f"{name}={number}" for name, number in item["counts"].items()),
        ),
        _WHY,
        Column("NEXT", lambda item: item.get("next")),
        _SENTENCE,
    ),
    "targets": (
        Column("TARGET", lambda item: item["target"]),
        _POLICY,
        _STAGE,
        Column("REPOSITORY", lambda item: item["repository"]),
        Column("PATH", lambda item: item["path"]),
        Column("STATE", lambda item: item["state"]),
        _WHY,
        _SENTENCE,
    ),
    "drafts": (
        _NAME,
        _STAGE,
        Column("REPOSITORY", lambda item: item["repository"]),
        Column("REVISION", lambda item: item["revision"]),
        Column("CURRENT", lambda item: item["current"]),
        Column("EDITED", lambda item: item["edited"]),
        Column("STATE", lambda item: item["state"]),
        Column("TREE", lambda item: item["tree"], wide=True),
        Column("BRANCH", lambda item: item["branch"]),
    ),
    "repositories": (
        _NAME,
        Column("URL", lambda item: item["spec"]["url"]),
        Column("BRANCH", lambda item: item["spec"].get("branch", "main")),
        Column("READY", lambda item: _condition(item, "status")),
        Column("VARIANTS", lambda item: item["status"]["variants"]),
        Column("MESSAGE", lambda item: _condition(item, "message"), wide=True),
    ),
}
_ALIASES = {
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
    "draft": "drafts",
    "record": "records",
    "evidences": "evidence",
    "approval": "approvals",
    "decision": "decisions",
}
_NOUNS = (*_COLUMNS, *get_records.NOUNS)


@click.command()
@click.argument("what", metavar="|".join(_NOUNS))
@click.argument("names", nargs=-1)
@click.option("-l", "--selector", metavar="KEY=VALUE,...", help="Only objects with these labels.")
@click.option("-w", "--watch", is_flag=True, help="Print again whenever something changed.")
@with_settings(formats=tuple(Format))
def command(
    settings: Settings, what: str, names: tuple[str, ...], selector: str | None, watch: bool
) -> ExitCode:
    """List policies, variants, stages, drafts, records and the like.

    As they are now; nothing is changed. Of records (or evidence, approvals, decisions alone) NAMES
    are those of policies.
    """
    noun = _noun(what)
    labels = _labels(selector)
    with open_program(settings) as program:
        faults = tell_faults(program.declared())
        columns = _COLUMNS.get(noun) or get_records.columns(settings.now())
        shown = _shown(program, noun, names, labels)
        show(shown, columns, settings.output)
        while watch:
            time.sleep(_PAUSE)
            again = _shown(program, noun, names, labels)
            fresh = [item for item in again if item not in shown]
            if fresh:
                show(fresh, columns, settings.output)
            shown = again
    return ExitCode.SOME_FAILED if faults else ExitCode.OK


_PAUSE = 2.0  # seconds between two looks of --watch


def _shown(
    program: Program, noun: str, names: Sequence[str], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    if noun in get_records.NOUNS:  # their names are given by policy
        return _chosen(get_records.recorded(program, noun, names), (), labels)
    return _chosen(_items(program, noun), names, labels)


def _items(program: Program, noun: str) -> list[dict[str, Any]]:
    observed = program.observe(Mode(namespace=program.settings.namespace))
    if noun == "repositories":
        return present.repositories(observed, program.declared())
    views: Mapping[str, Callable[[Observed], list[dict[str, Any]]]] = {
        "policies": present.policies,
        "variants": present.variants,
        "stages": present.stages,
        "targets": present.targets,
        "drafts": present.drafts,
    }
    return views[noun](observed)


def _chosen(
    items: Sequence[dict[str, Any]], names: Sequence[str], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    found = [item for item in items if not names or item["metadata"]["name"] in names]
    missing = set(names) - {item["metadata"]["name"] for item in found}
    if missing:
        raise InvalidInput(
            f"there is no {' and no '.join(sorted(missing))}",
            reason="NotFound",
            remedy="list all by leaving the name out",
        )
    return [
        item for item in found if labels.items() <= (item["metadata"].get("labels") or {}).items()
    ]


def _noun(what: str) -> str:
    noun = _ALIASES.get(what.lower(), what.lower())
    if noun not in _NOUNS:
        raise InvalidInput(
            f"{what} cannot be listed",
            reason="NotFound",
            remedy=f"use one of {', '.join(_NOUNS)}",
        )
    return noun


def _labels(selector: str | None) -> dict[str, str]:
    pairs = [part.partition("=") for part in (selector or "").split(",") if part]
    if any(not equals for _, equals, _ in pairs):
        raise InvalidInput(
            f"{selector!r} is no selector",
            reason="InvalidSetting",
            remedy="write KEY=VALUE, separated by commas",
        )
    return {key: value.lstrip("=") for key, _, value in pairs}
