"""What fanout writes into a Kptfile, and what it leaves alone."""

from operator import itemgetter

import pytest

from fanout.errors import InvalidInput
from fanout.package.field_edits import Edit
from fanout.package.kptfile import (
    KptfileCondition,
    UpstreamLock,
    condition_edits,
    find_kptfile,
    gate_edits,
    metadata_edits,
    upstream_edits,
)
from fanout.package.manifest import Manifest

KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: pkg # its name
info:
  description: sample
"""
UPSTREAM = UpstreamLock("https://example.com/up.git", "team/pkg/", "a" * 40, "team/pkg/v2")


def parse(text):
    manifest = Manifest.parse(text.encode(), "Kptfile")
    return manifest, find_kptfile(manifest)


def test_a_clone_says_where_it_came_from_as_kpt_does():
    manifest, kptfile = parse(KPTFILE)
    edits = [Edit(0, ("metadata", "name"), "site1"), *upstream_edits(kptfile, UPSTREAM)]
    edits += metadata_edits(kptfile, {"team": "edge"}, {"note": "on"})
    assert manifest.apply_edits_to_text(edits).decode() == (
        "apiVersion: kpt.dev/v1\n"
        "kind: Kptfile\n"
        "metadata:\n"
        "  name: site1 # its name\n"
        "  labels:\n"
        "    team: edge\n"
        "  annotations:\n"
        '    note: "on"\n'
        "info:\n"
        "  description: sample\n"
        "upstream:\n"
        "  type: git\n"
        "  git:\n"
        "    repo: https://example.com/up.git\n"
        "    directory: /team/pkg\n"
        "    ref: team/pkg/v2\n"
        "  updateStrategy: resource-merge\n"
        "upstreamLock:\n"
        "  type: git\n"
        "  git:\n"
        "    repo: https://example.com/up.git\n"
        "    directory: /team/pkg\n"
        "    ref: team/pkg/v2\n"
        f"    commit: {'a' * 40}\n"
    )


def test_a_clone_again_changes_nothing_and_a_new_revision_only_its_lines():
    manifest, kptfile = parse(KPTFILE)
    once = manifest.apply_edits_to_text(upstream_edits(kptfile, UPSTREAM))
    manifest, kptfile = parse(once.decode())
    assert manifest.apply_edits_to_text(upstream_edits(kptfile, UPSTREAM)) is manifest.data
    newer = UpstreamLock(UPSTREAM.repo, UPSTREAM.directory, "b" * 40, "team/pkg/v3")
    after = manifest.apply_edits_to_text(upstream_edits(kptfile, newer)).decode()
    assert after == once.decode().replace("/v2", "/v3").replace("a" * 40, "b" * 40)


def test_fields_of_a_generic_store_are_removed():
    text = KPTFILE + "upstream:\n  type: generic\n  generic: {storeID: x}\n"
    manifest, kptfile = parse(text)
    after = Manifest.parse(
        manifest.apply_edits_to_text(upstream_edits(kptfile, UPSTREAM)), "Kptfile"
    )
    assert set(after.documents[0].value["upstream"]) == {"type", "git", "updateStrategy"}


def test_the_package_at_the_root_of_its_repository():
    _, kptfile = parse(KPTFILE)
    values = {
        edit.path: edit.value for edit in upstream_edits(kptfile, UpstreamLock("u", "", "c", "v1"))
    }
    assert values["upstream", "git", "directory"] == "/"


def test_gates_are_added_behind_those_of_others():
    manifest, kptfile = parse(KPTFILE + "  readinessGates:\n  - conditionType: z # mine\n")
    edits = gate_edits(kptfile, ["b", "z", "a", "b"])
    assert (
        manifest.apply_edits_to_text(edits)
        .decode()
        .endswith("  - conditionType: z # mine\n  - conditionType: b\n  - conditionType: a\n")
    )
    manifest, kptfile = parse(KPTFILE)
    assert (
        manifest.apply_edits_to_text(gate_edits(kptfile, ["a"]))
        .decode()
        .endswith("  readinessGates:\n  - conditionType: a\n")
    )
    assert gate_edits(kptfile, []) == []
    # A value that no set can hold is validation's to report.
    _, kptfile = parse(KPTFILE + "  readinessGates:\n  - conditionType: {a: b}\n")
    assert [edit.value for edit in gate_edits(kptfile, ["a"])] == [{"conditionType": "a"}]


def test_conditions_are_set_by_type():
    status = (
        "status:\n  conditions:\n  - type: Rendered # kpt's\n    status: 'True'\n"
        "  - type: mine\n    status: 'False'\n    reason: Old\n    message: gone\n"
    )
    manifest, kptfile = parse(KPTFILE + status)
    mine, new = (
        KptfileCondition("mine", "True", "New"),
        KptfileCondition("config.x", "False", "R", "why: so"),
    )
    after = manifest.apply_edits_to_text(condition_edits(kptfile, [mine, new])).decode()
    assert after == KPTFILE + (
        "status:\n  conditions:\n  - type: Rendered # kpt's\n    status: 'True'\n"
        '  - type: mine\n    status: "True"\n    reason: New\n'
        '  - type: config.x\n    status: "False"\n    reason: R\n    message: "why: so"\n'
    )
    manifest, kptfile = parse(after)
    assert manifest.apply_edits_to_text(condition_edits(kptfile, [new, mine])) is manifest.data


NONE = [
    ("an empty file", "# nothing\n", "Kptfile:1: the Kptfile is empty"),
    ("two documents", KPTFILE + "---\na: 1\n", "Kptfile:8: the Kptfile has more than one document"),
    ("a list", "- a\n", "Kptfile:1: the Kptfile is not a mapping"),
    (
        "another kind",
        "apiVersion: kpt.dev/v1\nkind: Kpt\n",
        "Kptfile:2: the Kptfile's kind is 'Kpt'",
    ),
    (
        "an old version",
        "apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\n",
        "Kptfile:1: the Kptfile's api",
    ),
    ("no version", "kind: Kptfile\n", "Kptfile:1: the Kptfile has no apiVersion"),
]


@pytest.mark.parametrize(("sentence", "text", "expected"), NONE, ids=map(itemgetter(0), NONE))
def test_a_malformed_kptfile_is_refused(sentence, text, expected):
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("edits", [gate_edits, condition_edits])
def test_gates_and_conditions_must_be_lists(edits):
    _, kptfile = parse(
        KPTFILE.replace("description: sample", "readinessGates: 1") + "status: {conditions: x}\n"
    )
    with pytest.raises(InvalidInput, match="is not a list"):
        edits(kptfile, [])
