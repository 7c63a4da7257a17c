"""Wherever sites are sent, and whenever: nothing of anybody is lost, and all arrive."""

from collections.abc import Callable
from pathlib import Path

from companies import Companies
from fleet import Fleet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moving import POLICY, packages, place

Event = Callable[[Fleet], object]
SITES = ("a", "b", "c")
PLACES = [("edge", "p/1"), ("edge", "p/2"), ("edge", "p/3"), ("core", "p/1")]


def sent(site: str, to: tuple[str, str]) -> Event:
    return lambda fleet: place(fleet, site, to[1], to[0])


def edited(site: str) -> Event:
    """A person adds a file to what is published of the site, wherever that is."""

    def event(fleet: Fleet) -> None:
        where = at(fleet, site)
        if where is not None:
            fleet.repos[where[0]].commit("main", {f"{where[1]}/{site}.txt": f"{site}\n"})
            fleet.edits.add((site, f"{site}.txt"))

    return event


def drafted(site: str) -> Event:
    """A person adds a file to the site's open draft, where the policy wants it."""

    def event(fleet: Fleet) -> None:
        for item in fleet.run("get", "drafts", "-o", "json").views:
            if f"-{site}-" in item["variant"]:
                file = f"{site}-draft.txt"
                repo = fleet.repos[item["repository"]]
                repo.commit(item["branch"], {f"{item['path']}/{file}": f"{site}\n"})
                fleet.edits.add((site, file))

    return event


def at(fleet: Fleet, site: str) -> tuple[str, str] | None:
    """Repository and path at which the site's variant is published."""
    for item in fleet.run("get", "variants", "-o", "json").items:
        published = item["status"].get("published")
        if published and f"-{site}-" in item["metadata"]["name"]:
            where = item["spec"]["downstream"] | published
            return where["repository"], where["package"]
    return None


def released(number: int) -> Event:
    def event(fleet: Fleet) -> None:
        if f"monitoring/v{number}" not in fleet.repos["blueprints"].tags():
            fleet.release(f"v{number}")

    return event


def swept(*options: str) -> Event:
    return lambda fleet: fleet.later(minutes=1).sweep(*options)


EVENTS = st.one_of(
    st.builds(sent, st.sampled_from(SITES), st.sampled_from(PLACES)),
    st.builds(sent, st.sampled_from(SITES), st.sampled_from(PLACES)),
    st.builds(edited, st.sampled_from(SITES)),
    st.builds(drafted, st.sampled_from(SITES)),
    st.builds(released, st.sampled_from([2, 3])),
    st.sampled_from([swept(), swept("--drafts-only")]),
)


def three_sites(root: Path) -> Fleet:
    """Three sites in one repository, published, and a second repository with nothing in it."""
    made = Fleet.build(root, {"a": ("dev", "edge")})
    made.repository("core")
    made.write("policy.yaml", POLICY)
    made.edits = set()
    for number, site in enumerate(SITES, start=1):
        place(made, site, f"p/{number}")
    made.settle()
    return made


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, min_size=3, max_size=9))
def test_moves_lose_no_file_of_anybody(companies: Companies, events: list[Event]):
    fleet = companies.begin(three_sites)
    for event in events:
        event(fleet)
    for _ in range(12):
        if not fleet.later(minutes=1).sweep("-o", "json").json["outcomes"]:
            break
    else:
        raise AssertionError("the sweeps do not come to an end")
    for site in SITES:
        place(fleet, site, f"end/{site}")
    fleet.later(minutes=1).settle()
    edge, core = fleet.repos["edge"], fleet.repos["core"]
    assert packages(fleet) == {f"end/{site}" for site in SITES}
    assert packages(fleet, "core") == set()
    notes = {path for path in edge.files() if path.endswith(".txt")}
    assert notes == {f"end/{site}/{file}" for site, file in fleet.edits}
    assert (edge.drafts(), core.drafts()) == ([], [])
    assert fleet.counted()["listings"] == 3
    for repo in (edge, core):
        repo.fsck()
