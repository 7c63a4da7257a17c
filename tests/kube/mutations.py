"""Objects with one mistake each, generated from valid ones."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Path_ = tuple[str | int, ...]
_COMPLETE = Path(__file__).parent / "complete_objects.yaml"

# Texts by the last names of the fields; a name in upper case is the end of one.
_TEXTS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("", "-a", "A b", "é" * 200, "x" * 1_100),  # of fields that have no texts of their own
    ("package", "packageNames", "directory", "branch", "configPath"): (
        *("con", "team/aux.yaml", "COM1", "_stages/a", "_removals", "a.lock", "a.LOCK/b", "@"),
        *("a/@", "a@{b", "/a", "a/", "a//b", ".a", "a..b", "a~1", "a\nb", "../a", "..", "HEAD"),
        *("refs/heads/a", "a/../../x", "a/../b"),
    ),
    ("url", "address"): (
        *("https://x:abc/y", "https://x:99999/y", "ssh://-x/y", "ssh://x/-y", "git@-x:y", "x:-y"),
        *("https://x/y?access_token=a", "https://x/y?private_token=a", "https://x/y?a=b&token=c"),
        *("https://x/?X-Amz-Signature=a", "https://x/?api_key=a", "https://x/?key=a", "ext::sh"),
        *("https://x/?apiKey=a", "https://x/?to%6ben=a", "https://a@x/y", "https://a:b@x/y"),
        *("ssh://a:b@x/y", "a:b@x:y", "ftp://x/y", "file://x/y", "https:///y", "https://x/é"),
        *("http://169.254.169.254/", "http://0xA9FEA9FE/", "http://[fe80::1]/", "https://x/#a"),
        *("https://x/?sort_key=a", "https://x/?tokenizer=a", "https://[::1]:8443/y"),
    ),
    ("soak", "timeout", "freshFor", "settle", "minReady", "progressDeadline", "jitter"): (
        *("0s", "1d", "1.5h", "100000h", "87600h1s", "1m1h", "h"),
    ),
    ("expires", "duration"): (
        *("0s", "1d", "1.5h", "100000h", "2030-01-31t16:00:00z", "2030-02-30T16:00:00Z"),
        *("2030-01-31T16:00:00", "2030-01-31T16:00:00.1234567Z"),
    ),
    ("atLeast", "maxInFlight", "maxFailures", "removalLimit"): ("0%", "101%", "1.5%", "1", "-1%"),
    ("schedule", "until"): ("* * *", "61 * * * *", "@dayly", "0 0 31 2 *", "* * * * * *", "@daily"),
    ("timeZone",): ("Europe/Olso", "CEST", "+01:00"),
    ("semver",): ("abc", ">=1 <", "^1.x.y", ">2 <1"),
    ("titleTemplate", "bodyTemplate", "commitTemplate"): ("{{ a", "{{ nothing }}", "{% for %}"),
    ("subjects", "reviewers", "by"): ("ann", "git.example.com/team/sre", "Ann <ann@", "group:"),
    ("image",): ("set-lables", "no-such-function", "apply-replacements", "example.com/a:b"),
    ("stages", "stage", "stageExpr"): ("nowhere", "'nowhere'", "'join'", "join", "staging-*"),
    ("Expr", "Exprs", "cel", "observedRevision", "propagateWhen", "offlineWhen"): (
        *("1 + 'a'", "1 +", "nothing.here"),
    ),
    ("apiVersion", "kind"): ("v1", "Secret", "a/b/c", "kind"),
    ("context",): ("fanout", "fanout/eu", "ci\tbuild"),
    ("policy", "variant", "variants", "policies", "repository", "name", "from", "group"): (
        *("nobody", "complete", "a.b", "*", "x" * 64),
    ),
}
_KEYS: tuple[Any, ...] = ("", "a b", "a-/b", "x" * 400, "name", "X-Api-Token", "X Api", "accept")
_KEYS += ("Authorization", True)  # YAML reads `on` as true
_MAPS = {"labels", "annotations", "matchLabels", "data", "configMap", "headers", "body", "choices"}


def read_complete_objects() -> list[dict[str, Any]]:
    """Return valid objects that together have every supported field."""
    documents = yaml.safe_load_all(_COMPLETE.read_text(encoding="utf-8"))
    # as JSON, so that no two fields are one value, and no text is a date
    return [json.loads(json.dumps(it, default=lambda time: time.isoformat())) for it in documents]


def find_values(data: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield each value below with its path, and the value itself."""
    yield path, data
    entries = data.items() if isinstance(data, dict) else ()
    for key, value in enumerate(data) if isinstance(data, list) else entries:
        yield from find_values(value, (*path, key))


# Fields with the same type as another one, by which they stand here.
_TWINS = {"requires": "verification", "validators": "mutators", "exclude": "selectors"}
_TWINS |= {f"{it}Exprs": "dataExprs" for it in ("configMap", "label", "annotation")}
_TWINS |= {"deny": "allow", "repositorySelector": "groups", "objectSelector": "groups"}


def general_path(path: Path_) -> Path_:
    """Return the path for all entries of its lists."""
    return tuple(0 if isinstance(part, int) else part for part in path)


def _type_path(path: Path_) -> Path_:
    """Return the path in which fields of one type have one name."""
    twin = next(
        (at for at, part in enumerate(path) if part in _TWINS or part in _TWINS.values()), 0
    )
    shared = path[:twin] and ("*", *path[twin:])
    return tuple(_TWINS.get(str(it), it) for it in general_path(shared or path))


def mutate_all(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object with one mistake, under a description; each field of a kind once."""
    seen = set()
    for data in objects:
        for path, value in find_values(data):
            key = (data["kind"], _type_path(path))
            is_ours = path[:1] == ("spec",) or path[:2] == ("metadata", "name")
            if key in seen or not is_ours:
                continue
            seen.add(key)
            for name, change in _find_mistakes(path, value):
                yield f"{data['kind']} {_format(path)}: {name}", _change(data, path, change)


_DROP = object()


def _find_mistakes(path: Path_, value: Any) -> Iterator[tuple[str, Any]]:
    yield "dropped", _DROP
    if len(path) == 2:
        yield "null", None
    if isinstance(value, str):
        for text in sorted(_select_texts(path)):
            yield f"{text[:40]!r}", text
        yield "3", 3
    elif isinstance(value, (bool, int, float)):
        for other in (-1, 0, 2.5, "1"):
            yield repr(other), other
    elif isinstance(value, list):
        yield "empty", []
        yield "an object", {}
        yield "twice the first", [*value, value[0]]
    else:
        yield "empty", {}
        yield "a list", []
        yield "unknown field", {**value, "unknownField": "a"}
        for key in _KEYS if path[-1] in _MAPS else ():
            yield f"key {str(key)[:20]!r}", {**value, key: next(iter(value.values()))}


def _select_texts(path: Path_) -> set[str]:
    name = next(str(part) for part in reversed(path) if isinstance(part, str))
    own = {
        text
        for fields, texts in _TEXTS.items()
        if any(name == it or (it[0].isupper() and name.endswith(it)) for it in fields)
        for text in texts
    }
    return own | {"", "é" * 200} if own else set(_TEXTS[()])


def _change(data: dict[str, Any], path: Path_, change: Any) -> dict[str, Any]:
    changed = copy.deepcopy(data)
    parent: Any = changed
    for part in path[:-1]:
        parent = parent[part]
    if change is _DROP:
        del parent[path[-1]]
    else:
        parent[path[-1]] = change
    return changed


def _format(path: Path_) -> str:
    return ".".join(map(str, path))
