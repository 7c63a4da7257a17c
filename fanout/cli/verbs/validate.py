"""`fanout validate`: validate all documents in one run and report every error."""

from functools import cache, partial

import click

from fanout.api.object_meta import GROUP
from fanout.api.text_fields import pluralize
from fanout.cli.declarations import open_files
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode, not_found
from fanout.cli.settings import REPORT_FORMATS, Settings
from fanout.cli.startup import open_sandbox
from fanout.cluster.file_cluster import read_configuration
from fanout.cluster.file_secrets import FileSecrets
from fanout.declared.declared_objects import ObjectKey, locate_broken
from fanout.declared.finding import Finding, group_findings, serialize_finding
from fanout.reconcile.validation.configuration_findings import (
    find_closed_namespaces,
    find_configured_secrets,
    find_forge_findings,
    find_missing_secrets,
    find_unknown_policies,
)
from fanout.reconcile.validation.declaration_findings import (
    find_closed_windows,
    find_target_findings,
    find_unmatched_dependencies,
    find_unmatched_repositories,
    find_unmatched_selectors,
)
from fanout.reconcile.validation.expression_validation import (
    find_function_findings,
    validate_expressions,
)
from fanout.telemetry.redaction import Redactor


@click.command(cls=VerbCommand)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 2 for warnings too. Warnings about missing secrets do not count, because"
    " another machine can have the secrets.",
)
@with_settings(("files", "config", "state_dir", "now", *ERROR_OPTIONS), formats=REPORT_FORMATS)
def command(settings: Settings, *, strict: bool) -> ExitCode:
    """Validate all documents and report every error.

    Each error is printed with its file, line and field, and with a remedy. Expressions and
    templates are compiled, and are evaluated for the objects in the files. An expression that fails
    for a target is an error. A possible mistake, such as a target that belongs to no stage, is a
    warning. No repository is read. Exits with code 2 if there are errors.
    """
    files = open_files(settings)
    declared = files.read()
    with open_sandbox(settings) as sandbox:
        findings: tuple[Finding, ...] = (
            *declared.faults,
            *validate_expressions(declared, sandbox),
            *find_function_findings(declared),
            *find_unmatched_repositories(declared),
            *find_closed_windows(declared, settings.now()),
        )
        # Policies are often validated without their targets, as in the CI of their repository.
        if len(declared.objects):
            findings += (
                *find_unmatched_selectors(declared, declared.policies),
                *find_unmatched_dependencies(declared),
            )
        secrets = FileSecrets(Redactor(), settings.state_dir / "secrets")
        secret_findings = (*find_missing_secrets(declared, secrets),)
        if settings.config:  # without one nobody knows what an administrator lists
            configuration, position = read_configuration(settings.config)
            key = ObjectKey(GROUP, configuration.kind, "", configuration.metadata.name)
            locate = partial(locate_broken, key, position)
            findings += (
                *find_forge_findings(declared, configuration.forges),
                *find_closed_namespaces(declared, configuration.checks.namespaces),
                *find_unknown_policies(configuration, locate, declared),
            )
            secret_findings += (*find_configured_secrets(configuration, locate, secrets),)
        findings += secret_findings
        # Last, with the findings so far: a field that has an error already is not reported a second
        # time.
        locate_object = cache(lambda *key: files.locate_object(ObjectKey(*key)))
        findings += find_target_findings(declared, sandbox, locate_object, findings)
    findings = tuple(sorted(findings, key=lambda it: (it.where.file, it.where.line)))
    empty = not findings and not declared.own_count
    errors = sum(finding.severity == "error" for finding in findings)
    refused = sum(it not in secret_findings for it in findings) - errors if strict else 0
    if settings.output.is_data:
        print_value([serialize_finding(finding) for finding in findings], settings.output)
    else:
        warned = {"error": "", "warning": "warning: "}
        write_lines(f"{warned[it.severity]}{line}" for it, line in group_findings(findings))
        if not errors and refused:
            write_lines([f"{pluralize(refused, 'warning')} refused by --strict"])
        elif not errors and not empty:
            count = declared.own_count + len(declared.objects)
            verb = "is" if count == 1 else "are"
            remark = f", with {pluralize(len(findings), 'warning')}" if findings else ""
            write_lines([f"{pluralize(count, 'object')} {verb} valid{remark}"])
    # A mistyped directory must not look valid.
    if empty:
        where, foreign_count = ", ".join(map(str, settings.files)), len(declared.objects)
        content = "no objects"
        if foreign_count:
            content = f"{pluralize(foreign_count, 'object')}, none of fanout's kinds"
        problem = f"{where}: nothing to validate: {content}"
        raise not_found(problem, "check -f; files end in .yaml, .yml or .json")
    return ExitCode.INVALID if errors or refused else ExitCode.OK
