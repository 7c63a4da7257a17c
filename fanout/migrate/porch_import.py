"""Import of Porch objects, with a remark for every field that cannot be carried over.

A field without a row in the table does not exist in Porch either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fanout.api.field_errors import FieldPath, as_list, as_mapping, find_fields
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import API_VERSION, KRMObject
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object
from fanout.migrate import porch_conversion
from fanout.migrate.field_mapping import (
    UNCHANGED,
    AssembledObject,
    FieldConverter,
    FieldMapping,
    ImportResult,
    KindMapping,
    ObjectRemark,
    ObjectValidator,
    Remark,
    RemovalUnits,
    SourceKey,
    TargetField,
    assemble_object,
    convert_object,
    copy_distinct,
    copy_text,
    copy_value,
    duplicate_remark,
    find_mapping,
    ignored_field,
    read_key,
    read_kind,
    server_field_mappings,
    unconvertible_remark,
    unsupported_field,
)
from fanout.migrate.porch_conversion import convert_expression

_ADOPTION_POLICIES = {"adoptNone": "AdoptNone", "adoptExisting": "AdoptExisting"}
_DELETION_POLICIES = {"delete": "Delete", "orphan": "Orphan"}
_LABELS_DESCRIPTION = (
    "the same; in Porch they are labels of the PackageRevision, here of the Kptfile and the variant"
)


def _same_field(
    path: str, convert: FieldConverter = copy_text, description: str = UNCHANGED
) -> FieldMapping:
    """Return the row of a field that has the same path in fanout's object."""
    return FieldMapping(path, path, convert, description)


def _expression_field(source: str, target: str = "") -> FieldMapping:
    description = "about whole objects: see [Expressions](#expressions)"
    return FieldMapping(source, target or source, convert_expression, description)


def _metadata_mappings() -> Iterator[FieldMapping]:
    yield _same_field("metadata.name", copy_value)
    yield _same_field("metadata.namespace")
    yield _same_field("metadata.labels", copy_value)
    yield _same_field(
        "metadata.annotations",
        porch_conversion.convert_annotations,
        "the same, without kubectl's keys",
    )
    yield from server_field_mappings("Porch")


def _upstream_mappings() -> Iterator[FieldMapping]:
    yield FieldMapping("spec.upstream.repo", "spec.upstream.repository", copy_text)
    yield _same_field("spec.upstream.package")
    yield FieldMapping(
        "spec.upstream.revision",
        "spec.upstream.revision.tag",
        porch_conversion.convert_revision,
        "`3` becomes `v3`, `v1.2.3` stays; `-1` and `main`, the state of the branch, become"
        " `latest: true`, and are reported",
    )
    yield FieldMapping(
        "spec.upstream.workspaceName",
        "spec.upstream.revision.tag",
        porch_conversion.convert_workspace,
        "reported: a workspace has no tag. Without `revision`, `main` becomes `latest: true`, a"
        " name like `v3` the tag, and the object of any other is left out",
    )


def _template_mappings(base: str) -> Iterator[FieldMapping]:
    """Yield the fields that PackageVariants and templates of sets share, below a path."""
    for field in ("labels", "annotations"):
        converter = copy_value if field == "labels" else porch_conversion.convert_annotations
        description = _LABELS_DESCRIPTION.replace("labels", field)
        yield _same_field(f"{base}.{field}", converter, description)
    yield _same_field(f"{base}.packageContext.data", copy_value)
    yield _same_field(f"{base}.packageContext.removeKeys", copy_distinct)
    for kind in ("mutators", "validators"):
        for field in ("image", "exec", "tag", "name", "configPath"):
            yield _same_field(f"{base}.pipeline.{kind}[*].{field}")
        for field in ("configMap", "selectors", "exclude"):
            yield _same_field(f"{base}.pipeline.{kind}[*].{field}", copy_value)
    for field in ("group", "version", "kind", "name"):
        # an empty group is the core group, which is not the same as any
        convert = copy_value if field == "group" else copy_text
        yield _same_field(f"{base}.injectors[*].{field}", convert)


