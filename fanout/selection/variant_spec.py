"""Specification of variants, their failures, expressions, and path collisions (design §2).

Paths that differ in case or Unicode form alone are one path: in a clone on Windows or
macOS, and in branch names on a server with such a file system, they are the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from fanout.api.text_fields import fold_path
from fanout.errors import ErrorLocation
from fanout.package.package_limits import find_overlaps
from fanout.values import frozen

_NOWHERE = ErrorLocation()


@frozen
class FunctionSpec:
    """One entry of a pipeline: a function by image or executable, and its configuration."""

    image: str
    name: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    exec: str = ""  # instead of the image
    tag: str = ""
    config_path: str = ""  # a file of the package, instead of `config`
    selectors: tuple[Mapping[str, object], ...] = ()
    exclude: tuple[Mapping[str, object], ...] = ()

    @property
    def command(self) -> str:
        """Return the image or the executable."""
        return self.image or self.exec

    def extra_fields(self) -> dict[str, object]:
        """Return the optional fields, named as in a Kptfile, without empty ones."""
        if not (self.exec or self.tag or self.config_path or self.selectors or self.exclude):
            return {}
        fields: dict[str, object] = {
            "exec": self.exec,
            "tag": self.tag,
            "configPath": self.config_path,
            "selectors": [dict(row) for row in self.selectors],
            "exclude": [dict(row) for row in self.exclude],
        }
        return {key: value for key, value in fields.items() if value}


@frozen
class InjectorSpec:
    """Selects a cluster object by name for the injection points whose kind it matches."""

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None


@frozen
class VariantSpec:
    """One variant as its policy asks for it, without the upstream revision.

    The gates choose that. Everything in it comes from the policy and its target; what a
    rendering depends on enters the digest.
    """

    name: str  # metadata.name: unique in the namespace, at most 63 characters
    namespace: str
    policy: str  # "" for a PackageVariant written by hand
    stage: str  # "" when it is in no stage
    target: str  # the target's key, stable over renames of paths: "Cluster/platform/eu-1"
    upstream_repository: str  # name of a Repository object
    upstream_package: str  # path of the package in it
    repository: str  # name of the downstream Repository object
    path: str  # downstream directory from the root of the Git repository, no slash at either end
    context: Mapping[str, str] = field(default_factory=dict)  # packageContext.data
    remove_keys: tuple[str, ...] = ()
    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()
    injectors: tuple[InjectorSpec, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0  # higher goes first
    suspended: bool = False
    offline: bool = False  # offlineWhen is true for its target
    offline_error: str = ""  # why it is unknown whether its target is offline
    where: ErrorLocation = field(default=_NOWHERE, compare=False)

    @property
    def package(self) -> str:
        """Return the package's own name: the last segment of its path."""
        return self.path.rpartition("/")[2]


@frozen
class TargetFailure:
    """A target for which no variant can be built; other targets are not affected."""

    policy: str
    target: str
    reason: str
    problem: str
    field: str = ""  # field of the policy that causes the failure


@frozen
class ExpressionFailure:
    """Failure of an expression or template: reason, sentence, and the remedy if known."""

    reason: str
    problem: str
    remedy: str = ""


Object = Mapping[str, Any]  # a Kubernetes object as plain data


@frozen
class InProcessExpression:
    """An expression that is evaluated in process, once per variant.

    Called with a row of variables it returns plain data, not to be modified, or
    `ExpressionFailure`. The result depends on the row alone and equals that of the sandbox.
    Its cost is bounded by the length of the text and by the size of what it reads.
    """

    text: str
    reads: Mapping[str, Any]  # free variables (see fanout.sandbox.free_variables)
    evaluate: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """Evaluate the expression over the row: plain data, or `ExpressionFailure`."""
        return self.evaluate(row)


PackageLocation = tuple[str, str]
"""Identity of the Git repository, and path in it."""


def find_collisions(
    variants: Iterable[tuple[str, VariantSpec]], owners: Mapping[PackageLocation, str]
) -> dict[str, str]:
    """Find the variants that must not be written, with the reason by variant name.

    `variants` come with the identity of their repository (two Repository objects may be one
    Git repository). A variant that had the path keeps it: `owners` maps paths to these.
    Where no variant had it, all that ask for it are refused, since any choice would depend
    on an accident.
    """
    refused: dict[str, str] = {}
    by_repository: dict[str, list[VariantSpec]] = {}
    for repository_id, variant in variants:
        by_repository.setdefault(repository_id, []).append(variant)
    for repository_id, colocated in by_repository.items():
        for first, second in find_overlaps([fold_path(variant.path) for variant in colocated]):
            pair = (colocated[first], colocated[second])
            # Both directions: each of the two is refused unless it owns its path.
            for variant_spec, other in (pair, pair[::-1]):
                if owners.get((repository_id, variant_spec.path)) != variant_spec.name:
                    refused.setdefault(variant_spec.name, _sentence(variant_spec, other))
    return refused


def _sentence(variant_spec: VariantSpec, other: VariantSpec) -> str:
    owner = f"{other.namespace}/{other.policy or other.name}"
    relation = "overlaps"
    if variant_spec.path == other.path:
        relation = "is"
    elif fold_path(variant_spec.path) == fold_path(other.path):
        relation = "is, but for case or Unicode form,"
    return (
        f"path {variant_spec.path} in repository {variant_spec.repository} {relation} that of"
        f" variant {other.name}"
        f" ({owner}, target {other.target}), {other.path}; give one of them another"
        " downstream.package"
    )
