"""Asks the checks that machines answer: objects, HTTP services, Prometheus servers.

All of a policy are asked together: the expressions of one text in one batch, equal questions once
in a pass. What cannot be asked or read is a reading too, and a pending one. (Design §6, "Checks".)
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.checks import HttpCheck, ObjectCheck, PrometheusCheck
from fanout.api.faults import BadValue
from fanout.api.web import check_web_address
from fanout.gates.facts import Reading
from fanout.gates.rules import Variables
from fanout.plan.asking import VARIABLES, Answer, Due, due, pending, reading, unusable
from fanout.plan.cases import Case
from fanout.plan.probe import Heard, Probe, Unheard
from fanout.ports import Probes, Sandbox
from fanout.reconcile.names import Named
from fanout.selection.model import Broken
from fanout.selection.objects import ObjectIndex, group_of
from fanout.values import frozen

_STRIDE = 7919  # a prime, so that passes a minute apart begin far from each other
Readings = Mapping[str, tuple[Reading, ...]]


@frozen
class Question:
    """Whom a check asks, for sentences, and what: an answer already, or still a question."""

    subject: str
    what: Answer | Probe


@dataclass(slots=True)
class Probing:
    """Asks for one pass. `objects` are the cluster objects that the pass has observed."""

    sandbox: Sandbox
    probes: Probes
    objects: ObjectIndex
    now: datetime
    heard: dict[Probe, Answer] = field(default_factory=dict)

    def readings(self, named: Named, cases: Sequence[Case]) -> Readings:
        """By variant, what machines say about what it has published, or what is released."""
        if named.policy is None:
            return {}
        items = list(due(named.policy.spec.stages, cases, named.variables, self.now))
        questions = self._questions(items)
        self._ask(questions)
        told = [self._told(question) for question in questions]
        read = self._read(items, questions, told)
        found: dict[str, list[Reading]] = {}
        for item, one in zip(items, read, strict=True):
            found.setdefault(item.variant, []).append(one)
        return {name: tuple(several) for name, several in found.items()}

    def _ask(self, questions: Sequence[Question]) -> None:
        """Ask what was not asked in this pass yet.

        Each pass begins at another place: where there is no time for all, everybody has a turn.
        """
        probes = [it.what for it in questions if isinstance(it.what, Probe)]
        new = [probe for probe in dict.fromkeys(probes) if probe not in self.heard]
        if new:
            first = int(self.now.timestamp()) * _STRIDE % len(new)
            new = new[first:] + new[:first]
            self.heard.update(zip(new, self.probes.ask(new), strict=True))

    def _told(self, question: Question) -> Answer:
        what = question.what
        return self.heard[what] if isinstance(what, Probe) else what

    def _questions(self, items: Sequence[Due]) -> list[Question]:
        """The questions, with what expressions yield filled in."""
        wanted = [(text, item.row) for item in items for text in _written(item)]
        values = iter(self._evaluate(wanted))
        return [
            self._question(item, {text: next(values) for text in _written(item)}) for item in items
        ]

    def _question(self, item: Due, values: Mapping[str, Any]) -> Question:
        asked = item.asked
        for text, value in values.items():
            if not isinstance(value, str) or not value:
                why = value.problem if isinstance(value, Broken) else "it yields no text"
                return Question(item.way.value, Unheard(f"{text}: {why}"))
        match asked:
            case ObjectCheck():
                name = asked.name or values[asked.name_expr or ""]
                return self._object(asked, name, item.namespace)
            case PrometheusCheck():
                address = asked.address or values[asked.address_expr or ""]
                query = asked.query or values[asked.query_expr or ""]
                secret = asked.secret_ref.name if asked.secret_ref else ""
                return _probe(f"the query to {address}", Probe(address, query, secret=secret))
            case HttpCheck():
                url = asked.url or values[asked.url_expr or ""]
                return _probe(url.partition("?")[0], _http(asked, url))
            case None:
                problem = (
                    f"the forge of Repository {item.repository} is none, so nobody can be asked for"
                    " the status of a commit; let the pipeline report"
                )
                return Question("", Unheard(problem))

    def _object(self, asked: ObjectCheck, name: str, namespace: str) -> Question:
        """An object of the namespace that is said, or else of the policy's, or of none."""
        group = group_of(asked.api_version)
        places = (asked.namespace,) if asked.namespace else (namespace, "")
        for place in places:
            found = self.objects.get(group, asked.kind, place, name)
            if found is not None:
                at = f"{place}/{name}" if place else name
                return Question(f"{asked.kind} {at}", Heard(found))
        missing = f"there is no {asked.kind} {places[0]}/{name}"
        return Question(f"{asked.kind} {places[0]}/{name}", Unheard(missing))

    def _read(
        self, items: Sequence[Due], questions: Sequence[Question], told: Sequence[Answer]
    ) -> list[Reading]:
        """What the answers come to, by the checks' own expressions."""
        read: dict[int, Reading] = {}
        wanted: list[tuple[str, Variables]] = []
        for place, (item, answer) in enumerate(zip(items, told, strict=True)):
            why = answer.sentence if isinstance(answer, Unheard) else unusable(item, answer)
            if why or isinstance(answer, Unheard):
                read[place] = pending(item, why)
            else:
                row = {**item.row, VARIABLES[item.way]: answer.value}
                wanted += [(text, row) for text in _asking(item)]
        values = iter(self._evaluate(wanted))
        for place, (item, answer) in enumerate(zip(items, told, strict=True)):
            if place not in read:
                assert isinstance(answer, Heard), "all others are pending"
                said, *seen = [next(values) for _ in _asking(item)]
                subject = questions[place].subject
                read[place] = reading(item, subject, answer, said, seen[0] if seen else None)
        return [read[place] for place in range(len(items))]

    def _evaluate(self, wanted: Sequence[tuple[str, Variables]]) -> list[Any]:
        """The value of each expression over its row; one batch for each text.

        Rows that are one in what the text names are asked once: an answer of a service to all
        variants may be large.
        """
        texts = list(dict.fromkeys(text for text, _ in wanted))
        named = dict(zip(texts, self.sandbox.names(texts, [])[0], strict=True)) if texts else {}
        places: dict[str, dict[tuple[int, ...], list[int]]] = {text: {} for text in texts}
        for place, (text, row) in enumerate(wanted):
            read = tuple(id(row.get(name)) for name in sorted(named[text]))
            places[text].setdefault(read, []).append(place)
        values: list[Any] = [None] * len(wanted)
        for text, alike in places.items():
            rows = [wanted[those[0]][1] for those in alike.values()]
            [column] = self.sandbox.evaluate([text], rows)
            for those, value in zip(alike.values(), column, strict=True):
                for place in those:
                    values[place] = value
        return values


