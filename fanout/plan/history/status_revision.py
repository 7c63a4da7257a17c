"""One commit of a policy's recorded status, as the lines that it changed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fanout.values import Value


class StatusRevision(Value):
    """Status lines that one commit changed, by key; None stands for a removed line."""

    at: datetime  # the committer's time
    lines: Mapping[str, Mapping[str, Any] | None]
