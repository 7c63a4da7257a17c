"""The update strategies other than the merge: what they keep, refuse and drop."""

import pytest

from fanout.errors import InvalidInput
from fanout.package.merge.package_update import KptUpdateStrategy, update_package

KPTFILE = (
    "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\ninfo:\n  site: {site}\n"
)


def package(name="upstream", site="a", **files):
    texts = {"Kptfile": KPTFILE.format(name=name, site=site)}
    texts |= {key.replace("_", "."): text for key, text in files.items()}
    return {path: ("100644", text.encode()) for path, text in texts.items()}


def texts(result):
    return {path: data.decode() for path, (_, data) in result.files.items()}


ORIGIN = package(a_txt="a\n", b_txt="b\n")
UPSTREAM = package(site="new", a_txt="A\n", c_txt="c\n")
LOCAL = package("mine", a_txt="edited\n", b_txt="edited\n", own_txt="own\n")
KPT = KPTFILE.format(name="mine", site="new")

ROWS = [
    (
        "force-delete-replace leaves nothing but upstream's files and the merged Kptfile",
        KptUpdateStrategy.FORCE_DELETE_REPLACE,
        {"Kptfile": KPT, "a.txt": "A\n", "c.txt": "c\n"},
        ("a.txt", "b.txt", "own.txt"),
    ),
    (
        "copy-merge keeps what only the local side has, and removes what upstream removed",
        KptUpdateStrategy.COPY_MERGE,
        {"Kptfile": KPT, "a.txt": "A\n", "c.txt": "c\n", "own.txt": "own\n"},
        ("a.txt", "b.txt"),
    ),
]


@pytest.mark.parametrize(
    ("strategy", "files", "dropped"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_blunt_strategies_say_what_they_drop(strategy, files, dropped):
    result = update_package(strategy, ORIGIN, UPSTREAM, LOCAL)
    assert texts(result) == files
    assert result.dropped == dropped


def test_fast_forward_takes_upstream_where_nothing_was_changed_here():
    local = package("mine", a_txt="a\n", b_txt="b\n")
    result = update_package(KptUpdateStrategy.FAST_FORWARD, ORIGIN, UPSTREAM, local)
    assert texts(result) == {"Kptfile": KPT, "a.txt": "A\n", "c.txt": "c\n"}
    assert result.dropped == ()


def test_fast_forward_does_not_mind_what_rendering_and_cloning_wrote():
    lock = "upstream:\n  type: git\nupstreamLock:\n  type: git\nstatus:\n  renderStatus: {}\n"
    local = package("mine", a_txt="a\n", b_txt="b\n")
    local["Kptfile"] = ("100644", local["Kptfile"][1] + lock.encode())
    result = update_package(KptUpdateStrategy.FAST_FORWARD, ORIGIN, UPSTREAM, local)
    assert texts(result)["Kptfile"] == KPT + lock


@pytest.mark.parametrize(
    ("local", "names"),
    [
        (package("mine", a_txt="x\n", b_txt="b\n"), "a.txt changed locally"),
        (package("mine", a_txt="a\n", b_txt="b\n", z_txt="z\n"), "z.txt changed locally"),
        (package("mine", a_txt="a\n"), "b.txt changed locally"),
        (package("mine", site="other", a_txt="a\n", b_txt="b\n"), "Kptfile changed locally"),
    ],
    ids=["a changed file", "an added file", "a removed file", "a changed Kptfile"],
)
def test_fast_forward_refuses_local_changes_by_name(local, names):
    with pytest.raises(InvalidInput, match=names):
        update_package(KptUpdateStrategy.FAST_FORWARD, ORIGIN, UPSTREAM, local)


def test_resource_merge_is_the_default():
    assert next(iter(KptUpdateStrategy)) is KptUpdateStrategy.RESOURCE_MERGE
    result = update_package(KptUpdateStrategy.RESOURCE_MERGE, ORIGIN, UPSTREAM, LOCAL)
    assert texts(result)["own.txt"] == "own\n"


@pytest.mark.parametrize(("theirs", "ours"), [("d", "d/f"), ("d/f", "d")])
def test_copy_merge_never_leaves_a_file_and_a_directory_of_one_name(theirs, ours):
    upstream, local = ({**ORIGIN, path: ("100644", b"x")} for path in (theirs, ours))
    result = update_package(KptUpdateStrategy.COPY_MERGE, ORIGIN, upstream, local)
    assert result.files == upstream
    assert result.dropped == (ours,)


WRITTEN = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |  \n    # no comment\n"
    "    b \n  f: >-\n    one\n    two\n  q: 'x'\n  n: [1, 2]\n"
)
LAID_OUT = (
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: "# no comment\\nb \\n"\n'
    "  f: one two\n  q: x\n  n:\n  - 1\n  - 2\n"
)


@pytest.mark.parametrize("change", ["", "a comment", "a value"])
def test_layout_that_kpt_wrote_is_nobody_s_edit(change):
    text = {"": LAID_OUT, "a comment": f"{LAID_OUT}# mine\n"}.get(
        change, LAID_OUT.replace("one two", "two one")
    )
    origin, upstream = ({**files, "c.yaml": ("100644", WRITTEN.encode())}
                        for files in (ORIGIN, UPSTREAM))  # fmt: skip
    local = {**ORIGIN, "c.yaml": ("100644", text.encode())}
    if change:
        with pytest.raises(InvalidInput, match=r"c\.yaml changed locally"):
            update_package(KptUpdateStrategy.FAST_FORWARD, origin, upstream, local)
        return
    result = update_package(KptUpdateStrategy.FAST_FORWARD, origin, upstream, local)
    assert result.files == {**upstream, "Kptfile": upstream["Kptfile"]}
    assert result.dropped == ()
