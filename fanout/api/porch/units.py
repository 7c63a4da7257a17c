"""What of an object made of Porch's goes as a whole, when a part of it cannot stay."""

from collections.abc import Iterator

from fanout.api.foreign.assembly import Units

_TEMPLATE = "spec.targets.*.template"


def _additions(base: str) -> Iterator[tuple[str, str]]:
    for kind in ("mutators", "validators"):
        yield f"{base}.pipeline.{kind}.*", "the function"
        yield f"{base}.pipeline.{kind}.*.tag", "the tag"
        yield f"{base}.pipeline.{kind}.*.name", "the name"
    yield f"{base}.pipeline.validators", "the list"
    yield f"{base}.injectors.*", "the injector"
    for name in ("labels", "annotations", "packageContext.data", "packageContext.removeKeys"):
        yield f"{base}.{name}.*", "the entry"
    for name in ("labelExprs", "annotationExprs"):
        yield f"{base}.{name}.*", "the entry"
    for name in ("dataExprs", "removeKeyExprs"):
        yield f"{base}.packageContext.{name}.*", "the entry"


UNITS: Units = {
    "metadata.labels.*": "the label",
    "metadata.annotations.*": "the annotation",
    "spec.secretRef": "the reference",
    "spec.adoptionPolicy": "the field",
    "spec.deletionPolicy": "the field",
    "spec.targets.*": "the target",
    "spec.targets.*.repositories.*": "the repository",
    **dict(_additions("spec")),
    **dict(_additions(_TEMPLATE)),
}
