"""A publication that a variant may go back to, and what keeps it from going back."""

from fanout.api.reasons import Reason
from fanout.gates.facts import Hold
from fanout.gates.pins import Pin
from fanout.plan.observation import OpenDraft
from fanout.selection.model import VariantSpec
from fanout.values import frozen


@frozen
class Earlier:
    """A publication of a variant, as it was when it was last in force."""

    revision: str
    commit: str  # upstream commit
    digest: str
    tree: str  # of the package, with what people had changed in it by then
    pristine: str = ""  # the rendering without anybody's edits; "": it is nowhere any more


def never_published(spec: VariantSpec, pin: Pin) -> Hold:
    """The variant has nothing of the revision to go back to."""
    return Hold(
        Reason.NEVER_PUBLISHED,
        f"{spec.repository}:{spec.path} was never published at {pin.revision}: there is no package"
        " to go back to",
        _who(spec, pin),
    )


def moved_away(spec: VariantSpec, home: str, pin: Pin) -> Hold:
    """A package goes back where it is; it does not move in the same step."""
    return Hold(
        Reason.PATH_CHANGED,
        f"{spec.name} is at {home} and is to be at {spec.path} in {spec.repository}: a package goes"
        f" back to {pin.revision} only where it is; let it stay there, or move it afterwards",
        _who(spec, pin),
    )


def put_aside(spec: VariantSpec, draft: OpenDraft, pin: Pin) -> Hold:
    """Going back would drop what people have committed to the open draft."""
    branch = draft.ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_EDITED,
        f"branch {branch} has commits of people on a draft of {draft.trailers.revision}, and going"
        f" back to {pin.revision} would drop them; keep them under another name if they are wanted,"
        " and remove the branch",
        f"the maintainers of {spec.repository}",
    )


def without_base(spec: VariantSpec, pin: Pin) -> Hold:
    """Nobody could tell people's edits in the package from what fanout had put there."""
    return Hold(
        Reason.BASE_MISSING,
        f"the rendering of {pin.revision} from which {spec.repository}:{spec.path} was made is not"
        " in fanout's branch of renderings any more: after going back nobody could tell people's"
        " edits from upstream's; restore that branch",
        f"the maintainers of {spec.repository}",
    )


def _who(spec: VariantSpec, pin: Pin) -> str:
    decision = pin.decision
    if decision is None:
        return f"the policy's author: pin of stage {spec.stage}"
    return f"whoever may decide: fanout withdraw {spec.policy or spec.name} {decision.name}"
