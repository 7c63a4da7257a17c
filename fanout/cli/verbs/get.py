"""`fanout get`: print the observed state as tables or objects.

With --watch also its changes. An instant that is not recorded yet is the present time and moves
with each observation; an object in which only such instants moved has not changed.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import click

from fanout.api.durations import format_instant, parse_instant
from fanout.api.field_errors import suggest_name
from fanout.api.gate_vocabulary import VariantState
from fanout.api.object_meta import Label
from fanout.api.reasons import Reason
from fanout.api.table_column import Object
from fanout.api.view_base import ViewModel, dump_views
from fanout.cli.declarations import build_not_found, check_policies
from fanout.cli.input.completion import (
    ALIASES,
    RECORD_TYPES,
    RESOURCE_TYPES,
    complete_names,
    complete_policies,
    complete_resource_types,
    complete_stages,
)
from fanout.cli.input.name_lookup import read_input, target_names
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, selector_option, with_settings
from fanout.cli.output import get_tables
from fanout.cli.output.pass_output import report_refused_records
from fanout.cli.output.printer import format_json, print_objects
from fanout.cli.process_exit import ExitCode, invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import print_message
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput
from fanout.present import object_views
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.pass_scope import PassMode
from fanout.selection.label_selector import FlagSelector, matches, parse_selector
from fanout.values import Value

Item = dict[str, Any]
_TYPES_WITH_STATE = ("variants", "targets", "drafts")
_TYPES_BY_OPTION = {
    "policy": (*_TYPES_WITH_STATE, "stages", "conflicts", *RECORD_TYPES),
    "stage": (*_TYPES_WITH_STATE, "stages", "conflicts", *RECORD_TYPES),
    "state": _TYPES_WITH_STATE,
}


class ObjectFilter(Value):
    """Filter criteria of one `fanout get`; an empty criterion matches everything."""

    resource_type: str
    names: Sequence[str]
    labels: FlagSelector
    policy: str = ""
    stage: str = ""
    state: str = ""

    def check_criteria(self, declared: DeclaredObjects, namespace: str) -> None:
        """Raise InvalidInput for a criterion that does not apply, or an unknown name."""
        criteria = {"policy": self.policy, "stage": self.stage, "state": self.state}
        for option in [name for name, value in criteria.items() if value]:
            if self.resource_type not in _TYPES_BY_OPTION[option]:
                raise invalid_setting(
                    f"{self.resource_type} cannot be selected by {option}",
                    "use names, or labels with -l",
                    f"--{option}",
                )
        if self.policy:
            check_policies([self.policy], declared, namespace)
        stages = {
            stage.name
            for policy in declared.policies
            if self.policy in ("", policy.metadata.name)
            for stage in policy.spec.stages
        }
        if self.stage and self.stage not in stages:
            raise build_not_found("stage", [self.stage], stages)

    def refuse_unknown(self, items: Sequence[Item]) -> None:
        """Raise InvalidInput for a name that none of the items has."""
        if not self.names:
            return
        known_names = {name for item in items for name in _names_of_item(item)}
        missing = sorted(set(self.names) - known_names)
        if missing and self.resource_type not in RECORD_TYPES:
            item_names = [item["metadata"]["name"] for item in items]
            singular = self.resource_type.removesuffix("s")
            if self.resource_type.endswith("ies"):
                singular = f"{self.resource_type[:-3]}y"
            raise build_not_found(singular, missing, item_names)

    def select(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that match; records were read by policy, so their names do not count."""
        names = () if self.resource_type in RECORD_TYPES else self.names
        return [
            item
            for item in items
            if (not names or not _names_of_item(item).isdisjoint(names))
            and matches(self.labels, item["metadata"].get("labels") or {})
            and (not self.policy or _label_or_field(item, Label.POLICY, "policy") == self.policy)
            and (not self.stage or _label_or_field(item, Label.STAGE, "stage") == self.stage)
            and (not self.state or item.get("status", {}).get("state") == self.state)
        ]


