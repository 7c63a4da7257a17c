"""The configuration is one object in a file of its own."""

from operator import itemgetter

import pytest

from fanout.cluster.file_cluster import read_configuration
from fanout.cluster.manifest_documents import InvalidFiles

HEAD = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"


def test_a_configuration_is_read(tmp_path):
    path = tmp_path / "fanout.yaml"
    path.write_text(HEAD + "installId: eu\n")
    assert read_configuration(path)[0].install_id == "eu"


REFUSED = [
    ("one with two faults tells both", HEAD + "instalId: eu\nconcurrency: many\n", 2),
    ("two of them", HEAD + "---\n" + HEAD, 1),
    ("an empty file", "", 1),
    ("another object", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 1),
    ("one beside another object", HEAD + "---\n{apiVersion: v1, kind: A, metadata: {name: a}}", 1),
    ("a file that is no YAML", "{", 1),
]


@pytest.mark.parametrize(("sentence", "text", "count"), REFUSED, ids=map(itemgetter(0), REFUSED))
def test_refused(sentence, text, count, tmp_path):
    path = tmp_path / "fanout.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFiles) as error:
        read_configuration(path)
    assert len(str(error.value).splitlines()) == len(error.value.findings) == count
    assert all(str(path) in line for line in str(error.value).splitlines())


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(InvalidFiles, match="cannot be read"):
        read_configuration(tmp_path / "fanout.yaml")


@pytest.mark.parametrize(
    ("text", "url", "secret"),
    [
        ("records: ssh://git@git.example.com/r.git", "ssh://git@git.example.com/r.git", None),
        (
            "records: {url: 'https://git.example.com/r.git', secretRef: {name: token}}",
            "https://git.example.com/r.git",
            "token",
        ),
        ("records: {secretRef: {name: token}}", ".fanout/records.git", "token"),
        ("", ".fanout/records.git", None),
    ],
)
def test_records_are_a_url_or_an_object_with_a_secret(tmp_path, text, url, secret):
    path = tmp_path / "config.yaml"
    path.write_text(f"apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n{text}\n")
    records = read_configuration(path)[0].records
    assert records.url == url
    assert (records.secret_ref.name if records.secret_ref else None) == secret
