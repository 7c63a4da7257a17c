"""Functions whose configuration is written out: `fanout validate` reads it as a rendering would."""

from collections.abc import Iterator

from fanout.api.pipeline import Function
from fanout.api.targets import FunctionTemplate
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.errors import InvalidInput
from fanout.variants.functions.config import UnknownField
from fanout.variants.functions.registry import find, find_scripted

_SECTIONS = ("mutators", "validators")


def misconfigured(declared: Declared) -> tuple[Finding, ...]:
    """A finding for every configuration that the function of its entry would refuse.

    What expressions yield is not known yet; of such a configuration only the keys are judged.
    """
    items = [
        (policy, f"spec.targets[{index}].template.pipeline", entry.template.pipeline)
        for policy in declared.policies
        for index, entry in enumerate(policy.spec.targets)
    ]
    variants = [(variant, "spec.pipeline", variant.spec.pipeline) for variant in declared.variants]
    return tuple(
        Finding(declared.where(item, f"{field}.{section}[{index}].configMap"), *words)
        for item, field, pipeline in (*items, *variants)
        for section in _SECTIONS
        for index, function in enumerate(getattr(pipeline, section))
        for words in _refusal(function)
    )


def _refusal(function: Function) -> Iterator[tuple[str, str]]:
    """Problem and remedy, if there is one."""
    known = find(function.image) or find_scripted(function.image)
    if known is None or function.config_path:
        return
    exprs = function.config_map_exprs if isinstance(function, FunctionTemplate) else ()
    data: dict[str, str] = {**function.config_map}
    data |= {pair.key: pair.value or "x" for pair in exprs if pair.key}
    try:
        known.configure({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
    except InvalidInput as error:
        if not exprs or isinstance(error, UnknownField):
            yield f"{known.name}: {error.problem.removeprefix('data.')}", error.remedy
