"""Budget of what the expressions, templates and scripts of one object may cost.

Each text has limits of its own, and many texts that reach them would add up. So the first one
over a limit ends its owner's budget in a pass, and so do many that are costly without reaching
one. What is over a limit is tried again after a pause that doubles each time: the limits of time
and memory may be met because the machine is busy, which is no fault of the author.

Owners would add up, too, so a pass evaluates few texts over a limit for each namespace and kind of
owner. Owners without paused texts do not wait for those that are known to have some.
"""

from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256

from fanout.api.durations import format_instant
from fanout.api.reasons import Reason
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import Value

STEPS_PER_PASS = 10_000_000  # a few seconds, beyond what is free in each evaluation
STEPS_PER_SECOND = 2_000_000  # that the time of a request counts as, where steps say less
FREE_SECONDS = 0.5  # of each request, which takes some hundredths of a second
FIRST_PAUSE = timedelta(minutes=1)
MAX_PAUSE = timedelta(hours=1)
LEFT_PAUSE = timedelta(seconds=10)  # before what is left is tried; doubled by each paused text
MAX_NEW_EXCESSES = 4  # in one pass, of owners of a namespace and kind without paused texts
MAX_KNOWN_EXCESSES = 1  # the same of those with paused texts, besides the one that has its turn
MAX_PAUSES = 256  # texts of one owner; beyond, the one that was paused first is tried again
_MAX_QUOTED = 120  # characters of a text in the message about another one


class Pause(Value, array_like=True):
    """Time in which a text that exceeded a limit is not tried again."""

    until: datetime
    attempts: int
    problem: str


@dataclass(slots=True)
class NamespaceBudget:
    """Owners of one kind in one namespace whose texts exceeded limits in this pass."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)  # that had paused texts when the pass began


@dataclass(slots=True)
class EvaluationBudget:
    """Budget of one owner: steps for one pass, and pauses that outlast it.

    `now` is the instant of the pass; None where there is none, as in validation: nothing is paused.
    """

    now: datetime | None = None
    pauses: dict[str, Pause] = field(default_factory=dict)  # by text
    _steps: int = STEPS_PER_PASS  # left in this pass
    _: KW_ONLY
    owner: str = ""  # for messages
    namespace: NamespaceBudget = field(default_factory=NamespaceBudget)
    has_turn: bool = True  # to try a paused text again; one such owner in each pass
    retry_at: datetime | None = None  # when the first of the refused texts is to be tried
    _end: str = ""  # why nothing more is evaluated in this pass
    _has_other_requests: bool = False  # than for the text that is tried again
    _is_known: bool = field(init=False)
    _retry: str | None = field(init=False)  # the paused text that is tried in this pass

    def __post_init__(self) -> None:
        self._is_known = bool(self.pauses)
        self._choose_retry()

    def _choose_retry(self) -> None:
        # Not in their order: one that fails each time would keep those behind it waiting.
        texts = [text for text, pause in self.pauses.items() if not self._is_running(pause)]
        order = partial(draw, now=self.now)
        self._retry = min(texts, key=order, default=None) if self.has_turn else None

    def _is_running(self, pause: Pause) -> bool:
        # One that ends too late was begun before the clock was set back.
        return self.now is None or self.now < pause.until <= self.now + MAX_PAUSE

    def find_refusal(self, text: str) -> ExpressionFailure | None:
        """Return why the text is not evaluated now; None if it is."""
        self._has_other_requests = self._has_other_requests or text != self._retry
        if (pause := self.pauses.get(text)) and self._is_running(pause):
            return self._refuse_paused(pause)
        if pause and text != self._retry:
            self._note_left()
            remedy = "simplify it; it is tried again in a later pass"
            return ExpressionFailure(Reason.LIMIT_EXCEEDED, pause.problem, remedy)
        owners, most = self.namespace.new, MAX_NEW_EXCESSES
        if self._is_known:
            owners, most = self.namespace.known, MAX_KNOWN_EXCESSES
        cause = "" if pause else self._end
        is_over = len(owners) >= most and not (self._is_known and self.has_turn)
        if not pause and not cause and is_over:
            cause = f"texts of {', '.join(dict.fromkeys(owners))} exceeded limits"
        if not cause:
            return None
        self._note_left()
        problem = f"it is left for the next pass, because {cause}"
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
        # What is known to be costly ends nothing for the others.
        if text != self._retry:
            line = " ".join(text.split())
            shown = line if len(line) <= _MAX_QUOTED else f"{line[: _MAX_QUOTED - 1]}…"
            self._end = self._end or f"{shown} exceeded a limit: {problem}"
            excesses = self.namespace.known if self._is_known else self.namespace.new
            excesses.append(self.owner)
        if self.now is None:
            return ExpressionFailure(Reason.LIMIT_EXCEEDED, problem, "simplify it")
        previous = self.pauses.pop(text, None)
        attempts = previous.attempts + 1 if previous is not None else 1
        # The exponent is bounded, or the product would leave what a timedelta can hold.
        length = min(FIRST_PAUSE * 2 ** min(attempts - 1, 10), MAX_PAUSE)
        pause = self.pauses[text] = Pause(self.now + length, attempts, problem)
        if len(self.pauses) > MAX_PAUSES:
            del self.pauses[next(iter(self.pauses))]
        return self._refuse_paused(pause)

    def note_success(self, text: str) -> None:
        """Note that the text was evaluated within its limits."""
        if self.pauses.pop(text, None) is not None:
            self._choose_retry()

    def drop_gone(self) -> None:
        """End the pass: forget the text to be tried again if others alone were asked for."""
        pause = self.pauses.get(self._retry or "")
        if self._retry and pause and self._has_other_requests and not self._is_running(pause):
            del self.pauses[self._retry]

    def _refuse_paused(self, pause: Pause) -> ExpressionFailure:
        self._note_retry(pause.until)
        remedy = f"simplify it; it is tried again from {format_instant(pause.until)}"
        return ExpressionFailure(Reason.LIMIT_EXCEEDED, pause.problem, remedy)

    def _note_left(self) -> None:
        """Note that a text is left: the more texts an owner has paused, the longer it waits."""
        if self.now is not None:
            self._note_retry(self.now + min(LEFT_PAUSE * 2 ** min(len(self.pauses), 10), MAX_PAUSE))

    def _note_retry(self, instant: datetime) -> None:
        self.retry_at = min(instant, self.retry_at or instant)


def draw(name: str, now: datetime | None) -> bytes:
    """Return the place of a name in an order that is another one at each instant."""
    return sha256(f"{name} {now}".encode()).digest()
