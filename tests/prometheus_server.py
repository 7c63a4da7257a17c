"""A real Prometheus server on loopback, for tests; it scrapes a page of ours and ends with them."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[1] / "build" / "prometheus" / "usr" / "bin" / "prometheus"
START = 60  # seconds, on a busy machine
# A scrape that takes longer than its timeout hides all series until the next one. A page that is
# served beside other tests takes its time, and the timeout can be no longer than the interval.
CONFIG = """\
global: {{scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s}}
scrape_configs:
- job_name: sites
  static_configs:
  - {{targets: ["{target}"], labels: {{site: ams}}}}
  - {{targets: ["{target}"], labels: {{site: ber}}}}
"""


def executable() -> str:
    """Return the path of Prometheus; without it, skip, or fail if TEST_REQUIRES names it."""
    path = str(BUILT) if BUILT.exists() else shutil.which("prometheus")
    if path is None:
        reason = "there is no Prometheus server here; `make prometheus` fetches one"
        if "prometheus" in os.environ.get("TEST_REQUIRES", "").split():
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def promtool() -> str:
    """Return the path of Prometheus's tool for rules, which comes with the server."""
    return str(Path(executable()).with_name("promtool"))


@contextmanager
def prometheus(root: Path, target: str, ready: str, rules: Path | None = None) -> Iterator[str]:
    """Its address, as soon as the query `ready` yields something. `target` is host and port."""
    program = executable()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = root / "prometheus.yml"
    rule_files = f"rule_files: [{rules}]\n" if rules is not None else ""
    config.write_text(rule_files + CONFIG.format(target=target))
    with (root / "log").open("w") as log:
        server = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={root / 'data'}",
                f"--web.listen-address={address}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _wait(f"http://{address}/api/v1/query?query={ready}", server, root / "log")
        yield f"http://{address}"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            with opener.open(url, timeout=1) as answer:
                if b'"value"' in answer.read():
                    return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.05)
    raise AssertionError(f"Prometheus did not start in {START} s: {log.read_text()}")
