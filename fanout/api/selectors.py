"""Label selectors as Kubernetes has them."""

from enum import StrEnum

from pydantic import Field

from fanout.api.meta import Model
from fanout.api.texts import Distinct, LabelKey, Labels, LabelValue


class Operator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(Model):
    """One entry of `matchExpressions`."""

    key: LabelKey = Field(description="The label's key.")
    operator: Operator = Field(description="How the label is compared.")
    values: Distinct[LabelValue] = Field(
        default=(), description="The values for In and NotIn; none for Exists and DoesNotExist."
    )


class LabelSelector(Model):
    """Labels and expressions, all of which must hold; an empty selector chooses everything."""

    match_labels: Labels = Field(default={}, description="Labels that must have these values.")
    match_expressions: tuple[Requirement, ...] = Field(
        default=(), description="Further requirements."
    )
