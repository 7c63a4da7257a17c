"""Commits of a stage draft: the packages that each one writes, as lines of its message.

A stage draft is a chain of commits on a head of the target branch, each with some of its packages
(`plan/commit_limits.py`; design-forges, "Git"). The trailers of a commit hold for all of its
packages; one line for each package has what differs. What is in a draft is read back from these
lines alone.
"""

from collections.abc import Iterable, Mapping

from fanout.api.commit_trailers import Trailer
from fanout.plan.draft_trailers import (
    NO_VALUE,
    SHARED_FIELDS,
    ChainTrailers,
    DraftTrailers,
    format_package,
    parse_package,
)
from fanout.selection.ref_names import stage_draft_ref


class StageCommit(ChainTrailers, kw_only=True):
    """Statement of one commit of a stage draft about its packages.

    All packages have the same installation, policy, stage, upstream revision and upstream
    commit; `packages` maps the path of each to its trailers. `removed` are the paths of
    packages that have left the draft by this commit.
    """

    packages: Mapping[str, DraftTrailers]
    removed: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """Return the full ref of the branch that the commit was written for."""
        namespace, _, policy = self.policy.partition("/")
        return stage_draft_ref(self.install, namespace, policy, self.stage)


def format_stage_commit(
    subject: str,
    trailers: DraftTrailers,
    base: str,
    packages: Mapping[str, DraftTrailers],
    removed: Iterable[str] = (),
    body: str = "",
) -> str:
    """Format the message of a commit of a stage draft.

    `trailers` are those of any of its packages, of which only what all have in common is written;
    `base` is the commit of the target branch that the draft begins on. `packages` are those that
    the commit writes, by path; `body` is a paragraph for people.
    """
    lines = [f"{key}: {getattr(trailers, name)}" for key, name in SHARED_FIELDS.items()]
    lines.append(f"{Trailer.BASE}: {base}")
    for path, package in sorted(packages.items()):
        lines.append(format_package(path, package))
        if package.conflicts != NO_VALUE:
            lines.append(f"{Trailer.CONFLICTS}: {package.variant} {package.conflicts}")
        if package.takes:
            lines.append(f"{Trailer.TAKES}: {package.variant} {package.takes}")
    lines += [f"{Trailer.REMOVED}: {path}" for path in sorted(removed)]
    above = f"{subject.strip()}\n\n{body}" if body else f"{subject.strip()}\n"
    return f"{above}\n" + "".join([f"{line}\n" for line in lines])


def parse_stage_commit(message: str) -> StageCommit | None:
    """Parse the message of a commit; None if it is not a commit of a stage draft.

    A message with a line that cannot be understood is none either: what a newer version
    wrote is left alone.
    """
    single: dict[str, str] = {}
    packages: dict[str, dict[str, str]] = {}
    paths_by_variant: dict[str, str] = {}
    removed: list[str] = []
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        key, colon, value = line.partition(": ")
        variant, _, rest = value.partition(" ")
        if colon and key in _SINGLE:
            single[key] = value
        elif colon and key == Trailer.REMOVED:
            removed.append(value)
        elif colon and key == Trailer.PACKAGE and (package := parse_package(value)) is not None:
            path, packages[path] = package
            paths_by_variant[variant] = path
        elif colon and key in _FIELDS and variant in paths_by_variant:
            packages[paths_by_variant[variant]][_FIELDS[key]] = rest
        else:
            return None
    if single.keys() != _SINGLE:
        return None
    shared = {name: single[key] for key, name in SHARED_FIELDS.items()}
    return StageCommit(
        install=shared["install"],
        policy=shared["policy"],
        stage=shared["stage"],
        base=single[Trailer.BASE],
        packages={path: DraftTrailers(**shared, **fields) for path, fields in packages.items()},
        removed=tuple(removed),
    )


_SINGLE = frozenset[str]({*SHARED_FIELDS, Trailer.BASE})
_FIELDS: Mapping[str, str] = {Trailer.CONFLICTS: "conflicts", Trailer.TAKES: "takes"}
