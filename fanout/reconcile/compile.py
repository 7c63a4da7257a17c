"""What in the declared objects is in a language of its own and cannot be read: expressions,
templates, cron lines, zones and version ranges. `fanout validate` names them all.
"""

from collections.abc import Callable, Iterator

from fanout.api.meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.errors import InvalidInput
from fanout.package.revision import parse_range
from fanout.ports import Sandbox


def uncompilable(declared: Declared, sandbox: Sandbox) -> tuple[Finding, ...]:
    """A finding for every expression and template that is not one, at its field."""
    found = [
        (item, field, text, is_template)
        for item in (*declared.policies, *declared.promotions)
        for field, text, is_template in _texts(item)
    ]
    problems = sandbox.compile(
        [text for _, _, text, is_template in found if not is_template],
        [text for _, _, text, is_template in found if is_template],
    )
    broken = [
        Finding(declared.where(item, field), f"{text}: {problems[text].problem}", "correct it")
        for item, field, text, _ in found
        if text in problems
    ]
    return (*broken, *_unreadable(declared))


def _unreadable(declared: Declared) -> Iterator[Finding]:
    """Cron lines and zones of PromotionPolicies, ranges of what has an upstream."""
    for promotion in declared.promotions:
        spec = promotion.spec
        yield from _tried(declared, promotion, "spec.schedule", spec.schedule, parse_schedule)
        yield from _tried(declared, promotion, "spec.timeZone", spec.time_zone, parse_zone)
    with_upstream: tuple[UpstreamPolicy | PackageVariant, ...] = (
        *declared.policies,
        *declared.variants,
    )
    for item in with_upstream:
        semver = item.spec.upstream.revision.semver
        yield from _tried(declared, item, "spec.upstream.revision.semver", semver, parse_range)


def _tried(
    declared: Declared,
    item: KRMObject,
    field: str,
    text: str | None,
    parse: Callable[[str], object],
) -> Iterator[Finding]:
    try:
        if text:
            parse(text)
    except InvalidInput as error:
        yield Finding(declared.where(item, field), error.problem, error.remedy)


def _texts(item: KRMObject) -> Iterator[tuple[str, str, bool]]:
    """Field path, text, and whether it is a template, of all in the spec of an object."""
    spec = item.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
    yield from _walk(spec, "spec")


def _walk(value: object, path: str) -> Iterator[tuple[str, str, bool]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        field = path.rpartition(".")[2].partition("[")[0]
        if field.endswith(("Expr", "Exprs")):
            yield path, value, False
        elif field.endswith("Template"):
            yield path, value, True
