"""Resource types that `fanout get` lists, and their aliases.

Without imports: shell completion needs nothing else, and must answer at once.
"""

STATE_TYPES = ("policies", "variants", "stages", "targets", "repositories", "drafts")
RECORD_TYPES = ("records", "evidence", "approvals", "decisions")
RESOURCE_TYPES = (*STATE_TYPES, *RECORD_TYPES)


def singular_of(resource_type: str) -> str:
    """Return the singular of a resource type, such as `policy` for `policies`."""
    return (
        f"{resource_type[:-3]}y"
        if resource_type.endswith("ies")
        else resource_type.removesuffix("s")
    )


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
