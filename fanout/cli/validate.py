"""`fanout validate`: every fault of every document in one run."""

import click

from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_sandbox
from fanout.cluster.files import FileCluster
from fanout.cluster.findings import Finding
from fanout.reconcile.compile import uncompilable


@click.command()
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings) -> ExitCode:
    """Name every fault of every document.

    Each has its file, line and field, and what to do. Expressions and templates are compiled too.
    No repository is looked at.
    """
    declared = FileCluster(settings.sources()).read()
    with open_sandbox(settings) as sandbox:
        findings = (*declared.faults, *uncompilable(declared, sandbox))
    errors = sum(finding.severity == "error" for finding in findings)
    if settings.output in (Format.JSON, Format.YAML):
        show_value([_plain(finding) for finding in findings], settings.output)
    else:
        warned = {"error": "", "warning": "warning: "}
        write("".join(f"{warned[item.severity]}{item}\n" for item in findings))
        write("" if findings else "no faults\n")
    return ExitCode.INVALID if errors else ExitCode.OK


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
