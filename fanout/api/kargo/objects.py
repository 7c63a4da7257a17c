"""Kargo's objects as the translation looks at them: Stages, and what each wants of a Warehouse."""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.foreign.admission import key_of
from fanout.api.places import fields, items
from fanout.values import frozen

REQUESTS = "requestedFreight"


def dashed(name: Any) -> Any:
    """A name without dots, which names have in Kargo and not here; what is no text stays."""
    return name.replace(".", "-") if isinstance(name, str) else name


@frozen
class Item:
    """An object of the input, and its place there."""

    index: int
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name, as Kargo has it."""
        return key_of(self.data)[2]

    @property
    def namespace(self) -> str:
        """Its namespace, which is its Project."""
        return key_of(self.data)[1]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec, if there is one."""
        return fields(self.data.get("spec"))

    @property
    def labels(self) -> Mapping[str, Any]:
        """Its labels."""
        return fields(fields(self.data.get("metadata")).get("labels"))


def steps_of(stage: Mapping[str, Any]) -> Sequence[Any]:
    """The promotion steps of a Stage; one without any is a control-flow stage to Kargo."""
    template = fields(fields(stage.get("spec")).get("promotionTemplate"))
    return items(fields(template.get("spec")).get("steps"))


@frozen
class Request:
    """What a Stage wants of one Warehouse."""

    stage: Item
    number: int  # of those in the Stage's list
    sources: Mapping[str, Any]

    @property
    def joins_only(self) -> bool:
        """Is the Stage a control-flow stage?"""
        return not steps_of(self.stage.data)

    @property
    def direct(self) -> bool:
        """May freight come from the Warehouse itself? Kargo then looks at nothing else."""
        return self.sources.get("direct") is True

    @property
    def before(self) -> tuple[str, ...]:
        """The Stages that it may come from, by their names to Kargo; none where it is direct."""
        names = () if self.direct else items(self.sources.get("stages"))
        return tuple(name for name in names if isinstance(name, str))

    @property
    def says_no_more(self) -> bool:
        """Are the Stages before a list, or not there? What is neither is told as such."""
        return isinstance(self.sources.get("stages"), list | tuple | None)

    def view(self, passing: frozenset[str]) -> Mapping[str, Any]:
        """The Stage with this request alone, and without those that let everything pass."""
        data, spec = self.stage.data, self.stage.spec
        request = dict(fields(items(spec.get(REQUESTS))[self.number]))
        stages = self.sources.get("stages")
        if isinstance(stages, list | tuple):
            left = [None if name in passing else name for name in stages]
            request["sources"] = {**self.sources, "stages": left}
        return {**data, "spec": {**spec, REQUESTS: [request]}}


def requests_of(stage: Item) -> Mapping[str, Request]:
    """What a Stage wants, by the Warehouse's name; a second wish for one Warehouse is none."""
    found: dict[str, Request] = {}
    for number, entry in enumerate(items(stage.spec.get(REQUESTS))):
        origin = fields(fields(entry).get("origin"))
        name = origin.get("name")
        if isinstance(name, str) and name and origin.get("kind") in (None, "", "Warehouse"):
            request = Request(stage, number, fields(fields(entry).get("sources")))
            found.setdefault(name, request)
    return found


def passing(requests: Sequence[Request]) -> frozenset[str]:
    """The control-flow stages that nothing comes before: all freight is in them at once."""
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(
            request.stage.name
            for request in requests
            if request.joins_only
            and (request.direct or (request.before and found.issuperset(request.before)))
        )
        if more == found:
            return found
        found = more


def in_order(requests: Sequence[Request]) -> list[Request]:
    """Each after those that come before it; where there is a circle, as they were."""
    left, done = list(requests), list[Request]()
    while left:
        names = {request.stage.name for request in left}
        free = [request for request in left if not names.intersection(request.before)] or left
        done += free
        left = [request for request in left if request not in free]
    return done
