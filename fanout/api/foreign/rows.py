"""Tables of another program's fields. A translation and its page are made of the same one.

A field that is in no row is one that the other program does not have either.
"""

from collections.abc import Iterator

from fanout.api.foreign import convert
from fanout.api.foreign.pieces import Convert
from fanout.values import frozen

SAME = "as it is"
_THE_SERVER_S = (
    *("uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionGracePeriodSeconds", "finalizers", "ownerReferences", "managedFields"),
    *("selfLink", "generateName"),
)


@frozen
class Row:
    """A field, its counterpart (without one: ""), how it becomes that, and in words."""

    source: str
    target: str
    convert: Convert
    about: str = SAME


@frozen
class Origin:
    """A kind of the other program's, and the kind of fanout's that it becomes."""

    kind: str
    version: str
    becomes: str
    rows: tuple[Row, ...]


def of_the_server(program: str) -> Iterator[Row]:
    """What Kubernetes and the program's controllers write into every object."""
    for field in _THE_SERVER_S:
        yield Row(f"metadata.{field}", "", convert.passed_over, "the API server's own")
    yield Row(
        "metadata.deletionTimestamp",
        "",
        convert.needed(problem="is being deleted, since {}", remedy="import it if it is to stay"),
        "what is being deleted is left out and named",
    )
    yield Row("status", "", convert.passed_over, f"written by {program}, not by people")
