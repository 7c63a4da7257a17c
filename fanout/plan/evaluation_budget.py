"""Budget of what the expressions, templates and scripts of one object may cost.

Each text has limits of its own, and many texts that reach them would add up. So the first one
over a limit ends its owner's budget in a pass, and so do many that are costly without reaching
one. What is over a limit is tried again after a pause that doubles each time: the limits of time
and memory may be met because the machine is busy, which is no fault of the author.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fanout.api.reasons import Reason
from fanout.gates.timestamps import format_instant
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import frozen

STEPS_PER_PASS = 10_000_000  # a few seconds, beyond what is free in each evaluation
STEPS_PER_SECOND = 2_000_000  # that the time of a request counts as, where steps say less
FREE_SECONDS = 0.5  # of each request, which takes some hundredths of a second
FIRST_PAUSE = timedelta(minutes=1)
MAX_PAUSE = timedelta(hours=1)
MAX_PAUSES = 256  # texts of one owner; beyond, the one that was paused first is tried again
_MAX_QUOTED = 120  # characters of a text in the message about another one


@frozen
class Pause:
    """Time in which a text that exceeded a limit is not tried again."""

    until: datetime
    attempts: int
    problem: str


@dataclass(slots=True)
class EvaluationBudget:
    """Budget of one owner: steps for one pass, and pauses that outlast it.

    `now` is the instant of the pass; None where there is none, as in validation: nothing is paused.
    """

    now: datetime | None = None
    pauses: dict[str, Pause] = field(default_factory=dict)  # by text
    _steps: int = STEPS_PER_PASS  # left in this pass
    _end: str = ""  # why nothing more is evaluated in this pass

    def find_refusal(self, text: str) -> ExpressionFailure | None:
        """Return why the text is not evaluated now; None if it is."""
        pause = self.pauses.get(text)
        # One that ends too late was begun before the clock was set back.
        if pause and self.now and self.now < pause.until <= self.now + MAX_PAUSE:
            return _describe_pause(pause)
        if not self._end:
            return None
        problem = f"it is left for the next pass, because {self._end}"
        return ExpressionFailure(Reason.LIMIT_EXCEEDED, problem, "simplify that first")

    def spend(self, steps: int, seconds: float = 0.0) -> None:
        """Count steps that were taken beyond the free ones, or the time of a request.

        Time counts where steps tell little: in templates, patterns and large values.
        """
        self._steps -= max(steps, int((seconds - FREE_SECONDS) * STEPS_PER_SECOND))
        if self._steps < 0 and not self._end:
            self._end = f"those before it took more than {STEPS_PER_PASS:,} steps, or as much time"

    def note_excess(self, text: str, problem: str) -> ExpressionFailure:
        """Note that the text exceeded a limit; return its failure."""
        self._end = self._end or f"{_quote(text)} exceeded a limit: {problem}"
        if self.now is None:
            return ExpressionFailure(Reason.LIMIT_EXCEEDED, problem, "simplify it")
        previous = self.pauses.pop(text, None)
        attempts = previous.attempts + 1 if previous is not None else 1
        # The exponent is bounded, or the product would leave what a timedelta can hold.
        length = min(FIRST_PAUSE * 2 ** min(attempts - 1, 10), MAX_PAUSE)
        pause = self.pauses[text] = Pause(self.now + length, attempts, problem)
        if len(self.pauses) > MAX_PAUSES:
            del self.pauses[next(iter(self.pauses))]
        return _describe_pause(pause)

    def note_success(self, text: str) -> None:
        """Note that the text was evaluated within its limits."""
        self.pauses.pop(text, None)


def _describe_pause(pause: Pause) -> ExpressionFailure:
    remedy = f"simplify it; it is tried again from {format_instant(pause.until)}"
    return ExpressionFailure(Reason.LIMIT_EXCEEDED, pause.problem, remedy)


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTED else f"{line[: _MAX_QUOTED - 1]}…"
