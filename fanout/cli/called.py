"""What a variant may be called on the command line: by name, target or place, and in short."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from fanout.plan.cases import Case
from fanout.reconcile.names import Named
from fanout.selection.naming import variant_digest, variant_name


def names_of(case: Case) -> tuple[str, ...]:
    """The names that are one variant's alone within its policy."""
    spec = case.spec
    return (spec.name, spec.target, f"{spec.repository}:{spec.path}")


def short_names_of(case: Case) -> tuple[str, ...]:
    """The names that others may have as well: the path, and what its target is called."""
    spec = case.spec
    return (spec.path, *target_names(spec.target, spec.repository))


def target_names(key: str, repository: str = "") -> tuple[str, ...]:
    """What people call the target of this key.

    `Cluster.infra.example.com/platform/p1` is p1, platform/p1, Cluster/p1 and cluster/p1. A
    repository that was chosen by name is followed by a package and not by a namespace: with
    `repository` its own name counts too.
    """
    kind, _, rest = key.partition("/")
    first, _, name = rest.partition("/")
    kind = kind.partition(".")[0]
    named = (first,) if kind == "Repository" and first == repository else ()
    within = (f"{first}/{name}",) if first else ()
    return (*named, name, *within, f"{kind}/{name}", f"{kind.lower()}/{name}")


def called(cases: Iterable[Case], name: str) -> list[Case]:
    """The variants that are meant: those whose own name it is, else those it is short for."""
    those = list(cases)
    own = [case for case in those if name in names_of(case)]
    return own or [case for case in those if name in short_names_of(case)]


def gone_called(
    named: Named, gone: Iterable[str], places: Mapping[str, Collection[str]], name: str
) -> list[str]:
    """The variants among `gone`, whose targets are not there any more, that a name may mean.

    By their path with or without the repository (`places`, by variant), by their target's key as
    far as it can be told from its name (a variant's name holds the digest of it), or by the part of
    their own name that people read.
    """
    digests = {variant_digest(named.namespace, named.name, key) for key in _keys(named, name)}
    stem = variant_name(named.namespace, named.name, "", name).rpartition("-")[0]
    return [
        variant
        for variant in gone
        if name in places.get(variant, ())
        or variant.rpartition("-")[2] in digests
        or ("/" not in name and variant.rpartition("-")[0] == stem)
    ]


def _keys(named: Named, name: str) -> Iterator[str]:
    """The keys of targets that the name may be short for."""
    yield name
    kinds = {"Repository"}
    for entry in named.policy.spec.targets if named.policy else ():
        selector = entry.object_selector
        if selector is not None:
            group, slash, _ = selector.api_version.partition("/")
            kinds.add(f"{selector.kind}.{group}" if slash else selector.kind)
    for kind in sorted(kinds):
        for namespace in ("", named.namespace):
            key = f"{kind}/{namespace}/{name.rpartition('/')[2]}"
            if name in target_names(key):
                yield key