_TARGET, _TEMPLATE = "spec.targets[*]", "spec.targets[*].template"
_EXPRESSION_MAPS = (
    *("labelExprs", "annotationExprs", "packageContext.dataExprs"),
    *(f"pipeline.{kind}[*].configMapExprs" for kind in ("mutators", "validators")),
)
_PACKAGE_VARIANT_MAPPINGS = (
    *_metadata_mappings(),
    *_upstream_mappings(),
    FieldMapping("spec.downstream.repo", "spec.downstream.repository", copy_text),
    _same_field("spec.downstream.package"),
    _same_field(
        "spec.adoptionPolicy",
        porch_conversion.convert_word(_ADOPTION_POLICIES),
        "`adoptNone` becomes `AdoptNone`, `adoptExisting` becomes `AdoptExisting`",
    ),
    _same_field(
        "spec.deletionPolicy",
        porch_conversion.convert_word(_DELETION_POLICIES),
        "`delete` becomes `Delete`, `orphan` becomes `Orphan`",
    ),
    *_template_mappings("spec"),
)
_PACKAGE_VARIANT_SET_MAPPINGS = (
    *_metadata_mappings(),
    *_upstream_mappings(),
    _same_field(f"{_TARGET}.repositories[*].name"),
    _same_field(f"{_TARGET}.repositories[*].packageNames", copy_distinct),
    # Copied also if empty, because that selects everything.
    _same_field(
        f"{_TARGET}.repositorySelector", copy_value, "the same; it selects fanout's Repositories"
    ),
    _same_field(
        f"{_TARGET}.objectSelector",
        porch_conversion.convert_object_selector,
        "the same; a `name`, which Porch ignores, counts here",
    ),
    FieldMapping(f"{_TEMPLATE}.downstream.repo", f"{_TEMPLATE}.downstream.repository", copy_text),
    _expression_field(f"{_TEMPLATE}.downstream.repoExpr", f"{_TEMPLATE}.downstream.repositoryExpr"),
    _same_field(f"{_TEMPLATE}.downstream.package"),
    _expression_field(f"{_TEMPLATE}.downstream.packageExpr"),
    *(
        FieldMapping(
            f"{_TEMPLATE}.{field}",
            f"spec.{field}",
            porch_conversion.convert_shared_word(words, cautious),
            f"one for the policy; if the targets differ it becomes `{words[cautious]}` and is"
            " reported",
        )
        for field, words, cautious in (
            ("adoptionPolicy", _ADOPTION_POLICIES, "adoptNone"),
            ("deletionPolicy", _DELETION_POLICIES, "orphan"),
        )
    ),
    *_template_mappings(_TEMPLATE),
    *(
        row
        for name in _EXPRESSION_MAPS
        for field in ("key", "value")
        for row in (
            _same_field(f"{_TEMPLATE}.{name}[*].{field}", copy_value),
            _expression_field(f"{_TEMPLATE}.{name}[*].{field}Expr"),
        )
    ),
    _expression_field(f"{_TEMPLATE}.packageContext.removeKeyExprs[*]"),
    _expression_field(f"{_TEMPLATE}.injectors[*].nameExpr"),
)
_REPOSITORY_MAPPINGS = (
    *_metadata_mappings(),
    FieldMapping(
        "spec.description",
        "metadata.annotations",
        porch_conversion.convert_description,
        "the annotation `kubernetes.io/description`",
    ),
    unsupported_field(
        "spec.type",
        "`git` needs no field; an `oci` repository is left out and reported",
        *("", "git"),
        problem="repositories of type {} are not supported",
        remedy="use git",
        invalidates=(),
    ),
    unsupported_field(
        "spec.content",
        "`Package` needs no field; others are left out and reported",
        *("", "Package"),
        problem="a repository of {}s is not supported",
        remedy="use packages",
        invalidates=(),
    ),
    unsupported_field(
        "spec.deployment",
        "a note; label the repositories that selectors select",
        False,
        problem="fanout does not distinguish repositories for deployment; add a label to select it"
        " by",
        is_lost=False,
    ),
    FieldMapping("spec.git.repo", "spec.url", copy_text),
    FieldMapping("spec.git.branch", "spec.branch", copy_text),
    FieldMapping(
        "spec.git.directory",
        "spec.directory",
        porch_conversion.convert_directory,
        "without slashes at its ends",
    ),
    FieldMapping(
        "spec.git.secretRef.name",
        "spec.secretRef.name",
        copy_text,
        "the same; see [Security](../concepts/security.md) for where secrets are read from",
    ),
    unsupported_field(
        "spec.git.createBranch",
        "reported: the branch must exist",
        False,
        problem="the branch must exist before fanout publishes to it",
        remedy="push it once if it is missing",
    ),
    *(
        unsupported_field(
            f"spec.git.{field}",
            "reported: `author` of the"
            " [FanoutConfiguration](../reference/kinds/fanout-configuration.md) is for"
            " all repositories",
            "",
            problem="all commits have the author of the installation",
            remedy="set author in the FanoutConfiguration",
        )
        for field in ("author", "email")
    ),
    unsupported_field(
        "spec.sync",
        "a note: every pass lists the repository",
        problem="every pass lists the repository; there is no polling interval",
        is_lost=False,
    ),
    ignored_field("spec.oci", "Porch uses it only with `type: oci`"),
    *(
        unsupported_field(
            f"spec.{field}",
            "reported; only old versions of Porch have it",
            *([], {}),
            problem="has no counterpart",
            remedy="use functions in the packages' pipelines",
        )
        for field in ("mutators", "validators", "upstream")
    ),
)
PORCH_GROUP = "config.porch.kpt.dev"
_VERSION, _SET_VERSION = f"{PORCH_GROUP}/v1alpha1", f"{PORCH_GROUP}/v1alpha2"
_SET_KIND = "PackageVariantSet"
PORCH_KINDS: tuple[KindMapping, ...] = (
    KindMapping("Repository", _VERSION, "Repository", _REPOSITORY_MAPPINGS),
    KindMapping("PackageVariant", _VERSION, "PackageVariant", _PACKAGE_VARIANT_MAPPINGS),
    KindMapping(_SET_KIND, _SET_VERSION, "UpstreamPolicy", _PACKAGE_VARIANT_SET_MAPPINGS),
)


