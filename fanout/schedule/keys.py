"""What can wake the loop. A key says where to look, never what happened: the loop reads the world
and decides by that (design §3, level-based).
"""

from dataclasses import dataclass
from enum import StrEnum


class Trigger(StrEnum):
    """Why a key is in the queue; for the log."""

    START = "start"
    FILES = "files changed"
    POLL = "interval"
    SWEEP = "schedule"
    INSTANT = "instant"  # a gate may open by itself now
    FOLLOW_UP = "follow-up"  # a pass did something, so more may be possible


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A trigger, and whom it is about: nobody in particular, or one by namespace and name."""

    trigger: Trigger
    namespace: str = ""
    name: str = ""

    @property
    def everything(self) -> bool:
        """Is every policy to be looked at?"""
        return self.trigger in (Trigger.START, Trigger.FILES, Trigger.POLL)
