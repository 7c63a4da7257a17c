"""Products of stories, such as every kill in every story: each run plays a diagonal of them.

Stories that go the same way have the same places to break at. Each is broken at every third of
them, from another one on than the next story, so that all together are broken everywhere.
`make soak-story` plays the whole product (STORIES=full).
"""

import os
from collections.abc import Iterable
from typing import TypeVar
from zlib import crc32

IS_FULL = os.environ.get("STORIES") == "full"
_STEP = 3

Row = TypeVar("Row")


def choose(rows: Iterable[Row], story: int) -> list[Row]:
    """Every third of the rows; from which one on hangs on the number of the story."""
    return [row for place, row in enumerate(rows) if IS_FULL or (place - story) % _STEP == 0]


def running_story() -> int:
    """A number that the test which runs has in each run, and others have not."""
    name, _, _phase = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
    return crc32(name.encode())
