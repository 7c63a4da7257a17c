"""A real kube-apiserver on loopback, for tests: an administrator, people of several groups, tokens.

With it runs etcd alone. There is no controller manager: nothing collects garbage, and a namespace
that is deleted stays. It is asked here with the standard library and kubectl, so that a test judges
fanout's client by what other clients see.
"""

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from servers.build import KUBERNETES_PROGRAMS, find_missing, kubernetes_folder
from servers.supervised import (
    await_answer,
    choose_ports,
    list_children,
    start_supervised,
    stop_supervised,
)

# For 127.0.0.1. Its key signs service account tokens, too: the server refuses to start without one.
TLS = Path(__file__).parent / "forge" / "tls"
ADMIN = "admin"
CONTROLLER = "system:serviceaccount:fanout-system:fanout-controller"
# Whose token the server knows, with the groups. It adds system:authenticated.
GROUPS = {
    ADMIN: ("system:masters",),
    CONTROLLER: ("system:serviceaccounts", "system:serviceaccounts:fanout-system"),
    "alice": ("platform",),
    "bob": ("platform", "security"),
    "carol": ("shop",),
}
APPLY = "application/apply-patch+yaml"  # JSON is YAML
MERGE = "application/merge-patch+json"
# Soft: Go collects more often near it, with both processors if need be. After 10,000 objects the
# API server took 1.4 GB without a limit.
MEMORY = "1GiB"
UNLIMITED = "off"
BUDGET = 2048  # MB that etcd and the API server take together


PATIENCE = 60  # seconds, for a storage that is not ready


