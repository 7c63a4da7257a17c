"""Options shared by all verbs, and their translation into a verb's `settings`.

As with kubectl, options may stand before or behind the verb; behind it wins, `-f` and
`-v` add up. A verb is written like this:

    @click.command(cls=VerbCommand)
    @click.argument("name")
    @with_settings()
    def command(settings: Settings, name: str) -> ExitCode: ...
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from click.shell_completion import CompletionItem

from fanout.cli.lazy_import import load_module
from fanout.cli.settings import OutputFormat, resolve_settings
from fanout.cli.terminal import Color, set_commands, set_quiet
from fanout.message_commands import MessageCommands
from fanout.values import replace

Function = Callable[..., Any]
Option = Callable[[Function], Function]

_CUMULATIVE = frozenset({"files", "verbosity"})


class SharedOption(click.Option):
    """Option that most verbs have; their help lists it apart from their own options."""


_shared_option = functools.partial(click.option, cls=SharedOption)


def namespace_option(help_text: str, *flags: str) -> Option:
    """Return the option `--namespace` with this help; `flags` are `-n`, or others, if any."""
    return _shared_option(
        *flags, "--namespace", metavar="NAME", help=f"{help_text}  [FANOUT_NAMESPACE]"
    )


class VerbCommand(click.Command):
    """Click command whose help lists shared options below a heading of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's own options, then those that most verbs have, and --help."""
        records: dict[str, list[tuple[str, str]]] = {"Options": [], "Global options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            is_global = isinstance(param, SharedOption) or param is self.get_help_option(ctx)
            if record is not None:
                records["Global options" if is_global else "Options"].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


# Options by parameter name. A verb has only those that change what it does.
_SHARED_OPTIONS: dict[str, Option] = {
    "files": _shared_option(
        "-f",
        "--files",
        multiple=True,
        metavar="DIR",
        help="Directory or file with objects; can be repeated.  [FANOUT_FILES]",
    ),
    "context": _shared_option(
        "--context",
        metavar="NAME",
        help="Use the objects of a cluster, as this context of the kubeconfig file. Without -f and "
        "FANOUT_FILES, the default is the current context.",
    ),
    "kubeconfig": _shared_option(
        "--kubeconfig",
        metavar="FILE",
        help="Use the objects of a cluster, with this kubeconfig file.",
    ),
    "namespace": namespace_option(
        "Only objects of this namespace. In a cluster, the default is that of the context.", "-n"
    ),
    "all_namespaces": _shared_option(
        "-A",
        "--all-namespaces",
        is_flag=True,
        help="Objects of all namespaces. With files, this is the default unless "
        "FANOUT_NAMESPACE is set.",
    ),
    "config": _shared_option(
        "--config", metavar="FILE", help="File with the FanoutConfiguration.  [FANOUT_CONFIG]"
    ),
    "state_dir": _shared_option(
        "--state-dir",
        metavar="DIR",
        help="Directory for Git mirrors, and for records if no records repository is set.  "
        "[default: .fanout]  [FANOUT_STATE_DIR]",
    ),
    "records": _shared_option(
        "--records", metavar="URL", help="URL of the records repository.  [FANOUT_RECORDS]"
    ),
    "new_records": _shared_option(
        "--new-records",
        is_flag=True,
        help="Start with empty records, even if fanout has already written to the repositories.",
    ),
    "verbosity": _shared_option(
        "-v",
        "--verbose",
        "verbosity",
        count=True,
        help="Print more detail, and stack traces of errors; can be repeated.  [FANOUT_VERBOSITY]",
    ),
    "quiet": _shared_option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Print only results and errors, but no warnings, notes or progress.",
    ),
    "color": _shared_option(
        "--color",
        type=click.Choice([choice.value for choice in Color]),
        help="Color of the output. With auto, output to a terminal is colored, unless "
        "NO_COLOR is set.  [default: auto]  [FANOUT_COLOR]",
    ),
    "now": _shared_option(
        "--now", metavar="TIME", hidden=True, help="Use this time as the current time."
    ),
}

ERROR_OPTIONS = ("verbosity", "color")  # of every verb that can fail for another reason than usage
# of verbs that observe repositories and change nothing; and of those that record, because in a
# cluster they create objects
READ_OPTIONS = tuple(_SHARED_OPTIONS)
_CLUSTER_OPTIONS = ("context", "kubeconfig")
# of verbs that run passes: in a cluster the controller does
PASS_OPTIONS = tuple(it for it in READ_OPTIONS if it not in _CLUSTER_OPTIONS)

# For verbs that record or publish.
_RECORD_OPTIONS: dict[str, Option] = {
    "dry_run": click.option(
        "--dry-run",
        is_flag=True,
        help="Print what would be recorded and changed, and write nothing.",
    )
}

# For verbs that list objects.
_LIST_OPTIONS: dict[str, Option] = {
    "sort_by": click.option(
        "--sort-by", metavar="PATH", help="Sort by this field, such as .metadata.creationTimestamp."
    ),
    "no_headers": click.option("--no-headers", is_flag=True, help="Print no column headers."),
}


