"""Kargo Stages, and their requests for freight of Warehouses."""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.field_paths import as_list, as_mapping
from fanout.migrate.object_assembly import read_key
from fanout.values import frozen

REQUESTS_FIELD = "requestedFreight"


def replace_dots(name: Any) -> Any:
    """Replace dots in a name, which Kargo allows and fanout does not; other values stay."""
    return name.replace(".", "-") if isinstance(name, str) else name


@frozen
class KargoObject:
    """Object of the input, with its index there."""

    index: int
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the object, as in Kargo."""
        return read_key(self.data)[2]

    @property
    def namespace(self) -> str:
        """Namespace of the object, which is its Project."""
        return read_key(self.data)[1]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Spec of the object, or an empty mapping."""
        return as_mapping(self.data.get("spec"))

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of the object."""
        return as_mapping(as_mapping(self.data.get("metadata")).get("labels"))


def promotion_steps_of(stage: Mapping[str, Any]) -> Sequence[Any]:
    """Return the promotion steps of a Stage.

    A Stage without steps is a control-flow stage in Kargo.
    """
    template = as_mapping(as_mapping(stage.get("spec")).get("promotionTemplate"))
    return as_list(as_mapping(template.get("spec")).get("steps"))


@frozen
class FreightRequest:
    """Request of a Stage for the freight of one Warehouse."""

    stage: KargoObject
    number: int  # of those in the Stage's list
    sources: Mapping[str, Any]

    @property
    def is_control_flow(self) -> bool:
        """The Stage is a control-flow stage, without promotion steps."""
        return not promotion_steps_of(self.stage.data)

    @property
    def is_direct(self) -> bool:
        """Freight may come from the Warehouse itself.

        Kargo then ignores other sources.
        """
        return self.sources.get("direct") is True

    @property
    def upstream_stages(self) -> tuple[str, ...]:
        """Kargo names of the upstream Stages; empty if the request is direct."""
        names = () if self.is_direct else as_list(self.sources.get("stages"))
        return tuple(name for name in names if isinstance(name, str))

    @property
    def has_valid_stages(self) -> bool:
        """The upstream Stages are a list or absent.

        Other values are reported elsewhere.
        """
        return isinstance(self.sources.get("stages"), list | tuple | None)

    def stage_for_request(self, passing_stages: frozenset[str]) -> Mapping[str, Any]:
        """Return the Stage with this request alone, without stages that let all pass."""
        data, spec = self.stage.data, self.stage.spec
        request = dict(as_mapping(as_list(spec.get(REQUESTS_FIELD))[self.number]))
        stages = self.sources.get("stages")
        if isinstance(stages, list | tuple):
            remaining = [None if name in passing_stages else name for name in stages]
            request["sources"] = {**self.sources, "stages": remaining}
        return {**data, "spec": {**spec, REQUESTS_FIELD: [request]}}


def find_requests(stage: KargoObject) -> Mapping[str, FreightRequest]:
    """Return the requests of a Stage by Warehouse name.

    The first one for a Warehouse counts.
    """
    requests: dict[str, FreightRequest] = {}
    for number, entry in enumerate(as_list(stage.spec.get(REQUESTS_FIELD))):
        origin = as_mapping(as_mapping(entry).get("origin"))
        name = origin.get("name")
        if isinstance(name, str) and name and origin.get("kind") in (None, "", "Warehouse"):
            request = FreightRequest(stage, number, as_mapping(as_mapping(entry).get("sources")))
            requests.setdefault(name, request)
    return requests


def find_passing_stages(requests: Sequence[FreightRequest]) -> frozenset[str]:
    """Return the control-flow stages that let all freight pass."""
    passing_stages: frozenset[str] = frozenset()
    while True:
        extended = frozenset(
            request.stage.name
            for request in requests
            if request.is_control_flow
            and (
                request.is_direct
                or (request.upstream_stages and passing_stages.issuperset(request.upstream_stages))
            )
        )
        if extended == passing_stages:
            return passing_stages
        passing_stages = extended


def sort_requests(requests: Sequence[FreightRequest]) -> list[FreightRequest]:
    """Sort requests so that each comes after its upstream stages; cycles keep their order."""
    remaining, ordered = list(requests), list[FreightRequest]()
    while remaining:
        names = {request.stage.name for request in remaining}
        # In a cycle no request is independent; the rest keeps its order and validation reports
        # the cycle.
        independent = [
            request for request in remaining if not names.intersection(request.upstream_stages)
        ] or remaining
        ordered += independent
        remaining = [request for request in remaining if request not in independent]
    return ordered