def _written(item: Due) -> list[str]:
    """The expressions that say whom to ask, and what."""
    match item.asked:
        case ObjectCheck() as asked:
            texts = [asked.name_expr]
        case PrometheusCheck() as asked:
            texts = [asked.address_expr, asked.query_expr]
        case HttpCheck() as asked:
            texts = [asked.url_expr]
        case None:
            texts = []
    return list(dict.fromkeys(filter(None, texts)))


def _asking(item: Due) -> list[str]:
    """`cel`, and `observedRevision` where there is one."""
    asked = item.asked
    assert asked is not None, "who has answered was asked"
    return [asked.cel, *([asked.observed_revision] if asked.observed_revision else [])]


def _http(asked: HttpCheck, url: str) -> Probe:
    return Probe(
        url,
        method=asked.method.value,
        headers=tuple(sorted(asked.headers.items())),
        body="" if asked.body is None else json.dumps(asked.body, sort_keys=True),
        secret=asked.secret_ref.name if asked.secret_ref else "",
    )


def _probe(subject: str, probe: Probe) -> Question:
    """An address that an expression yields is held to the same rules as a written one."""
    try:
        check_web_address(probe.url)
    except BadValue as error:
        return Question(subject, Unheard(f"{error.problem}; {error.remedy}"))
    return Question(subject, probe)
