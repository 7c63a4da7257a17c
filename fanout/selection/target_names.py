"""Names of targets for people: as short as is unique among the targets of a policy."""

from collections import Counter
from collections.abc import Iterable, Mapping


def shorten_target_keys(keys: Iterable[str]) -> Mapping[str, str]:
    """Return a name of each target by its key; no two keys get the same name.

    The name is the object's name, with its namespace if two objects share the name, and the whole
    key if that is not unique either.
    """
    all_keys = tuple(dict.fromkeys(keys))
    forms: dict[str, tuple[str, ...]] = {}  # the shortest first; see `VariantTarget.key`
    for key in all_keys:
        namespace, _, name = key.partition("/")[2].partition("/")
        with_namespace = f"{namespace}/{name}" if namespace else ""
        forms[key] = tuple(filter(None, (name, with_namespace, key)))
    # A name that is a form of two keys is given to neither: which of them is meant must not depend
    # on the order of targets.
    counts = Counter(form for key in all_keys for form in set(forms[key]))
    return {key: next((form for form in forms[key] if counts[form] == 1), key) for key in all_keys}
