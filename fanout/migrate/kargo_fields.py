"""Table of Kargo's fields; the conversion and its docs page are made from it."""

from collections.abc import Iterator
from typing import Any

from fanout.migrate import kargo_stages, kargo_warehouse
from fanout.migrate.field_mapping import (
    LAST_APPLIED_ANNOTATION,
    FieldMapping,
    KindMapping,
    copy_value,
    copy_without_prefixes,
    ignored_field,
    report_unsupported,
    server_field_mappings,
    unsupported_field,
)

KARGO_GROUP = "kargo.akuity.io"
KARGO_VERSION = f"{KARGO_GROUP}/v1alpha1"
_POLICY = "UpstreamPolicy"
_STAGE_PATH = "spec.stages[*]"
_REQUEST_PATH = "spec.requestedFreight[*]"
_SOURCES_PATH = f"{_REQUEST_PATH}.sources"
_STEPS_PATH = "spec.promotionTemplate.spec"


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


_SHARD = ignored_field("spec.shard", "which of Kargo's controllers does the work")
_STAGE_MAPPINGS = (
    FieldMapping(
        "metadata.name", f"{_STAGE_PATH}.name", kargo_stages.convert_name, "with dashes for dots"
    ),
    ignored_field("metadata.labels", "read for the selectors of a ProjectConfig"),
    FieldMapping(
        "metadata.annotations",
        "",
        kargo_stages.convert_stage_annotations,
        "a note, except for Kargo's own keys",
    ),
    ignored_field("metadata.namespace", "that of the policy"),
    *server_field_mappings("Kargo"),
    unsupported_field(
        f"{_REQUEST_PATH}.origin.kind",
        "`Warehouse`, nothing else",
        *("", "Warehouse"),
        problem="is not a Warehouse",
        remedy="request freight of a Warehouse",
    ),
    ignored_field(f"{_REQUEST_PATH}.origin.name", "the policy's name", "metadata.name"),
    ignored_field(f"{_SOURCES_PATH}.direct", "a stage without `after`"),
    FieldMapping(
        f"{_SOURCES_PATH}.stages",
        f"{_STAGE_PATH}.after.stages",
        kargo_stages.convert_upstream_stages,
    ),
    FieldMapping(
        f"{_SOURCES_PATH}.availabilityStrategy",
        f"{_STAGE_PATH}.after.require",
        kargo_stages.convert_availability_strategy,
        "`All` becomes `All`; `OneOf`, and none at all, become `Any`",
    ),
    FieldMapping(
        f"{_SOURCES_PATH}.requiredSoakTime",
        f"{_STAGE_PATH}.after.soak",
        kargo_stages.convert_soak,
        "in hours, minutes and seconds; see [Soak](#what-behaves-differently)",
    ),
    FieldMapping(
        f"{_SOURCES_PATH}.autoPromotionOptions.selectionPolicy",
        "",
        kargo_stages.convert_selection_policy,
        "`NewestFreight` needs no field; `MatchUpstream` is reported",
    ),
    ignored_field("spec.vars", "read where steps clone and push"),
    ignored_field(f"{_STEPS_PATH}.vars", "read where steps clone and push"),
    FieldMapping(
        f"{_STEPS_PATH}.steps",
        "spec.targets",
        kargo_stages.convert_steps,
        "steps are not run; each is reported with what to do instead, except those that fanout does"
        " itself; a repository that they push to is a target; without one, `controlFlow: true`",
    ),
    FieldMapping(
        "spec.verification.analysisTemplates[*].name",
        f"{_STAGE_PATH}.verification[*].name",
        kargo_stages.convert_verification,
        "a check of this name that is answered by `fanout report`",
    ),
    ignored_field("spec.verification.analysisTemplates[*].kind", "has no counterpart"),
    *(
        unsupported_field(
            f"spec.verification.{field}",
            "reported: fanout does not run it",
            *([], {}),
            problem="fanout does not run it",
            remedy="configure it where the analysis runs",
        )
        for field in ("args", "analysisRunMetadata")
    ),
    _SHARD,
    unsupported_field(
        "spec.targets",
        "reported; only in Kargo's commercial build",
        *([], {}),
        problem="Kargo's Targets are not read",
        remedy="write spec.targets with an objectSelector",
    ),
)


def _git_mapping(
    field: str, description: str, *, ignored: Any, problem: str, remedy: str
) -> FieldMapping:
    """Return the row of a field without counterpart, which is reported of the first Git alone."""
    convert = report_unsupported(ignored, problem=problem, remedy=remedy)
    in_first = kargo_warehouse.for_first_subscription(convert)
    return FieldMapping(f"{_GIT_PATH}.{field}", "", in_first, description)


