"""`fanout package diff`: patches that apply, and three sides with disputes marked."""

import subprocess

import pytest
from cli.packages import KPTFILE, deployment, put, state
from hypothesis import given, settings
from hypothesis import strategies as st

from fanout.cli.main import run_arguments
from fanout.cli.output.merge_view import format_three_way
from fanout.package.package_patch import format_patch

BASE = {"Kptfile": KPTFILE, "web.yaml": deployment(2)}


@pytest.fixture
def diff(tmp_path, capfdbinary):
    """Compare packages and answer exit status and what was printed."""

    def run(upstream, local, origin=None):
        sides = {"upstream": upstream, "local": local} | ({"origin": origin} if origin else {})
        words = [w for n, files in sides.items() for w in (f"--{n}", str(put(tmp_path / n, files)))]
        status = run_arguments(["package", "diff", *words])
        return status, capfdbinary.readouterr().out.decode()

    return run


def applied(directory, lines):
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn"], cwd=directory, input=lines.encode(), check=True
    )


PATCHES = [
    ("a changed line", {"a": "1\n2\n3\n"}, {"a": "1\nx\n3\n"}),
    ("a new file", {"b": "b\n"}, {"b": "b\n", "deep/a": "1\n"}),
    ("a new executable", {"b": "b\n"}, {"b": "b\n", "a*": "1\n"}),
    ("a deleted file", {"a": "1\n", "b": "b\n"}, {"b": "b\n"}),
    ("a mode alone", {"a": "1\n"}, {"a*": "1\n"}),
    ("a mode and a line", {"a": "1\n"}, {"a*": "2\n"}),
    ("no line end upstream", {"a": "1\n2"}, {"a": "1\n2\n"}),
    ("no line end here", {"a": "1\n2\n"}, {"a": "1\n2"}),
    ("no line end on both sides", {"a": "1\n2"}, {"a": "1\n3"}),
    ("carriage returns", {"a": "1\r\n2\r\n"}, {"a": "1\r\nx\r\n"}),
    ("lines that look like heads", {"a": "-- a\n++ b\n@@ c\n"}, {"a": "-- x\n++ y\n@@ z\n"}),
    ("other line separators", {"a": "1\x0c2\u2028\n"}, {"a": "1\x0c3\u2028\n"}),
    ("an empty file that gets a line", {"a": ""}, {"a": "1\n"}),
]


@pytest.mark.parametrize(
    ("upstream", "local"), [r[1:] for r in PATCHES], ids=[r[0] for r in PATCHES]
)
def test_the_patch_makes_upstream_s_package_the_local_one(diff, tmp_path, upstream, local):
    status, lines = diff(upstream, local)
    assert status == 0
    applied(tmp_path / "upstream", lines)
    assert state(tmp_path / "upstream") == state(tmp_path / "local")


TEXTS = st.text("ab \n-+@\r", max_size=30)


@settings(max_examples=25, deadline=None)
@given(one=TEXTS.filter(bool), other=TEXTS)
def test_every_patch_of_a_text_applies(tmp_path_factory, one, other):
    top = put(tmp_path_factory.mktemp("law"), {"a": one})
    sides = ({"a": ("100644", text.encode())} for text in (one, other))
    lines = "".join(f"{line}\n" for line in format_patch(*sides, ("upstream", "local")))
    assert bool(lines) == (one != other)
    if lines:
        applied(top, lines)
    assert state(top) == {"a": other.encode()}


def test_equal_packages_have_no_difference(diff):
    assert diff(BASE, BASE) == (0, "")
    assert diff(BASE, BASE, BASE) == (0, "")


def test_binary_files_are_named(diff):
    _, out = diff({"a": b"\0"}, {"a": b"\1\0"})
    assert "Binary files upstream/a and local/a differ" in out


def secret(password, user="ann"):
    head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n"
    return f"{head}stringData:\n  password: {password}\n  user: {user}\n"


def test_values_of_secrets_are_masked_in_the_patch(diff):
    status, out = diff({"a.yaml": secret("old")}, {"a.yaml": secret("new")})
    assert status == 0
    assert '-  password: "*** (before)"\n+  password: "*** (after)"\n' in out
    assert '   user: "***"\n' in out
    assert not any(value in out for value in ("old", "new", "ann"))


def test_values_of_secrets_are_masked_in_three_sides(diff):
    sides = [{"a.yaml": secret(password)} for password in ("there", "mine", "former")]
    status, out = diff(*sides)
    assert status == 0
    assert '--  password: "*** (before)"\n' in out
    assert '+   password: "*** (upstream)"\n' in out
    assert ' +  password: "*** (here)"\n' in out
    assert not any(value in out for value in ("there", "mine", "former", "ann"))


def test_a_value_of_a_secret_that_is_only_quoted_in_another_way_is_a_note(diff):
    status, out = diff({"a.yaml": secret("same")}, {"a.yaml": secret('"same"')})
    assert (status, out) == (
        0,
        "# note: upstream and local differ in how values of Secrets are written\n",
    )


def three(*rows):
    return "".join(f"{row}\n" for row in rows)