def _template_units(base: str) -> Iterator[tuple[str, str]]:
    for kind in ("mutators", "validators"):
        yield f"{base}.pipeline.{kind}.*", "the function"
        yield f"{base}.pipeline.{kind}.*.tag", "the tag"
        yield f"{base}.pipeline.{kind}.*.name", "the name"
    yield f"{base}.pipeline.validators", "the list"
    yield f"{base}.injectors.*", "the injector"
    for name in ("labels", "annotations", "labelExprs", "annotationExprs"):
        yield f"{base}.{name}.*", "the entry"
    for name in ("data", "removeKeys", "dataExprs", "removeKeyExprs"):
        yield f"{base}.packageContext.{name}.*", "the entry"


PORCH_REMOVAL_UNITS: RemovalUnits = {
    "metadata.labels.*": "the label",
    "metadata.annotations.*": "the annotation",
    "spec.secretRef": "the reference",
    "spec.adoptionPolicy": "the field",
    "spec.deletionPolicy": "the field",
    "spec.targets.*": "the target",
    "spec.targets.*.repositories.*": "the repository",
    **dict(_template_units("spec")),
    **dict(_template_units("spec.targets.*.template")),
}

DEFAULT_STAGE = "all"


def import_porch_objects(objects: Sequence[Any], validate_data: ObjectValidator) -> ImportResult:
    """Import all objects that can be converted.

    `validate_data` returns the errors of an object of fanout. Fields with errors are
    removed and reported, so every object of the result passes it.
    """
    assembled_objects: dict[int, AssembledObject] = {}
    remarks: list[ObjectRemark] = []
    converted_keys: dict[SourceKey, bool] = {}  # whether the object was converted
    # A variant that a set made is left out if the set itself was converted, so sets come first.
    sets_first = sorted(
        range(len(objects)), key=lambda position: read_kind(objects[position]) != _SET_KIND
    )
    for index in sets_first:
        item = objects[index]
        if (mapping := find_mapping(item, PORCH_KINDS)) is None:
            lost = unconvertible_remark(item, PORCH_KINDS)
            if (read_kind(item), as_mapping(item).get("apiVersion")) == (_SET_KIND, _VERSION):
                problem = "this version of PackageVariantSet is not translated"
                remedy = f"convert it to {_SET_VERSION} first"
                lost = Remark(("apiVersion",), f"{problem}; Porch no longer supports it", remedy)
            remarks.append((index, lost))
            continue
        is_admitted, remark = _admit(item, converted_keys)
        remarks += [(index, remark)] if remark else []
        if is_admitted:
            fields: list[TargetField | Remark] = [
                TargetField(("apiVersion",), API_VERSION, ("apiVersion",)),
                TargetField(("kind",), mapping.target_kind, ("kind",)),
                *convert_object(mapping, item),
            ]
            if mapping.kind == _SET_KIND:
                # All targets are in one stage; without a stage nothing is published.
                for number in range(len(as_list(item, "spec", "targets"))):
                    path: FieldPath = ("spec", "targets", number, "template", "stage")
                    fields.append(TargetField(path, DEFAULT_STAGE, path))
                fields.append(TargetField(("spec", "stages", 0, "name"), DEFAULT_STAGE, ("spec",)))
                problem = f"a set has no stages; all variants are in stage {DEFAULT_STAGE}"
                remedy = "add stages to promote step by step"
                fields.append(Remark(("spec",), problem, remedy, is_lost=False))
            assembled_objects[index] = assemble_object(
                KINDS[mapping.target_kind], fields, validate_data, PORCH_REMOVAL_UNITS
            )
            converted_keys[read_key(item)] = assembled_objects[index].data is not None
            remarks += ((index, entry) for entry in assembled_objects[index].remarks)
    remarks += _unresolved_references(assembled_objects)
    remarks.sort(key=lambda entry: entry[0])
    results = (assembled_objects[index].data for index in sorted(assembled_objects))
    return ImportResult(tuple(data for data in results if data is not None), tuple(remarks))


