"""Entry point: the table of verbs, and the exit code of the program.

The table is static and a verb's module is loaded only when that verb runs, so `fanout
--help` and completion stay quick however heavy the packages behind the verbs are.
"""

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

import click
from click.shell_completion import CompletionItem

from fanout.cli.input.options import CommandSession, shared_options
from fanout.cli.lazy_import import load_module
from fanout.cli.process_exit import EXIT_CODE_HELP, ExitCode, exit_code_of, exit_with
from fanout.cli.terminal import Color, OutputClosed, print_message
from fanout.errors import Bug, FanoutError

# Objects between two garbage collections. A pass and a merge create millions of lasting objects and
# hardly any cycles; Python's default of 700 costs them a seventh and a third of their time.
GC_THRESHOLD = 1_000_000


# Verbs by section of `fanout --help`, each with its line of help.
_SECTIONS = {
    "Observe": {
        "status": "Print the state of the whole fleet on one screen.",
        "validate": "Validate all documents and report every error.",
        "get": "List resources and their observed state.",
        "plan": "Show what a sweep would do now.",
        "explain": "Explain what blocks a rollout, and how to unblock it.",
        "forecast": "Print the earliest time at which a revision can pass each stage.",
        "graph": "Draw the stages of a policy with their state.",
        "history": "Print when and why revisions were published.",
        "diff": "Compare the next draft of a variant with the published package.",
        "render": "Print the files of a variant.",
    },
    "Change": {
        "sweep": "Update drafts, evaluate gates, and publish what is allowed.",
        "promote": "Publish drafts of a stage manually, if their gates are open.",
        "rollback": "Return to an earlier revision and stay at it.",
        "skip": "Skip one revision for variants.",
        "retry": "Retry failed variants.",
        "remove": "Remove variants whose target no longer exists.",
        "run": "Run continuously and sweep on schedule.",
        "controller": "Run continuously on the objects of a Kubernetes cluster.",
    },
    "Record": {
        "report": "Record evidence: the result of a check.",
        "approve": "Approve drafts or removals of a stage.",
        "revoke": "Revoke an approval.",
        "withdraw": "Withdraw an active decision, or evidence.",
        "accept-records": "Accept records that were restored from an older copy.",
        "suspend": "Suspend a policy, a stage, a variant, or everything.",
        "resume": "Resume a suspended policy, stage or variant, or everything.",
        "resolve": "Resolve merge conflicts of drafts.",
    },
    "Tools": {
        "init": "Create a working directory with a first policy.",
        "create": "Create a policy, a repository or a promotion policy.",
        "package": "Merge, render, compare and validate packages in directories.",
        "test": "Run scenarios and compare the results with the expected ones.",
        "schedule": "Print the times of a schedule or of windows.",
        "schema": "Print the JSON Schemas of all kinds.",
        "crds": "Print the CustomResourceDefinitions, or the admission policies.",
        "import": "Convert objects of Kargo or Porch.",
        "completion": "Print the completion script for a shell.",
        "docs": "Print a page of the documentation, or an example.",
        "help": "Print the help of a command.",
        "version": "Print the versions of fanout and its dependencies.",
    },
}
# Modules of two verbs, of which each has its command there.
_PAIRS = ("diff_render", "revoke_withdraw", "schema_crds", "skip_retry", "suspend_resume")
_MODULES = {"import": "import_"} | {verb: pair for pair in _PAIRS for verb in pair.split("_")}
VERBS = {name: text for verbs in _SECTIONS.values() for name, text in verbs.items()}

# Words of the help and of messages, for `fanout --help` and the command reference; docs/glossary.md
# has all.
TERMS = {
    "variant": "a copy of an upstream package, at one path of a downstream repository",
    "target": "what a variant is made for: a downstream repository, one of several package "
    "paths in a downstream repository, or a Kubernetes object such as a Cluster",
    "stage": "a named group of variants of one policy; stages are rolled out in order",
    "candidate": "the revision to roll out in a stage",
    "draft": "a variant that is rendered for the candidate and committed to a branch, but "
    "not published yet",
    "published": "merged to the branch of the downstream repository, and tagged",
    "ready": "published, and all checks after publication have passed",
    "gate": "a condition for publishing, such as a soak time, an approval or a window",
    "sweep": "one run that updates drafts, evaluates gates and publishes what is allowed",
    "pass": "one reconciliation; a sweep is a pass, and `fanout run` also does passes "
    "between two sweeps",
    "downstream edit": "a change that a person or another program made to a published package "
    "or to a draft",
    "record": "an entry in the records repository: evidence (a check result), an approval, or a "
    "decision (a command such as promote or skip)",
    "vendor branch": "a branch of a downstream repository that has each package as fanout rendered "
    "it, without downstream edits",
}

