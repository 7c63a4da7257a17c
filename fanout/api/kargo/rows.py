"""The table of Kargo's fields: what each becomes. The translation and the page are made of it."""

from collections.abc import Iterator

from fanout.api.foreign.convert import (
    KUBECTL_S_OWN,
    copied,
    noted,
    only,
    passed_over,
    without,
)
from fanout.api.foreign.pieces import Found, Put, Remark
from fanout.api.foreign.rows import Origin, Row, of_the_server
from fanout.api.kargo import stages, warehouse
from fanout.api.kargo.steps import steps

GROUP = "kargo.akuity.io"
_VERSION = "v1alpha1"
_POLICY = "UpstreamPolicy"
_STAGE = "spec.stages[*]"
_REQUEST = "spec.requestedFreight[*]"
_SOURCES = f"{_REQUEST}.sources"
_ENTERPRISE = "of Kargo's commercial build"


def elsewhere(_: Found) -> Iterator[Put | Remark]:
    """A field that is read together with others, not by itself."""
    return iter(())


def _labelled() -> Iterator[Row]:
    own = without("kargo.akuity.io/")
    yield Row("metadata.labels", "metadata.labels", own, "the same, without Kargo's own")
    yield Row(
        "metadata.annotations",
        "metadata.annotations",
        without("kargo.akuity.io/", KUBECTL_S_OWN),
        "the same, without Kargo's and kubectl's own",
    )


def _in_all() -> Iterator[Row]:
    yield Row("metadata.namespace", "metadata.namespace", copied, "a Project is a namespace")
    yield from of_the_server("Kargo")


def _stage() -> Iterator[Row]:
    yield Row("metadata.name", f"{_STAGE}.name", stages.named, "with dashes for dots")
    yield Row("metadata.labels", "", passed_over, "read for the selectors of a ProjectConfig")
    yield Row("metadata.annotations", "", stages.annotated, "noted, but for Kargo's own")
    yield Row("metadata.namespace", "", elsewhere, "that of the policy")
    yield from of_the_server("Kargo")
    yield Row(
        f"{_REQUEST}.origin.kind",
        "",
        only("", "Warehouse", problem="is no Warehouse", remedy="request what one finds"),
        "`Warehouse`, nothing else",
    )
    yield Row(f"{_REQUEST}.origin.name", "metadata.name", elsewhere, "the policy's name")
    yield Row(f"{_SOURCES}.direct", "", elsewhere, "a stage without `after`")
    yield Row(f"{_SOURCES}.stages", f"{_STAGE}.after.stages", stages.before)
    yield Row(
        f"{_SOURCES}.availabilityStrategy",
        f"{_STAGE}.after.require",
        stages.strategy,
        "`All` becomes `All`; `OneOf`, and none at all, become `Any`",
    )
    yield Row(
        f"{_SOURCES}.requiredSoakTime",
        f"{_STAGE}.after.soak",
        stages.soak,
        "in hours, minutes and seconds; see [Soak](#what-behaves-differently)",
    )
    yield Row(
        f"{_SOURCES}.autoPromotionOptions.selectionPolicy",
        "",
        stages.selection_policy,
        "`NewestFreight` says nothing; `MatchUpstream` is named",
    )
    yield from _of_a_stage()


def _of_a_stage() -> Iterator[Row]:
    vars_read = "read where steps clone and push"
    yield Row("spec.vars", "", passed_over, vars_read)
    yield Row("spec.promotionTemplate.spec.vars", "", passed_over, vars_read)
    yield Row(
        "spec.promotionTemplate.spec.steps",
        "spec.targets",
        steps,
        "no step is run: each is named with what to do instead, but for those that fanout does "
        "itself; a repository that they push to is a target; without any, `controlFlow: true`",
    )
    yield Row(
        "spec.verification.analysisTemplates[*].name",
        f"{_STAGE}.verification[*].name",
        stages.check,
        "a check of this name that is answered by `fanout report`",
    )
    yield Row("spec.verification.analysisTemplates[*].kind", "", passed_over, "says nothing here")
    for field in ("args", "analysisRunMetadata"):
        yield Row(
            f"spec.verification.{field}",
            "",
            only([], {}, problem="nothing is run here", remedy="give it to what runs the analysis"),
            "named: nothing is run",
        )
    yield Row("spec.shard", "", passed_over, "which of Kargo's controllers does the work")
    yield Row(
        "spec.targets",
        "",
        only(
            [],
            {},
            problem="Kargo's Targets are not read",
            remedy="write spec.targets with an objectSelector",
        ),
        f"named; {_ENTERPRISE}",
    )


