"""What is known of one variant beside its repository: what the policy, and others, say of it."""

from collections.abc import Mapping
from dataclasses import field

from fanout.gates.facts import Dependency
from fanout.gates.rules import Variables
from fanout.values import frozen


@frozen
class About:
    """One variant."""

    group: int = 0  # of its stage's rollout
    variables: Variables = field(default_factory=dict)  # what `propagateWhen` sees
    depends_on: tuple[Dependency, ...] = ()


NOTHING = About()
Abouts = Mapping[str, About]
