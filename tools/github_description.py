"""Writer of `tests/forge/github_api/2026-03-10.json`: the part of GitHub's description in use.

    python tools/github_description.py api.github.com.json

The file is `package/generated/api.github.com.json` of the npm package `@octokit/openapi`, whose
version is SOURCE:

    npm pack @octokit/openapi@23.0.2 && tar xf octokit-openapi-23.0.2.tgz

It describes the API of 2022-11-28, and says in `x-github-breaking-changes` what later versions
change, as JSON merge patches. What is written here is the version of VERSION: for each call of
CALLS its queries, its body and its answers as JSON Schemas. Prose and examples are omitted, and
objects are closed: a field that is not in the description is an error.
"""

import json
import sys
from pathlib import Path
from typing import Any

VERSION = "2026-03-10"
SOURCE = {
    "package": "npm @octokit/openapi 23.0.2",
    "origin": "https://github.com/github/rest-api-description",
    "license": "MIT",
    "copyright": "Copyright (c) 2020 Octokit contributors",
    "version": VERSION,
    "writer": "tools/github_description.py",
}
TARGET = Path(__file__).parent.parent / "tests" / "forge" / "github_api" / f"{VERSION}.json"
REPO = "/repos/{owner}/{repo}"
PULL = f"{REPO}/pulls/{{pull_number}}"
ISSUE = f"{REPO}/issues/{{issue_number}}"
CALLS = [
    "GET /rate_limit",
    f"GET {REPO}/installation",
    "POST /app/installations/{installation_id}/access_tokens",
    f"GET {REPO}",
    f"GET {REPO}/pulls",
    f"POST {REPO}/pulls",
    f"GET {PULL}",
    f"PATCH {PULL}",
    f"PUT {PULL}/merge",
    f"PUT {PULL}/merge-async",
    f"GET {PULL}/merge-async/{{uuid}}",
    f"GET {PULL}/files",
    f"GET {PULL}/reviews",
    f"POST {PULL}/requested_reviewers",
    f"POST {ISSUE}/labels",
    f"DELETE {ISSUE}/labels/{{name}}",
    f"GET {ISSUE}/events",
    "GET /search/issues",
    f"DELETE {REPO}/git/refs/{{ref}}",
    f"GET {REPO}/branches/{{branch}}",
    f"GET {REPO}/rules/branches/{{branch}}",
    f"GET {REPO}/commits/{{ref}}/statuses",
    f"GET {REPO}/commits/{{ref}}/check-runs",
    f"POST {REPO}/statuses/{{sha}}",
    f"GET {REPO}/compare/{{basehead}}",
]
# What every call may be answered with, although few of them say so.
ERRORS = ("basic-error", "validation-error")
CHANGES = "x-github-breaking-changes"
PREFIX = "#/components/schemas/"
KEPT = (
    *("type", "enum", "required", "minimum", "maximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "pattern"),
)


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the value with a JSON merge patch (RFC 7396) applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def apply_changes(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema or an operation as VERSION has it.

    Each patch repeats the whole list `required` of 2022-11-28 without its own field; of several
    patches each takes its own away.
    """
    patched = node
    for change in node.get(CHANGES, ()):
        if change["version"] <= VERSION:
            assert isinstance(change["patch"], dict), "a merge patch"
            patched = merge_patch(patched, change["patch"])
    removed = {
        name
        for change in node.get(CHANGES, ())
        if "required" in change["patch"]
        for name in set(node["required"]) - set(change["patch"]["required"])
    }
    if removed:
        patched = {**patched, "required": [it for it in node["required"] if it not in removed]}
    return patched


class Cut:
    """The schemas that the calls need, collected while they are converted."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.components = document["components"]
        self.paths = document["paths"]
        self.schemas: dict[str, Any] = {}

    def call(self, name: str) -> dict[str, Any]:
        """Return queries, body and answers of a call, such as `GET /rate_limit`."""
        method, path = name.split()
        operation = apply_changes(self.paths[path][method.lower()])
        parameters = [self._resolve(it) for it in operation.get("parameters", ())]
        queries = [it for it in parameters if it["in"] == "query"]
        content = operation.get("requestBody", {}).get("content", {})
        return {
            "queries": {it["name"]: self.convert(it["schema"]) for it in queries},
            "required": [it["name"] for it in queries if it.get("required")],
            "body": self.convert(content["application/json"]["schema"]) if content else None,
            "answers": {
                status: self._convert_content(self._resolve(answer))
                for status, answer in operation["responses"].items()
            },
        }

    def convert(self, schema: dict[str, Any], *, is_part: bool = False) -> dict[str, Any]:
        """Return an OpenAPI 3.0 schema as JSON Schema; a part of `allOf` is not closed."""
        if "$ref" in schema and is_part:
            schema = self.components["schemas"][schema["$ref"].removeprefix(PREFIX)]
        elif "$ref" in schema:
            return {"$ref": "#/schemas/" + self.add(schema["$ref"].removeprefix(PREFIX))}
        schema = apply_changes(schema)
        converted = {key: schema[key] for key in KEPT if key in schema}
        if "properties" in schema:
            converted["properties"] = {
                name: self.convert(it) for name, it in schema["properties"].items()
            }
        if isinstance(schema.get("additionalProperties"), dict):
            converted["additionalProperties"] = self.convert(schema["additionalProperties"])
        elif "properties" in schema and not is_part and not schema.get("additionalProperties"):
            # Twice as fast to check, and the same where nothing else adds properties.
            is_alone = not schema.keys() & {"oneOf", "anyOf", "allOf"}
            converted["additionalProperties" if is_alone else "unevaluatedProperties"] = False
        if "items" in schema:
            converted["items"] = self.convert(schema["items"])
        for key in ("oneOf", "anyOf", "allOf"):
            if key in schema:
                is_whole = key != "allOf" and "properties" not in schema
                converted[key] = [self.convert(it, is_part=not is_whole) for it in schema[key]]
        if "allOf" in schema:
            converted["unevaluatedProperties"] = False
        return allow_null(converted) if schema.get("nullable") else converted

    def add(self, name: str) -> str:
        """Collect a named schema with all that it refers to; return its name."""
        if name not in self.schemas:
            self.schemas[name] = {}  # schemas refer to themselves
            self.schemas[name] = self.convert(self.components["schemas"][name])
        return name

    def _resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node:
            return node
        kind, name = node["$ref"].removeprefix("#/components/").split("/")
        resolved: dict[str, Any] = self.components[kind][name]
        return resolved

    def _convert_content(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        content = answer.get("content", {}).get("application/json")
        return self.convert(content["schema"]) if content else None


def allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with null as another value."""
    if not isinstance(schema.get("type"), str):
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return {**schema, "type": [schema["type"], "null"]}


def format_description(document: dict[str, Any]) -> str:
    """Return the text of the written file: a line for each call and each schema."""
    cut = Cut(document)
    calls = {name: cut.call(name) for name in CALLS}
    for name in ERRORS:
        cut.add(name)
    parts = {"calls": calls, "schemas": dict(sorted(cut.schemas.items()))}
    lines = [f'"source": {json.dumps(SOURCE)}']
    for part, entries in parts.items():
        rows = [f" {json.dumps(key)}: {json.dumps(it)}" for key, it in entries.items()]
        lines.append(f'"{part}": {{\n' + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    description = json.loads(Path(sys.argv[1]).read_bytes())
    TARGET.write_text(format_description(description), encoding="utf-8")
