"""Last phase of a variant in a pass: what the gates decided, and the step that follows."""

from enum import StrEnum

from fanout.api.results import CheckAnswer, VariantResult
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import Value


class VariantStep(StrEnum):
    """Step of a variant: the change that a pass makes in its repository."""

    KEEP = "keep"  # nothing
    WRITE = "write"  # a draft
    PUBLISH = "publish"  # merge and tag the open draft
    MERGE = "merge"  # have the forge merge the pull request of its draft
    SETTLE = "settle"  # record a publication found in Git and remove its draft
    ADOPT = "adopt"  # the published package equals the rendering; only the digest differs
    REMOVE = "remove"  # remove an obsolete draft


class DecidedVariant(Value):
    """Rendered variant with the step that follows from the decision of the gates."""

    rendered: RenderedVariant
    step: VariantStep
    release: bool = False  # to be recorded before anything is pushed
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks, to be recorded
    evaluation: VariantResult | None = None  # the decision; None: of no policy
