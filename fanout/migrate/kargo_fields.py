"""Table of Kargo's fields; the conversion and its docs page are made from it."""

from collections.abc import Iterator
from typing import Any

from fanout.migrate import kargo_stages, kargo_warehouse
from fanout.migrate.field_mapping import (
    LAST_APPLIED_ANNOTATION,
    FieldMapping,
    KindMapping,
    Remark,
    SourceField,
    TargetField,
    copy_value,
    copy_without_prefixes,
    ignore_field,
    note_unsupported,
    report_unsupported,
    server_field_mappings,
    unsupported_field,
)
from fanout.migrate.kargo_stages import convert_steps

KARGO_GROUP = "kargo.akuity.io"
_VERSION = "v1alpha1"
_POLICY = "UpstreamPolicy"
_STAGE_PATH = "spec.stages[*]"
_REQUEST_PATH = "spec.requestedFreight[*]"
_SOURCES_PATH = f"{_REQUEST_PATH}.sources"


def convert_elsewhere(_: SourceField) -> Iterator[TargetField | Remark]:
    """Ignore a field that is converted together with other fields."""
    return iter(())


def _metadata_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping(
        "metadata.name", "metadata.name", kargo_stages.convert_name, "with dashes for dots"
    )
    yield FieldMapping(
        "metadata.labels",
        "metadata.labels",
        copy_without_prefixes("kargo.akuity.io/"),
        "the same, without Kargo's own keys",
    )
    yield FieldMapping(
        "metadata.annotations",
        "metadata.annotations",
        copy_without_prefixes("kargo.akuity.io/", LAST_APPLIED_ANNOTATION),
        "the same, without keys of Kargo and kubectl",
    )
    yield FieldMapping(
        "metadata.namespace", "metadata.namespace", copy_value, "a Project is a namespace"
    )
    yield from server_field_mappings("Kargo")


def _stage_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping(
        "metadata.name", f"{_STAGE_PATH}.name", kargo_stages.convert_name, "with dashes for dots"
    )
    yield FieldMapping(
        "metadata.labels", "", ignore_field, "read for the selectors of a ProjectConfig"
    )
    yield FieldMapping(
        "metadata.annotations",
        "",
        kargo_stages.convert_stage_annotations,
        "a note, except for Kargo's own keys",
    )
    yield FieldMapping("metadata.namespace", "", convert_elsewhere, "that of the policy")
    yield from server_field_mappings("Kargo")
    yield unsupported_field(
        f"{_REQUEST_PATH}.origin.kind",
        "`Warehouse`, nothing else",
        ignored=("", "Warehouse"),
        problem="is not a Warehouse",
        remedy="request freight of a Warehouse",
    )
    yield FieldMapping(
        f"{_REQUEST_PATH}.origin.name", "metadata.name", convert_elsewhere, "the policy's name"
    )
    yield FieldMapping(f"{_SOURCES_PATH}.direct", "", convert_elsewhere, "a stage without `after`")
    yield FieldMapping(
        f"{_SOURCES_PATH}.stages",
        f"{_STAGE_PATH}.after.stages",
        kargo_stages.convert_upstream_stages,
    )
    yield FieldMapping(
        f"{_SOURCES_PATH}.availabilityStrategy",
        f"{_STAGE_PATH}.after.require",
        kargo_stages.convert_availability_strategy,
        "`All` becomes `All`; `OneOf`, and none at all, become `Any`",
    )
    yield FieldMapping(
        f"{_SOURCES_PATH}.requiredSoakTime",
        f"{_STAGE_PATH}.after.soak",
        kargo_stages.convert_soak,
        "in hours, minutes and seconds; see [Soak](#what-behaves-differently)",
    )
    yield FieldMapping(
        f"{_SOURCES_PATH}.autoPromotionOptions.selectionPolicy",
        "",
        kargo_stages.convert_selection_policy,
        "`NewestFreight` needs no field; `MatchUpstream` is reported",
    )
    yield from _stage_spec_mappings()


