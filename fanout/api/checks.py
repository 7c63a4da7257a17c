"""Checks: what is asked about a draft before it is published, or after."""

from pydantic import Field, StrictInt

from fanout.api.durations import Duration
from fanout.api.meta import Model
from fanout.api.texts import ApiVersion, DistinctSome, Expression, FreeForm, Kind, Name, Text


class ReportCheck(Model):
    """Somebody records Evidence: a pipeline, a test, a person. It has no fields."""


class ApprovalCheck(Model):
    """People record Approvals of the draft's tree."""

    at_least: StrictInt = Field(
        default=1, ge=1, description="How many distinct people must approve."
    )
    from_: DistinctSome[Name] = Field(
        description="Groups of a PromotionPolicy's approvers; the people of all of them count."
    )
    expires: Duration = Field(
        default=None, description="For how long an approval counts; absent: for ever."
    )


class CommitStatusCheck(Model):
    """The forge's status of the commit."""

    context: Text = Field(description="The name of the status.")


class ObjectCheck(Model):
    """A question to a cluster object."""

    api_version: ApiVersion = Field(description="The object's apiVersion.")
    kind: Kind = Field(description="The object's kind.")
    name: Text | None = Field(default=None, description="The object's name.")
    name_expr: Expression | None = Field(default=None, description="CEL that yields the name.")
    namespace: Name | None = Field(default=None, description="The object's namespace.")
    cel: Expression = Field(description="CEL over `object`: has the check passed?")
    observed_revision: Expression | None = Field(
        default=None, description="CEL that yields the revision or commit that the object has seen."
    )


class Check(Model):
    """One check: a name and exactly one way to ask."""

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
    prometheus: FreeForm | None = Field(default=None, description="Answered by a query.")
    http: FreeForm | None = Field(default=None, description="Answered by an HTTP service.")
    timeout: Duration = Field(
        default=None, description="After so long without an answer the check has failed."
    )
    fresh_for: Duration = Field(default=None, description="For how long an answer counts.")
    settle: Duration = Field(
        default=None, description="How long after publication the check is first asked."
    )
