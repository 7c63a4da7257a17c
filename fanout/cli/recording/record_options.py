"""Options of verbs that record: author, reason, and subject of the record."""

import functools
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import click

from fanout.cli.command_errors import invalid_setting
from fanout.cli.input.completion import (
    complete_policies,
    complete_revisions,
    complete_stages,
    complete_variants,
)
from fanout.cli.input.options import READ_OPTIONS, with_settings
from fanout.cli.settings import OutputFormat
from fanout.git.git_identity import read_identity
from fanout.plan.draft_messages import find_release_draft
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import Value

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

policy_argument: Option = click.argument("policy", shell_complete=complete_policies)
reason_option: Option = click.option(
    "--reason", required=True, help="Reason for the command. The reason is recorded."
)
_by_option: Option = click.option(
    "--by",
    metavar='"NAME <ADDRESS>"',
    help="Author of the record.  [default: author of your Git commits]  [FANOUT_BY]",
)


class RecordRequest(Value):
    """Subject, reason and author of a record, as options say them."""

    policy: str = ""
    stage: str = ""
    variants: tuple[str, ...] = ()
    reason: str = ""
    by: str | None = None
    wait_limit: timedelta | None = None  # of --wait; None: do not wait


def with_request(*formats: OutputFormat) -> Option:
    """Return a decorator that passes a verb its `settings` and the options here as its `request`.

    It adds --by and the shared options. `formats`: accepted values of `-o`, the default first.
    """

    request_fields = RecordRequest.__struct_fields__

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call_with_request(**arguments: Any) -> Any:
            fields = {name: arguments.pop(name) for name in request_fields if name in arguments}
            return function(request=RecordRequest(**fields), **arguments)

        with_options = with_settings(READ_OPTIONS, records=True, formats=formats)
        return _by_option(with_options(call_with_request))

    return decorate


def revision_option(help_text: str) -> Option:
    """Return the option --revision with this help."""
    return click.option("--revision", default="", shell_complete=complete_revisions, help=help_text)


def subject_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add POLICY, --stage and --variant, the subject of a record, to a command."""
    return policy_argument(scope_options(function))


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --stage and --variant, the recorded part of a policy, to a command."""
    stage = click.option(
        "--stage",
        metavar="STAGE",
        shell_complete=complete_stages,
        default="",
        help="Stage of the policy.",
    )
    variants = click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        shell_complete=complete_variants,
        help="Only the variant with this name; can be repeated.",
    )
    return stage(variants(function))


def resolve_author(by: str | None) -> CommitIdentity:
    """Return the author of a record: --by, else FANOUT_BY, else the author of Git commits.

    Raises InvalidInput if none of them names a person.
    """
    author = by or os.environ.get("FANOUT_BY")
    if author:
        name, bracket, address = author.partition("<")
        if not bracket or not address.endswith(">") or not name.strip() or not address[:-1].strip():
            raise invalid_setting(
                f"{author!r} is not a name with an address", 'write --by "Name <address>"'
            )
        return CommitIdentity(name.strip(), address[:-1].strip())
    # Git would make up a name from account and machine, which is not acceptable for a record.
    git_author = read_identity(os.environ)
    if git_author is None:
        raise invalid_setting(
            "the author of the record is unknown",
            'give --by "Name <address>", or configure user.name and user.email in Git',
        )
    return git_author


def current_trees(
    variants: Sequence[RenderedVariant], revision: str, *, written_only: bool
) -> list[str]:
    """Return the trees of the up-to-date drafts, which people can have reviewed.

    Of a draft that is written only when it is released people have seen `fanout diff`; with
    `written_only` it is left out.
    """
    trees = set()
    for variant in variants:
        draft = find_release_draft(variant)
        if draft is None or draft.trailers.revision != revision or not draft.tree:
            continue
        is_written = bool(draft.commit)
        if variant.selected.has_current_draft if is_written else not written_only:
            trees.add(draft.tree)
    return sorted(trees)
