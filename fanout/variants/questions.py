"""What a rendering may ask of the world, and what it is told: data both ways.

A rendering is pure. Where its pipeline needs a program or a table that is not in memory it stops
with the question (`Unanswered`); whoever drives it finds the answer and renders again. The same
questions have the same answers, so the second time it comes further, in the end to its end.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fanout.values import frozen
from fanout.variants.schemas import Schemas


class Program(NamedTuple):
    """A KRM function that is run outside fanout, because an administrator allows it."""

    name: str  # as packages and policies name it
    command: str  # path of the executable, or the image
    image: bool = False  # run by the container runtime
    version: str = ""  # changes when what is run does; it enters the digest
    missing: str = ""  # why it cannot be run here


class SchemasOf(NamedTuple):
    """The schemas of one version of Kubernetes; "" is the newest that is shipped."""

    version: str = ""


class Run(NamedTuple):
    """Run a program on a ResourceList."""

    program: Program
    stdin: bytes


class Script(NamedTuple):
    """Run a script in Starlark on a ResourceList, given as JSON."""

    source: str
    resource_list: str


@frozen
class Listed:
    """The items that a script left, as plain data not to be changed, and the lines it printed."""

    items: Any
    printed: tuple[str, ...] = ()


class Ran(NamedTuple):
    """A program that came to its end."""

    status: int
    stdout: bytes
    stderr: str  # the end of it


@frozen
class Broken:
    """A question that has no answer: why, and what to do."""

    problem: str
    remedy: str = ""


Question = SchemasOf | Run | Script
Answer = Schemas | Ran | Listed | Broken
Answers = Mapping[Question, Answer]


class Unanswered(Exception):
    """A rendering cannot go on before this is answered."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


@frozen
class Programs:
    """The programs that an administrator allows, by the names that pipelines may use."""

    executables: Mapping[str, Program]
    images: Mapping[str, Program]


NO_PROGRAMS = Programs({}, {})
NOTHING_KNOWN: Answers = {}


def answer_to(question: Question, answers: Answers) -> Answer:
    """The answer. Raises Unanswered while there is none."""
    if question not in answers:
        raise Unanswered(question)
    return answers[question]
