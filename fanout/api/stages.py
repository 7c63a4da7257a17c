"""Stages of an UpstreamPolicy: order, checks, rollout, and amounts like `"60%"`.

Amounts are kept exactly. A percentage is a whole number (docs/concepts/rollouts.md); the
code that uses an amount decides how it rounds.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from fanout.api.durations import Duration
from fanout.api.field_errors import InvalidValue
from fanout.api.gate_vocabulary import CheckMethod, Require, RolloutStrategy
from fanout.api.git_repository import SecretRef
from fanout.api.object_meta import LabelSelector, Model, listed, optional
from fanout.api.text_fields import (
    MAX_ENTRIES,
    MAX_HEADERS,
    MAX_VALUES,
    ApiVersion,
    Distinct,
    Expression,
    FreeForm,
    Kind,
    Name,
    NonEmptyDistinct,
    RevisionName,
    Text,
    format_value,
    list_map,
    schema_keywords,
)
from fanout.api.urls import HttpUrl, ServerUrl, check_header

_OWN_CONTEXT = "fanout"  # of the status that fanout sets, or the part before the installation


class ReportCheck(Model):
    """Check answered by recorded Evidence of a pipeline, a test or a person.

    It has no fields.
    """


class ApprovalCheck(Model):
    """Check answered by recorded Approvals of the draft's tree."""

    at_least: StrictInt = optional("Number of distinct people that must approve.", default=1, ge=1)
    from_: NonEmptyDistinct[Name] = Field(
        max_length=MAX_ENTRIES,
        description="Names of approver groups in a PromotionPolicy; members of all of them count.",
    )
    expires: Duration = optional("Time that an approval stays valid; default: no limit.")


def check_context(context: str) -> str:
    """Return the context of a commit status. Raises InvalidValue for that of fanout."""
    # A tool that waits for the status that it sets when it need not wait, waits for ever.
    if context == _OWN_CONTEXT or context.startswith(f"{_OWN_CONTEXT}/"):
        raise InvalidValue(f"{context} is a status that fanout sets itself", "use another context")
    return context


class CommitStatusCheck(Model):
    """Check answered by the forge's status of the commit."""

    context: Annotated[Text, AfterValidator(check_context)] = Field(
        description="Context (name) of the commit status."
    )
    by: Distinct[Text] = listed("Logins and apps whose statuses count; default: any.", MAX_VALUES)


class ObjectCheck(Model):
    """Check answered by a cluster object."""

    api_version: ApiVersion = Field(description="apiVersion of the object.")
    kind: Kind = Field(description="Kind of the object.")
    name: Text | None = optional("Name of the object.")
    name_expr: Expression | None = optional("CEL expression that returns the name of the object.")
    namespace: Name | None = optional(
        "Namespace of the object; default: the policy's, or none for cluster-scoped kinds."
    )
    cel: Expression = Field(
        description="CEL expression over `object` that returns whether the check has passed."
    )
    observed_revision: Expression | None = optional(
        "CEL expression over `object` that returns the revision or commit that the object reports."
    )


class PrometheusCheck(Model):
    """Check answered by an instant query to a Prometheus server or a compatible one."""

    address: ServerUrl | None = optional(
        "URL of the server, including the path before `/api/v1` if there is one."
    )
    address_expr: Expression | None = optional("CEL expression that returns the URL of the server.")
    query: Annotated[str, Field(min_length=1, max_length=16384)] | None = optional("PromQL query.")
    query_expr: Expression | None = optional("CEL expression that returns the PromQL query.")
    secret_ref: SecretRef | None = optional(
        "Secret with the keys `username` and `password`, or with `token`."
    )
    cel: Expression = Field(
        description="CEL expression over `result`, a list of {metric, value} or a number,"
        " that returns whether the check has passed."
    )
    observed_revision: Expression | None = optional(
        "CEL expression over `result` that returns the revision or commit that the result is about."
    )


class HttpMethod(StrEnum):
    """Method of an HTTP request."""

    GET = "GET"
    POST = "POST"


