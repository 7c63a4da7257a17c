"""What a controller reaches repositories with, whoever created the Repository objects."""

from pathlib import Path

import pytest

from fanout.cli.settings import Settings
from fanout.cli.startup import OpenCluster, open_program
from fanout.cluster.file_cluster import FileCluster
from fanout.errors import InvalidInput
from fanout.git.mirror import create_bare
from fanout.plan.observation.repository_state import RefListing, RefListingRequest, Remote

CONFIGURATION = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"


def list_local(root: Path, text: str, **settings: object) -> object:
    """Return what a controller lists of a repository on its own disk."""
    (root / "objects").mkdir()
    configuration, remote = root / "fanout.yaml", root / "remote.git"
    configuration.write_text(CONFIGURATION + text)
    create_bare(remote)
    resolved = Settings(
        config=configuration,
        state_dir=root / "state",
        records="https://git.example.com/records.git",
        is_controller=True,
        **settings,
    )
    cluster = OpenCluster(FileCluster([root / "objects"]), lambda secrets, _: secrets)
    with open_program(resolved, check=False, long_running=True, cluster=cluster) as program:
        request = RefListingRequest(Remote(str(remote)), ())
        return program.world.git.list_refs([request])[request.remote.key]


def test_local_paths_are_refused_in_a_pod(tmp_path: Path):
    """They lead to the mirrors, which hold what the Secrets of all namespaces have shown."""
    answer = list_local(tmp_path, "")
    assert isinstance(answer, InvalidInput)
    assert answer.reason == "UrlRefused"
    assert "https" in answer.remedy


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("allowedProtocols: [https, file]\n", {}),  # the administrator says so
        ("", {"context": "kind"}),  # on the machine of a person
    ],
)
def test_local_paths_are_allowed_elsewhere(tmp_path: Path, text: str, settings: dict[str, str]):
    assert isinstance(list_local(tmp_path, text, **settings), RefListing)
