"""Validation of revisions in declared objects: version ranges, tags and pins."""

import re
from collections.abc import Iterator

from fanout.api.object_meta import KRMObject
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import InvalidInput
from fanout.package.revision import parse_range, parse_tag
from fanout.reconcile.selection.policy_resolution import list_declarations

_COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")


def validate_revisions(declared: DeclaredObjects) -> Iterator[Finding]:
    """Yield a finding for every invalid version range, and tag or pin that is no revision."""
    yield from _find_invalid_ranges(declared)
    yield from _find_impossible_revisions(declared)


def _find_invalid_ranges(declared: DeclaredObjects) -> Iterator[Finding]:
    for declaration in list_declarations(declared):
        try:
            if semver := declaration.spec.upstream.revision.semver:
                parse_range(semver)
        except InvalidInput as error:
            where = declared.where(declaration, "spec.upstream.revision.semver")
            yield Finding(where, error.problem, error.remedy)


def _find_impossible_revisions(declared: DeclaredObjects) -> Iterator[Finding]:
    """Yield findings about tags and pins that no revision of a package can have."""
    for declaration in list_declarations(declared):
        upstream = declaration.spec.upstream
        if (tag := upstream.revision.tag) and not (
            parse_tag(tag, "") or parse_tag(tag, upstream.package)
        ):
            yield _impossible_revision(declared, declaration, "spec.upstream.revision.tag", tag)
    for policy in declared.policies:
        for index, stage in enumerate(policy.spec.stages):
            if (pin := stage.pin) and not (parse_tag(pin, "") or _COMMIT_PATTERN.fullmatch(pin)):
                yield _impossible_revision(declared, policy, f"spec.stages[{index}].pin", pin)


def _impossible_revision(
    declared: DeclaredObjects, declaration: KRMObject, field: str, name: str
) -> Finding:
    by_commit = ", or the 40 digits of a commit" if field.endswith("pin") else ""
    return Finding(
        declared.where(declaration, field),
        f"{name} is not a revision",
        f"write a version such as v3 or v1.2.3{by_commit}",
    )
