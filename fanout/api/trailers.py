"""Trailers of fanout's commits (design §5); a closed list, sorted."""

from enum import StrEnum


class Trailer(StrEnum):
    """Keys of commit trailers."""

    COMMIT = "Fanout-Commit"  # the upstream commit
    DIGEST = "Fanout-Digest"  # of everything that was rendered from
    INSTALL = "Fanout-Install"
    ONTO = "Fanout-Onto"  # the package's tree downstream, before
    POLICY = "Fanout-Policy"
    REVISION = "Fanout-Revision"  # the upstream revision
    STAGE = "Fanout-Stage"
    VARIANT = "Fanout-Variant"
