"""Results that `fanout simulate` and `fanout test` print; documented and stable."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import API_VERSION, Model
from fanout.api.output_views import ViewMeta
from fanout.api.reasons import ReasonClass


class ReasonView(Model):
    """Reason why a variant, stage or policy is blocked."""

    class_: ReasonClass = Field(description="What kind of reason it is.")
    reason: str = Field(description="Why, in one CamelCase word of a closed list.")
    message: str = Field(description="Why, in a sentence.")
    who: str = Field(default="", description="Who can do something about it.")
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="When it ends by itself; RFC 3339.")


class HeldView(Model):
    """Variant that is blocked."""

    variant: str = Field(description="The variant.")
    state: str = Field(description="Where it is on its way.")
    reasons: tuple[ReasonView, ...] = Field(description="All that is in its way.")


class AggregatesView(Model):
    """Counts of a stage's variants, as `propagateWhen` sees them."""

    total: int = Field(description="That count for the candidate.")
    updated: int = Field(description="Released for the candidate, or published at it.")
    ready: int = Field(description="Ready at the candidate.")
    in_flight: int = Field(description="Released and neither ready nor failed.")
    failed: int = Field(description="Failed at the candidate.")


class OtherRevisionMoment(Model):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: str = Field(description="The revision.")
    newer: bool = Field(description="It waits behind the candidate; else it can pass no more.")
    reasons: tuple[ReasonView, ...] = Field(description="Why the stage does not take it.")


class StageMoment(Model):
    """State of one stage at a moment."""

    stage: str = Field(description="The stage's name.")
    candidate: str = Field(description="The revision that it is to take next, or has.")
    gate: Literal["passed", "failed", "pending"] = Field(
        description="Whether the stages before let the candidate through, soak included."
    )
    verdict: Literal["passed", "failed", "pending"] = Field(
        description="Of the candidate in this stage."
    )
    verdicts: dict[str, str] = Field(description="The verdict of each revision.")
    halted: bool = Field(description="Too many variants have failed: nothing is released.")
    budget: int | None = Field(description="How many may be in flight; null: all.")
    aggregates: AggregatesView = Field(description="Its variants in numbers.")
    counts: dict[str, int] = Field(description="How many variants are in each state.")
    released: tuple[str, ...] = Field(
        description="The variants that are released now, in their order."
    )
    published: tuple[str, ...] = Field(description="The variants that may be published now.")
    held: tuple[HeldView, ...] = Field(description="The variants that do not go on, and why.")
    holds: tuple[ReasonView, ...] = Field(description="What the stage as a whole waits for.")
    queued: tuple[str, ...] = Field(description="Newer revisions that wait.")
    others: tuple[OtherRevisionMoment, ...] = Field(
        default=(), description="Other revisions that it might take, and why not."
    )
    next: str | None = Field(description="The next instant at which it can change; RFC 3339.")


class MomentView(Model):
    """Result of one pass of the gates."""

    at: str = Field(description="When; RFC 3339.")
    carried_out: bool = Field(description="What is released and published here was carried out.")
    stages: tuple[StageMoment, ...] = Field(description="Each stage, in the order written.")
    in_no_stage: tuple[HeldView, ...] = Field(description="Variants that no stage has.")
    holds: tuple[ReasonView, ...] = Field(description="What the policy as a whole waits for.")
    next: str | None = Field(description="The next instant at which anything can change.")


class Simulation(Model):
    """Results of a simulated scenario at each of its moments."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["Simulation"] = Field(default="Simulation", description="Simulation.")
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(description="The policy; of a scenario with own stages its own name.")
    moments: tuple[MomentView, ...] = Field(description="The passes, in order.")


class DifferenceView(Model):
    """Difference between an expected value and the result."""

    at: str = Field(description="At which moment; RFC 3339.")
    subject: str = Field(description="Of what: `stage prod`, `variant ams`, `policy`.")
    field: str = Field(description="Which expectation: `spec.expect[0].stages[1].candidate`.")
    expected: str = Field(description="What was expected, as text.")
    found: str = Field(description="What came out, as text.")
    why: str = Field(default="", description="What the engine says about the subject.")
    file: str = Field(default="", description="The file with the expectation.")
    line: int = Field(default=0, description="Its line.")


class TestResult(Model):
    """Result of comparing a scenario with its expectations."""

    __test__ = False  # keeps pytest from collecting the class

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["TestResult"] = Field(default="TestResult", description="TestResult.")
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(description="The policy that the scenario is about.")
    file: str = Field(description="The scenario's file.")
    line: int = Field(description="Its line in the file.")
    result: Literal["passed", "failed", "invalid", "empty"] = Field(
        description="empty: nothing is expected; invalid: the scenario has faults."
    )
    expectations: int = Field(description="How many values were compared.")
    differences: tuple[DifferenceView, ...] = Field(default=(), description="What differs.")


SCENARIO_RESULTS: tuple[type[Model], ...] = (Simulation, TestResult)