# Commands of earlier versions and of kubectl, flux, argocd and kpt, each with the command that does
# the same here.
REPLACED_VERBS = {
    "annotate": "`fanout suspend`, or `fanout promote`",
    "app": "`fanout get policies`",
    "apply": "`fanout sweep -f DIR`",
    "build": "`fanout render VARIANT`",
    "check": "`fanout validate -f DIR`",
    "delete": "`fanout remove POLICY VARIANT` after deleting the object's file",
    "describe": "`fanout explain NAME`",
    "edit": "`fanout validate -f DIR` after editing the object's file",
    "events": "`fanout get records`",
    "export": "`fanout get KIND -o yaml`",
    "fn": "`fanout package render DIR`",
    "list": "`fanout get KIND`",
    "live": "`fanout sweep -f DIR`",
    "logs": "`fanout history POLICY`",
    "ls": "`fanout get KIND`",
    "pause": "`fanout suspend POLICY`",
    "pkg": "`fanout package`",
    "reconcile": "`fanout sweep POLICY`",
    "refresh": "`fanout sweep POLICY`",
    "rollout history": "`fanout history POLICY`",
    "rollout pause": "`fanout suspend POLICY`",
    "rollout restart": "`fanout retry POLICY --stage STAGE`",
    "rollout resume": "`fanout resume POLICY`",
    "rollout status": "`fanout status`",
    "rollout undo": "`fanout rollback POLICY --stage STAGE`",
    "rollout": "`fanout status`",
    "simulate": "`fanout test --show`",
    "stats": "`fanout status`",
    "sync": "`fanout sweep POLICY`",
    "top": "`fanout sweep -v` for the time that each phase takes, or `fanout get policies`",
    "trace": "`fanout explain VARIANT`",
    "tree": "`fanout get variants --policy POLICY`",
    "undo": "`fanout rollback POLICY --stage STAGE`",
    "unpause": "`fanout resume POLICY`",
    "update": "`fanout sweep POLICY`",
    "verify": "`fanout report POLICY --check CHECK --status passed --revision REVISION`",
    "wait": "`fanout sweep --wait POLICY`",
}


def find_module(verb: str) -> str:
    """Return the name of a verb's module below `fanout.cli.verbs`."""
    return _MODULES.get(verb, verb.replace("-", "_"))


class VerbGroup(click.Group):
    """Click group that lists its commands from the table and loads one when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all verbs in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load the verb's module and return its command; None if the table has no such verb."""
        if cmd_name not in VERBS:
            return None
        module = load_module(f"cli.verbs.{find_module(cmd_name)}")
        # A module of several verbs has a command of the name of each.
        command: click.Command = getattr(module, "command", None) or getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command like click, with suggestions for a misspelled verb from the table."""
        for words in (" ".join(args[:2]), *args[:1]):
            if words in REPLACED_VERBS and args[0] not in VERBS:
                raise click.UsageError(
                    f"there is no command {words}; run {REPLACED_VERBS[words]}", ctx
                )
        # click would compute its suggestions from loaded commands, and none is loaded here.
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke a command like click, and raise Bug for a broken pipe other than stdout."""
        try:
            return super().invoke(ctx)
        # click answers any broken pipe with exit code 1 and no message. A closed stdout arrives
        # here as its own exception, so what remains is a pipe to a child process.
        except BrokenPipeError as error:
            raise Bug("a pipe to a child process broke unnoticed") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help of all verbs from the table, by section, without loading a verb."""
        for section, verbs in _SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(list(verbs.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the exit codes, because scripts rely on them, and the terms of the help."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), words) for code, words in EXIT_CODE_HELP.items()])
        with formatter.section("Terms (all: `fanout docs glossary`)"):
            formatter.write_dl(list(TERMS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs from the table, and options like click."""
        return [
            CompletionItem(name, help=text)
            for name, text in VERBS.items()
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="fanout", message="%(prog)s %(version)s")
@shared_options
@click.pass_context
def cli(ctx: click.Context, /, **flags: Any) -> None:
    """Roll out one upstream package to many repositories, stage by stage."""
    session = ctx.ensure_object(CommandSession)
    session.flags_before_verb = dict(session.merge_flags(flags))
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_MAKES_PASSES = "`fanout controller` makes the passes over the objects of a cluster"
# What does on a cluster what a verb does with files alone.
_CLUSTER_COUNTERPARTS = {
    "run": _MAKES_PASSES,
    "sweep": _MAKES_PASSES,
    "validate": "`kubectl apply --dry-run=server` validates objects on the API server of a cluster",
}


def run() -> None:
    """Run the command line of this process and exit with its code."""
    gc.set_threshold(GC_THRESHOLD)
    exit_with(lambda: run_arguments(sys.argv[1:]))


def run_arguments(arguments: Sequence[str]) -> int:
    """Run one command line, report its error as one sentence, and return its exit code.

    What the command sets for its messages ends with it: a process may run several commands.
    """
    return copy_context().run(_run_arguments, arguments)


def _run_arguments(arguments: Sequence[str]) -> int:
    # Created before click parses anything, so that errors of parsing are shown with its settings.
    session = CommandSession()
    try:
        status = cli.main(list(arguments), prog_name="fanout", obj=session, standalone_mode=False)
    except click.Abort:
        print_message("interrupted", session.color)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        shown = error
        if isinstance(error, click.NoSuchOption) and error.ctx is not None:
            # The verb has no option for a cluster.
            counterpart = _CLUSTER_COUNTERPARTS.get(error.ctx.info_name or "")
            if counterpart is not None and error.option_name in ("--context", "--kubeconfig"):
                sentence = f"{error.message} {counterpart}."
                shown = click.NoSuchOption(error.option_name, sentence, ctx=error.ctx)
        shown.show()
        return ExitCode.ERROR
    except OutputClosed:
        # The interpreter flushes stdout again at its end, which must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001  # anything unforeseen is reported as a bug
        code = exit_code_of(error)
        if session.verbosity:
            print_message("".join(traceback.format_exception(error)).rstrip(), Color.NEVER)
        sentence = (
            str(error) if isinstance(error, FanoutError) else f"{type(error).__name__}: {error}"
        )
        is_bug = isinstance(error, Bug) or not isinstance(error, FanoutError)
        sentence = f"this is a bug in fanout: {sentence}" if is_bug else sentence
        print_message(sentence, session.color, fg="red")
        if is_bug:
            hint = "" if session.verbosity else "run it again with -v and "
            print_message(
                f"please {hint}report it with the trace and the output of `fanout version`"
            )
        # With --detailed-exitcode a 2 means changes, so no error may exit with 2.
        return ExitCode.ERROR if session.detailed_exitcode else code
    return status if isinstance(status, int) else ExitCode.OK
