"""What is known of one variant beside its repository: what the policy, and others, say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fanout.gates.facts import Dependency
from fanout.gates.rules import Variables


@dataclass(frozen=True, slots=True)
class About:
    """One variant."""

    group: int = 0  # of its stage's rollout
    variables: Variables = field(default_factory=dict)  # what `propagateWhen` sees
    depends_on: tuple[Dependency, ...] = ()


NOTHING = About()
Abouts = Mapping[str, About]
