"""Names of branches and tags, derived from identity, so that a rerun finds its own work."""

import re
from enum import StrEnum

NO_STAGE = "none"  # in refs and trailers: the policy has no stages
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # Python refuses to convert thousands of digits


class SetScope(StrEnum):
    """Scope of the set on a branch, as the name of the branch says it.

    The branch of one variant is named by the path of its package, and no path begins with one of
    these words.
    """

    VARIANT = ""
    STAGE = "_stages"  # packages of variants of a stage that are released together
    REMOVALS = "_removals"  # packages of a stage that are to be removed


def draft_ref(install: str, path: str, owner: str) -> str:
    """Return the ref of a variant's draft. `owner` is the policy, or the hand-written variant."""
    return f"refs/heads/drafts/{install}/{path}/{owner}"


def set_ref(scope: SetScope, install: str, namespace: str, policy: str, stage: str) -> str:
    """Return the ref of a set of a stage.

    `policy` may also be a variant written by hand; `stage` is "" for none.
    """
    return f"refs/heads/drafts/{install}/{scope}/{namespace}.{policy}/{stage or NO_STAGE}"


def scope_of(ref: str) -> SetScope:
    """Return what the set on a branch is about."""
    if "/_" not in ref:  # as most are, of which a pass asks several times
        return SetScope.VARIANT
    word, _, _ = set_name(ref).partition("/")
    return SetScope(word) if word in (SetScope.STAGE, SetScope.REMOVALS) else SetScope.VARIANT


def set_name(ref: str) -> str:
    """Return the name of the branch of a draft below that of all drafts of its installation."""
    return ref.removeprefix("refs/heads/drafts/").partition("/")[2]


def draft_path(ref: str) -> str:
    """Return the path of the package of a draft of one variant; "" for a branch of several."""
    return set_name(ref).rpartition("/")[0] if scope_of(ref) is SetScope.VARIANT else ""


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
    """Return path and number of a tag without `refs/tags/`; ("", 0) for other tags."""
    path, _, number = tag.rpartition("/v")
    return (path, int(number)) if path and _NUMBER.fullmatch(number) else ("", 0)


def parse_publication_number(tag: str, path: str) -> int:
    """Return the number of a tag without `refs/tags/`; 0 for another path's tag."""
    number = tag.removeprefix(f"{path}/v")
    return int(number) if number != tag and _NUMBER.fullmatch(number) else 0
