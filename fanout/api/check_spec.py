"""Checks on drafts before publication (`requires`) and after it (`verification`)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt

from fanout.api.durations import Duration
from fanout.api.field_errors import InvalidValue
from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.git_repository import SecretRef
from fanout.api.http_urls import HttpUrl, ServerUrl, check_header
from fanout.api.object_meta import Model
from fanout.api.text_fields import (
    ApiVersion,
    Expression,
    FreeForm,
    Kind,
    Name,
    NonEmptyDistinct,
    Text,
)


class ReportCheck(Model):
    """Check answered by recorded Evidence of a pipeline, a test or a person.

    It has no fields.
    """


class ApprovalCheck(Model):
    """Check answered by recorded Approvals of the draft's tree."""

    at_least: StrictInt = Field(
        default=1, ge=1, description="How many distinct people must approve."
    )
    from_: NonEmptyDistinct[Name] = Field(
        description="Groups of a PromotionPolicy's approvers; the people of all of them count."
    )
    expires: Duration = Field(
        default=None, description="For how long an approval counts; absent: for ever."
    )


class CommitStatusCheck(Model):
    """Check answered by the forge's status of the commit."""

    context: Text = Field(description="The name of the status.")


class ObjectCheck(Model):
    """Check answered by a cluster object."""

    api_version: ApiVersion = Field(description="The object's apiVersion.")
    kind: Kind = Field(description="The object's kind.")
    name: Text | None = Field(default=None, description="The object's name.")
    name_expr: Expression | None = Field(default=None, description="CEL that yields the name.")
    namespace: Name | None = Field(
        default=None,
        description="The object's namespace; absent: the policy's, or none where it has none.",
    )
    cel: Expression = Field(description="CEL over `object`: has the check passed?")
    observed_revision: Expression | None = Field(
        default=None,
        description="CEL over `object` that yields the revision or commit that it has seen.",
    )


class PrometheusCheck(Model):
    """Check answered by an instant query to a Prometheus server or a compatible one."""

    address: ServerUrl | None = Field(
        default=None, description="The server, with the path before /api/v1 if there is one."
    )
    address_expr: Expression | None = Field(default=None, description="CEL that yields it.")
    query: Annotated[str, Field(min_length=1, max_length=16384)] | None = Field(
        default=None, description="PromQL."
    )
    query_expr: Expression | None = Field(default=None, description="CEL that yields the PromQL.")
    secret_ref: SecretRef | None = Field(
        default=None, description="The secret with user and password, or with a token."
    )
    cel: Expression = Field(
        description="CEL over `result`, a list of {metric, value} or a number: has it passed?"
    )
    observed_revision: Expression | None = Field(
        default=None,
        description="CEL over `result` that yields the revision or commit that it is about.",
    )


class HttpMethod(StrEnum):
    """Method of an HTTP request."""

    GET = "GET"
    POST = "POST"


def _check_headers(values: Mapping[str, str]) -> Mapping[str, str]:
    # HTTP header names ignore case, so `Accept` and `accept` would be sent as one header twice.
    if len({name.lower() for name in values}) < len(values):
        raise InvalidValue("two headers have one name but for case", "remove one of them")
    for name, value in values.items():
        check_header(name, value)
    return values


class HttpCheck(Model):
    """Check answered by an HTTP service."""

    url: HttpUrl | None = Field(default=None, description="Where to ask.")
    url_expr: Expression | None = Field(default=None, description="CEL that yields it.")
    method: HttpMethod = Field(default=HttpMethod.GET, description="How to ask.")
    headers: Annotated[Mapping[Text, Text], AfterValidator(_check_headers)] = Field(
        default={}, description="Further headers; those with credentials come from the secret."
    )
    body: FreeForm | None = Field(default=None, description="POST: what is sent, as JSON.")
    secret_ref: SecretRef | None = Field(
        default=None, description="The secret with user and password, or with a token."
    )
    cel: Expression = Field(
        description="CEL over `response`, its `status` and its JSON `body`: has it passed?"
    )
    observed_revision: Expression | None = Field(
        default=None,
        description="CEL over `response` that yields the revision or commit that it is about.",
    )


MachineCheck = ObjectCheck | PrometheusCheck | HttpCheck


class Check(Model):
    """One check: a name and exactly one source of its result."""

    name: Name = Field(description="The check's name, unique in its stage; evidence names it.")
    report: ReportCheck | None = Field(
        default=None, description="Answered by recorded Evidence (`fanout report`)."
    )
    approval: ApprovalCheck | None = Field(
        default=None, description="Answered by recorded Approvals (`fanout approve`)."
    )
    commit_status: CommitStatusCheck | None = Field(
        default=None, description="Answered by the forge's status of the commit."
    )
    object: ObjectCheck | None = Field(default=None, description="Answered by a cluster object.")
    prometheus: PrometheusCheck | None = Field(
        default=None, description="Answered by a query to Prometheus."
    )
    http: HttpCheck | None = Field(default=None, description="Answered by an HTTP service.")
    timeout: Duration = Field(
        default=None, description="After so long without an answer the check has failed."
    )
    fresh_for: Duration = Field(default=None, description="For how long an answer counts.")
    settle: Duration = Field(
        default=None, description="How long after publication the check is first asked."
    )

    @property
    def machine_check(self) -> MachineCheck | None:
        """Return the machine's part of the check; None if people, pipelines or the forge answer."""
        return self.object or self.prometheus or self.http

    @property
    def method(self) -> CheckMethod:
        """Return how the check is answered; an approval counts as a report."""
        for method, source in (
            (CheckMethod.OBJECT, self.object),
            (CheckMethod.PROMETHEUS, self.prometheus),
            (CheckMethod.HTTP, self.http),
            (CheckMethod.COMMIT_STATUS, self.commit_status),
        ):
            if source is not None:
                return method
        return CheckMethod.REPORT
