"""The administrator's FanoutConfiguration, which is named with --config and never searched for."""

from pathlib import Path

from fanout.api.configuration import FanoutConfiguration
from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.cluster.documents import read_content
from fanout.cluster.findings import Finding, InvalidFiles
from fanout.errors import Where


def read_configuration(path: Path) -> FanoutConfiguration:
    """The one configuration in the file. Raises InvalidFiles with everything that is wrong."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InvalidFiles([_about(path, problem, "correct --config")]) from error
    content = read_content(data, str(path), DEFAULT_NAMESPACE)
    found = [item for item, _ in content.ours if isinstance(item, FanoutConfiguration)]
    findings = list(content.findings)
    if not findings and (len(found) != 1 or len(content.ours) > 1 or content.others):
        remedy = "write one FanoutConfiguration and nothing else"
        findings.append(_about(path, "does not hold exactly one FanoutConfiguration", remedy))
    if findings:
        raise InvalidFiles(findings)
    return found[0]


def _about(path: Path, problem: str, remedy: str) -> Finding:
    return Finding(Where(file=str(path)), problem, remedy)
