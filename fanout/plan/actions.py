"""What a pass may do, as data: a closed list, each with the sentence that people read.

A saved plan holds actions, digests and the ids that refs are expected to have; no bytes and no
clock, so that the same observation gives the same plan, byte for byte. (Design §3.)
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from fanout.values import frozen


class Kind(StrEnum):
    """What is done, in the order in which it is done."""

    RELEASE = "Release"  # recorded before anything is published
    WRITE_DRAFT = "WriteDraft"
    PUBLISH = "Publish"
    REMOVE_PACKAGE = "RemovePackage"  # from where its variant was
    REMOVE_DRAFT = "RemoveDraft"
    RECORD = "Record"  # what the status is to remember


@frozen
class Action:
    """One effect on one variant, or one thing to remember about a stage."""

    kind: Kind
    namespace: str
    policy: str
    stage: str = ""
    variant: str = ""
    repository: str = ""  # name of the Repository object
    path: str = ""
    revision: str = ""
    digest: str = ""
    tree: str = ""
    ref: str = ""
    expected: str = ""  # what the ref is now; "": it is not there
    detail: str = ""

    def sentence(self) -> str:
        """What is going to happen, for people."""
        at = f"{self.repository}:{self.path}"
        match self.kind:
            case Kind.RELEASE:
                where = f" in stage {self.stage}" if self.stage else ""
                return f"release {self.variant} to take {self.revision}{where}"
            case Kind.WRITE_DRAFT:
                verb = "rewrite" if self.expected else "write"
                return f"{verb} the draft of {at} at {self.revision}"
            case Kind.PUBLISH:
                return f"publish {at} at {self.revision}"
            case Kind.REMOVE_PACKAGE:
                return f"remove the package {at}: {self.detail}"
            case Kind.REMOVE_DRAFT:
                return f"remove the draft of {at}: {self.detail}"
            case Kind.RECORD:
                return f"record {self.detail}"

    def plain(self) -> dict[str, str]:
        """The action as JSON; empty fields are left out."""
        fields = {
            "kind": self.kind.value,
            "namespace": self.namespace,
            "policy": self.policy,
            "stage": self.stage,
            "variant": self.variant,
            "repository": self.repository,
            "path": self.path,
            "revision": self.revision,
            "digest": self.digest,
            "tree": self.tree,
            "ref": self.ref,
            "expected": self.expected,
            "detail": self.detail,
        }
        return {name: value for name, value in fields.items() if value}


@frozen
class Plan:
    """All actions, in order of kind, policy, stage, variant."""

    actions: tuple[Action, ...] = ()

    def __bool__(self) -> bool:
        """Is there something to do?"""
        return bool(self.actions)

    def plain(self) -> Mapping[str, object]:
        """The plan as JSON."""
        return {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "Plan",
            "actions": [action.plain() for action in self.actions],
        }


@frozen
class Outcome:
    """What became of one action."""

    action: Action
    done: bool
    problem: str = ""
    reason: str = field(default="")