_GIT_PATH, _UPSTREAM_PATH = "spec.subscriptions[*].git", "spec.upstream"
_TAG_FIELDS = ("allowTags", "allowTagsRegex", "allowTagsRegexes")
_WAREHOUSE_MAPPINGS = (
    *_metadata_mappings(),
    _SHARD,
    unsupported_field(
        "spec.interval",
        "a note: every pass lists the repository",
        "",
        problem="every pass lists the repository; there is no polling interval",
        is_lost=False,
    ),
    unsupported_field(
        "spec.freightCreationPolicy",
        "`Automatic` needs no field; `Manual` is reported",
        *("", "Automatic"),
        problem="every tag is a revision",
        remedy="tag by hand, or pin spec.upstream.revision.tag",
    ),
    unsupported_field(
        "spec.freightCreationCriteria",
        "named",
        {},
        problem="every tag is a revision",
        remedy="tag only what is to be rolled out",
    ),
    *(
        unsupported_field(
            f"spec.subscriptions[*].{kind}",
            "reported: the version is part of the package",
            problem=f"fanout does not look for a newer {kind}",
            remedy="write its version into the package, and tag that",
        )
        for kind in ("image", "chart")
    ),
    FieldMapping(
        f"{_GIT_PATH}.repoURL",
        f"{_UPSTREAM_PATH}.repository",
        kargo_warehouse.report_further_subscription,
        "a Repository of this URL",
    ),
    ignored_field(
        f"{_GIT_PATH}.branch",
        "`spec.branch` of that Repository, where no step writes to another; revisions are tags",
    ),
    ignored_field(
        f"{_GIT_PATH}.commitSelectionStrategy",
        "reported: a revision is a tag of the package. `SemVer` with a constraint becomes `semver`",
        f"{_UPSTREAM_PATH}.revision.latest",
    ),
    ignored_field(
        f"{_GIT_PATH}.semverConstraint", "as a range", f"{_UPSTREAM_PATH}.revision.semver"
    ),
    ignored_field(
        f"{_GIT_PATH}.includePaths",
        "one plain path; others are reported, and a placeholder is written",
        f"{_UPSTREAM_PATH}.package",
    ),
    _git_mapping(
        "excludePaths",
        "reported: a package is copied as a whole",
        ignored=[],
        problem="a package is copied as a whole",
        remedy="move other files out of its directory",
    ),
    *(
        FieldMapping(
            f"{_GIT_PATH}.{field}", "", kargo_warehouse.report_tag_filter(subject), "named"
        )
        for subject, fields in (
            (
                "names of tags",
                (*_TAG_FIELDS, *(it.replace("allow", "ignore") for it in _TAG_FIELDS)),
            ),
            ("times of commits", ("since",)),
            ("expressions about commits and tags", ("expressionFilter",)),
        )
        for field in fields
    ),
    _git_mapping(
        "strictSemvers",
        "`true` needs no field; `false` is reported",
        ignored=True,
        problem="only tags like v1 and v1.2.3 count",
        remedy="use such tags",
    ),
    ignored_field(f"{_GIT_PATH}.discoveryLimit", "all tags are listed"),
    _git_mapping(
        "insecureSkipTLSVerify",
        "`true` is reported",
        ignored=False,
        problem="certificates are always verified",
        remedy="let Git trust the authority of the server",
    ),
)
_AUTOMATIC, _WINDOWS = "spec.autoPromotion.stages", "spec.promotionWindows[*]"
_PROJECT_CONFIG_MAPPINGS = (
    *_metadata_mappings(),
    ignored_field("spec.promotionPolicies[*].stage", "where it is enabled", _AUTOMATIC),
    ignored_field(
        "spec.promotionPolicies[*].autoPromotionEnabled", "only `true` becomes an entry", _AUTOMATIC
    ),
    ignored_field(
        "spec.promotionPolicies[*].stageSelector",
        "the names of those it chooses in the input; a plain `glob:` stays a pattern",
        _AUTOMATIC,
    ),
    ignored_field(f"{_WINDOWS}.name", "windows have no names"),
    ignored_field(f"{_WINDOWS}.kind", "`allow` or `deny`", "spec.windows[*]"),
    ignored_field(
        f"{_WINDOWS}.rrule",
        "`FREQ=DAILY` and `FREQ=WEEKLY` with `BYDAY` become cron lines; others are reported, and "
        "automation is left out for their stages",
        "spec.windows[*]",
    ),
    *(
        ignored_field(f"{_WINDOWS}.{field}", "time of day, zone, duration", "spec.windows[*]")
        for field in ("dtstart", "dtend")
    ),
    ignored_field(
        f"{_WINDOWS}.stageSelector",
        "one that selects all Stages needs no field; others are reported, like an `rrule`",
    ),
    unsupported_field(
        f"{_WINDOWS}.projectSelector",
        "named",
        {},
        problem="is for a ClusterConfig",
        remedy="remove it",
    ),
    *(
        unsupported_field(
            f"spec.{field}",
            "a note: a schedule starts passes",
            [],
            problem="`fanout run` sweeps on its own schedule",
            is_lost=False,
        )
        for field in ("webhookReceivers", "receivers")
    ),
)
WAREHOUSE_MAPPING = KindMapping("Warehouse", KARGO_VERSION, _POLICY, _WAREHOUSE_MAPPINGS)
STAGE_MAPPING = KindMapping("Stage", KARGO_VERSION, _POLICY, _STAGE_MAPPINGS)
PROJECT_CONFIG_MAPPING = KindMapping(
    "ProjectConfig", KARGO_VERSION, "PromotionPolicy", _PROJECT_CONFIG_MAPPINGS
)
KARGO_KINDS = (WAREHOUSE_MAPPING, STAGE_MAPPING, PROJECT_CONFIG_MAPPING)
