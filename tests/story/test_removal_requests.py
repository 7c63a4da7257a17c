"""In a repository with a forge, packages leave the branch by pull requests alone."""

import pytest
from fleet import PACKAGE, PROMOTION
from forge_fleet import ForgeFleet, GiteaRepo
from gitea_server import Gitea

pytestmark = pytest.mark.forge

AMS, BER = "sites/ams", "sites/ber"
MANUAL = PROMOTION + "  merge: Manual\n"
REMOVAL = "drafts/default/_removals/default.monitoring/dev"
RENDERED = "fanout/default/rendered"
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Three sites of one stage in one repository, all published, which gets a forge then."""
    sites = {name: ("dev", "edge") for name in ("ams", "ber", "cph")}
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", sites)
    declaration = (fleet.root / fleet.policies / "repository-edge.yaml").read_text()
    fleet.write("repository-edge.yaml", declaration.replace("  forge: {type: gitea}\n", ""))
    fleet.settle()
    assert set(fleet.published().values()) == {"v1"}
    fleet.write("repository-edge.yaml", declaration)
    fleet.write("promotion.yaml", MANUAL)
    return fleet.later(minutes=1)


def edge(fleet: ForgeFleet) -> GiteaRepo:
    repo = fleet.repos["edge"]
    assert isinstance(repo, GiteaRepo)
    return repo


def removed_paths(fleet: ForgeFleet) -> set[str]:
    """The packages that `main` has and the removal draft has not."""
    repo = edge(fleet)
    on_branch, on_draft = ({it.rpartition("/")[0] for it in repo.files(ref)} for ref in ("main", REMOVAL))
    return on_branch - on_draft


def test_a_target_that_is_gone_is_a_branch_and_nothing_on_main(fleet: ForgeFleet):
    main = edge(fleet).refs()["refs/heads/main"]
    fleet.remove("site-ams.yaml")
    swept = fleet.sweep()
    assert swept.code in (0, 3), swept.err
    assert edge(fleet).refs()["refs/heads/main"] == main
    assert removed_paths(fleet) == {AMS}
    message = edge(fleet).git("log", "-1", "--format=%B", REMOVAL)
    assert message.startswith("Remove sites/ams\n\n* sites/ams: its target is gone\n")
    assert f"Fanout-Removed: {AMS}" in message
    print(swept.out, fleet.targets(), fleet.plan().out)
    assert f"pull request of {REMOVAL}" in fleet.targets()["ams"]["message"]


def test_(fleet: ForgeFleet):
    fleet.remove("site-ams.yaml")
    fleet.sweep()
    refs = edge(fleet).refs()
    print(fleet.sweep())
    assert edge(fleet).refs() == refs
    edge(fleet).push(f"{refs['refs/heads/' + REMOVAL]}:refs/heads/main", by="ann")
    print(fleet.later(minutes=1).sweep())
    print(edge(fleet).refs(), fleet.run("get", "targets"))
    assert 0
