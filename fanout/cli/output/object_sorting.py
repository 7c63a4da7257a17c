"""Order of objects that are printed: `--sort-by`."""

from collections.abc import Sequence
from typing import Any

from fanout.api.table_column import Object
from fanout.cli.command_errors import not_found
from fanout.cli.output.object_path import format_selected, parse_relaxed


def sort_objects(items: Sequence[Object], sort_by: str) -> Sequence[Object]:
    """Return the objects sorted by the field at a path; those without it come first.

    Raises InvalidInput if none of them has the field.
    """
    if not sort_by:
        return items
    path = parse_relaxed(sort_by, "--sort-by")
    keys = [_sort_key(path.select(item)) for item in items]
    if items and not any(rank for rank, *_ in keys):
        raise not_found(
            f"no object has the field {sort_by}",
            "see the fields with -o yaml; a path looks like .metadata.name",
        )
    indexes = sorted(range(len(items)), key=keys.__getitem__)
    return [items[index] for index in indexes]


def _sort_key(selected: Sequence[Any]) -> tuple[int, float, str]:
    if not selected:
        return 0, 0, ""
    value = selected[0]
    return (1, value, "") if isinstance(value, int | float) else (2, 0, format_selected(value))
