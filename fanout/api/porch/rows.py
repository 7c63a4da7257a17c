"""The one table of Porch's fields: what each becomes. The translation and the page are made of it.

A field that is not in it is one that Porch does not have either.
"""

from collections.abc import Iterator

from fanout.api.foreign.convert import (
    copied,
    needed,
    noted,
    once,
    only,
    passed_over,
    text,
)
from fanout.api.foreign.rows import Origin, Row, of_the_server
from fanout.api.porch import convert

_ADOPTION = {"adoptNone": "AdoptNone", "adoptExisting": "AdoptExisting"}
_DELETION = {"delete": "Delete", "orphan": "Orphan"}
_EXPRESSION = "about whole objects: see [Expressions](#expressions)"
_IN_FILE = (
    "the same; to Porch they are labels of the PackageRevision, here of the Kptfile and the variant"
)


def _metadata() -> Iterator[Row]:
    yield Row("metadata.name", "metadata.name", copied)
    yield Row("metadata.namespace", "metadata.namespace", text)
    yield Row("metadata.labels", "metadata.labels", copied)
    yield Row(
        "metadata.annotations",
        "metadata.annotations",
        convert.annotations,
        "the same, without kubectl's own",
    )
    yield from of_the_server("Porch")


def _upstream() -> Iterator[Row]:
    yield Row("spec.upstream.repo", "spec.upstream.repository", text)
    yield Row("spec.upstream.package", "spec.upstream.package", text)
    yield Row(
        "spec.upstream.revision",
        "spec.upstream.revision.tag",
        convert.revision,
        "`3` becomes `v3`; `-1`, the state of the branch, has no tag, so the object is left out",
    )
    yield Row(
        "spec.upstream.workspaceName",
        "spec.upstream.revision.tag",
        convert.workspace,
        "named: no tag names a workspace. Where there is no `revision` it is written as the tag, "
        "which holds the policy until somebody corrects it",
    )


def _function(source: str, target: str, pipeline: str) -> Iterator[Row]:
    for kind in ("mutators", "validators"):
        for field in ("image", "exec", "tag", "name", "configPath"):
            at = f"{pipeline}.{kind}[*].{field}"
            yield Row(f"{source}.{at}", f"{target}.{at}", text)
        for field in ("configMap", "selectors", "exclude"):
            at = f"{pipeline}.{kind}[*].{field}"
            yield Row(f"{source}.{at}", f"{target}.{at}", copied)


def _additions(base: str) -> Iterator[Row]:
    """What a PackageVariant and the template of a set have alike, at this path."""
    for field in ("labels", "annotations"):
        way = copied if field == "labels" else convert.annotations
        yield Row(f"{base}.{field}", f"{base}.{field}", way, _IN_FILE.replace("labels", field))
    context = f"{base}.packageContext"
    yield Row(f"{context}.data", f"{context}.data", copied)
    yield Row(f"{context}.removeKeys", f"{context}.removeKeys", once)
    yield from _function(base, base, "pipeline")
    for field in ("group", "version", "kind"):
        at = f"{base}.injectors[*].{field}"
        # an empty group is the core group, which is not the same as any
        yield Row(at, at, copied if field == "group" else text)
    yield Row(f"{base}.injectors[*].name", f"{base}.injectors[*].name", text)


def _package_variant() -> Iterator[Row]:
    yield from _metadata()
    yield from _upstream()
    yield Row("spec.downstream.repo", "spec.downstream.repository", text)
    yield Row("spec.downstream.package", "spec.downstream.package", text)
    yield Row(
        "spec.adoptionPolicy",
        "spec.adoptionPolicy",
        convert.one_of(_ADOPTION),
        "`adoptNone` becomes `AdoptNone`, `adoptExisting` becomes `AdoptExisting`",
    )
    yield Row(
        "spec.deletionPolicy",
        "spec.deletionPolicy",
        convert.one_of(_DELETION),
        "`delete` becomes `Delete`, `orphan` becomes `Orphan`",
    )
    yield from _additions("spec")


def _expressions(template: str) -> Iterator[Row]:
    maps = ["labelExprs", "annotationExprs", "packageContext.dataExprs"]
    maps += [f"pipeline.{kind}[*].configMapExprs" for kind in ("mutators", "validators")]
    for name in maps:
        at = f"{template}.{name}[*]"
        for field in ("key", "value"):
            yield Row(f"{at}.{field}", f"{at}.{field}", copied)
            expr = f"{at}.{field}Expr"
            yield Row(expr, expr, convert.expression, _EXPRESSION)
    for name in ("packageContext.removeKeyExprs[*]", "injectors[*].nameExpr"):
        at = f"{template}.{name}"
        yield Row(at, at, convert.expression, _EXPRESSION)


