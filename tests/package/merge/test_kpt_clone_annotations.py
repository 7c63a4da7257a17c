"""What kpt writes into a clone's objects is nobody's edit, on whatever side it stands."""

from itertools import product

import pytest

from fanout.errors import InvalidInput
from fanout.package.merge.package_update import KptUpdateStrategy, merge_packages, update_package

COMMENT = " # kpt-merge: shop/web"
NOTE = "internal.kpt.dev/upstream-identifier"
ANNOTATION = f"  annotations:\n    {NOTE}: 'apps|Deployment|shop|web'\n"
FILE, KEPT = "deployment.yaml", {"keep.yaml": ("100644", b"a: 1\n")}
KPTFILE = ("100644", b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n")
MARKS = {
    "nothing": ("", ""),
    "the comment": (COMMENT, ""),
    "the annotation": ("", ANNOTATION),
    "both": (COMMENT, ANNOTATION),
    "an annotation about the file": (
        "",
        "  annotations:\n    internal.config.kubernetes.io/index: '0'\n",
    ),
    "an older one": ("", "  annotations:\n    config.kubernetes.io/path: 'a.yaml'\n"),
}


def deployment(mark: str = "nothing", replicas: int = 1, more: str = "") -> dict:
    comment, annotation = MARKS[mark]
    text = (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:{comment}\n  name: web\n"
        f"  namespace: shop\n{annotation}spec:\n  replicas: {replicas}{more}\n"
    )
    return {FILE: ("100644", text.encode()), **KEPT}


@pytest.mark.parametrize(("before", "here"), list(product(MARKS, MARKS)))
def test_an_object_that_upstream_removed_goes(before: str, here: str):
    result = merge_packages(deployment(before), KEPT, deployment(here))
    assert (result.files, result.conflicts, result.notes) == (KEPT, (), ())


@pytest.mark.parametrize(("before", "upstream_mark"), list(product(MARKS, MARKS)))
def test_an_object_that_was_removed_here_stays_removed_without_a_conflict(
    before: str, upstream_mark: str
):
    result = merge_packages(deployment(before), deployment(upstream_mark), KEPT)
    assert (result.files, result.conflicts) == (KEPT, ())


@pytest.mark.parametrize("mark", list(MARKS)[1:])
def test_a_real_edit_beside_it_counts(mark: str):
    here = deployment(mark, replicas=7)
    result = merge_packages(deployment(), KEPT, here)
    assert result.files == here
    [conflict] = result.conflicts
    assert conflict.cause == "changed here, deleted there"


@pytest.mark.parametrize(("before", "upstream_mark", "here"), list(product(MARKS, MARKS, MARKS)))
def test_local_marks_of_kpt_stay_and_make_no_conflict(before: str, upstream_mark: str, here: str):
    """What is here as it was in the origin is no mark of this side, and follows upstream."""
    sides = (
        deployment(before),
        deployment(upstream_mark, replicas=2),
        deployment(here, more=" # why"),
    )
    result = merge_packages(*sides)
    assert result.conflicts == ()
    text = result.files[FILE][1].decode()
    assert "replicas: 2 # why" in text
    for mark, in_origin in zip(MARKS[here], MARKS[before], strict=True):
        assert mark in text or mark == in_origin


def test_an_annotation_of_a_person_beside_it_is_merged():
    head = b"  annotations:\n"
    here = deployment("both")[FILE][1].replace(head, head + b"    a: mine\n")
    upstream_file = deployment("the annotation")[FILE][1].replace(head, head + b"    b: theirs\n")
    sides = [
        deployment(),
        {FILE: ("100644", upstream_file), **KEPT},
        {FILE: ("100644", here), **KEPT},
    ]
    result = merge_packages(*sides)
    assert result.conflicts == ()
    assert {b"a: mine", b"b: theirs"} <= {it.strip() for it in result.files[FILE][1].splitlines()}


@pytest.mark.parametrize(("before", "here"), list(product(MARKS, MARKS)))
def test_fast_forward_and_copy_merge_take_it_for_no_local_change(before: str, here: str):
    kptfile = {"Kptfile": KPTFILE}
    origin, local = deployment(before) | kptfile, deployment(here) | kptfile
    upstream = deployment(replicas=2) | kptfile
    for strategy in KptUpdateStrategy:
        result = update_package(strategy, origin, upstream, local)
        assert (result.dropped, result.conflicts) == ((), ())
        assert b"replicas: 2" in result.files[FILE][1]
    merged = update_package(KptUpdateStrategy.COPY_MERGE, origin, KEPT | kptfile, local)
    assert (merged.dropped, FILE in merged.files) == ((), False)


@pytest.mark.parametrize(
    "edited", [{"replicas": 7}, {"more": " # of a person"}], ids=["a value", "a comment"]
)
def test_fast_forward_refuses_and_copy_merge_names_a_real_edit_beside_it(edited: dict):
    origin, local = deployment(), deployment("both", **edited)
    with pytest.raises(InvalidInput, match="cannot be fast-forwarded"):
        update_package(KptUpdateStrategy.FAST_FORWARD, origin, deployment(replicas=2), local)
    result = update_package(KptUpdateStrategy.COPY_MERGE, origin, deployment(replicas=2), local)
    assert result.dropped == (FILE,)


def inside(files: dict) -> dict:
    """The files as a subpackage, beside a package's own Kptfile."""
    sub = {f"sub/{path}": content for path, content in files.items()}
    return {"Kptfile": KPTFILE, **sub, **({"sub/Kptfile": KPTFILE} if sub else {})}


def test_a_subpackage_that_upstream_removed_goes_and_one_that_both_added_is_one():
    result = merge_packages(inside(deployment()), inside({}), inside(deployment("both")))
    assert (set(result.files), result.conflicts) == ({"Kptfile"}, ())
    added = merge_packages(inside({}), inside(deployment()), inside(deployment("both")))
    assert (added.files, added.conflicts) == (inside(deployment("both")), ())
    removed = merge_packages(inside(deployment()), inside(deployment("both")), inside({}))
    assert (set(removed.files), removed.conflicts) == ({"Kptfile"}, ())


def test_a_comment_with_a_word_of_a_person_in_it_is_reported_as_lost():
    here = deployment()[FILE][1].replace(b"metadata:", b"metadata: # mine kpt-merge: shop/web")
    result = merge_packages(deployment(), KEPT, {FILE: ("100644", here), **KEPT})
    [note] = result.notes
    assert "mine kpt-merge" in note