def _stage_spec_mappings() -> Iterator[FieldMapping]:
    vars_read = "read where steps clone and push"
    yield FieldMapping("spec.vars", "", ignore_field, vars_read)
    yield FieldMapping("spec.promotionTemplate.spec.vars", "", ignore_field, vars_read)
    yield FieldMapping(
        "spec.promotionTemplate.spec.steps",
        "spec.targets",
        convert_steps,
        "steps are not run; each is reported with what to do instead, except those that fanout"
        " does "
        "itself; a repository that they push to is a target; without one, `controlFlow: true`",
    )
    yield FieldMapping(
        "spec.verification.analysisTemplates[*].name",
        f"{_STAGE_PATH}.verification[*].name",
        kargo_stages.convert_verification,
        "a check of this name that is answered by `fanout report`",
    )
    yield FieldMapping(
        "spec.verification.analysisTemplates[*].kind", "", ignore_field, "has no counterpart"
    )
    for field in ("args", "analysisRunMetadata"):
        yield unsupported_field(
            f"spec.verification.{field}",
            "reported: fanout does not run it",
            ignored=([], {}),
            problem="fanout does not run it",
            remedy="configure it where the analysis runs",
        )
    yield FieldMapping("spec.shard", "", ignore_field, "which of Kargo's controllers does the work")
    yield unsupported_field(
        "spec.targets",
        "reported; only in Kargo's commercial build",
        ignored=([], {}),
        problem="Kargo's Targets are not read",
        remedy="write spec.targets with an objectSelector",
    )


def _warehouse_mappings() -> Iterator[FieldMapping]:
    yield from _metadata_mappings()
    yield FieldMapping("spec.shard", "", ignore_field, "which of Kargo's controllers does the work")
    yield FieldMapping(
        "spec.interval",
        "",
        note_unsupported(
            "", problem="every pass lists the repository; there is no polling interval"
        ),
        "a note: every pass lists the repository",
    )
    yield unsupported_field(
        "spec.freightCreationPolicy",
        "`Automatic` needs no field; `Manual` is reported",
        ignored=("", "Automatic"),
        problem="every tag is a revision",
        remedy="tag by hand, or pin spec.upstream.revision.tag",
    )
    yield unsupported_field(
        "spec.freightCreationCriteria",
        "named",
        ignored=({},),
        problem="every tag is a revision",
        remedy="tag only what is to be rolled out",
    )
    for kind in ("image", "chart"):
        yield unsupported_field(
            f"spec.subscriptions[*].{kind}",
            "reported: the version is part of the package",
            problem=f"fanout does not look for a newer {kind}",
            remedy="write its version into the package, and tag that",
        )
    yield from _git_mappings()


def _unsupported_git_field(
    field: str, description: str, *, ignored: Any, problem: str, remedy: str
) -> FieldMapping:
    convert = report_unsupported(ignored, problem=problem, remedy=remedy)
    in_first = kargo_warehouse.for_first_subscription(convert)
    return FieldMapping(f"spec.subscriptions[*].git.{field}", "", in_first, description)


def _git_mappings() -> Iterator[FieldMapping]:
    git, upstream = "spec.subscriptions[*].git", "spec.upstream"
    yield FieldMapping(
        f"{git}.repoURL",
        f"{upstream}.repository",
        kargo_warehouse.report_further_subscription,
        "a Repository of this URL",
    )
    yield FieldMapping(
        f"{git}.branch",
        "",
        convert_elsewhere,
        "`spec.branch` of that Repository, where no step writes to another; revisions are tags",
    )
    yield FieldMapping(
        f"{git}.commitSelectionStrategy",
        f"{upstream}.revision.latest",
        convert_elsewhere,
        "reported: a revision is a tag of the package. `SemVer` with a constraint becomes `semver`",
    )
    yield FieldMapping(
        f"{git}.semverConstraint", f"{upstream}.revision.semver", convert_elsewhere, "as a range"
    )
    yield FieldMapping(
        f"{git}.includePaths",
        f"{upstream}.package",
        convert_elsewhere,
        "one plain path; others are reported, and a placeholder is written",
    )
    yield _unsupported_git_field(
        "excludePaths",
        "reported: a package is copied as a whole",
        ignored=[],
        problem="a package is copied as a whole",
        remedy="move other files out of its directory",
    )
    yield from _tag_filter_mappings(git)
    yield FieldMapping(f"{git}.discoveryLimit", "", ignore_field, "all tags are listed")
    yield _unsupported_git_field(
        "insecureSkipTLSVerify",
        "`true` is reported",
        ignored=False,
        problem="certificates are always verified",
        remedy="let Git trust the authority of the server",
    )