def _warehouse() -> Iterator[Row]:
    yield Row("metadata.name", "metadata.name", stages.named, "with dashes for dots")
    yield from _labelled()
    yield from _in_all()
    yield Row("spec.shard", "", passed_over, "which of Kargo's controllers does the work")
    yield Row(
        "spec.interval",
        "",
        noted("", problem="every pass looks at the repository itself; nothing is polled"),
        "noted: every pass looks at the repository",
    )
    yield Row(
        "spec.freightCreationPolicy",
        "",
        only(
            "",
            "Automatic",
            problem="whatever is tagged is a revision",
            remedy="tag by hand, or pin spec.upstream.revision.tag",
        ),
        "`Automatic` says nothing; `Manual` is named",
    )
    yield Row(
        "spec.freightCreationCriteria",
        "",
        only(
            {}, problem="whatever is tagged is a revision", remedy="tag only what is to be rolled"
        ),
        "named",
    )
    for kind in ("image", "chart"):
        yield Row(
            f"spec.subscriptions[*].{kind}",
            "",
            only(
                problem=f"nobody looks for a newer {kind}",
                remedy="write its version into the package, and tag that",
            ),
            "named: a version that is in the package goes with it",
        )
    yield from _git()


def _git() -> Iterator[Row]:
    git, upstream = "spec.subscriptions[*].git", "spec.upstream"
    yield Row(
        f"{git}.repoURL", f"{upstream}.repository", warehouse.further, "a Repository of this URL"
    )
    yield Row(
        f"{git}.branch",
        "",
        elsewhere,
        "`spec.branch` of that Repository, where no step writes to another; revisions are tags",
    )
    yield Row(
        f"{git}.commitSelectionStrategy",
        f"{upstream}.revision.latest",
        elsewhere,
        "named: a revision is a tag of the package. `SemVer` with a constraint becomes `semver`",
    )
    yield Row(f"{git}.semverConstraint", f"{upstream}.revision.semver", elsewhere, "as a range")
    yield Row(
        f"{git}.includePaths",
        f"{upstream}.package",
        elsewhere,
        "one plain path; others are named, and a name to fill in is written",
    )
    yield Row(
        f"{git}.excludePaths",
        "",
        warehouse.of_the_first(
            only([], problem="a package is taken whole", remedy="move out what is not part of it")
        ),
        "named: a package is whole",
    )
    for field in ("allowTags", "allowTagsRegex", "ignoreTags", "ignoreTagsRegex"):
        yield Row(f"{git}.{field}", "", warehouse.tags_alone("names of tags"), "named")
    expressions = warehouse.tags_alone("expressions about commits and tags")
    yield Row(f"{git}.expressionFilter", "", expressions, "named")
    yield Row(
        f"{git}.strictSemvers",
        "",
        warehouse.of_the_first(
            only(True, problem="only tags like v1 and v1.2.3 count", remedy="tag so")
        ),
        "`true` says nothing; `false` is named",
    )
    yield Row(f"{git}.discoveryLimit", "", passed_over, "all tags are seen")
    yield Row(
        f"{git}.insecureSkipTLSVerify",
        "",
        warehouse.of_the_first(
            only(
                False,
                problem="certificates are always verified",
                remedy="let Git trust the authority of the server",
            )
        ),
        "`true` is named",
    )


def _project_config() -> Iterator[Row]:
    yield Row("metadata.name", "metadata.name", stages.named, "with dashes for dots")
    yield from _labelled()
    yield from _in_all()
    automatic, policies = "spec.autoPromotion.stages", "spec.promotionPolicies[*]"
    yield Row(f"{policies}.stage", automatic, elsewhere, "where it is enabled")
    yield Row(f"{policies}.autoPromotionEnabled", automatic, elsewhere, "`true` puts it there")
    yield Row(
        f"{policies}.stageSelector",
        automatic,
        elsewhere,
        "the names of those it chooses in the input; a plain `glob:` stays a pattern",
    )
    windows = "spec.promotionWindows[*]"
    yield Row(f"{windows}.name", "", passed_over, "windows have no names")
    yield Row(f"{windows}.kind", "spec.windows[*]", elsewhere, "`allow` or `deny`")
    yield Row(
        f"{windows}.rrule",
        "spec.windows[*]",
        elsewhere,
        "`FREQ=DAILY` and `FREQ=WEEKLY` with `BYDAY` become cron lines; others are named, and "
        "automation is left out where they would bind",
    )
    for field in ("dtstart", "dtend"):
        yield Row(f"{windows}.{field}", "spec.windows[*]", elsewhere, "time of day, zone, duration")
    yield Row(
        f"{windows}.stageSelector",
        "",
        elsewhere,
        "one that chooses all Stages says nothing; others are named, as an `rrule` is",
    )
    yield Row(
        f"{windows}.projectSelector",
        "",
        only({}, problem="is for a ClusterConfig", remedy="remove it"),
        "named",
    )
    hooks = noted([], problem="`fanout run` looks by itself, at what its schedule says")
    for field in ("webhookReceivers", "receivers"):
        yield Row(f"spec.{field}", "", hooks, "noted: passes are started by a schedule")


WAREHOUSE = Origin("Warehouse", _VERSION, _POLICY, tuple(_warehouse()))
STAGE = Origin("Stage", _VERSION, _POLICY, tuple(_stage()))
PROJECT_CONFIG = Origin("ProjectConfig", _VERSION, "PromotionPolicy", tuple(_project_config()))
ORIGINS = (WAREHOUSE, STAGE, PROJECT_CONFIG)
