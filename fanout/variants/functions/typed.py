"""What a value is when a function has only its text: functions are configured by texts alone."""

from fanout.package.scalars import number_text, resolve
from fanout.package.spelling import Spelling
from fanout.variants.functions.function import Object, Path

_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
_CONFIGURATION = frozenset({("v1", "ConfigMap"), ("v1", "Secret")})


def typed(text: str, spelling: Spelling, path: Path, item: Object) -> object:
    """The value that the text is at this place.

    As in the catalog, what stands in quotes stays text and anything else is what it looks like. But
    labels, annotations and a ConfigMap's data are text for Kubernetes, and a number that would lose
    a digit (1.20) was none.
    """
    if not text or spelling.quoted or _is_text(path, item):
        return text
    try:
        value = resolve(text)
    except ValueError:
        return text
    if isinstance(value, float) and number_text(value) != text:
        return text
    return value


def _is_text(path: Path, item: Object) -> bool:
    if len(path) < 2:
        return False
    if path[-2] in _TEXT_MAPS:
        return True
    kind = (item.get("apiVersion"), item.get("kind"))
    return kind in _CONFIGURATION and path[0] in ("data", "stringData")
