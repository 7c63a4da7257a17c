"""Stages of a policy: what must come before, what is asked, how fast it goes."""

from enum import StrEnum
from fractions import Fraction

from pydantic import Field, StrictBool, StrictInt
from pydantic.config import JsonDict

from fanout.api.amounts import Amount, Factor, Quorum
from fanout.api.checks import Check
from fanout.api.durations import Duration
from fanout.api.meta import Model
from fanout.api.selectors import LabelSelector
from fanout.api.texts import DistinctSome, Expression, Name, RevisionName

BY_NAME: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


class Require(StrEnum):
    """How many of the listed stages must have passed."""

    ALL = "All"
    ANY = "Any"
    MAJORITY = "Majority"


class After(Model):
    """The stages before, and for how long each must have been ready."""

    stages: DistinctSome[Name] = Field(description="The stages whose verdicts count.")
    require: Require = Field(
        default=Require.ALL, description="How many of them must have passed the revision."
    )
    at_least: Quorum = Field(
        default=None, description='So many must have passed, 2 or "60%", instead of `require`.'
    )
    soak: Duration = Field(
        default=None, description="How long without a break the revision was ready in each stage."
    )


class Strategy(StrEnum):
    """How the number of variants in flight grows."""

    ALL_AT_ONCE = "AllAtOnce"
    LINEAR = "Linear"
    EXPONENTIAL = "Exponential"


class Rollout(Model):
    """How fast a revision goes through the variants of a stage."""

    strategy: Strategy = Field(
        default=Strategy.ALL_AT_ONCE, description="How the number of variants in flight grows."
    )
    step: StrictInt = Field(default=1, ge=1, description="Linear: how many may be in flight.")
    factor: Factor = Field(
        default=Fraction(2),
        description="Exponential: growth with each round; a number above 1.",
        json_schema_extra={"default": 2},
    )
    max_in_flight: Amount = Field(
        default=None, description='At most so many in flight, 5 or "25%"; 0 releases nothing.'
    )
    max_failures: Amount = Field(
        default=None, description="More failures than this halt the stage; absent: 0."
    )
    min_ready: Duration = Field(
        default=None, description="How long a variant must be verified before it is ready."
    )
    progress_deadline: Duration = Field(
        default=None, description="Published for longer than this and not verified is failed."
    )
    groups: tuple[LabelSelector, ...] = Field(
        default=(),
        description="Variants with these labels go first, group by group; all others last.",
    )


class Stage(Model):
    """A named set of the policy's variants."""

    name: Name = Field(description="The stage's name; templates and other stages refer to it.")
    after: After | None = Field(
        default=None, description="The stages before; without it the stage waits for none."
    )
    verification: tuple[Check, ...] = Field(
        default=(),
        description="What is asked after publication; without any, published is ready.",
        json_schema_extra=BY_NAME,
    )
    requires: tuple[Check, ...] = Field(
        default=(), description="What is asked before publication.", json_schema_extra=BY_NAME
    )
    rollout: Rollout | None = Field(
        default=None, description="How fast a revision goes through the stage."
    )
    propagate_when: tuple[Expression, ...] = Field(
        default=(), description="CEL; all must be true for a variant to be released."
    )
    control_flow: StrictBool = Field(
        default=False, description="A stage without targets that only joins others."
    )
    suspend: StrictBool = Field(
        default=False,
        description="The stage stays as it is: no draft is written, nothing is published.",
    )
    pin: RevisionName | None = Field(
        default=None, description="The revision that the stage goes back to and stays at."
    )