THREE = [
    (
        "what upstream did is in the first column, what was done here in the second",
        {"a": "1\n2\n3\n"},
        {"a": "0\n1\n2\n3\n"},
        {"a": "1\n2\n"},
        three(
            "=== a: changed upstream, changed here", "@@ origin:1 @@", "+ 0", "  1", "  2", " -3"
        ),
    ),
    (
        "what both did is in both",
        {"a": "1\n2\n"},
        {"a": "x\n2\n"},
        {"a": "x\n2\n"},
        three("=== a: changed upstream, changed here", "@@ origin:1 @@", "--1", "++x", "  2"),
    ),
    (
        "files that come and go are told",
        {"a": "1\n", "b": "b\n"},
        {"a": "1\n", "c": "c\n"},
        {"b": "b\n"},
        three("=== a: deleted here", "@@ origin:1 @@", " -1")
        + three("=== b: deleted upstream", "@@ origin:1 @@", "- b")
        + three("=== c: added upstream", "@@", "+ c"),
    ),
    (
        "modes are told",
        {"a": "1\n", "b": "b\n"},
        {"a*": "1\n", "b": "b\n"},
        {"a": "1\n", "b*": "B\n"},
        three("=== a: mode 100644 to 100755 upstream")
        + three("=== b: changed, mode 100644 to 100755, here", "@@ origin:1 @@", " -b", " +B"),
    ),
    (
        "binary files are told by their sizes, with their dispute",
        {"a": b"\0"},
        {"a": b"\0a"},
        {"a": b"\0bb"},
        three(
            "=== a: changed upstream, changed here",
            "!! a: both changed (base 1 bytes, upstream 2 bytes, local 3 bytes); upstream won",
            "binary: origin 1 bytes, upstream 2 bytes, local 3 bytes",
        ),
    ),
    (
        "a disputed field is marked where it stands",
        BASE,
        {**BASE, "web.yaml": deployment(3)},
        {**BASE, "web.yaml": deployment(5)},
        three(
            "=== web.yaml: changed upstream, changed here",
            "@@ origin:3 @@",
            "  metadata:",
            "    name: web",
            "  spec:",
            "--  replicas: 2 # enough",
            "+   replicas: 3 # enough",
            "!! web.yaml:6: Deployment/web: spec.replicas: both changed "
            "(base 2, upstream 3, local 5); upstream won",
            " +  replicas: 5 # enough",
        ),
    ),
    (
        "what was deleted here and changed there is marked where upstream has it",
        BASE,
        {**BASE, "web.yaml": deployment(3)},
        {**BASE, "web.yaml": deployment(2).replace("  replicas: 2 # enough\n", "  paused: true\n")},
        three(
            "=== web.yaml: changed upstream, changed here",
            "@@ origin:3 @@",
            "  metadata:",
            "    name: web",
            "  spec:",
            "--  replicas: 2 # enough",
            "!! web.yaml:6: Deployment/web: spec.replicas: deleted here, changed there "
            "(base 2, upstream 3, local absent); upstream won",
            "+   replicas: 3 # enough",
            " +  paused: true",
        ),
    ),
]


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "view"), [r[1:] for r in THREE], ids=[r[0] for r in THREE]
)
def test_three_sides_in_one_view(diff, origin, upstream, local, view):
    assert diff(upstream, local, origin) == (0, view)


def test_only_the_lines_around_a_change_are_shown(diff):
    lines = [f"{n}\n" for n in range(1, 31)]
    theirs, ours = lines.copy(), lines.copy()
    theirs[1], ours[25] = "there\n", "here\n"
    sides = [{"a": "".join(side)} for side in (theirs, ours, lines)]
    _, out = diff(*sides)
    assert [line for line in out.splitlines() if line[:2] != "  "] == [
        "=== a: changed upstream, changed here",
        "@@ origin:1 @@", "- 2", "+ there",
        "@@ origin:23 @@", " -26", " +here",
    ]  # fmt: skip


def test_a_line_without_its_end_is_marked(diff):
    _, out = diff({"a": "1"}, {"a": "1\n"}, {"a": "1\n"})
    assert out.endswith("+ 1\n\\ No newline at end of file\n")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=8)


@given(base=LINES, theirs=LINES, ours=LINES)
def test_the_view_has_every_line_of_every_side_in_its_order(base, theirs, ours):
    sides = ({"a": ("100644", "".join(lines).encode())} for lines in (base, theirs, ours))
    rows = [
        row
        for row in format_three_way(*sides)
        if row[:2] in {"  ", "- ", " -", "--", "+ ", " +", "++"}
    ]
    if rows:  # with so few lines there is one hunk, or the gaps are nobody's change
        sides_of = {
            "  ": "otl",
            "- ": "ol",
            " -": "ot",
            "--": "o",
            "+ ": "t",
            " +": "l",
            "++": "tl",
        }
        for letter, lines in (("o", base), ("t", theirs), ("l", ours)):
            shown = [f"{row[2:]}\n" for row in rows if letter in sides_of[row[:2]]]
            hidden = len(lines) - len(shown)
            assert hidden >= 0
            assert hidden or shown == lines
