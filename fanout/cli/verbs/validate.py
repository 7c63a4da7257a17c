"""`fanout validate`: every fault of every document in one run."""

from functools import cache

import click

from fanout.api.texts import plural_of
from fanout.cli.exit_codes import ExitCode
from fanout.cli.files import files_of
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_sandbox
from fanout.cluster.declared import Declared
from fanout.cluster.documents import ObjectKey
from fanout.cluster.files import FileCluster
from fanout.cluster.findings import Finding, folded
from fanout.errors import InvalidInput
from fanout.reconcile.compile import uncompilable
from fanout.reconcile.configure import misconfigured
from fanout.reconcile.target_findings import Locate, target_findings
from fanout.reconcile.unmatched import (
    unmatched_dependencies,
    unmatched_repositories,
    unmatched_selectors,
)


@click.command()
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings) -> ExitCode:
    """Name every fault of every document.

    Each has its file, line and field, and what to do. Expressions and templates are compiled, and
    evaluated against the objects that are there: a target that would fail is an error, and what may
    be meant a warning. No repository is looked at. Exits with 2 when there is an error.
    """
    files = files_of(settings)
    declared = files.read()
    with open_sandbox(settings) as sandbox:
        findings: tuple[Finding, ...] = (
            *declared.faults,
            *uncompilable(declared, sandbox),
            *misconfigured(declared),
            *unmatched_repositories(declared),
        )
        if len(declared.objects):
            findings += (
                *unmatched_selectors(declared, declared.policies),
                *unmatched_dependencies(declared),
            )
        findings += target_findings(declared, sandbox, _places(files), findings)
    findings = tuple(sorted(findings, key=lambda it: (it.where.file, it.where.line)))
    empty = not findings and not declared.ours
    errors = sum(finding.severity == "error" for finding in findings)
    if settings.output in (Format.JSON, Format.YAML):
        show_value([_plain(finding) for finding in findings], settings.output)
    else:
        warned = {"error": "", "warning": "warning: "}
        write("".join(f"{warned[it.severity]}{line}\n" for it, line in folded(findings)))
        write("" if findings or empty else "no faults\n")
    if empty:
        raise _nothing(declared, settings)
    return ExitCode.INVALID if errors else ExitCode.OK


def _places(files: FileCluster) -> Locate:
    """Where objects stand in the files; a repository that was chosen by name has no namespace."""

    @cache
    def place(group: str, kind: str, namespace: str, name: str) -> str:
        return files.place_of(ObjectKey(group, kind, namespace, name))

    return place


def _nothing(declared: Declared, settings: Settings) -> InvalidInput:
    """Who mistypes a directory must not read that it has no faults."""
    where = ", ".join(map(str, settings.files))
    others = len(declared.objects)
    found = f"{plural_of(others, 'object')} and none of fanout's" if others else "no objects"
    return InvalidInput(
        f"{where}: there is nothing to validate, {found}",
        reason="NotFound",
        remedy="check what is given to -f; files end in .yaml, .yml or .json",
    )


def _plain(finding: Finding) -> dict[str, object]:
    where = finding.where
    return {
        "file": where.file,
        "line": where.line,
        "object": where.object,
        "field": where.field,
        "problem": finding.problem,
        "remedy": finding.remedy,
        "severity": finding.severity,
    }
