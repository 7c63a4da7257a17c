"""What a scenario states itself follows the rules of the kinds that it is taken from.

Its stages are an UpstreamPolicy's, what it says for an administrator is a PromotionPolicy's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fanout.api.faults import Fault, Path
from fanout.api.places import fields


class Embedded(NamedTuple):
    """A part of an object, as one of its own kind; `instead` is where it says its spec."""

    kind: str
    data: Mapping[str, Any]
    instead: Path

    def here(self, fault: Fault) -> Fault:
        """A fault of the part at its place in the whole."""
        path = (*self.instead, *fault.path[1:])
        return Fault(path, fault.problem, fault.remedy, fault.severity, fault.meant)


def embedded(kind: str, data: Mapping[str, Any]) -> Iterator[Embedded]:
    """The parts of an object of this kind that are specs of others."""
    if kind != "Scenario":
        return
    spec = fields(data.get("spec"))
    if "stages" in spec:
        yield Embedded("UpstreamPolicy", {"spec": {"stages": spec["stages"]}}, ("spec",))
    if "promotion" in spec:
        promotion = {"policies": ["*"], **fields(spec["promotion"])}
        yield Embedded("PromotionPolicy", {"spec": promotion}, ("spec", "promotion"))


def choice_faults(kind: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    """A scenario names a policy, or states its stages."""
    spec = fields(data.get("spec"))
    if kind != "Scenario" or not isinstance(data.get("spec"), Mapping):
        return
    if "policy" in spec and "stages" in spec:
        yield Fault(("spec",), "policy and stages exclude each other", "keep one of them")
    if "policy" not in spec and not spec.get("stages"):
        yield Fault(("spec",), "policy or stages is missing", "add it")