def _package_variant_set() -> Iterator[Row]:
    yield from _metadata()
    yield from _upstream()
    target, template = "spec.targets[*]", "spec.targets[*].template"
    for field, way in (("name", text), ("packageNames", once)):
        at = f"{target}.repositories[*].{field}"
        yield Row(at, at, way)
    at = f"{target}.repositorySelector"
    yield Row(at, at, convert.repository_selector, "the same; it chooses fanout's Repositories")
    at = f"{target}.objectSelector"
    yield Row(
        at,
        at,
        convert.object_selector,
        "the same; a `name`, which Porch passes over, counts here",
    )
    down = f"{template}.downstream"
    yield Row(f"{down}.repo", f"{down}.repository", text)
    yield Row(f"{down}.repoExpr", f"{down}.repositoryExpr", convert.expression, _EXPRESSION)
    yield Row(f"{down}.package", f"{down}.package", text)
    yield Row(f"{down}.packageExpr", f"{down}.packageExpr", convert.expression, _EXPRESSION)
    for field, words, careful in (
        ("adoptionPolicy", _ADOPTION, "adoptNone"),
        ("deletionPolicy", _DELETION, "orphan"),
    ):
        yield Row(
            f"{template}.{field}",
            f"spec.{field}",
            convert.shared(words, careful),
            f"one for the policy; where the targets differ it is `{words[careful]}` and named",
        )
    yield from _additions(template)
    yield from _expressions(template)


def _repository() -> Iterator[Row]:
    yield from _metadata()
    yield Row(
        "spec.description",
        "metadata.annotations",
        convert.described,
        "the annotation `kubernetes.io/description`",
    )
    yield Row(
        "spec.type",
        "",
        needed("", "git", problem="repositories of type {} are not for fanout", remedy="use git"),
        "`git` says nothing; an `oci` repository is left out and named",
    )
    yield Row(
        "spec.content",
        "",
        needed(
            "", "Package", problem="a repository of {}s is not for fanout", remedy="use packages"
        ),
        "`Package` says nothing; others are left out and named",
    )
    yield Row(
        "spec.deployment",
        "",
        noted(
            False,
            problem="fanout makes no difference between repositories to deploy from and others; "
            "give it a label to select by",
        ),
        "noted; label the repositories that selectors are to choose",
    )
    yield from _git()
    yield Row(
        "spec.sync",
        "",
        noted(problem="every pass looks at the repository itself; nothing is polled"),
        "noted: every pass looks at the repository",
    )
    yield Row("spec.oci", "", passed_over, "Porch reads it with `type: oci` only")
    for field in ("mutators", "validators", "upstream"):
        yield Row(
            f"spec.{field}",
            "",
            only(
                [],
                {},
                problem="has no counterpart",
                remedy="do without it, or use functions in the packages' pipelines",
            ),
            "named; only old versions of Porch have it",
        )


def _git() -> Iterator[Row]:
    yield Row("spec.git.repo", "spec.url", text)
    yield Row("spec.git.branch", "spec.branch", text)
    yield Row(
        "spec.git.directory", "spec.directory", convert.directory, "without slashes at its ends"
    )
    yield Row(
        "spec.git.secretRef.name",
        "spec.secretRef.name",
        text,
        "the same; see [Security](concepts/security.md) for where secrets are read from",
    )
    yield Row(
        "spec.git.createBranch",
        "",
        only(
            False,
            problem="the branch must be there before fanout publishes to it",
            remedy="push it once by hand if it is missing",
        ),
        "named: the branch must be there",
    )
    for field in ("author", "email"):
        yield Row(
            f"spec.git.{field}",
            "",
            only(
                "",
                problem="all commits have one author, the installation's",
                remedy="set author in the FanoutConfiguration",
            ),
            "named: `author` of the [FanoutConfiguration](kinds/fanout-configuration.md) is for "
            "all repositories",
        )


ORIGINS: tuple[Origin, ...] = (
    Origin("Repository", "v1alpha1", "Repository", tuple(_repository())),
    Origin("PackageVariant", "v1alpha1", "PackageVariant", tuple(_package_variant())),
    Origin("PackageVariantSet", "v1alpha2", "UpstreamPolicy", tuple(_package_variant_set())),
)
