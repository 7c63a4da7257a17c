"""Changes that people committed to a draft outside of its packages."""

from collections.abc import Collection

from fanout.errors import InvalidInput
from fanout.plan.edits.draft_damage import describe_outside_files
from fanout.ports import ObjectReader

_MAX_OUTSIDE_FILES = 100  # that are counted


def find_outside_changes(
    reader: ObjectReader,
    tip: str,
    base: str,
    target_head: str,
    packages: Collection[str],
    *,
    is_removal: bool = False,
) -> tuple[InvalidInput, ...]:
    """Return a fault for each changed file outside of the packages of a draft.

    `base` is the commit of the target branch that fanout wrote the draft on. What the target branch
    has alike is no edit, nor what the draft has from that branch. There is none in a draft that is
    merged already. `is_removal`: the draft removes the packages. Raises InvalidInput for a tree
    that cannot be read.
    """
    if not target_head or reader.contains(target_head, tip):
        return ()
    merge_base = reader.merge_base(target_head, tip)
    # The target branch may have been set back behind the base, whose files are nobody's edit.
    bases = [it for it in (merge_base, base) if it and reader.has(it)]
    if reader.contains(target_head, base):
        bases = [merge_base]
    paths = reader.changed_files(tip, [*bases, target_head], packages, _MAX_OUTSIDE_FILES)
    return describe_outside_files(paths, packages, is_removal=is_removal)