class OutputType(click.ParamType[str]):
    """Type of `-o`: one of the formats, two of which are written with a value behind `=`."""

    name = "output"

    def __init__(self, formats: tuple[OutputFormat, ...]) -> None:
        """Accept these formats."""
        self._formats = formats

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value; fail like click for a format that the verb does not have."""
        if value.partition("=")[0] not in self._formats:
            self.fail(f"{value!r} is not one of {', '.join(self._labels())}.", param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Return the formats as the help shows them."""
        return f"[{'|'.join(self._labels())}]"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Complete the formats."""
        words = [f"{it}=" if it.needs_template else str(it) for it in self._formats]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def _labels(self) -> list[str]:
        return [f"{it}=…" if it.needs_template else str(it) for it in self._formats]


@dataclass(slots=True)
class CommandSession:
    """State of one run beside its settings: flags before the verb, and error reporting."""

    flags_before_verb: dict[str, Any] = field(default_factory=dict)
    verbosity: int = 0
    color: Color = Color.AUTO
    detailed_exitcode: bool = False  # --detailed-exitcode: every error exits with 1

    def merge_flags(self, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merge the flags before and behind the verb, and update verbosity and color."""
        merged = dict(self.flags_before_verb)
        for name, value in flags.items():
            if value and name in _CUMULATIVE and merged.get(name):
                merged[name] += value
            elif value:
                merged[name] = value
        # Updated even if resolving the settings fails afterwards: that error is reported in this
        # way.
        self.verbosity = merged.get("verbosity", 0)
        self.color = Color(merged.get("color") or Color.AUTO)
        return merged


detailed_option: Option = click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with code 0 if there are no changes, with code 2 if there are changes, "
    "and with code 1 in all other cases.",
)


def shared_options(function: Function) -> Function:
    """Add the options that verbs share; for the group itself."""
    return _apply_options(_SHARED_OPTIONS, function)


def selector_option(noun: str) -> Option:
    """Return the option `--selector` of a verb that lists resources of this noun."""
    return click.option(
        "-l",
        "--selector",
        default="",
        metavar="SELECTOR",
        help=f"Only {noun} with these labels: KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin"
        " (A,B), KEY or !KEY, separated by commas.",
    )


def with_settings(
    shared: Sequence[str] = PASS_OPTIONS,
    *,
    namespace: Option | None = None,
    records: bool = False,
    reads_other_files: bool = False,
    formats: tuple[OutputFormat, ...] = (),
) -> Option:
    """Return a decorator that passes a verb its `settings`.

    `shared`: names of the shared options that the verb uses, all but those of a cluster by default.
    Others are refused behind the verb; before it they are defaults that the verb ignores, unless it
    would read objects of files instead of those of the cluster that they name. `namespace`: the
    option `--namespace`, if it differs from the usual one. `records`: the verb records or
    publishes, so it takes `--dry-run`. `reads_other_files`: `-f` names what is no input of other
    verbs, so commands in messages do not get it.
    `formats`: accepted values of `-o`, the default first; without any there is no `-o`.
    """
    options = {name: _SHARED_OPTIONS[name] for name in shared}
    if namespace:
        options["namespace"] = namespace
    if formats:
        help_text = f"Output format.  [default: {formats[0]}]  [FANOUT_OUTPUT]"
        options["output"] = click.option("-o", "--output", type=OutputType(formats), help=help_text)
    if records:
        options |= _RECORD_OPTIONS
    if OutputFormat.CUSTOM_COLUMNS in formats:
        options |= _LIST_OPTIONS

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call_with_settings(**arguments: Any) -> Any:
            session = click.get_current_context().ensure_object(CommandSession)
            session.detailed_exitcode = bool(arguments.get("detailed"))
            flags = session.merge_flags({name: arguments.pop(name) for name in options})
            if "context" not in options:
                given = next((name for name in _CLUSTER_OPTIONS if flags.get(name)), None)
                if given and "files" in options:
                    raise click.NoSuchOption(f"--{given}", ctx=click.get_current_context())
                flags = {key: it for key, it in flags.items() if key not in _CLUSTER_OPTIONS}
            settings = resolve_settings(
                flags,
                os.environ,
                formats or (OutputFormat.TABLE,),
                accepts_cluster="context" in options,
            )
            takes_namespace = "namespace" in options and not flags.get("all_namespaces")
            if takes_namespace and settings.reads_cluster and not settings.namespace:
                access = load_module("cli.declarations")
                settings = replace(settings, namespace=access.find_default_namespace(settings))
            session.verbosity, session.color = settings.verbosity, settings.color
            set_quiet(quiet=settings.quiet)
            set_commands(MessageCommands() if reads_other_files else settings.commands)
            if settings.template or settings.sort_by:
                load_module("cli.output.printer").check_output(settings)
            return function(settings=settings, **arguments)

        return _apply_options(options, call_with_settings)

    return decorate


def _apply_options(options: Mapping[str, Option], function: Function) -> Function:
    # click lists options in the order in which decorators stand, that is, the last applied first.
    for option in reversed(list(options.values())):
        function = option(function)
    return function
