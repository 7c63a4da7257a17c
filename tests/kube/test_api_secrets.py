"""Secrets of namespaces, as the controller reads them."""

from base64 import b64encode

import pytest
from kube_server import KubeServer

from fanout.cluster.file_secrets import FileSecrets
from fanout.errors import Denied
from fanout.kube.api_cluster import ApiSecrets
from fanout.kube.api_connection import open_connection
from fanout.telemetry.redaction import Redactor

pytestmark = pytest.mark.kube

VARIABLES = {"FANOUT_SECRET_HOST": "machine:token-of-the-administrator"}


def create(server: KubeServer, namespace: str, **texts: bytes) -> None:
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "git", "namespace": namespace},
            "data": {key: b64encode(value).decode() for key, value in texts.items()},
        }
    )


def open_secrets(server: KubeServer, redactor: Redactor, by: str = "admin") -> ApiSecrets:
    administrator_secrets = FileSecrets(redactor, environment=VARIABLES)
    connection = open_connection(server.kubeconfig, by)
    return ApiSecrets(connection, administrator_secrets, redactor)


def test_a_secret_is_read_from_its_namespace_and_never_shown(kube_server, kube_namespace):
    create(kube_server, kube_namespace, username=b"ann", password=b"s3cr3t-word\n")
    redactor = Redactor()
    secret = open_secrets(kube_server, redactor).get(kube_namespace, "git")
    assert (secret.username, secret.password) == ("ann", "s3cr3t-word")
    assert "s3cr3t-word" not in redactor.redact_text("remote: s3cr3t-word is wrong")


def test_secrets_of_the_administrator_have_no_namespace(kube_server):
    secret = open_secrets(kube_server, Redactor()).get("", "host")
    assert secret.password == "token-of-the-administrator"


def test_a_secret_that_was_changed_is_used_at_once(kube_server, kube_namespace):
    create(kube_server, kube_namespace, password=b"first")
    secrets = open_secrets(kube_server, Redactor())
    assert secrets.get(kube_namespace, "git").password == "first"
    meta = {"name": "git", "namespace": kube_namespace}
    changed = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    kube_server.patch(changed, {"data": {"password": b64encode(b"second").decode()}})
    assert secrets.get(kube_namespace, "git").password == "second"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (None, 'secrets "git" not found'),
        ({"token": b"x"}, "has neither a password nor a private key"),
        ({"password": b"\xff\xfe"}, "has content that is not UTF-8 text"),
    ],
    ids=["missing", "other keys", "binary"],
)
def test_an_unusable_secret_is_refused_by_name(kube_server, kube_namespace, texts, words):
    if texts is not None:
        create(kube_server, kube_namespace, **texts)
    with pytest.raises(Denied) as raised:
        open_secrets(kube_server, Redactor()).get(kube_namespace, "git")
    assert words in raised.value.problem
    assert raised.value.reason == "SecretUnusable"


def test_a_missing_right_is_named(kube_server, kube_namespace):
    create(kube_server, kube_namespace, password=b"hidden")
    with pytest.raises(Denied) as raised:
        open_secrets(kube_server, Redactor(), by="carol").get(kube_namespace, "git")
    assert raised.value.problem == "fanout may not read Secret git"
    assert "RoleBinding" in raised.value.remedy
