"""What others have seen of one variant: commits that people and machines name, and readings."""

from fanout.gates.facts import Reading
from fanout.values import frozen, replace


@frozen
class Seen:
    """The commits at which its package stood as it is now, and what machines said in this pass."""

    published: frozenset[str] = frozenset()  # commits at which it stood as it is published
    drafted: frozenset[str] = frozenset()  # commits at which it stood as it is drafted
    readings: tuple[Reading, ...] = ()

    def at(self, commit: str, *, drafted: bool) -> "Seen":
        """The same, and at this commit it stood so too."""
        if drafted:
            return replace(self, drafted=self.drafted | {commit})
        return replace(self, published=self.published | {commit})


UNSEEN = Seen()