class KubeError(Exception):
    """An answer that was not expected: its HTTP status, and the message of its Status object."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass
class KubeServer:
    """A running API server; `kubeconfig` has a context for each user of GROUPS."""

    root: Path
    programs: Path
    ports: list[int]
    memory: str = MEMORY  # from which on Go collects more often
    supervisors: list[subprocess.Popen[bytes]] = field(default_factory=list)  # empty: stopped
    _stopped_peak: int = 0  # MB that it took before it was stopped, at most
    _collections: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)
    _idle: list[http.client.HTTPSConnection] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports[0]}"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    def start(self) -> None:
        """Start etcd and the API server, and wait until it is ready."""
        assert not self.supervisors, "it is stopped"
        _, etcd, peer = self.ports
        etcd_url = f"http://127.0.0.1:{etcd}"
        self._start(
            "etcd",
            [
                f"--data-dir={self.root / 'etcd'}",
                f"--listen-client-urls={etcd_url}",
                f"--advertise-client-urls={etcd_url}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
            f"{etcd_url}/readyz",
        )
        self._start(
            "kube-apiserver",
            [
                f"--etcd-servers={etcd_url}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none",  # refuses an address of loopback
                f"--secure-port={self.ports[0]}",
                f"--tls-cert-file={TLS / 'certificate.pem'}",
                f"--tls-private-key-file={TLS / 'key.pem'}",
                f"--service-account-key-file={TLS / 'certificate.pem'}",
                f"--service-account-signing-key-file={TLS / 'key.pem'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
                f"--token-auth-file={self.root / 'tokens'}",
                "--disable-admission-plugins=ServiceAccount",
            ],
            urllib.request.Request(
                f"{self.url}/readyz", headers={"Authorization": f"Bearer {user_token(ADMIN)}"}
            ),
        )

    def _start(self, name: str, arguments: list[str], ready: str | urllib.request.Request) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "GOMEMLIMIT": self.memory,
            "GOGC": "400",
        }
        command = [str(self.programs / name), *arguments]
        log = self.root / f"{name}.log"
        self.supervisors.append(start_supervised(command, environment, log))
        await_answer(ready, self.supervisors[-1], log, _OPENER)

    def stop(self) -> None:
        """Stop the server; its objects and the address stay for another `start`."""
        self._stopped_peak = self.peak_memory()
        while self._idle:
            self._idle.pop().close()
        while self.supervisors:
            stop_supervised(self.supervisors.pop())

    def peak_memory(self) -> int:
        """Return the most memory that etcd and the API server have taken, in MB.

        The peak of each, whenever it was; the most of all starts. From /proc, which Linux alone
        has: elsewhere it is 0.
        """
        if sys.platform != "linux":
            return 0
        with contextlib.suppress(OSError):  # a process that has ended leaves nothing to read
            pids = [pid for it in self.supervisors for pid in list_children(it.pid)]
            texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
            lines = [it for text in texts for it in text.splitlines() if it.startswith("VmHWM:")]
            present = sum(int(line.split()[1]) // 1024 for line in lines)
            return max(self._stopped_peak, present)
        return self._stopped_peak

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        by: str = ADMIN,
        content: str = "application/json",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """Call the API as `by`; return the JSON of the answer. Raises KubeError.

        `more`: headers beside those of every request.
        """
        headers = {"Authorization": f"Bearer {user_token(by)}", "Content-Type": content, **more}
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._ask_once(method, path, body, headers)
            except KubeError as error:
                # A kind whose storage is not ready yet, as after a restart of the server.
                if error.status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def _ask_once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        text = None if body is None else json.dumps(body).encode()
        status, answer = self._exchange(method, path, text, headers)
        if status < HTTPStatus.BAD_REQUEST:
            return json.loads(answer)
        try:
            raise KubeError(status, json.loads(answer)["message"])
        except ValueError:
            raise KubeError(status, answer.decode()) from None

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Send a request, over an open connection if there is one; return status and body.

        A new connection costs both sides more than most requests do.
        """
        while True:
            try:
                connection, is_new = self._idle.pop(), False
            except IndexError:
                connection, is_new = self._connect(), True
            try:
                connection.request(method, path, body, headers)
                with connection.getresponse() as response:
                    answer = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_new or isinstance(error, TimeoutError):
                    raise
                continue  # the server had closed it
            self._idle.append(connection)
            return response.status, answer

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.ports[0], timeout=60, context=_TLS_CONTEXT
        )

    def create(self, manifest: dict[str, Any], *, by: str = ADMIN, dry_run: bool = False) -> Any:
        """Create an object; return it. Fields that its schema does not have are refused."""
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.ask("POST", self._path(manifest, named=False) + query, manifest, by=by)

    def apply(
        self,
        manifest: dict[str, Any],
        *,
        by: str = ADMIN,
        manager: str = "tests",
        subresource: str = "",
    ) -> Any:
        """Apply an object server-side, conflicts forced; return it."""
        query = f"{subresource and '/' + subresource}?fieldManager={manager}&force=true"
        path = self._path(manifest) + query + "&fieldValidation=Strict"
        return self.ask("PATCH", path, manifest, by=by, content=APPLY)

    def patch(self, manifest: dict[str, Any], changes: Any, *, by: str = ADMIN) -> Any:
        """Merge changes into the object that has this kind, name and namespace; return it."""
        return self.ask("PATCH", self._path(manifest), changes, by=by, content=MERGE)

    def get(self, manifest: dict[str, Any], *, by: str = ADMIN) -> Any:
        """Return the object that has this kind, name and namespace, as the server has it."""
        return self.ask("GET", self._path(manifest), by=by)

    def delete(self, manifest: dict[str, Any], *, by: str = ADMIN) -> None:
        """Delete the object that has this kind, name and namespace."""
        self.ask("DELETE", self._path(manifest), by=by)

    def clear(self, api_version: str, kind: str) -> set[str]:
        """Delete all objects of a kind at once; return their namespaces.

        Finalizers hold none of them, and admission policies do not, which let the controller alone
        delete the variants of policies.
        """
        as_controller = {"Impersonate-User": CONTROLLER, "Impersonate-Group": "system:masters"}
        try:
            items = self.list(api_version, kind)
        except KubeError as error:
            if error.status == HTTPStatus.NOT_FOUND:  # the kind is not served
                return set()
            raise
        for item in items:
            if item["metadata"].get("finalizers"):
                path = self._path({**item, "apiVersion": api_version, "kind": kind})
                change = {"metadata": {"finalizers": None}}
                with contextlib.suppress(KubeError):  # it may be gone with its last finalizer
                    self.ask("PATCH", path, change, content=MERGE, more=as_controller)
        namespaces = {it["metadata"]["namespace"] for it in items}
        for namespace in namespaces:
            self.ask("DELETE", self._collection(api_version, kind, namespace), more=as_controller)
        return namespaces

    def may(
        self, user: str, verb: str, resource: str, namespace: str = "", subresource: str = ""
    ) -> bool:
        """Return whether a user may do something, as `kubectl auth can-i` asks.

        `resource`: with its group, as in `decisions.fanout.dev`. `namespace`: "" for all.
        """
        name, _, group = resource.partition(".")
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": verb,
                    "group": group,
                    "resource": name,
                    "subresource": subresource,
                }
            },
        }
        return bool(self.create(review, by=user)["status"]["allowed"])

    def list(
        self, api_version: str, kind: str, namespace: str = "", *, by: str = ADMIN
    ) -> list[Any]:
        """Return the objects of a kind, of all namespaces unless one is named."""
        answer = self.ask("GET", self._collection(api_version, kind, namespace), by=by)
        return list(answer["items"])

    def kubectl(
        self,
        *arguments: str,
        by: str = ADMIN,
        namespace: str = "default",
        stdin: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as `by`."""
        done = subprocess.run(
            [
                *(str(self.programs / "kubectl"), "--kubeconfig", str(self.kubeconfig)),
                *("--context", by, "--namespace", namespace),
                # Nowhere: it would not see for hours which kinds have come.
                *("--cache-dir", os.devnull),
                *arguments,
            ],
            input=stdin,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root)},
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def _path(self, manifest: dict[str, Any], *, named: bool = True) -> str:
        meta = manifest["metadata"]
        path = self._collection(manifest["apiVersion"], manifest["kind"], meta.get("namespace", ""))
        return f"{path}/{meta['name']}" if named else path

    def _collection(self, api_version: str, kind: str, namespace: str) -> str:
        key = (api_version, kind)
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if key not in self._collections:
            self._collections |= {
                (api_version, it["kind"]): (it["name"], it["namespaced"])
                for it in self.ask("GET", prefix)["resources"]
                if "/" not in it["name"]
            }
        plural, is_namespaced = self._collections[key]
        inside = f"/namespaces/{namespace}" if namespace and is_namespaced else ""
        return f"{prefix}{inside}/{plural}"


_TLS_CONTEXT = ssl.create_default_context(cafile=TLS / "certificate.pem")
_OPENER = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_TLS_CONTEXT)
)


def user_token(user: str) -> str:
    """Return the token by which the server knows a user of GROUPS."""
    return f"token-{list(GROUPS).index(user)}"


def _kubeconfig(url: str) -> dict[str, Any]:
    cluster = {"server": url, "certificate-authority": str(TLS / "certificate.pem")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": user_token(user)}} for user in GROUPS],
        "contexts": [
            {"name": user, "context": {"cluster": "tests", "user": user}} for user in GROUPS
        ],
        "current-context": ADMIN,
    }


@contextlib.contextmanager
def running_kube_server(root: Path, memory: str = MEMORY) -> Iterator[KubeServer]:
    """A new, empty server in a new directory, for as long as the block lasts.

    Fails after the block if the server took more than BUDGET, unless its memory has no limit.
    """
    programs = kubernetes_folder()
    if missing := find_missing(programs, tuple(KUBERNETES_PROGRAMS)):
        pytest.fail(f"there is no {missing[0]}; `make servers` builds it")
    root.mkdir(parents=True)
    server = KubeServer(root, programs, choose_ports(3), memory)
    server.kubeconfig.write_text(json.dumps(_kubeconfig(server.url)))
    lines = [f'{user_token(user)},{user},{user},"{",".join(it)}"\n' for user, it in GROUPS.items()]
    (root / "tokens").write_text("".join(lines))
    try:
        server.start()
        yield server
        if memory != UNLIMITED:
            assert server.peak_memory() <= BUDGET, "the server takes more memory than it may"
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
