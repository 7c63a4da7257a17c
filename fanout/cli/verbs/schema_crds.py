"""`fanout schema` and `fanout crds`: print schemas for editors, and for `kubectl apply`."""

import re

import click

from fanout.api.admission_policies import DEFAULT_SERVICE_ACCOUNT, build_admission_policies
from fanout.api.crd_schemas import build_crds, build_json_schemas
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import build_list, format_yaml, print_value, write_stdout
from fanout.cli.process_exit import invalid_setting
from fanout.cli.settings import OutputFormat, Settings
from fanout.errors import InvalidInput


@click.command(cls=VerbCommand)
@click.argument("kind", required=False)
@with_settings(ERROR_OPTIONS, formats=(OutputFormat.JSON, OutputFormat.YAML))
def schema(settings: Settings, kind: str | None) -> None:
    """Print the JSON Schemas of all kinds.

    KIND is a kind that users write, such as UpstreamPolicy, or that `fanout get` prints, such as
    StageView. Without KIND, prints one object with the schema of each kind. Editors use the schemas
    to complete and check files.
    """
    schemas = build_json_schemas()
    if kind is None:
        print_value(schemas, settings.output)
        return
    by_lower = {name.lower(): name for name in schemas}
    if kind.lower() not in by_lower:
        raise InvalidInput(
            f"there is no kind {kind!r}",
            reason="UnknownKind",
            remedy=f"use one of {', '.join(schemas)}",
        )
    print_value(schemas[by_lower[kind.lower()]], settings.output)


_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE_ACCOUNT = re.compile(rf"{_LABEL}/{_LABEL}([.]{_LABEL})*")


@click.command(cls=VerbCommand)
@click.option(
    "--admission", is_flag=True, help="Print the admission policies and their bindings instead."
)
@click.option(
    "--service-account",
    metavar="NAMESPACE/NAME",
    help="Service account of the controller, which alone may write the PackageVariants of"
    f" policies; with --admission.  [default: {DEFAULT_SERVICE_ACCOUNT}]",
)
@with_settings(ERROR_OPTIONS, formats=(OutputFormat.YAML, OutputFormat.JSON))
def crds(settings: Settings, admission: bool, service_account: str | None) -> None:
    """Print the CustomResourceDefinitions, or the admission policies.

    The YAML output has one document for each object. To install the kinds, run `fanout crds |
    kubectl apply --server-side -f -`.

    With --admission, prints the ValidatingAdmissionPolicies with their bindings. By them the API
    server refuses evidence, approvals and decisions in the name of somebody else, and those of
    users whom RBAC does not allow the verb on the UpstreamPolicy: report, approve, promote,
    override, suspend or remove.
    """
    if service_account is not None and not admission:
        raise invalid_setting(
            "--service-account has no effect without --admission",
            "add --admission, or drop --service-account",
            "--service-account",
        )
    account = service_account or DEFAULT_SERVICE_ACCOUNT
    if not _SERVICE_ACCOUNT.fullmatch(account):
        raise invalid_setting(
            f"{account!r} is not a service account",
            f"write its namespace and name, such as {DEFAULT_SERVICE_ACCOUNT}",
            "--service-account",
        )
    documents = build_admission_policies(account) if admission else build_crds()
    if settings.output is OutputFormat.JSON:
        print_value(build_list(documents), OutputFormat.JSON)
    else:
        write_stdout("---\n".join(map(format_yaml, documents)))
