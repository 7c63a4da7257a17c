"""What `fanout get` can list, and what else people call it; completion needs no more than this."""

STATE = ("policies", "variants", "stages", "targets", "repositories", "drafts")
RECORDS = ("records", "evidence", "approvals", "decisions")
NOUNS = (*STATE, *RECORDS)


def singular(noun: str) -> str:
    """One of them, in a sentence."""
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


ALIASES = {
    "policy": "policies",
    "upol": "policies",
    "upstreampolicy": "policies",
    "upstreampolicies": "policies",
    "variant": "variants",
    "pvar": "variants",
    "packagevariant": "variants",
    "packagevariants": "variants",
    "stage": "stages",
    "target": "targets",
    "repository": "repositories",
    "draft": "drafts",
    "record": "records",
    "evidences": "evidence",
    "approval": "approvals",
    "decision": "decisions",
}