def check_headers(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers. Raises InvalidValue for those that a policy may not set."""
    # HTTP header names ignore case, so `Accept` and `accept` would be sent as one header twice.
    if len({name.lower() for name in values}) < len(values):
        raise InvalidValue("two header names differ only in case", "remove one of them")
    for name, value in values.items():
        check_header(name, value)
    return values


_HeaderValue = Annotated[Text, schema_keywords(pattern="^[ -~]+$")]


class HttpCheck(Model):
    """Check answered by an HTTP service."""

    url: HttpUrl | None = optional("URL of the request.")
    url_expr: Expression | None = optional("CEL expression that returns the URL of the request.")
    method: HttpMethod = optional("HTTP method of the request.", default=HttpMethod.GET)
    headers: Annotated[
        Mapping[Text, _HeaderValue], Field(max_length=MAX_HEADERS), AfterValidator(check_headers)
    ] = optional(
        "Further HTTP headers; headers with credentials are taken from the secret.", default={}
    )
    body: FreeForm | None = optional("JSON body of a POST request.")
    secret_ref: SecretRef | None = optional(
        "Secret with the keys `username` and `password`, or with `token`."
    )
    cel: Expression = Field(
        description="CEL expression over `response`, with `status` and the JSON `body`,"
        " that returns whether the check has passed."
    )
    observed_revision: Expression | None = optional(
        "CEL expression over `response` that returns the revision or commit"
        " that the response is about."
    )


MachineCheck = ObjectCheck | PrometheusCheck | HttpCheck


class Check(Model):
    """One check: a name and exactly one source of its result."""

    name: Name = Field(
        description="Name of the check, unique in its stage; evidence and approvals refer to it."
    )
    report: ReportCheck | None = optional("Check by recorded Evidence (`fanout report`).")
    approval: ApprovalCheck | None = optional(
        "Check by Approvals (`fanout approve`) and by reviews on the forge."
    )
    commit_status: CommitStatusCheck | None = optional("Check by a commit status on the forge.")
    object: ObjectCheck | None = optional("Check by a cluster object.")
    prometheus: PrometheusCheck | None = optional("Check by a Prometheus query.")
    http: HttpCheck | None = optional("Check by an HTTP request.")
    timeout: Duration = optional(
        "Time within which there must be a result, from publication, release or"
        " `fanout retry`; the check fails after it. Default: no limit."
    )
    fresh_for: Duration = optional(
        "Time for which a result is valid before publication; required for"
        " `object`, `prometheus` and `http`."
    )
    settle: Duration = optional(
        "Delay after publication (after the release for `requires`) before the"
        " first query; required for queries without `observedRevision`."
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


_MAX_FACTOR = 1_000_000  # nothing grows faster than at once


def _amount_schema(minimum: int, pattern: str) -> JsonDict:
    return {
        "anyOf": [
            {"type": "integer", "minimum": minimum},
            {"type": "string", "pattern": pattern, "maxLength": 4},
        ],
        "x-kubernetes-int-or-string": True,
    }


def parse_amount(value: object) -> int | Fraction:
    """Parse a number from 0 or a share from `0%` to `100%`. Raises InvalidValue."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise InvalidValue(f"{value} is negative", "write 0 or more")
        return value
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,3})%", value, re.ASCII)):
        if (percent := int(match[1])) > 100:
            raise InvalidValue(f"{value} is more than 100%", "write at most 100%")
        return Fraction(percent, 100)
    raise InvalidValue(f"{value!r} is not a number or a whole percentage", 'write 3 or "25%"')


def _write_amount(value: int | Fraction | None) -> int | str | None:
    return f"{int(value * 100)}%" if isinstance(value, Fraction) else value


def parse_quorum(value: Any) -> int | Fraction | None:
    """Parse a number of stages from 1, or a share of them from `1%`. Raises InvalidValue."""
    is_below_one = isinstance(value, int) and not isinstance(value, bool) and value <= 0
    if is_below_one or (value is not None and parse_amount(value) == 0):
        raise InvalidValue("must require at least one stage", "write 1 or more, or 1% or more")
    return None if value is None else parse_amount(value)


Amount = Annotated[
    int | Fraction | None,
    PlainValidator(lambda value: None if value is None else parse_amount(value)),
    PlainSerializer(_write_amount),
    WithJsonSchema(_amount_schema(0, r"^(100|0?[0-9]{1,2})%$")),
]
Quorum = Annotated[
    int | Fraction | None,
    PlainValidator(parse_quorum),
    PlainSerializer(_write_amount),
    WithJsonSchema(_amount_schema(1, r"^(100|0?[1-9][0-9]|0{0,2}[1-9])%$")),
]


