"""Publications of which only the branch of renderings has moved.

Git's file backend moves the refs of an atomic push one by one, so a server that dies in between
leaves some of them moved. Then fanout's own branch calls published what the branch never had. What
no status line says was published, and no commit of the branch ever held, was not published (design
§3): the variant is opened as if its renderings were where they were before that push.
"""

from fanout.plan.observation import NOTHING, Renderings, RepositoryView
from fanout.plan.status import VariantLine
from fanout.ports import Reader
from fanout.reconcile.reading import Reading
from fanout.selection.model import VariantSpec
from fanout.selection.naming import draft_ref

_DEPTH = 10_000  # commits of either branch


def before_publication(
    spec: VariantSpec,
    view: RepositoryView,
    line: VariantLine | None,
    install: str,
    reading: Reading,
) -> Renderings | None:
    """The renderings at a variant's path as they were before an unfinished publication.

    None where there is no such publication, which is nearly always told without reading anything.
    Raises what `reading` raises.
    """
    path = spec.path
    rendered = view.published.get(path)
    if rendered is None or view.failure is not None:
        return None
    here = view.key, path
    published = line.published if line is not None and line.place == here else None
    if published is not None and published.pristine in ("", rendered):
        return None
    draft = view.drafts.get(draft_ref(install, path, spec.policy or spec.name))
    if draft is not None and draft.trailers.variant != spec.name:
        draft = None
    if draft is not None and draft.trailers.rendered not in ("", rendered):
        return None  # of another variant, which this one follows at the path
    grant = line.grant if line is not None and line.granted_place == here else None
    present = view.paths.get(path, NOTHING).tree
    if grant is not None:
        expected = grant.tree
    elif draft is not None and draft.trailers.rendered == rendered:
        expected = draft.tree or ""
    elif published is None and present is None:
        expected = ""
    else:
        return None
    if expected and present == expected:
        return None  # it is in force, and only not on record yet
    reader = reading(view.remote)
    before = _before(reader, view.vendor, path, rendered)
    return None if before is None or _held(reader, view.head, path, expected) else before


def _before(reader: Reader, vendor: str, path: str, rendered: str) -> Renderings | None:
    """What the branch of renderings had before `rendered` went from `drafts/` to `published/`."""
    published, drafted = f"published/{path}", f"drafts/{path}"
    commit = vendor
    for _ in range(_DEPTH):
        if not commit or not reader.has(commit):
            return None
        states = reader.paths(commit, (published, drafted))
        if states[published].tree != rendered:
            moved = states[drafted].tree == rendered
            return Renderings(states[published].tree, rendered) if moved else None
        parents = reader.commit(commit).parents
        commit = parents[0] if parents else ""
    return None


def _held(reader: Reader, head: str, path: str, expected: str) -> bool:
    """Return whether a commit of the branch has the tree at the path; "" stands for any tree.

    A history too long to be read counts as one that has it: then a person decides.
    """
    commit = head
    for _ in range(_DEPTH):
        if not commit or not reader.has(commit):
            return False
        tree = reader.paths(commit, (path,))[path].tree
        if tree is not None and expected in ("", tree):
            return True
        parents = reader.commit(commit).parents
        commit = parents[0] if parents else ""
    return True
