"""Keys of the trailers in fanout's commits; a closed list, sorted."""

from enum import StrEnum


class Trailer(StrEnum):
    """Key of a commit trailer."""

    APPROVED_BY = "Fanout-Approved-By"  # of a publication: a person whose approval counted
    BASE = "Fanout-Base"  # the commit of the target branch that the branch begins on
    COMMIT = "Fanout-Commit"  # the upstream commit
    CONFLICTS = "Fanout-Conflicts"  # merge conflicts and their winners
    DIGEST = "Fanout-Digest"  # of everything that was rendered from
    INSTALL = "Fanout-Install"
    MERGE = "Fanout-Merge"  # of a publication: its commit on the target branch
    ONTO = "Fanout-Onto"  # the package's tree downstream, before
    PACKAGE = "Fanout-Package"  # one of several packages, with what is its own
    POLICY = "Fanout-Policy"
    PREVIOUS = "Fanout-Previous"  # the newest earlier vendor commit that states publications
    RECORDS = "Fanout-Records"  # of a publication: the last record that its release knew
    REMOVED = "Fanout-Removed"  # path of a package that leaves the target branch
    RENDERED = "Fanout-Rendered"  # id of the package's tree without downstream edits
    RESTORED = (
        "Fanout-Restored"  # path of a package that left the set: it is as on the target branch
    )
    REVISION = "Fanout-Revision"  # the upstream revision
    SET = "Fanout-Set"  # the branch that the commit is for
    STAGE = "Fanout-Stage"
    TAG = "Fanout-Tag"  # of a publication
    TAKES = "Fanout-Takes"  # tips of earlier drafts whose commits by people it contains
    TREE = "Fanout-Tree"  # the package's tree as fanout wrote it
    USED = "Fanout-Used"  # tag of the newest publication at a path that its variant has left
    VARIANT = "Fanout-Variant"