def _names_of_item(item: Item) -> frozenset[str]:
    """Return all names of an item; for variants and targets also those of target and path."""
    spec = item.get("spec", {})
    target = spec.get("target") or item.get("status", {}).get("target") or ""
    place = spec.get("downstream") or spec
    path = place.get("package") or place.get("path") or ""
    names = [item["metadata"]["name"], spec.get("variant", "")]
    names += [spec["stage"]] if item["kind"] == "StageView" else []
    names += [path, f"{place['repository']}:{path}"] if path else []
    if target:
        own_names = (target, *target_names(target), spec.get("targetName", ""))
        policy = spec.get("policy") or spec.get("policyRef", {}).get("name") or ""
        names += [*own_names, *(f"{policy}/{name}" for name in own_names if policy and name)]
    names.append(spec.get("key", ""))
    # The target object is deleted, so its own name is cut out of the variant's: policy, name,
    # digest.
    if _is_orphaned(item):
        names.append(target.removeprefix(f"{spec['policy']}-").rpartition("-")[0])
    return frozenset(filter(None, names))


def _is_orphaned(item: Item) -> bool:
    if item["kind"] != "TargetView":
        return False
    return any(it["reason"] == Reason.TARGET_GONE for it in item["status"].get("holds") or ())


def _label_or_field(item: Item, label: Label, field: str) -> str:
    """Return the value of fanout's label on the item; for a record, of its spec field."""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get(label.value) or item.get("spec", {}).get(field) or "")


_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def find_changed(
    before: Iterable[Object], after: Iterable[Object], elapsed: timedelta
) -> list[Object]:
    """Return the items that differ from `elapsed` ago, but for instants that moved along."""

    def read_key(item: Object) -> tuple[Any, ...]:
        # Policies can share a target, so its name alone is not unique.
        policy = item.get("spec", {}).get("policy")
        return item["kind"], item["metadata"]["namespace"], item["metadata"]["name"], policy

    def is_unchanged(old: str, new: str) -> bool:
        old_instants, new_instants = _INSTANT.findall(old), _INSTANT.findall(new)
        return _INSTANT.sub("", old) == _INSTANT.sub("", new) and all(
            new_instant in (old_instant, format_instant(parse_instant(old_instant) + elapsed))
            for old_instant, new_instant in zip(old_instants, new_instants, strict=True)
        )

    previous = {read_key(item): format_json(item) for item in before}
    return [it for it in after if not is_unchanged(previous.get(read_key(it), ""), format_json(it))]


_WATCH_SECONDS = 2.0  # seconds between two observations of --watch
_VIEW_BUILDERS: Mapping[str, Callable[[PassPlan], Sequence[ViewModel]]] = {
    "stages": object_views.list_stages,
    "drafts": object_views.list_drafts,
    "conflicts": object_views.list_conflicts,
}


