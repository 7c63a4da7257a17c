"""Wording of what released publications."""

from fanout.api.gate_vocabulary import Action
from fanout.api.record_objects import DecisionSpec
from fanout.plan.history.admission import Admission, AdmissionType


def describe_admission(admission: Admission) -> str:
    """Return one phrase about what released a publication, and who."""
    person = format_person(admission.by)
    match admission.type:
        case AdmissionType.AUTOMATIC:
            return f"automatic ({', '.join(admission.promotion_policies)})"
        case AdmissionType.PROMOTED | AdmissionType.ROLLED_BACK:
            return _describe_decision(admission)
        case AdmissionType.PINNED:
            return f"pinned in UpstreamPolicy {admission.policy}"
        case AdmissionType.MERGED:
            merged = f"merged on the forge by {person or 'a person'}"
            return f"{_describe_decision(admission)} ({merged})" if admission.decision else merged
        case AdmissionType.OUT_OF_BAND:
            return f"out of band: merged by {person or 'a person'}"
        case AdmissionType.UNCHANGED:
            return "package unchanged"
        case AdmissionType.UNKNOWN:
            return "not recorded"


def format_person(author: str) -> str:
    """Return the name of "name <email>", or the address if there is no name."""
    name, _, address = author.partition(" <")
    return name or address.rstrip(">")


def _describe_decision(admission: Admission) -> str:
    decision = admission.decision
    assert decision is not None, "a promotion has a decision"
    spec = decision.spec
    assert isinstance(spec, DecisionSpec), "a decision has the spec of one"
    verb = "rollback" if spec.action is Action.ROLLBACK else "promote"
    phrase = f"{format_person(decision.by)}, {verb}"
    if spec.overrides:
        phrase += f" with override {', '.join(spec.overrides)}"
    if spec.accept_conflicts:
        phrase += ", conflicts accepted"
    return f"{phrase}: {spec.reason}" if spec.reason else phrase
