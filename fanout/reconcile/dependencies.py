"""`dependsOn`: whom a variant written by hand waits for, and how those stand.

A pass judges whoever is waited for first, and also where it is not about them: what they are to
have, and whether they are ready at it, is known then. (Design §2.)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from fanout.api.nearest import suggestion
from fanout.api.package_variant import Dependency as Written
from fanout.cluster.declared import Declared
from fanout.gates.answer import State
from fanout.gates.facts import Dependency
from fanout.plan.about import About, Abouts
from fanout.reconcile.names import Named
from fanout.reconcile.report import PolicyPass

Key = tuple[str, str, bool]
"""Namespace and name of a policy (True), or of a variant written by hand"""

_AUTHOR = "the variant's author: dependsOn"


def key_of(named: Named) -> Key:
    """What tells it from all others: a policy and a variant may have one name."""
    return named.namespace, named.name, named.policy is not None


def abouts(named: Named, depends_on: tuple[Dependency, ...]) -> Abouts:
    """What is known of each variant of the policy, or of the one written by hand."""
    if named.policy is None:
        return {spec.name: About(depends_on=depends_on) for spec in named.variants}
    return {
        name: About(named.groups.get(name, 0), named.variables.get(name, {}))
        for name in named.groups.keys() | named.variables.keys()
    }


def followers(declared: Declared, namespace: str, name: str) -> tuple[str, ...]:
    """The variants written by hand that may wait for this policy, or for this variant.

    A policy's variants begin with its name, so one too many may be among them.
    """
    return tuple(
        variant.metadata.name
        for variant in declared.variants
        if variant.metadata.namespace == namespace
        and any(
            one.policy == name or (one.variant or "").startswith(name)
            for one in variant.spec.depends_on
        )
    )


@dataclass(slots=True)
class Dependencies:
    """Who waits for whom among all that is declared."""

    everyone: Sequence[Named]
    _policies: dict[tuple[str, str], Named] = field(default_factory=dict)
    _homes: dict[tuple[str, str], Named] = field(default_factory=dict)  # by variant
    _made: dict[tuple[str, str, str], str] = field(default_factory=dict)  # by policy and target
    _circles: dict[Key, tuple[str, ...]] = field(default_factory=dict)  # those in one

    def __post_init__(self) -> None:
        if not any(map(_written, self.everyone)):
            return
        for named in self.everyone:
            if named.policy is not None:
                self._policies[named.namespace, named.name] = named
            for spec in named.variants:
                self._homes[named.namespace, spec.name] = named
                self._made[named.namespace, spec.policy, spec.target] = spec.name

    def with_beside(self, asked: Sequence[Named]) -> tuple[Named, ...]:
        """Them and whom they wait for, each after those that it waits for; policies come first."""
        wanted = dict.fromkeys(map(key_of, asked))
        open_ends = list(asked)
        while open_ends:
            named = open_ends.pop()
            homes = (self._home(named.namespace, one) for one in _written(named))
            new = [home for home in homes if home is not None and key_of(home) not in wanted]
            wanted |= dict.fromkeys(map(key_of, new))
            open_ends += new
        if len(wanted) == len(asked) and not any(map(_written, asked)):
            return tuple(asked)
        found = [named for named in self.everyone if key_of(named) in wanted]
        order = self._order([named for named in found if named.policy is None])
        return (*(named for named in found if named.policy is not None), *order)

    def of(self, named: Named, judged: Mapping[Key, PolicyPass]) -> tuple[Dependency, ...]:
        """How those stand that it waits for; `judged` has by name what was judged before it."""
        return tuple(self._stands(named, one, judged) for one in _written(named))

    def _order(self, written: Sequence[Named]) -> list[Named]:
        """Topologically; who is in a circle is remembered, and the circle cut."""
        by_name = {key_of(named): named for named in written}
        before = {key: dict.fromkeys(self._before(named)) for key, named in by_name.items()}
        before = {key: {it: None for it in of if it in by_name} for key, of in before.items()}
        while True:
            sorter = TopologicalSorter(before)
            try:
                return [by_name[key] for key in sorter.static_order()]
            except CycleError as error:
                circle = list(error.args[1])
                names = tuple(name for _, name, _ in reversed(circle))
                for key in circle:
                    self._circles.setdefault(key, names)
                del before[circle[1]][circle[0]]

    def _before(self, named: Named) -> Iterator[Key]:
        for one in _written(named):
            home = self._home(named.namespace, one)
            if home is not None and home.policy is None:
                yield key_of(home)

    def _home(self, namespace: str, one: Written) -> Named | None:
        if one.policy is not None:
            return self._policies.get((namespace, one.policy))
        return self._homes.get((namespace, one.variant or ""))

    def _stands(self, named: Named, one: Written, judged: Mapping[Key, PolicyPass]) -> Dependency:
        home = self._home(named.namespace, one)
        name = one.variant or ""
        if one.policy is not None:
            name = self._made.get((named.namespace, one.policy, one.target or ""), "")
        if home is None or not name:
            return Dependency(one.variant or one.target or "", False, _missing(home, one), _AUTHOR)
        circle = self._circles.get(key_of(named), ())
        if circle and name in circle:
            sentence = f"variants wait for each other: {' → '.join(circle)}"
            return Dependency(name, False, sentence, _AUTHOR)
        return _standing(name, judged.get(key_of(home)))


def _standing(name: str, judged: PolicyPass | None) -> Dependency:
    """Is the variant ready at what it is to have? Its own first hold says why not."""
    decision = judged.decision if judged is not None else None
    found = decision.variants.get(name) if decision is not None else None
    if decision is None or found is None:
        return Dependency(name, False, f"it waits for variant {name}, of which nothing is known")
    if found.state is State.READY:
        return Dependency(name, True)
    at = f" at {found.candidate}" if found.candidate else ""
    sentence = f"it waits for variant {name}, which is {found.state}{at} and not ready"
    who = ""
    if found.holds:
        first = found.holds[0]
        sentence, who = f"{sentence}: {first.sentence}", first.who
    return Dependency(name, False, sentence, who, decision.next)


def _missing(home: Named | None, one: Written) -> str:
    if one.policy is None:
        return f"it waits for variant {one.variant}, and there is none of this name"
    if home is None:
        return f"it waits for a variant of UpstreamPolicy {one.policy}, which is not there"
    failed = next((it.problem for it in home.failures if it.target == one.target), "")
    if failed:
        return f"it waits for target {one.target} of {one.policy}, which has no variant: {failed}"
    known = sorted(spec.target for spec in home.variants)
    remedy = suggestion(one.target or "", known[:1000], "correct spec.dependsOn, or add the target")
    return f"it waits for target {one.target}, which UpstreamPolicy {one.policy} has not; {remedy}"


def _written(named: Named) -> tuple[Written, ...]:
    return named.written.spec.depends_on if named.written is not None else ()