def _tag_filter_mappings(git: str) -> Iterator[FieldMapping]:
    fields = ["allowTags", "allowTagsRegex", "allowTagsRegexes"]
    for field in (*fields, "ignoreTags", "ignoreTagsRegex", "ignoreTagsRegexes"):
        yield FieldMapping(
            f"{git}.{field}", "", kargo_warehouse.report_tag_filter("names of tags"), "named"
        )
    yield FieldMapping(
        f"{git}.since", "", kargo_warehouse.report_tag_filter("times of commits"), "named"
    )
    expressions = kargo_warehouse.report_tag_filter("expressions about commits and tags")
    yield FieldMapping(f"{git}.expressionFilter", "", expressions, "named")
    yield _unsupported_git_field(
        "strictSemvers",
        "`true` needs no field; `false` is reported",
        ignored=True,
        problem="only tags like v1 and v1.2.3 count",
        remedy="use such tags",
    )


def _project_config_mappings() -> Iterator[FieldMapping]:
    yield from _metadata_mappings()
    automatic, policies = "spec.autoPromotion.stages", "spec.promotionPolicies[*]"
    yield FieldMapping(f"{policies}.stage", automatic, convert_elsewhere, "where it is enabled")
    yield FieldMapping(
        f"{policies}.autoPromotionEnabled",
        automatic,
        convert_elsewhere,
        "only `true` becomes an entry",
    )
    yield FieldMapping(
        f"{policies}.stageSelector",
        automatic,
        convert_elsewhere,
        "the names of those it chooses in the input; a plain `glob:` stays a pattern",
    )
    windows = "spec.promotionWindows[*]"
    yield FieldMapping(f"{windows}.name", "", ignore_field, "windows have no names")
    yield FieldMapping(f"{windows}.kind", "spec.windows[*]", convert_elsewhere, "`allow` or `deny`")
    yield FieldMapping(
        f"{windows}.rrule",
        "spec.windows[*]",
        convert_elsewhere,
        "`FREQ=DAILY` and `FREQ=WEEKLY` with `BYDAY` become cron lines; others are reported, and "
        "automation is left out for their stages",
    )
    for field in ("dtstart", "dtend"):
        yield FieldMapping(
            f"{windows}.{field}",
            "spec.windows[*]",
            convert_elsewhere,
            "time of day, zone, duration",
        )
    yield FieldMapping(
        f"{windows}.stageSelector",
        "",
        convert_elsewhere,
        "one that selects all Stages needs no field; others are reported, like an `rrule`",
    )
    yield unsupported_field(
        f"{windows}.projectSelector",
        "named",
        ignored=({},),
        problem="is for a ClusterConfig",
        remedy="remove it",
    )
    hooks = note_unsupported([], problem="`fanout run` sweeps on its own schedule")
    for field in ("webhookReceivers", "receivers"):
        yield FieldMapping(f"spec.{field}", "", hooks, "a note: a schedule starts passes")


WAREHOUSE_MAPPING = KindMapping("Warehouse", _VERSION, _POLICY, tuple(_warehouse_mappings()))
STAGE_MAPPING = KindMapping("Stage", _VERSION, _POLICY, tuple(_stage_mappings()))
PROJECT_CONFIG_MAPPING = KindMapping(
    "ProjectConfig", _VERSION, "PromotionPolicy", tuple(_project_config_mappings())
)
KARGO_KINDS = (WAREHOUSE_MAPPING, STAGE_MAPPING, PROJECT_CONFIG_MAPPING)
