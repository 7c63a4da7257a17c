"""Troubles as people are told them: what is the same for many is one line.

A repository that does not answer stops all its variants; a mistake in a policy may fail all of its
targets. Such a line says how many there are, and names the first of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from fanout.gates.wording import counted, listed
from fanout.plan.actions import Outcome
from fanout.reconcile.report import Trouble
from fanout.values import frozen

_EACH = 10  # policies with equal troubles that have a line each


@frozen
class Gathered:
    """Troubles that are alike; the first of them speaks for all."""

    first: Trouble
    subjects: tuple[str, ...]
    again: bool = False  # all of it was told before

    @property
    def sentence(self) -> str:
        """Whom it is about, and what it is; the policy is not named."""
        return self._about(self.first.sentence)

    @property
    def reminder(self) -> str:
        """The same, and in one line what was told in full before."""
        return self._about(self.first.again if self.again else self.first.sentence)

    def _about(self, sentence: str) -> str:
        if not self.first.subject or self.first.policy.endswith(f"/{self.first.subject}"):
            return sentence  # the policy itself, or a variant written by hand, is named already
        if len(self.subjects) == 1:
            return f"{self.first.subject}: {sentence}"
        number = counted(len(self.subjects), self.first.noun)
        return f"{number} ({listed(self.subjects)}): {sentence}"


def gathered(troubles: Iterable[Trouble]) -> Iterator[Gathered]:
    """One for each policy, reason and sentence, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Trouble]] = {}
    for trouble in troubles:
        key = (trouble.policy, trouble.noun, trouble.reason, trouble.failed, _shape(trouble))
        groups.setdefault(key, []).append(trouble)
    for group in groups.values():
        again = all(trouble.again for trouble in group)
        yield Gathered(group[0], tuple(trouble.subject for trouble in group), again)


def lines(groups: Iterable[Gathered]) -> Iterator[tuple[bool, str]]:
    """Whether it is a failure, and its line, which names the policy.

    Where more than a few policies have equal troubles, there is one line for all of them.
    """
    equal: dict[tuple[object, ...], list[Gathered]] = {}
    for one in groups:
        told = one.first
        key = (told.noun, told.reason, told.failed, one.again, _shape(told))
        equal.setdefault(key, []).append(one)
    for found in equal.values():
        first = found[0]
        if len(found) <= _EACH:
            yield from ((it.first.failed, f"{it.first.policy}: {it.reminder}") for it in found)
            continue
        policies = listed(it.first.policy for it in found)
        troubles = sum(len(it.subjects) for it in found)
        about = f", {counted(troubles, first.first.noun)} in all" if first.first.subject else ""
        yield first.first.failed, f"{policies}{about}; the first: {first.reminder}"


def undone(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """A sentence for each problem: a push that fails is one, however many drafts were in it."""
    by_problem: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_problem.setdefault(outcome.problem, []).append(outcome)
    for problem, those in by_problem.items():
        further = f" and {len(those) - 1} more" if len(those) > 1 else ""
        yield f"{those[0].action.sentence()}{further}: {problem}"


def failures(troubles: Iterable[Trouble]) -> str:
    """How many of each sort failed, as `1 policy, 4 targets`; "" when none did."""
    nouns = Counter(trouble.noun for trouble in troubles if trouble.failed)
    parts = [_counted(nouns[noun], noun) for noun in ("policy", "target", "variant")]
    return ", ".join(part for part in parts if part)


def _counted(number: int, noun: str) -> str:
    if noun == "policy" and number > 1:
        return f"{number} policies"
    return counted(number, noun) if number else ""


def _shape(trouble: Trouble) -> str:
    """The sentence without what it calls its own subject."""
    if trouble.gone:
        return ""  # each has its own place; what to do is the same
    shape = trouble.sentence
    for name in sorted({trouble.subject, *trouble.names} - {""}, key=len, reverse=True):
        shape = shape.replace(name, "\0")
    return shape
