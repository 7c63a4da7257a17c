"""A company of one site whose package people edit."""

from pathlib import Path

from fleet import PACKAGE, Fleet

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]


def one_site(root: Path) -> Fleet:
    """Return a fleet with one site, published at v1."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    assert made.published() == {AMS: "v1"}
    return made


def draft(fleet: Fleet, path: str = DEPLOYMENT) -> str:
    """A file of the open draft."""
    return fleet.repos["edge"].file("drafts/default/sites/ams/monitoring", path)


def conflict(fleet: Fleet) -> None:
    """A person and upstream set the same value differently; the draft is written."""
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
