"""Two namespaces name one private repository, and only one of them has a secret for it."""

import base64

import pytest
from fleet import PLAIN, Fleet
from http_git import serving

SECRET = "ada:of-ada"
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{url: {url}{more}}}
"""


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Policies of namespaces a and b, each with a repository of its own to publish to."""
    fleet = Fleet(tmp_path)
    fleet.repository("blueprints", declare=False)
    fleet.release("v1")
    monkeypatch.setenv("FANOUT_SECRET_TOKEN", SECRET)
    with serving(tmp_path / "git") as server:
        server.authorization = f"Basic {base64.b64encode(SECRET.encode()).decode()}"
        for namespace, more in (("a", ", secretRef: {name: token}"), ("b", "")):
            edge = fleet.repository(f"edge-{namespace}", declare=False)
            documents = [
                REPOSITORY.format(
                    name="blueprints",
                    namespace=namespace,
                    url=server.url("blueprints.git"),
                    more=more,
                ),
                REPOSITORY.format(name="edge", namespace=namespace, url=edge.path, more=""),
                PLAIN.replace(
                    "{name: monitoring}", f"{{name: monitoring, namespace: {namespace}}}"
                ),
            ]
            fleet.write(f"{namespace}.yaml", "---\n".join(documents))
        yield fleet


def test_who_has_no_secret_sees_what_is_shown_to_anybody(fleet):
    for _ in range(2):  # the second time the mirror of the other namespace has it all
        result = fleet.later(minutes=1).sweep("-o", "json")
        assert result.code == 3, result
        drafts = {name: len(repo.drafts()) for name, repo in fleet.repos.items()}
        assert drafts == {"blueprints": 0, "edge-a": 2, "edge-b": 0}
    assert "RemoteDenied" in fleet.run("get", "policies", "-n", "b", "-o", "json").out


def test_two_secrets_for_one_url_are_not_refused(fleet):
    """Whoever declares its own secret gets what that secret shows, whatever the others have."""
    text = (fleet.root / "policies" / "b.yaml").read_text()
    url, _, rest = text.partition("blueprints.git")
    fleet.write("b.yaml", f"{url}blueprints.git, secretRef: {{name: token}}{rest}")
    fleet.sweep()
    drafts = {name: len(repo.drafts()) for name, repo in fleet.repos.items()}
    assert drafts == {"blueprints": 0, "edge-a": 2, "edge-b": 2}
