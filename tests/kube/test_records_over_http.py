"""Records of `fanout controller` in a private repository, over HTTP with a token."""

from base64 import b64encode

import pytest
from http_git import serving
from kube.record_fleet import decision
from kube.tenants import HASTY_ADMISSION, BeginController, CreateTenant, allow_secrets
from run_process import Running

from fanout.git.mirror import create_bare

pytestmark = pytest.mark.kube

TOKEN = "bot:s3cr3t-token"
CONFIG = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
records: {{url: "{url}", secretRef: {{name: records-token}}}}
"""


def recorded(controller: Running, server, created, status: str) -> dict[str, str]:
    """Wait until the record has this status; return its condition."""
    requests: list[dict[str, str]] = []

    def is_shown() -> bool:
        conditions = server.get(created).get("status", {}).get("conditions", ())
        requests[:] = [
            it for it in conditions if it["type"] == "Recorded" and it["status"] == status
        ]
        return bool(requests)

    controller.until(is_shown)
    return requests[0]


def test_the_token_is_the_administrators_and_is_named_when_it_is_refused(
    tenant: CreateTenant, begin: BeginController, monkeypatch
):
    twin = tenant()
    server, namespace, records = twin.server, twin.namespace, twin.fleet.records()
    create_bare(records.path)
    # What a tenant calls by the same name is not what the configuration names.
    meta = {"name": "records-token", "namespace": namespace}
    words = {"username": "bot", "password": "of-a-tenant"}
    server.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": words})
    allow_secrets(twin)
    monkeypatch.setenv("FANOUT_SECRET_RECORDS_TOKEN", TOKEN)
    config = twin.fleet.root / "config.yaml"
    header = f"Basic {b64encode(TOKEN.encode()).decode()}"
    with serving(records.path.parent, authorization=header) as git:
        config.write_text(CONFIG.format(url=git.url(records.path.name)))
        options = ("--config", str(config))
        controller = begin(twin, *options, program=("-c", HASTY_ADMISSION), records=False)
        controller.until(lambda: twin.fleet.repos["edge"].tags() == ["sites/ams/v1"])
        created = server.create(decision(namespace), by="alice")
        recorded(controller, server, created, "True")
        (branch,) = (it for it in records.refs() if it.endswith(f"/{namespace}/monitoring"))
        assert any(it.startswith("records/") for it in records.files(branch))
        git.authorization = "Basic another"
        created = server.create(decision(namespace, "Resume"), by="alice")
        condition = recorded(controller, server, created, "False")
        assert condition["reason"] == "RemoteDenied"
        assert "secret 'records-token' of records.secretRef" in condition["message"]
        git.authorization = header
        recorded(controller, server, created, "True")
        assert controller.end() == 0
    assert set(git.authorizations) <= {None, header}
    configs = [it for it in twin.fleet.root.glob("state/**/config") if it.is_file()]
    written = [it.read_text() for it in (controller.path, *configs)]
    assert not any("s3cr3t" in it or header in it for it in written)
