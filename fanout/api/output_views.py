"""Views: objects that `fanout get`, `forecast` and `schedule` print.

Documented and stable.
"""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import API_VERSION, Model


class HoldView(Model):
    """Reason why a stage, target or draft is blocked."""

    reason: str = Field(description="Why, in one CamelCase word of a closed list.")
    message: str = Field(description="Why, in a sentence.")
    who: str = Field(default="", description="Who can do something about it.")
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="When it ends by itself; RFC 3339.")


class ViewMeta(Model):
    """Name, namespace and labels of a view."""

    name: str = Field(description="A name for people, unique in its list.")
    namespace: str = Field(description="The namespace of the policy.")
    labels: dict[str, str] = Field(
        default={},
        description="Those of what it shows: the target's object, the draft's variant, the stage's"
        " policy; and fanout's own: `fanout.dev/policy`, `fanout.dev/stage`,"
        " `fanout.dev/repository`.",
    )


class View(Model):
    """Base of all views of a policy's parts."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    metadata: ViewMeta = Field(description="Name, namespace and labels.")
    policy: str = Field(description="The UpstreamPolicy; empty for a variant written by hand.")
    holds: tuple[HoldView, ...] = Field(default=(), description="What it waits for.")


class OtherRevisionView(Model):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: str = Field(description="The revision's name.")
    newer: bool = Field(description="Whether it waits behind the candidate; else it was dropped.")
    holds: tuple[HoldView, ...] = Field(description="Why it is not the candidate.")


class StageView(View):
    """Current state of one stage of a policy."""

    kind: Literal["StageView"] = Field(default="StageView", description="StageView.")
    stage: str = Field(description="The stage's name.")
    candidate: str = Field(description="The revision that the stage is to take next, or has.")
    verdict: Literal["passed", "failed", "pending"] = Field(
        description="Of the candidate in this stage."
    )
    gate: Literal["passed", "failed", "pending"] = Field(
        description="Whether the stages before let the candidate through, soak included."
    )
    verdicts: dict[str, str] = Field(default={}, description="The verdict of each revision.")
    counts: dict[str, int] = Field(default={}, description="How many variants are in each state.")
    queued: tuple[str, ...] = Field(
        default=(), description="Newer revisions that wait behind the candidate."
    )
    others: tuple[OtherRevisionView, ...] = Field(
        default=(),
        description="Why the newest of those waits, and the last that can pass no more.",
    )
    in_flight: int = Field(
        default=0, description="How many variants are released and neither ready nor failed."
    )
    budget: int | None = Field(
        default=None, description="How many may be in flight; empty: as many as there are."
    )
    halted: bool = Field(default=False, description="Whether more have failed than it bears.")
    next: str | None = Field(
        default=None, description="The next instant at which something can change; RFC 3339."
    )


class TargetView(View):
    """One target of a policy and its variant."""

    kind: Literal["TargetView"] = Field(default="TargetView", description="TargetView.")
    target: str = Field(description="The target's key.")
    variant: str = Field(default="", description="The variant made for it; empty: none.")
    stage: str = Field(default="", description="The stage the variant is in.")
    repository: str = Field(default="", description="The name of the downstream Repository.")
    path: str = Field(default="", description="The package's path from the repository's root.")
    state: str = Field(description="Where the variant is on its way, or Failed.")


class DraftView(View):
    """One open draft."""

    kind: Literal["DraftView"] = Field(default="DraftView", description="DraftView.")
    variant: str = Field(description="The variant that is drafted.")
    stage: str = Field(description="The stage the variant is in.")
    repository: str = Field(description="The name of the downstream Repository.")
    path: str = Field(description="The package's path from the repository's root.")
    branch: str = Field(description="The draft's branch.")
    commit: str = Field(description="The tip of the branch.")
    tree: str = Field(description="The package's tree in the draft: what an approval is about.")
    revision: str = Field(description="The upstream revision that it was rendered for.")
    digest: str = Field(description="The digest of what it was rendered from.")
    conflicts: int = Field(
        default=0, description="How many values both sides changed and nobody has decided."
    )
    edited: bool = Field(description="Whether a person's commits are on it.")
    current: bool = Field(description="Whether it is what the candidate asks for.")
    state: str = Field(description="Where the variant is on its way.")


class ForecastView(View):
    """Earliest times of a revision in a stage, as `fanout forecast` prints them."""

    kind: Literal["ForecastView"] = Field(default="ForecastView", description="ForecastView.")
    stage: str = Field(description="The stage's name.")
    revision: str = Field(description="The upstream revision.")
    begins: str | None = Field(
        default=None,
        description="When its first variant can be published; RFC 3339. Empty: never by itself.",
    )
    passes: str | None = Field(
        default=None, description="When it can have passed; RFC 3339. Empty: never by itself."
    )
    assumptions: tuple[str, ...] = Field(
        default=(), description="What is taken to be done at once, and how long things take."
    )


class InstantMeta(Model):
    """The name of a view of an instant."""

    name: str = Field(description="The instant; RFC 3339.")


class InstantView(Model):
    """Instant at which a schedule fires, as `fanout schedule next` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["InstantView"] = Field(default="InstantView", description="InstantView.")
    metadata: InstantMeta = Field(description="The instant is its name.")
    local: str = Field(description="The instant as clocks of the time zone show it; RFC 3339.")
    weekday: str = Field(description="The day of the week there: Mon to Sun.")


class WindowView(Model):
    """State of the windows from an instant on, as `fanout schedule windows` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["WindowView"] = Field(default="WindowView", description="WindowView.")
    metadata: InstantMeta = Field(description="The instant is its name.")
    local: str = Field(description="The instant as clocks of the time zone show it; RFC 3339.")
    weekday: str = Field(description="The day of the week there: Mon to Sun.")
    open: bool = Field(description="Whether publication is open from the instant on.")
    until: str | None = Field(
        default=None, description="When that changes; RFC 3339. Empty: not within five years."
    )
    promotion_policy: str = Field(
        default="", description="The PromotionPolicy that closes it, now or then."
    )
    window: str = Field(default="", description="The window of it that does so.")
    message: str = Field(description="The same in a sentence.")


VIEWS: tuple[type[Model], ...] = (
    StageView,
    TargetView,
    DraftView,
    ForecastView,
    InstantView,
    WindowView,
)