def parse_factor(value: object) -> Fraction:
    """Parse a number above 1, exactly as written: 1.1 is eleven tenths. Raises InvalidValue."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(f"{format_value(value)} is not a number", "write one above 1, like 1.5")
    if not 1 < value <= _MAX_FACTOR:
        problem = f"factor {value} is out of range"
        raise InvalidValue(problem, f"write more than 1, at most {_MAX_FACTOR}")
    # By its shortest decimal text: Fraction(1.1) would be the binary approximation.
    return Fraction(Decimal(repr(value)))


Factor = Annotated[
    Fraction,
    PlainValidator(parse_factor),
    PlainSerializer(lambda value: int(value) if value.denominator == 1 else float(value)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 1, "maximum": _MAX_FACTOR}),
]

LIST_MAP_BY_NAME: JsonDict = list_map("name")


class After(Model):
    """Upstream stages of a stage, and the soak that each of them needs."""

    stages: NonEmptyDistinct[Name] = Field(
        max_length=MAX_ENTRIES,
        description="Names of the stages that must have passed the revision.",
    )
    require: Require = optional(
        "Number of the listed stages that must have passed the revision.", default=Require.ALL
    )
    at_least: Quorum = optional(
        "Number or percentage of the listed stages that must have passed, like"
        ' `2` or `"60%"`; excludes `require`.'
    )
    soak: Duration = optional(
        "Time that the revision must be ready without interruption in each of"
        " the stages; default: none."
    )

    @property
    def soak_time(self) -> timedelta:
        """Return the soak, zero if there is none."""
        return self.soak or timedelta(0)


class Rollout(Model):
    """Pace at which a revision goes through the variants of a stage."""

    strategy: RolloutStrategy = optional(
        "Growth of the in-flight limit during a rollout.", default=RolloutStrategy.ALL_AT_ONCE
    )
    step: StrictInt = optional("For `Linear`: number of variants in flight.", default=1, ge=1)
    factor: Factor = optional(
        "For `Exponential`: growth of the limit with each round; a number above 1.",
        default=Fraction(2),
        json_schema_extra={"default": 2},
    )
    max_in_flight: Amount = optional(
        "Maximum number or percentage of variants in flight, like `5` or"
        ' `"25%"`; 0 releases nothing. Default: no limit.'
    )
    max_failures: Amount = optional(
        "Number or percentage of failed variants that the stage tolerates; more"
        " of them halt it. Default: 0."
    )
    min_ready: Duration = optional(
        "Time after the last check passed before a variant is ready; default: none."
    )
    progress_deadline: Duration = optional(
        "Time after publication after which an unverified variant has failed; default: no limit."
    )
    groups: tuple[LabelSelector, ...] = listed(
        "Label selectors of the variants that are released first, group by"
        " group; all other variants are last.",
        MAX_ENTRIES,
    )

    @property
    def tolerance(self) -> int | Fraction:
        """Return the tolerated failures, zero if none are."""
        return self.max_failures or 0

    @property
    def ready_time(self) -> timedelta:
        """Return the time from the last passed check to ready, zero if there is none."""
        return self.min_ready or timedelta(0)


class Stage(Model):
    """A named set of the policy's variants."""

    name: Name = Field(description="Name of the stage; templates and other stages refer to it.")
    after: After | None = optional(
        "Stages that must have passed the revision before this stage takes it; default: none."
    )
    verification: tuple[Check, ...] = listed(
        "Checks after publication; default: none, and a published variant is ready.",
        MAX_ENTRIES,
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    requires: tuple[Check, ...] = listed(
        "Checks before publication; default: none.", MAX_ENTRIES, json_schema_extra=LIST_MAP_BY_NAME
    )
    rollout: Rollout | None = optional(
        "Pace of a rollout through the stage; default: all variants at once."
    )
    propagate_when: tuple[Expression, ...] = listed(
        "CEL expressions that must all be true before a variant is released.", MAX_ENTRIES
    )
    control_flow: StrictBool = optional(
        "Whether the stage has no targets and only joins other stages.", default=False
    )
    suspend: StrictBool = optional(
        "Whether the stage is suspended: no draft is written, nothing is published.", default=False
    )
    pin: RevisionName | None = optional(
        "Revision that the stage is pinned to; it goes back to that revision if it has a newer one."
    )
