"""set-image: replace an image, or its version, in every container that runs it.

The catalog's code drops the separator where only the name changes, skips init containers, and
accepts a tag together with a digest; here its documentation is followed
(docs/reference/catalog-functions.md).
"""

from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING
from fanout.values import Value
from fanout.variants.functions.field_specs import FieldSpec, find_fields, parse_field_specs
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Matching,
    Object,
    PackageFacts,
    Path,
    VisibleObject,
    is_function_kind,
    kind_values,
    parse_fields,
)

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PODS = (
    ("spec",),
    ("template", "spec"),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
FIELDS = tuple(FieldSpec((*pod, name, "*", "image")) for pod in _PODS for name in _CONTAINERS)


class _Config(Value):
    name: str
    new_name: str
    tag: str
    digest: str
    fields: tuple[FieldSpec, ...]

    def replace_image(self, image: str) -> str:
        """Return the new image, or the same one if it is not to be replaced."""
        name, tag, digest = _split_image(image)
        if name != self.name:
            return image
        if self.tag:
            tag, digest = f":{self.tag}", ""
        if self.digest:
            tag, digest = "", f"@{self.digest}"
        return f"{self.new_name or name}{tag}{digest}"

    def find_images(self, item: VisibleObject) -> Iterator[tuple[Path, object]]:
        """Yield path and image of the containers; the schema of a definition has none."""
        if item.value.get("kind") != "CustomResourceDefinition":
            yield from find_fields(self.fields, item.value)

    def changes(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
        for path, image in self.find_images(item):
            if image is MISSING:
                yield path, self.replace_image(self.name)
            elif isinstance(image, str) and (new_image := self.replace_image(image)) != image:
                yield path, new_image

    def depends_on(self, item: VisibleObject) -> Iterator[object]:
        """Yield the images, and the one to be replaced."""
        yield self.name
        yield from kind_values(self, item)
        yield from (image for _, image in find_fields(self.fields, item.value))

    def find_names(self, item: VisibleObject) -> Iterator[str]:
        """Yield the image to be replaced if a container of the object has it."""
        for _, image in self.find_images(item):
            if image is MISSING or (isinstance(image, str) and _split_image(image)[0] == self.name):
                yield self.name


def _split_image(image: str) -> tuple[str, str, str]:
    """Return name (with a registry's port), tag and digest, the latter with their separators."""
    untagged, separator, digest = image.partition("@")
    if (colon := untagged.find(":", untagged.rfind("/") + 1)) < 0:
        return untagged, "", separator + digest
    return untagged[:colon], untagged[colon:], separator + digest


def _configure(config: Object) -> _Config:
    setting_names = ("name", "newName", "newTag", "digest")
    is_own_kind = is_function_kind(config, "SetImage")
    field = "image" if is_own_kind else "data"
    values = parse_fields(config.get(field), field, setting_names)
    if not (name := values.get("name", "")) or _split_image(name) != (name, "", ""):
        problem = "has a tag or a digest" if name else "is missing"
        raise InvalidInput(f"{field}.name {problem}", remedy="name the image to be replaced")
    given_settings = [key for key in setting_names[1:] if values.get(key)]
    if not given_settings or {"newTag", "digest"} <= set(given_settings):
        problem = (
            "newTag and digest exclude each other" if given_settings else "no new image is set"
        )
        raise InvalidInput(problem, remedy="set newName, newTag or digest")
    rows = config.get("additionalImageFields") if is_own_kind else None
    return _Config(
        name,
        values.get("newName", ""),
        values.get("newTag", ""),
        values.get("digest", ""),
        FIELDS + parse_field_specs(rows, "additionalImageFields"),
    )


SET_IMAGE = CatalogFunction(
    "set-image",
    "1",
    _configure,
    _Config.changes,
    depends_on=_Config.depends_on,
    passes_through=lambda name, _text: name != "name",
    matching=Matching(
        lambda config: frozenset({config.name}),
        _Config.find_names,
        "no container has the image {}".format,
    ),
)
