"""File of the administrator's FanoutConfiguration, given by --config.

It is never searched for: no file in a directory of policies can take its place.
"""

from pathlib import Path

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.cluster.file_findings import FileFinding, InvalidFiles
from fanout.cluster.manifest_documents import read_content
from fanout.errors import ErrorLocation


def read_configuration(path: Path) -> FanoutConfiguration:
    """Read the one configuration in the file. Raises InvalidFiles with every error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InvalidFiles([_file_finding(path, problem, "correct --config")]) from error
    content = read_content(data, str(path), DEFAULT_NAMESPACE)
    configurations = [
        item for item, _ in content.own_objects if isinstance(item, FanoutConfiguration)
    ]
    findings = list(content.findings)
    if not findings and (
        len(configurations) != 1 or len(content.own_objects) > 1 or content.plain_objects
    ):
        remedy = "write one FanoutConfiguration and nothing else"
        findings.append(
            _file_finding(path, "does not hold exactly one FanoutConfiguration", remedy)
        )
    if findings:
        raise InvalidFiles(findings)
    return configurations[0]


def _file_finding(path: Path, problem: str, remedy: str) -> FileFinding:
    return FileFinding(ErrorLocation(file=str(path)), problem, remedy)
