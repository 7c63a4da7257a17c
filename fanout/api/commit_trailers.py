"""Keys of the trailers in fanout's commits (design §5); a closed list, sorted."""

from enum import StrEnum


class Trailer(StrEnum):
    """Key of a commit trailer."""

    COMMIT = "Fanout-Commit"  # the upstream commit
    CONFLICTS = "Fanout-Conflicts"  # values that both sides changed, and who won
    DIGEST = "Fanout-Digest"  # of everything that was rendered from
    INSTALL = "Fanout-Install"
    ONTO = "Fanout-Onto"  # the package's tree downstream, before
    POLICY = "Fanout-Policy"
    RECORDS = "Fanout-Records"  # of a publication: the last record that its release knew
    RENDERED = "Fanout-Rendered"  # the package's tree without anybody's edits
    REVISION = "Fanout-Revision"  # the upstream revision
    STAGE = "Fanout-Stage"
    TAKES = "Fanout-Takes"  # tips of drafts whose commits by people are in this one
    TREE = "Fanout-Tree"  # the package's tree as fanout wrote it
    VARIANT = "Fanout-Variant"
