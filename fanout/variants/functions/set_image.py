"""set-image: every container that runs one image runs another one, or another version of it.

The catalog's code drops the separator where only the name changes, passes init containers by, and
takes a tag together with a digest; here its documentation counts (porch.md §11).
"""

from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.edits import MISSING
from fanout.values import frozen
from fanout.variants.functions.config import fields_of, is_own_kind
from fanout.variants.functions.fields import Field, found, further
from fanout.variants.functions.function import Change, Facts, InProcess, Object, kinds_only

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PODS = (
    ("spec",),
    ("template", "spec"),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
FIELDS = tuple(Field((*pod, name, "*", "image")) for pod in _PODS for name in _CONTAINERS)


@frozen
class _Config:
    name: str
    new_name: str
    tag: str
    digest: str
    fields: tuple[Field, ...]

    def renamed(self, image: str) -> str:
        """The image in its place; the same one where it is not meant."""
        name, tag, digest = _split(image)
        if name != self.name:
            return image
        if self.tag:
            tag, digest = f":{self.tag}", ""
        if self.digest:
            tag, digest = "", f"@{self.digest}"
        return f"{self.new_name or name}{tag}{digest}"


def _split(image: str) -> tuple[str, str, str]:
    """Name, tag and digest, these with their separators; a registry's port is in the name."""
    rest, at, digest = image.partition("@")
    slash = rest.rfind("/") + 1
    colon = rest.find(":", slash)
    if colon < 0:
        return rest, "", at + digest
    return rest[:colon], rest[colon:], at + digest


def _configure(config: Object) -> _Config:
    known = ("name", "newName", "newTag", "digest")
    own = is_own_kind(config, "SetImage")
    field = "image" if own else "data"
    values = fields_of(config.get(field), field, known)
    name = values.get("name", "")
    if not name or _split(name) != (name, "", ""):
        problem = "has a tag or a digest" if name else "is missing"
        raise InvalidInput(f"{field}.name {problem}", remedy="name the image to be replaced")
    chosen = [key for key in known[1:] if values.get(key)]
    if not chosen or {"newTag", "digest"} <= set(chosen):
        problem = "newTag and digest are both given" if chosen else "nothing new is given"
        raise InvalidInput(problem, remedy="give newName, or one of newTag and digest, or both")
    rows = config.get("additionalImageFields") if own else None
    return _Config(
        name,
        values.get("newName", ""),
        values.get("newTag", ""),
        values.get("digest", ""),
        FIELDS + further(rows, "additionalImageFields"),
    )


def _changes(config: _Config, item: Object, _facts: Facts) -> Iterator[Change]:
    if item.get("kind") == "CustomResourceDefinition":
        return  # it has the names of such fields, not images
    for path, image in found(config.fields, item):
        if image is MISSING:
            yield path, config.renamed(config.name)
        elif isinstance(image, str):
            new = config.renamed(image)
            if new != image:
                yield path, new


def _heeds(config: _Config, item: Object, facts: Facts) -> Iterator[object]:
    """The images, and which one is meant."""
    yield config.name
    yield from kinds_only(config, item, facts)
    yield from (image for _, image in found(config.fields, item))


SET_IMAGE = InProcess(
    "set-image", "1", _configure, _changes, heeds=_heeds, copies=lambda name, _text: name != "name"
)