def find_expressions(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yield (path, expression) for the expressions of an imported object."""
    for mapping in PORCH_KINDS:
        for row in mapping.rows if mapping.target_kind == data.get("kind") else ():
            if row.convert is convert_expression:
                yield from find_fields(data, row.target)


def _admit(item: Any, converted_keys: Mapping[SourceKey, bool]) -> tuple[bool, Remark | None]:
    """Return whether the object is converted, and a remark or None."""
    if read_key(item) in converted_keys:
        return False, duplicate_remark()
    _, namespace, _ = read_key(item)
    for index, owner in enumerate(as_list(item, "metadata", "ownerReferences")):
        if as_mapping(owner).get("kind") != _SET_KIND:
            continue
        path: FieldPath = ("metadata", "ownerReferences", index)
        name = str(as_mapping(owner).get("name"))
        if converted_keys.get((_SET_KIND, namespace, name)):
            problem = (
                f"left out: UpstreamPolicy {name} creates this variant, as the {_SET_KIND} did"
            )
            return False, Remark(path, problem, is_lost=False)
        problem = (
            f"the {_SET_KIND} {name} that created it is not translated; it becomes a"
            " variant written by hand"
        )
        return True, Remark(path, problem, "import both together", is_lost=False)
    return True, None


def _unresolved_references(
    assembled_objects: Mapping[int, AssembledObject],
) -> Iterator[ObjectRemark]:
    """Yield a remark for each reference to an object that is not among the results."""
    models: dict[int, KRMObject] = {}
    for index, result in assembled_objects.items():
        model = validate_object(result.data)[0] if result.data is not None else None
        if model is not None:
            models[index] = model
    index_by_model = {id(model): index for index, model in models.items()}
    reported: set[str] = set()
    for model, error in cross_check(list(models.values())):
        if error.severity == "error" and error.problem not in reported:
            reported.add(error.problem)
            index = index_by_model[id(model)]
            path = assembled_objects[index].source_path(error.path)
            remedy = "import it as well, or declare it"
            yield index, Remark(path, error.problem, remedy, is_lost=False)
