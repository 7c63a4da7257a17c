"""GitHub's published description of its REST API, as far as it is in use, and checks against it.

`tools/github_description.py` writes the data, and says from what. A call that is not in it is added
to CALLS there.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

VERSION = "2026-03-10"
DESCRIPTION = json.loads(
    (Path(__file__).parent / "forge" / "github_api" / f"{VERSION}.json").read_bytes()
)
CALLS: dict[str, Any] = DESCRIPTION["calls"]
SCHEMAS: dict[str, Any] = DESCRIPTION["schemas"]
VALIDATOR = jsonschema.Draft202012Validator(DESCRIPTION)
# Branches and names of tags have slashes, which GitHub takes as they are.
NAMES_WITH_SLASHES = ("ref", "branch", "basehead")
# Any call may be refused with these; the description names them at some calls only.
REFUSALS = {401: "basic-error", 403: "basic-error", 404: "basic-error", 422: "validation-error"}
REFUSALS |= dict.fromkeys((301, 307, 400, 409, 429, 451), "basic-error")
PLAIN_INSTANT = "2026-01-01T00:00:00Z"


class NotDescribed(AssertionError):
    """A request or an answer that GitHub's description does not have."""


@dataclass(frozen=True)
class Call:
    """A call of the description, as `GET /repos/{owner}/{repo}`, with the variables of its path."""

    name: str
    variables: Mapping[str, str]


@cache
def _patterns() -> list[tuple[str, str, re.Pattern[str]]]:
    patterns = []
    for name in CALLS:
        method, path = name.split()
        expression = re.sub(
            r"\\{(\w+)\\}",
            lambda it: f"(?P<{it[1]}>{'.+' if it[1] in NAMES_WITH_SLASHES else '[^/]+'})",
            re.escape(path),
        )
        patterns.append((name, method, re.compile(expression)))
    return patterns


def find_call(method: str, path: str) -> Call:
    """Return the call of a method and a path without query. Raises NotDescribed."""
    for name, described, pattern in _patterns():
        if described == method and (match := pattern.fullmatch(path)):
            return Call(name, match.groupdict())
    raise NotDescribed(f"{method} {path} is not in the description of {VERSION}")


def check_request(call: Call, queries: Mapping[str, str], body: Any) -> None:
    """Raise NotDescribed for a query or a body that the call does not have."""
    described = CALLS[call.name]
    if missing := [it for it in described["required"] if it not in queries]:
        raise NotDescribed(f"{call.name}: without the query {', '.join(missing)}")
    for name, text in queries.items():
        if name not in described["queries"]:
            raise NotDescribed(f"{call.name}: has no query {name}")
        schema = described["queries"][name]
        value = int(text) if schema.get("type") == "integer" and text.isdigit() else text
        _check(f"{call.name}: query {name}", schema, value)
    if described["body"] is not None:
        _check(f"{call.name}: body", described["body"], body)
    elif body is not None:
        raise NotDescribed(f"{call.name}: has no body")


def check_answer(call: Call, status: int, body: Any) -> None:
    """Raise NotDescribed for an answer that the call does not have."""
    described = CALLS[call.name]["answers"]
    if str(status) in described:
        schema = described[str(status)]
    elif status in REFUSALS:
        schema = {"$ref": f"#/schemas/{REFUSALS[status]}"}
    elif status >= 500:
        return  # of a proxy before GitHub
    elif status == 304:
        schema = None
    else:
        raise NotDescribed(f"{call.name}: is not answered with {status}")
    if schema is not None:
        _check(f"{call.name}: answer {status}", schema, body)
    elif body is not None and status < 400:
        raise NotDescribed(f"{call.name}: answer {status} has no body")


def _check(subject: str, schema: Mapping[str, Any], value: Any) -> None:
    error = jsonschema.exceptions.best_match(VALIDATOR.evolve(schema=schema).iter_errors(value))
    if error is not None:
        raise NotDescribed(f"{subject}: {error.json_path}: {error.message[:500]}")


def complete(name: str, values: Mapping[str, Any], *, url: str) -> dict[str, Any]:
    """Return an object of a schema: these values, and the plainest value of each required field.

    The plainest value is null, false, zero, or empty; an instant is PLAIN_INSTANT, and an address
    is `url`. A client must not rely on what nobody gave.
    """
    completed = _plainest(name, {**SCHEMAS[name], "type": "object"}, url)
    return {**completed, **values}


def _plainest(name: str, schema: Mapping[str, Any], url: str) -> Any:
    if "$ref" in schema:
        return _plainest(name, SCHEMAS[schema["$ref"].rpartition("/")[2]], url)
    choices = schema.get("anyOf") or schema.get("oneOf") or ()
    types = schema.get("type", "object" if "properties" in schema else None)
    if "null" in (types if isinstance(types, list) else ()) or {"type": "null"} in choices:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if types == "object":
        fields = {it: schema["properties"][it] for it in schema.get("required", ())}
        return {it: _plainest(it, field, url) for it, field in fields.items()}
    if choices:
        return _plainest(name, choices[0], url)
    if types == "string":
        return url if name.endswith("url") else PLAIN_INSTANT if name.endswith("_at") else ""
    return {"integer": 0, "number": 0, "boolean": False, "array": []}[types]
