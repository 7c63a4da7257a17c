"""Results of a gate evaluation: what may happen now and what blocks the rest."""

from collections.abc import Mapping
from datetime import datetime

from fanout.api.results import Hold, StageResult, VariantResult
from fanout.gates.revision_history import RevisionHistory
from fanout.pending_inputs import ExpressionRequest
from fanout.values import Value


class PolicyEvaluation(Value):
    """Evaluation of one policy; `history` is what the status must remember from now on."""

    stages: Mapping[str, StageResult]
    variants: Mapping[str, VariantResult]
    history: Mapping[tuple[str, str], RevisionHistory]
    holds: tuple[Hold, ...] = ()
    next: datetime | None = None  # first instant at which the policy must be evaluated again
    # While there are any, the evaluation assumes answers and must not be carried out.
    unanswered: tuple[ExpressionRequest, ...] = ()
