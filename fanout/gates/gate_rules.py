"""Rules of a policy's stages as the evaluator reads them. Durations are timedeltas."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.stages import After, Check, Rollout
from fanout.errors import Bug
from fanout.values import Value, field

HAND_WRITTEN = ""  # the one stage of a PackageVariant that belongs to no policy


class CheckRule(Value):
    """A check that people or pipelines report (REPORT), or that a machine answers."""

    name: str
    method: CheckMethod
    spec: Check
    names_revision: bool = False  # responses name the observed revision or commit


class ApprovalRule(Value):
    """A required approval: `at_least` distinct people among `subjects`."""

    name: str
    at_least: int
    subjects: frozenset[str]  # resolved from the groups by the PromotionPolicies; people as `by`
    groups: tuple[str, ...] = ()  # as written, for messages
    expires: timedelta | None = None
    timeout: timedelta | None = None  # so long after its release the draft has failed
    separation: bool = False  # authors of edits cannot approve them
    # By each further name of a subject, as on a forge: the one in `subjects`.
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find_subject(self, name: str) -> str | None:
        """Return the subject whom the name stands for, or None if it is nobody's."""
        return name if name in self.subjects else self.aliases.get(name)

    def find_approver(self, name: str, groups: Collection[str] = ()) -> str | None:
        """Return the subject whom the name stands for, or None if nobody may approve as it.

        `groups`: subjects for groups of a cluster that the person is in. Whoever may approve as
        one of a group is counted by name.
        """
        subject = self.find_subject(name)
        return name if subject is None and not self.subjects.isdisjoint(groups) else subject

    def names_of(self, subject: str) -> frozenset[str]:
        """Return all names of a subject."""
        return frozenset(it for it, other in self.aliases.items() if other == subject) | {subject}


# Without validation, for which its model would have to be built whenever gates are loaded.
DEFAULT_ROLLOUT = Rollout.model_construct()

Variables = Mapping[str, Any]


class PropagationCondition(Value):
    """One entry of `propagateWhen`: its text, and a pure callable over a row of variables.

    The callable returns the value of the expression, an `ExpressionFailure` for an error,
    or UNKNOWN while the sandbox has not evaluated it for this row.
    """

    text: str
    evaluate: Callable[[Variables], object]


UNKNOWN: Final = object()


class StageRule(Value):
    """One stage of a policy as its author and the administrators configured it."""

    name: str
    after: After | None = None
    verification: tuple[CheckRule, ...] = ()
    requires: tuple[CheckRule | ApprovalRule, ...] = ()
    rollout: Rollout = DEFAULT_ROLLOUT
    propagate_when: tuple[PropagationCondition, ...] = ()
    control_flow: bool = False  # a stage without targets that joins others
    pin: str = ""  # revision of a rollback in the spec
    automatic: bool = False  # an administrator switched automation on
    automating_policies: tuple[str, ...] = ()  # PromotionPolicies that switch automation on
    # PromotionPolicies that leave the stage manual while others switch automation on.
    opposing_policies: tuple[str, ...] = ()
    suspended: bool = False  # by spec

    @property
    def approvals(self) -> tuple[ApprovalRule, ...]:
        """Approvals that are required before publication."""
        return tuple(rule for rule in self.requires if isinstance(rule, ApprovalRule))


def find_approvals(stage_rules: Iterable[StageRule], stage: str) -> tuple[ApprovalRule, ...]:
    """Return the approvals that a stage requires; none of a stage that is not declared."""
    return next((it.approvals for it in stage_rules if it.name == stage), ())


def sort_stages(stage_rules: Sequence[StageRule]) -> tuple[StageRule, ...]:
    """Sort stages so that each comes after those it waits for.

    Raises Bug for cycles, missing stages and duplicate names, all of which validation refuses.
    """
    by_name = {stage_rule.name: stage_rule for stage_rule in stage_rules}
    if len(by_name) != len(stage_rules):
        raise Bug("two stages of one policy have the same name")
    upstream_names = {
        stage_rule.name: stage_rule.after.stages if stage_rule.after else ()
        for stage_rule in stage_rules
    }
    unknown = {name for names in upstream_names.values() for name in names} - by_name.keys()
    if unknown:
        raise Bug(f"stages of `after` do not exist: {sorted(unknown)}")
    try:
        return tuple(by_name[name] for name in TopologicalSorter(upstream_names).static_order())
    except CycleError as error:
        raise Bug(f"stages form a cycle: {error.args[1]}") from error
