"""A Warehouse and the Stages that request its freight as one policy."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from fanout.api.faults import Path
from fanout.api.foreign.assembly import Judge
from fanout.api.foreign.pieces import Imported, Put, Remark
from fanout.api.foreign.walk import in_turn, walk
from fanout.api.kargo.assembling import Piece, assembled, joined, pieces_of
from fanout.api.kargo.objects import REQUESTS, Item, Request, dashed, in_order, passing, requests_of
from fanout.api.kargo.project import Project
from fanout.api.kargo.repositories import FILL_IN
from fanout.api.kargo.rows import STAGE, WAREHOUSE
from fanout.api.kargo.steps import STEPS, places
from fanout.api.kargo.units import POLICY
from fanout.api.kargo.warehouse import nowhere, upstream
from fanout.api.meta import API_VERSION
from fanout.api.places import fields


def policies(project: Project, judge: Judge) -> Imported:
    """A policy for every Warehouse that a Stage requests; what `judge` refuses is left out."""
    parts: list[Imported] = []
    wanted: dict[str, list[Request]] = {name: [] for name in project.warehouses}
    for stage in project.stages:
        requests = requests_of(stage)
        parts.append(Imported((), tuple((stage.index, it) for it in _about_requests(requests))))
        for name, request in requests.items():
            wanted.setdefault(name, []).append(request)
    for name, asking in wanted.items():
        warehouse = project.warehouses.get(name)
        if asking:
            pieces = _policy(name, warehouse, in_order(asking), project)
            home = warehouse or asking[0].stage
            parts.append(assembled("UpstreamPolicy", pieces, judge, POLICY, home.index))
        elif warehouse:
            problem = "no Stage of the input requests it: there is nothing to make a policy of"
            remark = Remark((), problem, "import its Stages as well")
            parts.append(Imported((), ((warehouse.index, remark),)))
    return joined(parts)


def _about_requests(requests: Mapping[str, Request]) -> Iterator[Remark]:
    at: Path = ("spec", REQUESTS)
    if not requests:
        problem = "nothing is requested of a Warehouse: the stage is in no policy"
        yield Remark(at, problem, "name the origin")
    if len(requests) > 1:
        names = ", ".join(map(dashed, requests))
        problem = f"a policy has one upstream: the stage is in each of {names}, and in each alone"
        yield Remark(at, problem, "make one package of what must go together")


def _policy(
    name: str,
    warehouse: Item | None,
    asking: Sequence[Request],
    project: Project,
) -> Iterator[Piece]:
    first = warehouse or asking[0].stage
    yield Put(("apiVersion",), API_VERSION, (first.index, "apiVersion"))
    yield Put(("kind",), "UpstreamPolicy", (first.index, "kind"))
    if warehouse:
        yield from pieces_of(warehouse, walk(WAREHOUSE, warehouse.data))
        yield from pieces_of(warehouse, upstream(warehouse, project.repositories))
    else:
        yield from pieces_of(first, _without_warehouse(name, asking[0]))
    gone = passing(asking)
    kept = [request for request in asking if request.stage.name not in gone]
    for number, request in enumerate(kept):
        pieces = _stage(dashed(name), number, request, gone, project)
        yield from pieces_of(request.stage, pieces, request.number)
    for request in asking:
        if request.stage.name in gone:
            problem = "nothing comes before this control-flow stage, so it holds nothing back"
            remedy = "it is left out, and those after it do not wait for it"
            yield from pieces_of(request.stage, [Remark(STEPS[:1], problem, remedy)])


def _without_warehouse(name: str, request: Request) -> Iterator[Piece]:
    at: Path = ("spec", REQUESTS, request.number, "origin", "name")
    yield Put(("metadata", "name"), dashed(name), at)
    if namespace := fields(request.stage.data.get("metadata")).get("namespace"):
        yield Put(("metadata", "namespace"), namespace, at)
    yield from nowhere(dashed(name), at)
    problem = f"there is no Warehouse {name} in the input"
    yield Remark(at, problem, f"import it as well, or fill in what is called {FILL_IN}")


def _stage(
    policy: str,
    number: int,
    request: Request,
    gone: frozenset[str],
    project: Project,
) -> Iterator[Piece]:
    """One stage of a policy, and its target."""
    view = request.view(gone)

    def filled(pattern: str, path: Path) -> Path:
        """The stage's number stands for that of the request."""
        indices = [
            it for before, it in pairwise(path) if isinstance(it, int) and before != REQUESTS
        ]
        return in_turn(pattern, (number, *indices))

    at: Path = ("spec", "stages", number)
    yield from walk(STAGE, view, filled)
    if not request.direct and not request.before and request.says_no_more:
        problem = "it is neither direct nor after a stage: Kargo would let nothing through"
        here: Path = ("spec", REQUESTS, 0, "sources")
        yield Remark(here, problem, "name the stages before, or write direct", spoils=at)
    if request.joins_only:
        yield Put((*at, "controlFlow"), True, ("metadata", "name"))
    else:
        yield from _target(policy, number, request, project)


def _target(policy: str, number: int, request: Request, project: Project) -> Iterator[Piece]:
    to: Path = ("spec", "targets", number)
    stage = dashed(request.stage.name)
    package = f"{stage}/{policy}"
    names: dict[str, str | None] = {}  # with the branch that the Stage writes to
    for place in places(request.stage.data, project.tasks):
        name, problem = project.repositories.named(place.url, place.branch)
        if not problem:
            names.setdefault(name, place.branch)
    for index, name in enumerate(names or [FILL_IN]):
        yield Put((*to, "repositories", index, "name"), name, STEPS)
        yield Put((*to, "repositories", index, "packageNames"), [package], STEPS)
    yield Put((*to, "template", "stage"), stage, ("metadata", "name"))
    if not names:
        problem = f"where they write is not plain: {FILL_IN} stands for the Repository"
        yield Remark(STEPS, problem, "name the targets of the stage")
    for name, branch in names.items():
        yield _made_up(name, branch, project.repositories.branch(name), package)


def _made_up(name: str, written: str | None, branch: str, package: str) -> Remark:
    """That nothing says where the package is to be, nor, with a branch for each Stage, on which."""
    remedy = f"correct {package} in spec.targets"
    if written in (None, branch):
        problem = f"they write to {name}; where the package is to be is not said there"
        return Remark(STEPS, problem, remedy)
    problem = f"they write to {name} on {written}, and one branch is published to, {branch}"
    return Remark(STEPS, problem, f"let the cluster read it there, and {remedy}")
