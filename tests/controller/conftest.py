"""Policies as files, read as the program reads them."""

import pytest

from fanout.cluster.file_cluster import FileCluster

POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{latest: true}}}}
  targets: [{{repositories: [{{name: edge}}]}}]
  stages: [{{name: dev}}]
"""
VARIANT = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{latest: true}}}}
  downstream: {{repository: edge, package: "{name}"}}
"""
PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{spec}}}
"""


class Files:
    """A directory of manifests."""

    def __init__(self, directory):
        self.directory = directory
        self._number = 0

    def policy(self, name, namespace="platform"):
        return self.write(POLICY.format(name=name, namespace=namespace))

    def variant(self, name, namespace="platform", depends_on=""):
        text = VARIANT.format(name=name, namespace=namespace)
        return self.write(f"{text}  dependsOn: [{depends_on}]\n")

    def promotion(self, name, spec, namespace="platform"):
        return self.write(PROMOTION.format(name=name, spec=spec, namespace=namespace))

    def write(self, text):
        self._number += 1
        (self.directory / f"{self._number:03}.yaml").write_text(text)
        return self

    def read(self):
        return FileCluster([self.directory]).read()


@pytest.fixture
def files(tmp_path):
    directory = tmp_path / "policies"
    directory.mkdir()
    return Files(directory)
