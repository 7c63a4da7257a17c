"""Commits of a removal draft: the packages that each one removes, as lines of its message.

A removal draft is a chain of commits on a head of the target branch, each with at most 16
packages. What it removes is read back from these lines alone.
"""

from fanout.api.commit_trailers import Trailer
from fanout.plan.draft_trailers import NO_VALUE, ChainTrailers
from fanout.selection.ref_names import removal_draft_ref


class RemovalCommit(ChainTrailers, kw_only=True):
    """Statement of one commit of a removal draft.

    `restored` are the paths of packages that an earlier commit removed, and that stay after all.
    """

    removed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """Return the full ref of the branch that the commit was written for."""
        namespace, _, policy = self.policy.partition("/")
        return removal_draft_ref(self.install, namespace, policy, self.stage)


_SINGLE = {
    Trailer.INSTALL: "install",
    Trailer.POLICY: "policy",
    Trailer.STAGE: "stage",
    Trailer.BASE: "base",
}
_PER_PACKAGE = {Trailer.REMOVED: "removed", Trailer.RESTORED: "restored"}
_TRAILERS = frozenset(trailer.value for trailer in (*_SINGLE, *_PER_PACKAGE))


def format_removal_commit(subject: str, body: str, commit: RemovalCommit) -> str:
    """Format the message of a commit; `body` is for people."""
    lines = [f"{trailer}: {getattr(commit, name) or NO_VALUE}" for trailer, name in _SINGLE.items()]
    for trailer, name in _PER_PACKAGE.items():
        lines += [f"{trailer}: {path}" for path in sorted(getattr(commit, name))]
    return "\n\n".join([subject.strip(), body.strip(), "\n".join(lines)]) + "\n"


def parse_removal_commit(message: str) -> RemovalCommit | None:
    """Parse the message of a commit; None if it is not one of a removal draft.

    A message with a line that cannot be understood is none either.
    """
    single: dict[str, str] = {}
    paths: dict[str, list[str]] = {name: [] for name in _PER_PACKAGE.values()}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        key, _, value = line.partition(": ")
        if key not in _TRAILERS or not value:
            return None
        trailer = Trailer(key)
        if trailer in _PER_PACKAGE:
            paths[_PER_PACKAGE[trailer]].append(value)
        else:
            single[_SINGLE[trailer]] = value
    if single.keys() != set(_SINGLE.values()):
        return None
    stage = single.pop("stage")
    return RemovalCommit(
        **single,
        stage="" if stage == NO_VALUE else stage,
        removed=tuple(paths["removed"]),
        restored=tuple(paths["restored"]),
    )
