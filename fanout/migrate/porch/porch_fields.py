"""Table of Porch's fields; the conversion and its docs page are made from it.

A field without a row does not exist in Porch either.
"""

from collections.abc import Iterator

from fanout.migrate.field_conversion import (
    copy_distinct,
    copy_text,
    copy_value,
    ignore_field,
    note_unsupported,
    reject_object,
    report_unsupported,
)
from fanout.migrate.field_mapping import FieldMapping, KindMapping, server_field_mappings
from fanout.migrate.porch import porch_conversion

_ADOPTION_POLICIES = {"adoptNone": "AdoptNone", "adoptExisting": "AdoptExisting"}
_DELETION_POLICIES = {"delete": "Delete", "orphan": "Orphan"}
_EXPRESSION_DESCRIPTION = "about whole objects: see [Expressions](#expressions)"
_LABELS_DESCRIPTION = (
    "the same; to Porch they are labels of the PackageRevision, here of the Kptfile and the variant"
)


def _metadata_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping("metadata.name", "metadata.name", copy_value)
    yield FieldMapping("metadata.namespace", "metadata.namespace", copy_text)
    yield FieldMapping("metadata.labels", "metadata.labels", copy_value)
    yield FieldMapping(
        "metadata.annotations",
        "metadata.annotations",
        porch_conversion.convert_annotations,
        "the same, without kubectl's own",
    )
    yield from server_field_mappings("Porch")


def _upstream_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping("spec.upstream.repo", "spec.upstream.repository", copy_text)
    yield FieldMapping("spec.upstream.package", "spec.upstream.package", copy_text)
    yield FieldMapping(
        "spec.upstream.revision",
        "spec.upstream.revision.tag",
        porch_conversion.convert_revision,
        "`3` becomes `v3`; `-1`, the state of the branch, has no tag, so the object is left out",
    )
    yield FieldMapping(
        "spec.upstream.workspaceName",
        "spec.upstream.revision.tag",
        porch_conversion.convert_workspace,
        "named: no tag names a workspace. Where there is no `revision` it is written as the tag, "
        "which holds the policy until somebody corrects it",
    )


def _function_mappings(source: str, target: str, pipeline: str) -> Iterator[FieldMapping]:
    for kind in ("mutators", "validators"):
        for field in ("image", "exec", "tag", "name", "configPath"):
            path = f"{pipeline}.{kind}[*].{field}"
            yield FieldMapping(f"{source}.{path}", f"{target}.{path}", copy_text)
        for field in ("configMap", "selectors", "exclude"):
            path = f"{pipeline}.{kind}[*].{field}"
            yield FieldMapping(f"{source}.{path}", f"{target}.{path}", copy_value)


def _template_mappings(base: str) -> Iterator[FieldMapping]:
    """Yield the fields that PackageVariants and templates of sets share, below a path."""
    for field in ("labels", "annotations"):
        converter = copy_value if field == "labels" else porch_conversion.convert_annotations
        yield FieldMapping(
            f"{base}.{field}",
            f"{base}.{field}",
            converter,
            _LABELS_DESCRIPTION.replace("labels", field),
        )
    context = f"{base}.packageContext"
    yield FieldMapping(f"{context}.data", f"{context}.data", copy_value)
    yield FieldMapping(f"{context}.removeKeys", f"{context}.removeKeys", copy_distinct)
    yield from _function_mappings(base, base, "pipeline")
    for field in ("group", "version", "kind"):
        path = f"{base}.injectors[*].{field}"
        # an empty group is the core group, which is not the same as any
        yield FieldMapping(path, path, copy_value if field == "group" else copy_text)
    yield FieldMapping(f"{base}.injectors[*].name", f"{base}.injectors[*].name", copy_text)


def _package_variant_mappings() -> Iterator[FieldMapping]:
    yield from _metadata_mappings()
    yield from _upstream_mappings()
    yield FieldMapping("spec.downstream.repo", "spec.downstream.repository", copy_text)
    yield FieldMapping("spec.downstream.package", "spec.downstream.package", copy_text)
    yield FieldMapping(
        "spec.adoptionPolicy",
        "spec.adoptionPolicy",
        porch_conversion.convert_word(_ADOPTION_POLICIES),
        "`adoptNone` becomes `AdoptNone`, `adoptExisting` becomes `AdoptExisting`",
    )
    yield FieldMapping(
        "spec.deletionPolicy",
        "spec.deletionPolicy",
        porch_conversion.convert_word(_DELETION_POLICIES),
        "`delete` becomes `Delete`, `orphan` becomes `Orphan`",
    )
    yield from _template_mappings("spec")


def _expression_mappings(template: str) -> Iterator[FieldMapping]:
    maps = ["labelExprs", "annotationExprs", "packageContext.dataExprs"]
    maps += [f"pipeline.{kind}[*].configMapExprs" for kind in ("mutators", "validators")]
    for name in maps:
        path = f"{template}.{name}[*]"
        for field in ("key", "value"):
            yield FieldMapping(f"{path}.{field}", f"{path}.{field}", copy_value)
            expr = f"{path}.{field}Expr"
            yield FieldMapping(
                expr, expr, porch_conversion.convert_expression, _EXPRESSION_DESCRIPTION
            )
    for name in ("packageContext.removeKeyExprs[*]", "injectors[*].nameExpr"):
        path = f"{template}.{name}"
        yield FieldMapping(path, path, porch_conversion.convert_expression, _EXPRESSION_DESCRIPTION)


