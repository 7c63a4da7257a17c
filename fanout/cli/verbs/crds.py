"""`fanout crds`: print CustomResourceDefinitions or admission policies, for `kubectl apply`."""

import re

import click

from fanout.api.admission_policies import DEFAULT_SERVICE_ACCOUNT, build_admission_policies
from fanout.api.crd_schemas import build_crds
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import build_list, format_yaml, print_value, write_stdout
from fanout.cli.process_exit import invalid_setting
from fanout.cli.settings import OutputFormat, Settings

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
def command(settings: Settings, admission: bool, service_account: str | None) -> None:
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
