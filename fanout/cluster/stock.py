"""The plain objects of all files together, kept in order from one reading to the next.

Of thousands of files a few change at a time: only the kinds that stand in those are put together
again, and what nobody touched stays the same value.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fanout.cluster.documents import FileContent, ObjectKey
from fanout.selection.objects import Kinds, Names, ObjectIndex
from fanout.values import frozen

_Kind = tuple[str, str]


@frozen
class Stock:
    """All objects that are there once, and the files of those that are there more than once."""

    index: ObjectIndex
    twice: Mapping[ObjectKey, Sequence[str]]
    parts: Mapping[_Kind, Sequence[Names]]  # what each file has of a kind
    joined: Kinds


NOTHING = Stock(ObjectIndex(), {}, {}, {})


def joined(contents: Mapping[str, FileContent], before: Stock = NOTHING) -> Stock:
    """What the files have, by name of the file; `before` is the last answer.

    Of objects that are there more than once none is in the index: nobody can say which one is
    meant.
    """
    parts: defaultdict[_Kind, list[Names]] = defaultdict(list)
    for content in contents.values():
        for kind, names in content.others.items():
            parts[kind].append(names)
    kinds = {kind: _joined(kind, found, before) for kind, found in parts.items()}
    twice = _twice(contents, kinds, parts)
    for key in twice:
        kind = key.group, key.kind
        left = {at: item for at, item in kinds[kind].items() if at != (key.namespace, key.name)}
        kinds[kind] = left
    if not twice and not before.twice and _same(kinds, before.joined):
        return before
    return Stock(before.index.followed_by(kinds), twice, parts, kinds)


def _joined(kind: _Kind, parts: Sequence[Names], before: Stock) -> Names:
    """All of a kind in order, as it was when every part is the same value as before."""
    old = before.parts.get(kind, ())
    changed = [pair for pair in zip(old, parts, strict=False) if pair[0] is not pair[1]]
    if len(old) == len(parts) and not before.twice:
        if not changed:
            return before.joined[kind]
        if all(was.keys() == now.keys() for was, now in changed):
            return {**before.joined[kind], **{at: now[at] for _, now in changed for at in now}}
    together: dict[tuple[str, str], Mapping[str, object]] = {}
    for part in parts:
        together.update(part)
    return {at: together[at] for at in sorted(together)}


def _twice(
    contents: Mapping[str, FileContent], kinds: Kinds, parts: Mapping[_Kind, Sequence[Names]]
) -> Mapping[ObjectKey, Sequence[str]]:
    """The files of each object that is there more than once."""
    doubled = {kind for kind, found in parts.items() if len(kinds[kind]) < sum(map(len, found))}
    files: defaultdict[ObjectKey, dict[str, None]] = defaultdict(dict)
    repeated = {key for content in contents.values() for key in content.repeated}
    for file, content in contents.items():
        for key in content.repeated:
            files[key][file] = None
        for kind in doubled & content.others.keys():
            for name in content.others[kind]:
                files[ObjectKey(*kind, *name)][file] = None
    return {key: tuple(found) for key, found in files.items() if len(found) > 1 or key in repeated}


def _same(kinds: Kinds, before: Kinds) -> bool:
    return kinds.keys() == before.keys() and all(kinds[one] is before[one] for one in kinds)
