"""Reference pages of the kinds, generated from the models (`make docs`)."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from fanout.api import durations
from fanout.api.crd_schemas import build_status_schema, to_structural
from fanout.api.field_errors import FieldPath
from fanout.api.kind_registry import CUSTOM_RESOURCES, KINDS
from fanout.api.record_objects import Approval, Decision, Evidence
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.unsupported_fields import UNSUPPORTED_FIELDS, is_unsupported
from fanout.values import Value

_TABLE_HEAD = ("| field | type | limit | default | description |", "|---|---|---|---|---|")
_CONDITIONS_HEAD = ("| condition | is true while |", "|---|---|")
_STAGES_INTRODUCTION = "Each entry of `status.stages` has conditions of its own:"
_STATUS_INTRODUCTION = (
    "`fanout controller` writes the status ([{title}]({page})). In files it is ignored."
)
_RECORDS = (Evidence, Approval, Decision)
_STATUS_PAGE = ("Status in a cluster", "../../concepts/status.md")
_RECORD_STATUS_PAGE = ("Records of a cluster", "../../concepts/records-as-objects.md")
# Fields that are documented on the page of another kind.
_DOCUMENTED_ELSEWHERE = {("Scenario", ("spec", "stages", 0)), ("Scenario", ("spec", "promotion"))}
_COMMON_FIELDS = ("apiVersion", "kind", "metadata", "status")  # the same in all kinds

# Types of the conditions of each kind, and when each is true: a closed list, because users select
# and wait by them. A test compares it with the code that builds conditions.
_RECONCILING = "it is not ready, and fanout continues by itself"
_STALLED = "it is not ready, and a person must correct something"
_INVALID = "it has an error that a person must correct"
_UNENFORCED = (
    "branch protection of {} does not require the commit status of fanout; unknown if its rules"
    " cannot be read"
)
_RECORD_CONDITIONS: Mapping[str, str] = {
    "Recorded": "it is in the records repository",
    "Ready": "it is in the records repository; false while it waits, or was refused",
    "Stalled": "it was refused, because it has errors or nothing proves its author",
    "Effective": "it counts for its policy or variant",
}

CONDITIONS_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "Repository": {
        "Ready": "the last pass of each policy that uses it could list it, or none uses it",
        "Reconciling": _RECONCILING,
        "Stalled": _STALLED,
        "NotEnforced": _UNENFORCED.format("the repository"),
    },
    "UpstreamPolicy": {
        "Ready": "all its variants are ready, or it selects no target",
        "Reconciling": _RECONCILING,
        "Stalled": _STALLED,
        "Suspended": "its spec or a decision suspends it",
        "AdmissionMissing": "the admission policies are not in force, so that no"
        " record is accepted",
        "RecordsUnreadable": "its records can no longer be read; the pass used"
        " the last ones that were read",
        "NotEnforced": _UNENFORCED.format("a downstream repository"),
        "ExpressionError": "a template of its pull requests yields no text",
    },
    "PackageVariant": {
        "Ready": "its candidate is published, and its checks have passed",
        "Reconciling": _RECONCILING,
        "Stalled": _STALLED,
        "MergeConflict": "its draft has undecided merge conflicts",
        "ConflictsDecided": "merge conflicts of its draft or package were decided",
        "Edited": "its package or draft has edits of people",
        "OutOfBand": "a person merged its draft before its gates were open",
        "Reverted": "a person reverted its publication",
        "TagMissing": "the tag of its publication, or that of upstream, is missing",
        "TagMoved": "the tag of its publication names another commit",
        "DraftLeft": "the branch of its published draft was not deleted",
        "Broken": "its published package has invalid files",
    },
    "PromotionPolicy": {
        "Ready": "it is valid, and all that it names exists",
        "Stalled": _INVALID,
    },
    "Evidence": _RECORD_CONDITIONS,
    "Approval": _RECORD_CONDITIONS,
    "Decision": _RECORD_CONDITIONS,
}

STAGE_CONDITIONS: Mapping[str, str] = {
    "Passed": "the stage has passed its candidate; false if it failed, else unknown",
    "MergeConflict": "drafts of the stage have undecided merge conflicts",
}
"""Conditions of a stage in the status of an UpstreamPolicy."""


def build_kind_page(kind: str) -> str:
    """Return the page of a kind: the supported fields, then the unsupported ones."""
    model = KINDS[kind]
    schema = model.model_json_schema(by_alias=True, mode="validation")
    root_schema = to_structural(schema, schema.get("$defs", {}))
    lines = [f"# {kind}", "", root_schema["description"], "", "```yaml"]
    lines += ["apiVersion: fanout.dev/v1alpha1", f"kind: {kind}", "```", ""]
    if model.SHORT_NAMES:
        lines += [f"Short name: `{'`, `'.join(model.SHORT_NAMES)}`.", ""]
    lines += ["## Fields", "", *_TABLE_HEAD]
    own_fields = {
        name: field
        for name, field in root_schema["properties"].items()
        if name not in _COMMON_FIELDS
    }
    lines += _FieldTable(kind).rows(root_schema | {"properties": own_fields}, ())
    if model in CUSTOM_RESOURCES:
        title, page = _RECORD_STATUS_PAGE if model in _RECORDS else _STATUS_PAGE
        introduction = _STATUS_INTRODUCTION.format(title=title, page=page)
        lines += ["", "## Status", "", introduction, ""]
        lines += [*_TABLE_HEAD, *_FieldTable(kind).rows(build_status_schema(model), ("status",))]
        lines += ["", "## Conditions", "", *_condition_rows(CONDITIONS_BY_KIND[kind])]
    if model is UpstreamPolicy:
        lines += ["", _STAGES_INTRODUCTION, "", *_condition_rows(STAGE_CONDITIONS)]
    for heading, is_former in (("Not supported yet", False), ("No longer supported", True)):
        rows = [
            row for row in UNSUPPORTED_FIELDS if row.kind == kind and row.is_former is is_former
        ]
        if rows:
            lines += ["", f"## {heading}", "", "These fields are refused by name.", ""]
        for row in rows:
            values = ", ".join(f"`{value}`" for value in row.values)
            suffix = f"; {row.remedy}" if row.is_former else ""
            of_values = f": {values}" if values else ""
            lines.append(f"* `{row.path}`{of_values} ({row.explanation}{suffix})")
    return "\n".join(lines) + "\n"


def _condition_rows(meanings: Mapping[str, str]) -> Iterator[str]:
    yield from _CONDITIONS_HEAD
    yield from (f"| `{name}` | {meaning} |" for name, meaning in meanings.items())


class _FieldTable(Value):
    """Table of the supported fields of a kind."""

    kind: str

    def rows(self, schema: Mapping[str, Any], path: FieldPath) -> Iterator[str]:
        """Yield one row for each field below an object, followed by rows of inner fields."""
        for name, field in schema["properties"].items():
            field_path: FieldPath = (*path, name)
            if is_unsupported(self.kind, field_path):
                continue
            default = f"`{_format_schema_value(field['default'])}`" if "default" in field else ""
            if name in schema.get("required", ()):
                default = "required"
            dotted = ".".join("[]" if part == 0 else str(part) for part in field_path)
            description = field["description"].replace("|", "\\|")
            yield (
                f"| `{dotted.replace('.[]', '[]')}` | {self.type_name(field, field_path)}"
                f" | {_format_limit(field)} | {default} | {description} |"
            )
            # Entries of a list have no own row: continue with their fields.
            while "items" in field:
                field_path, field = (*field_path, 0), field["items"]  # noqa: PLW2901 - one step down
            if "properties" in field and (self.kind, field_path) not in _DOCUMENTED_ELSEWHERE:
                yield from self.rows(field, field_path)

    def type_name(self, field: Mapping[str, Any], path: FieldPath) -> str:
        """Return the type of a field in a word, or its allowed values."""
        if field.get("x-kubernetes-int-or-string"):
            return "number or percentage"
        if "enum" in field:
            usable = [
                value for value in field["enum"] if not is_unsupported(self.kind, path, value)
            ]
            return ", ".join(f"`{_format_schema_value(value)}`" for value in usable)
        if field["type"] == "array":
            return f"list of {self.type_name(field['items'], (*path, 0))}"
        if "additionalProperties" in field:
            return f"map of {self.type_name(field['additionalProperties'], path)}"
        return (
            "duration" if field.get("pattern") == durations.DURATION_PATTERN else str(field["type"])
        )


def _format_limit(field: Mapping[str, Any]) -> str:
    """Return the bound of a list, map or text, and that of the values in it."""
    if field.get("pattern") == durations.DURATION_PATTERN:
        return f"{durations.MAX_DURATION // timedelta(hours=1)}h"
    if "maxLength" in field and "type" in field:
        return f"{field['maxLength']} characters"
    limit = field.get("maxItems", field.get("maxProperties"))
    if limit is None:
        return ""
    inner = _format_limit(field.get("items") or field.get("additionalProperties") or {})
    return f"{limit} entries" + (f" of {inner}" if inner else "")


def _format_schema_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
