"""What people are told where a package inside the package is disputed as a whole."""

from operator import itemgetter

import pytest

from fanout.package.merge.package_update import merge_packages

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: x}\n"
ROOT = {"Kptfile": KPTFILE}
SUB = {**ROOT, "s/Kptfile": KPTFILE, "s/a.yaml": "kind: A\n"}

DISPUTES = [
    ("added on both sides", ROOT, {**SUB, "s/c": "1"}, {**SUB, "s/b": "", "s/c": "2"},
     "s: both added (upstream and local differ in 2 files); local won"),
    ("deleted here", SUB, {**SUB, "s/c": "1"}, ROOT,
     "s: deleted here, changed there (base and upstream differ in 1 file); local won"),
    ("deleted upstream", SUB, ROOT, {**SUB, "s/a.yaml": "kind: B\n"},
     "s: changed here, deleted there (base and local differ in 1 file); local won"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "origin", "upstream", "local", "sentence"), DISPUTES, ids=map(itemgetter(0), DISPUTES)
)
def test_a_conflict_of_subpackages_says_how_many_files_differ(_, origin, upstream, local, sentence):
    sides = (
        {path: ("100644", text.encode()) for path, text in files.items()}
        for files in (origin, upstream, local)
    )
    [conflict] = merge_packages(*sides).conflicts
    assert str(conflict) == sentence