@click.command(cls=VerbCommand)
@click.argument("resource_type", default="", metavar="WHAT", shell_complete=complete_resource_types)
@click.argument("names", nargs=-1, shell_complete=complete_names)
@selector_option("resources")
@click.option(
    "--policy", default="", shell_complete=complete_policies, help="Only resources of this policy."
)
@click.option(
    "--stage", default="", shell_complete=complete_stages, help="Only resources of this stage."
)
@click.option(
    "--state",
    type=click.Choice(list(VariantState), case_sensitive=False),
    metavar="STATE",
    help="Only variants, targets and drafts in this state, such as Held.",
)
@click.option("-w", "--watch", is_flag=True, help="Keep running, and print each change.")
@with_settings(READ_OPTIONS, formats=tuple(OutputFormat))
def command(
    settings: Settings,
    resource_type: str,
    names: tuple[str, ...],
    selector: str,
    watch: bool,
    **filters: str | None,
) -> ExitCode:
    """List resources and their observed state.

    WHAT is a resource type: policies, variants, stages, targets, repositories, drafts, conflicts or
    records. WHAT can also be one kind of record: evidence, approvals, decisions or publications.
    For records of any kind, NAMES are names of policies. For other types, NAMES are names of
    resources. A variant, target, draft or conflict can be named by its name, its target, its path,
    repository:path or POLICY/TARGET.

    AGE is the age of the object (policies, repositories), of the publication (variants), of the
    first publication of the candidate (stages), of the present state (targets), of the commit
    (drafts), or of the record (records). It is <unknown> if no time is recorded, as for objects in
    files.

    For --selector, a target has the labels of its object, a draft the labels of its variant, and a
    stage the labels of its policy. Variants, targets, drafts and conflicts also have the labels
    fanout.dev/policy, fanout.dev/stage and fanout.dev/repository. Stages also have
    fanout.dev/policy and fanout.dev/stage.

    If a file of records or a repository cannot be read, prints all other entries and exits with
    code 3.
    """
    requested_type = resource_type
    resource_type = ALIASES.get(requested_type.lower(), requested_type.lower())
    if resource_type not in RESOURCE_TYPES:
        unknown = f"unknown resource type {requested_type}"
        choices = f"one of: {', '.join(RESOURCE_TYPES)}"
        remedy = suggest_name(requested_type, (*RESOURCE_TYPES, *ALIASES), choices)
        raise not_found(unknown if requested_type else "missing resource type", remedy)
    criteria = {name: value or "" for name, value in filters.items()}
    object_filter = ObjectFilter(resource_type, names, parse_selector(selector), **criteria)
    with open_program(settings, check=False) as program:
        declared, faults = read_input(program)
        faults += report_refused_records(program.world.records, settings.color)
        object_filter.check_criteria(declared, settings.namespace)
        items, now, is_partial = _read_items(program, resource_type, names)
        object_filter.refuse_unknown(items)
        matching = object_filter.select(items)
        build_columns = partial(
            get_tables.build_columns,
            resource_type,
            wide=settings.output is OutputFormat.WIDE,
            with_namespace=len({it["metadata"]["namespace"] for it in matching}) > 1,
        )
        # A program that reads JSON or YAML gets an empty List; only people need the message.
        is_single = len(names) == 1 and resource_type not in RECORD_TYPES
        if matching or not settings.output.is_table:
            print_objects(matching, build_columns(now), settings, is_single=is_single)
        else:
            print_message("no resources found", settings.color)
        while watch:
            time.sleep(_WATCH_SECONDS)
            before, observed_before = matching, now
            items, now, is_partial = _read_items(program, resource_type, names)
            matching = object_filter.select(items)
            if changed_items := find_changed(before, matching, now - observed_before):
                print_objects(changed_items, build_columns(now), settings, is_single=is_single)
    return ExitCode.SOME_FAILED if faults or is_partial else ExitCode.OK


def _read_items(
    program: Program, resource_type: str, names: Sequence[str]
) -> tuple[list[dict[str, Any]], datetime, bool]:
    """Return the items, the time of the observation, and whether any are missing."""
    namespace = program.settings.namespace
    if resource_type in RECORD_TYPES:
        check_policies(names, program.read_declared(), namespace)
        records, is_partial = get_tables.list_records(program, resource_type, names)
        return records, program.settings.now(), is_partial
    observed = program.observe(PassMode(namespace=namespace))
    items: list[Item]
    match resource_type:
        case "policies":
            for warning in observed.undeclared_warnings:
                print_message(f"warning: {warning}", program.settings.color, fg="yellow")
            items = object_views.list_policies(observed)
        case "repositories":
            items = object_views.list_repositories(observed, program.read_declared())
            items = [it for it in items if namespace in ("", it["metadata"]["namespace"])]
        case "targets":
            items = dump_views(object_views.list_targets(observed, program.read_declared()))
        case "variants":
            items = object_views.list_variants(observed)
            # An orphaned variant is known as a target only, with its location.
            missing = set(names) - {name for item in items for name in _names_of_item(item)}
            targets = object_views.list_targets(observed, program.read_declared()) if names else ()
            for target in filter(_is_orphaned, dump_views(targets)):
                if not _names_of_item(target).isdisjoint(missing):
                    spec = target["spec"]
                    raise InvalidInput(
                        f"the target of {spec['target']} no longer exists; its package is at"
                        f" {spec['repository']}:{spec['path']}",
                        reason=Reason.TARGET_GONE,
                        remedy=f"run `fanout remove {spec['policy']} {spec['target']}` to remove"
                        " it",
                    )
        case _:
            items = dump_views(_VIEW_BUILDERS[resource_type](observed))
    return items, observed.now, False