def _package_variant_set_mappings() -> Iterator[FieldMapping]:
    yield from _metadata_mappings()
    yield from _upstream_mappings()
    target, template = "spec.targets[*]", "spec.targets[*].template"
    for field, converter in (("name", copy_text), ("packageNames", copy_distinct)):
        path = f"{target}.repositories[*].{field}"
        yield FieldMapping(path, path, converter)
    path = f"{target}.repositorySelector"
    yield FieldMapping(
        path,
        path,
        porch_conversion.convert_repository_selector,
        "the same; it chooses fanout's Repositories",
    )
    path = f"{target}.objectSelector"
    yield FieldMapping(
        path,
        path,
        porch_conversion.convert_object_selector,
        "the same; a `name`, which Porch passes over, counts here",
    )
    downstream = f"{template}.downstream"
    yield FieldMapping(f"{downstream}.repo", f"{downstream}.repository", copy_text)
    yield FieldMapping(
        f"{downstream}.repoExpr",
        f"{downstream}.repositoryExpr",
        porch_conversion.convert_expression,
        _EXPRESSION_DESCRIPTION,
    )
    yield FieldMapping(f"{downstream}.package", f"{downstream}.package", copy_text)
    yield FieldMapping(
        f"{downstream}.packageExpr",
        f"{downstream}.packageExpr",
        porch_conversion.convert_expression,
        _EXPRESSION_DESCRIPTION,
    )
    for field, words, cautious in (
        ("adoptionPolicy", _ADOPTION_POLICIES, "adoptNone"),
        ("deletionPolicy", _DELETION_POLICIES, "orphan"),
    ):
        yield FieldMapping(
            f"{template}.{field}",
            f"spec.{field}",
            porch_conversion.convert_shared_word(words, cautious),
            f"one for the policy; where the targets differ it is `{words[cautious]}` and named",
        )
    yield from _template_mappings(template)
    yield from _expression_mappings(template)


def _repository_mappings() -> Iterator[FieldMapping]:
    yield from _metadata_mappings()
    yield FieldMapping(
        "spec.description",
        "metadata.annotations",
        porch_conversion.convert_description,
        "the annotation `kubernetes.io/description`",
    )
    yield FieldMapping(
        "spec.type",
        "",
        reject_object(
            "", "git", problem="repositories of type {} are not for fanout", remedy="use git"
        ),
        "`git` says nothing; an `oci` repository is left out and named",
    )
    yield FieldMapping(
        "spec.content",
        "",
        reject_object(
            "", "Package", problem="a repository of {}s is not for fanout", remedy="use packages"
        ),
        "`Package` says nothing; others are left out and named",
    )
    yield FieldMapping(
        "spec.deployment",
        "",
        note_unsupported(
            False,
            problem="fanout makes no difference between repositories to deploy from and others; "
            "give it a label to select by",
        ),
        "noted; label the repositories that selectors are to choose",
    )
    yield from _git_mappings()
    yield FieldMapping(
        "spec.sync",
        "",
        note_unsupported(problem="every pass looks at the repository itself; nothing is polled"),
        "noted: every pass looks at the repository",
    )
    yield FieldMapping("spec.oci", "", ignore_field, "Porch reads it with `type: oci` only")
    for field in ("mutators", "validators", "upstream"):
        yield FieldMapping(
            f"spec.{field}",
            "",
            report_unsupported(
                [],
                {},
                problem="has no counterpart",
                remedy="do without it, or use functions in the packages' pipelines",
            ),
            "named; only old versions of Porch have it",
        )


def _git_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping("spec.git.repo", "spec.url", copy_text)
    yield FieldMapping("spec.git.branch", "spec.branch", copy_text)
    yield FieldMapping(
        "spec.git.directory",
        "spec.directory",
        porch_conversion.convert_directory,
        "without slashes at its ends",
    )
    yield FieldMapping(
        "spec.git.secretRef.name",
        "spec.secretRef.name",
        copy_text,
        "the same; see [Security](concepts/security.md) for where secrets are read from",
    )
    yield FieldMapping(
        "spec.git.createBranch",
        "",
        report_unsupported(
            False,
            problem="the branch must be there before fanout publishes to it",
            remedy="push it once by hand if it is missing",
        ),
        "named: the branch must be there",
    )
    for field in ("author", "email"):
        yield FieldMapping(
            f"spec.git.{field}",
            "",
            report_unsupported(
                "",
                problem="all commits have one author, the installation's",
                remedy="set author in the FanoutConfiguration",
            ),
            "named: `author` of the [FanoutConfiguration](kinds/fanout-configuration.md) is for "
            "all repositories",
        )


PORCH_KINDS: tuple[KindMapping, ...] = (
    KindMapping("Repository", "v1alpha1", "Repository", tuple(_repository_mappings())),
    KindMapping("PackageVariant", "v1alpha1", "PackageVariant", tuple(_package_variant_mappings())),
    KindMapping(
        "PackageVariantSet", "v1alpha2", "UpstreamPolicy", tuple(_package_variant_set_mappings())
    ),
)
