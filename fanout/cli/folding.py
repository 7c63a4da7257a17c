"""An explanation for people: what is said once is not said again, variants that are alike are one.

The whole tree is what `-o json` prints; a stage with hundreds of variants that wait for one gate
would bury that gate under hundreds of lines.
"""

from collections.abc import Iterable, Iterator

from fanout.gates.explain import Explanation
from fanout.values import replace

_VARIANT = "variant "
_REASON = "Held"  # the state of a line that says why something waits


def fold(one: Explanation, told: tuple[str, ...] = ()) -> Explanation:
    """The explanation without reasons that were given before; `told` are the sentences above it."""
    above = (*told, one.sentence)
    children: list[Explanation] = []
    for child in one.children:
        reason = child.state == _REASON
        if reason and any(_says(text, child.sentence) for text in above):
            continue
        if reason:
            above = (*above, child.sentence)
        children.append(fold(child, above))
    return replace(one, children=tuple(_alike(children)))


def _says(text: str, sentence: str) -> bool:
    """Does the text say it already, if only for a part? (`14 variants, x first: …`)"""
    return sentence in text or sentence.partition(" first: ")[2] in (text, *text.split("; "))


def _alike(children: Iterable[Explanation]) -> Iterator[Explanation]:
    """Variants that say the same become one line, where the first of them stood."""
    groups: dict[Explanation, list[Explanation]] = {}
    for child in children:
        of_variant = child.subject.startswith(_VARIANT)
        groups.setdefault(replace(child, subject="") if of_variant else child, []).append(child)
    for first, *others in groups.values():
        subject = f"{first.subject} and {len(others)} like it" if others else first.subject
        yield replace(first, subject=subject)
