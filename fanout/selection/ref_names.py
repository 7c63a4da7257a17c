"""Names of branches and tags, derived from identity, so that a rerun finds its own work."""

import re

NO_STAGE = "none"  # in refs and trailers: the policy has no stages
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # Python refuses to convert thousands of digits


def draft_ref(install: str, path: str, owner: str) -> str:
    """Return the ref of a variant's draft. `owner` is the policy, or the hand-written variant."""
    return f"refs/heads/drafts/{install}/{path}/{owner}"


def stage_draft_ref(install: str, namespace: str, policy: str, stage: str) -> str:
    """Return the ref of the draft that the released variants of a stage share.

    `stage` is "" for a policy without stages. No package path begins with `_stages`.
    """
    return f"refs/heads/drafts/{install}/_stages/{namespace}.{policy}/{stage or NO_STAGE}"


def is_stage_draft(install: str, ref: str) -> bool:
    """Return whether the ref is that of a stage draft of the installation."""
    return ref.startswith(f"refs/heads/drafts/{install}/_stages/")


def removal_draft_ref(install: str, namespace: str, policy: str, stage: str) -> str:
    """Return the ref of the draft that removes packages of a stage.

    `policy` may also be a variant written by hand; `stage` is "" for none. No package path begins
    with `_removals`.
    """
    return f"refs/heads/drafts/{install}/_removals/{namespace}.{policy}/{stage or NO_STAGE}"


def is_removal_draft(install: str, ref: str) -> bool:
    """Return whether the ref is that of a removal draft of the installation."""
    return ref.startswith(f"refs/heads/drafts/{install}/_removals/")


def set_name(ref: str) -> str:
    """Return the name of the branch of a draft below that of all drafts of its installation."""
    return ref.removeprefix("refs/heads/drafts/").partition("/")[2]


def draft_path(ref: str) -> str:
    """Return the path of the package of a draft of one variant; "" for a branch of several."""
    name = set_name(ref)
    return "" if name.startswith(("_stages/", "_removals/")) else name.rpartition("/")[0]


def drafts_prefix(install: str) -> str:
    """Return the prefix of this installation's drafts, the only refs fanout removes."""
    return f"refs/heads/drafts/{install}/"


def install_of(draft: str) -> str:
    """Return the installation that a draft's ref belongs to."""
    return draft.removeprefix("refs/heads/drafts/").partition("/")[0]


def vendor_ref(install: str) -> str:
    """Return the ref of the branch with the pristine renderings."""
    return f"refs/heads/fanout/{install}/rendered"


def record_traces_ref(install: str) -> str:
    """Return the ref of the branch that names the last record of each policy that stops something.

    `_records` is not a valid namespace: the records themselves may be in the same repository.
    """
    return f"refs/heads/fanout/{install}/_records"


def tag_ref(path: str, number: int) -> str:
    """Return the ref of a published variant's tag, as kpt and Porch read it."""
    return f"refs/tags/{path}/v{number}"


def parse_publication_tag(tag: str) -> tuple[str, int]:
    """Return path and number of a publication's tag, given without `refs/tags/`.

    ("", 0) for a name that is of none.
    """
    path, _, number = tag.rpartition("/v")
    return (path, int(number)) if path and _NUMBER.fullmatch(number) else ("", 0)


def parse_publication_number(tag: str, path: str) -> int:
    """Return the number in a publication's tag, given without `refs/tags/`.

    0 for another path's tag.
    """
    number = tag.removeprefix(f"{path}/v")
    return int(number) if number != tag and _NUMBER.fullmatch(number) else 0
