"""`fanout create`: write new objects from flags, to a file or to stdout."""

from typing import Any

import click

from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, namespace_option, with_settings
from fanout.cli.output.object_templates import (
    build_metadata,
    check_objects,
    create_files,
    format_policy,
    format_promotion,
    format_repository,
    split_list,
)
from fanout.cli.output.printer import write_lines, write_stdout
from fanout.cli.process_exit import invalid_setting
from fanout.cli.settings import STANDARD_INPUT, OutputFormat, Settings
from fanout.groups import group_pairs

_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would be written, and write nothing."
)
_with_file_settings = with_settings(
    ("files", "namespace", *ERROR_OPTIONS),
    namespace=namespace_option("Namespace of the new object.  [default: default]", "-n"),
    formats=(OutputFormat.TABLE, OutputFormat.YAML),
)


@click.group()
def command() -> None:
    """Create a policy, a repository or a promotion policy.

    If -f names a directory, writes the object to a new file in the directory. If -f names a file,
    creates this file. Without -f, prints the object. An existing file is never overwritten.
    """


@command.command("repository", cls=VerbCommand)
@click.argument("name")
@click.option("--url", required=True, help="URL or path of the Git repository.")
@click.option(
    "--branch", default="", help="Branch that contains the published packages.  [default: main]"
)
@click.option("--directory", default="", help="Directory that contains the packages.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of the Repository object; can be repeated.",
)
@click.option(
    "--forge", default="", help="Type of the forge that hosts the repository: none or gitea."
)
@click.option(
    "--secret", default="", help="Name of the secret with the credentials for the repository."
)
@_dry_run_option
@_with_file_settings
def create_repository(
    settings: Settings, *, name: str, labels: tuple[str, ...], dry_run: bool, **fields: Any
) -> None:
    """Create a Repository."""
    metadata = build_metadata(settings, name)
    metadata["labels"] = dict(split_pair(it, "--label") for it in labels)
    _create("repository", name, format_repository(metadata, **fields), settings, dry_run=dry_run)


@command.command("policy", cls=VerbCommand)
@click.argument("name")
@click.option(
    "--upstream",
    "repository",
    required=True,
    help="Name of the Repository object of the upstream repository.",
)
@click.option("--package", required=True, help="Path of the package in the upstream repository.")
@click.option(
    "--revision",
    default=">=1",
    show_default=True,
    help="Revisions to roll out: a range of versions, or latest.",
)
@click.option(
    "--downstream",
    multiple=True,
    metavar="STAGE=REPOSITORY",
    help="Stage and Repository object of one target; can be repeated. The order of the "
    "options is the order of the stages.",
)
@click.option(
    "--stages",
    default="",
    metavar="STAGE,…",
    help="Stages of a policy whose targets are Cluster objects. Use either --stages or "
    "--downstream.",
)
@_dry_run_option
@_with_file_settings
def create_policy(
    settings: Settings,
    *,
    name: str,
    downstream: tuple[str, ...],
    stages: str,
    dry_run: bool,
    **fields: Any,
) -> None:
    """Create an UpstreamPolicy."""
    if bool(downstream) == bool(stages):
        raise invalid_setting(
            "one of --downstream and --stages is needed, not both",
            "use --downstream STAGE=REPOSITORY for repositories, --stages for Cluster objects",
        )
    targets = [split_pair(it, "--downstream") for it in downstream]
    names = split_list(stages) or list(dict.fromkeys(stage for stage, _ in targets))
    metadata = build_metadata(settings, name)
    policy = format_policy(metadata, stages=names, downstream=targets, **fields)
    _create("policy", name, policy, settings, dry_run=dry_run)


@command.command("promotion-policy", cls=VerbCommand)
@click.argument("name")
@click.option(
    "--policies",
    default="*",
    show_default=True,
    metavar="POLICY,…",
    help="Policies to which the PromotionPolicy applies.",
)
@click.option("--auto", default="", metavar="STAGE,…", help="Stages with automatic promotion.")
@click.option(
    "--schedule", default="", metavar="CRON", help="Cron schedule of automatic publication."
)
@click.option("--time-zone", default="", help="Time zone of the schedule.  [default: UTC]")
@click.option(
    "--approver",
    "approvers",
    multiple=True,
    metavar="GROUP=PERSON",
    help="Add this person to this group of approvers; can be repeated.",
)
@_dry_run_option
@_with_file_settings
def create_promotion_policy(
    settings: Settings,
    *,
    name: str,
    policies: str,
    auto: str,
    approvers: tuple[str, ...],
    dry_run: bool,
    **fields: Any,
) -> None:
    """Create a PromotionPolicy."""
    members = group_pairs(split_pair(it, "--approver") for it in approvers)
    metadata, stages = build_metadata(settings, name), split_list(auto)
    promotion = format_promotion(
        metadata, split_list(policies), stages, approvers=members, **fields
    )
    _create("promotion-policy", name, promotion, settings, dry_run=dry_run)


def split_pair(text: str, flag: str) -> tuple[str, str]:
    """Split `KEY=VALUE`. Raises InvalidInput for a text without one of the parts."""
    key, _, value = text.partition("=")
    if not key or not value:
        raise invalid_setting(f"{text!r} needs a key and a value", "write KEY=VALUE", flag)
    return key, value


def _create(noun: str, name: str, text: str, settings: Settings, *, dry_run: bool) -> None:
    check_objects(text)
    files = [path for path in settings.files if path != STANDARD_INPUT]
    if len(files) > 1:
        raise invalid_setting("several files or directories are set", "give one", "-f")
    path = files[0] if files else None
    if path is not None:
        if path.suffix not in (".yaml", ".yml"):
            path /= f"{noun}-{name}.yaml"
        create_files({path: text}, dry_run=dry_run)
    if path is None or dry_run or settings.output is OutputFormat.YAML:
        write_stdout(text)
    else:
        write_lines([f"created {path}"])
