"""Field specs as in kustomize: paths of fields by group, version and kind."""

from collections.abc import Iterator, Mapping

from fanout.errors import InvalidInput
from fanout.package.field_edits import get_value
from fanout.selection.cluster_objects import group_of
from fanout.values import Value
from fanout.variants.functions.function_interface import Object, Path, mapping

SortedTexts = tuple[tuple[str, str], ...]  # sorted keys and what they are set to


class FieldSpec(Value):
    """A field in the objects of some kinds.

    `existing_path` must exist and not be empty, else the object does not have the field;
    `created_path` below it is created where it is missing. ``*`` means every element of a list.
    """

    existing_path: tuple[str, ...]
    created_path: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # empty: every kind
    groups: frozenset[str] | None = None  # None: every group
    version: str = ""  # "": every version

    def matches_kind(self, api_version: str, kind: str) -> bool:
        """Return whether objects of this kind have the field."""
        return (
            (not self.kinds or kind in self.kinds)
            and (self.groups is None or group_of(api_version) in self.groups)
            and (not self.version or api_version.rpartition("/")[2] == self.version)
        )


def fields_of_kind(
    fields: tuple[FieldSpec, ...], api_version: str, kind: str
) -> tuple[FieldSpec, ...]:
    """Return the fields that objects of the kind have."""
    return tuple(field for field in fields if field.matches_kind(api_version, kind))


def parse_field_specs(rows: object, name: str) -> tuple[FieldSpec, ...]:
    """Parse a list like `additionalAnnotationFields`: paths with ``/``, and their kinds.

    Raises InvalidInput, which names the list.
    """
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise InvalidInput(f"{name} is not a list", remedy="write entries with at least a path")
    fields = []
    for row in rows:
        entry = {key: value for key, value in mapping(row).items() if value is not None}
        unknown = sorted(set(entry) - {"group", "version", "kind", "path", "create"})
        path = tuple(str(entry.get("path", "")).replace("[]", "/*").strip("/").split("/"))
        if unknown or not all(path):
            raise InvalidInput(
                f"{name}: {', '.join(unknown) or 'path'} is not supported",
                remedy="use path, and optionally group, version, kind and create",
            )
        # Elements of a list are never created, and other fields only with `create`.
        after_list = len(path) - path[::-1].index("*") if "*" in path else 0
        length = after_list if entry.get("create") else len(path)
        kinds = frozenset({str(entry["kind"])} if "kind" in entry else ())
        groups = frozenset({str(entry["group"])}) if "group" in entry else None
        version = str(entry.get("version", ""))
        fields.append(FieldSpec(path[:length], path[length:], kinds, groups, version))
    return tuple(fields)


def find_fields(fields: tuple[FieldSpec, ...], item: Object) -> Iterator[tuple[Path, object]]:
    """Yield path and value of these fields in the object.

    MISSING where the field may be created. A field below an empty list or map is not yielded.
    """
    for field in fields_of_kind(fields, str(item.get("apiVersion", "")), str(item.get("kind", ""))):
        for path, value in walk_path(item, field.existing_path, ()):
            yield (*path, *field.created_path), get_value(value, field.created_path)


def walk_path(
    value: object, field_path: tuple[str, ...], path: Path
) -> Iterator[tuple[Path, object]]:
    """Yield paths and values where the path of a field leads to. Empty values are not yielded."""
    if not field_path:
        # Zero and false are content; an empty text, list or map is not.
        if value or value in (0, False):
            yield path, value
        return
    key, rest = field_path[0], field_path[1:]
    if key != "*":
        if isinstance(value, Mapping) and key in value:
            yield from walk_path(value[key], rest, (*path, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from walk_path(element, rest, (*path, index))


APPS = frozenset({"apps", "extensions"})
WORKLOADS = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
BATCH = frozenset({"batch"})
CORE = frozenset({""})

POD_TEMPLATES: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (APPS, WORKLOADS, ("spec", "template")),
    (CORE, frozenset({"ReplicationController"}), ("spec", "template")),
    (BATCH, frozenset({"Job"}), ("spec", "template")),
    (BATCH, frozenset({"CronJob"}), ("spec", "jobTemplate", "spec", "template")),
)


def pod_template_fields(
    existing_path: tuple[str, ...], created_path: tuple[str, ...] = ()
) -> tuple[FieldSpec, ...]:
    """Return the field, by its path in a pod template, for every kind with such a template."""
    return tuple(
        FieldSpec((*template, *existing_path), created_path, kinds, groups)
        for groups, kinds, template in POD_TEMPLATES
    )
