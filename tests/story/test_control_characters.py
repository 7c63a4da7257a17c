"""Names of files with line breaks and control characters reach no terminal as they are."""

import subprocess
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, PLAIN, PROMOTION, Fleet

NAME = "one\ntwo\u2066\x1b[2J\x9b.yaml"
SHOWN = "one\\ntwo\\u2066\\x1b[2J\\x9b.yaml"
RAW = ("\u2066", "\x1b", "\x9b")
AMS = "sites/ams"
VARIANT = "monitoring-edge-sites-ams"


def config_map(value: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: odd}}\ndata: {{a: {value}}}\n"


@company
def fleet(root: Path) -> Fleet:
    """A package with such a file, edited downstream and upstream in the same value."""
    made = Fleet(root)
    for name in ("blueprints", "edge"):
        made.repository(name)
    made.write("policy.yaml", PLAIN)
    made.write("promotion.yaml", PROMOTION)
    made.release("v1", {NAME: config_map("a"), f"{NAME}.txt": "a\n"})
    made.settle()
    made.repos["edge"].commit("main", {f"{AMS}/{NAME}": config_map("b")})
    made.release("v2", {NAME: config_map("c"), f"{NAME}.txt": "b\n"})
    made.later(minutes=1).sweep()
    return made


def is_clean(text: str) -> bool:
    return not any(it in text for it in RAW) and not any(
        line.startswith("two") for line in text.splitlines()
    )


LINES = [
    ("diff", AMS),
    ("diff", AMS, "--three-way"),
    ("diff", AMS, "--against", "draft"),
    ("diff", AMS, "--against", "draft", "--three-way"),
    ("diff", AMS, "--against", "upstream"),
    ("diff", AMS, "--against", "upstream", "--three-way"),
    ("render", AMS),
    ("explain", "monitoring"),
    ("explain", AMS),
    ("status",),
    ("plan",),
    ("history", "monitoring"),
    *(
        ("get", kind, "-o", output)
        for kind in ("conflicts", "variants", "drafts", "targets", "records")
        for output in ("wide", "json", "yaml")
    ),
    ("get", "conflicts"),
    ("get", "conflicts", "-o", "custom-columns=FILE:.spec.file"),
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_no_command_prints_them(fleet: Fleet, line: tuple[str, ...]):
    result = fleet.run(*line)
    assert "Traceback" not in result.err
    assert is_clean(result.out), result.out
    assert is_clean(result.err), result.err


def test_the_name_is_spelled_out(fleet: Fleet):
    assert SHOWN in fleet.run("get", "conflicts").out
    assert SHOWN in fleet.run("diff", AMS, "--three-way").out
    assert '"rendered/one\\012two' in fleet.run("diff", AMS).out
    assert SHOWN in fleet.run("explain", AMS).out
    assert f"# {SHOWN}\n" in fleet.run("render", AMS).out
    [conflict] = fleet.run("get", "conflicts", "-o", "json").items
    assert conflict["spec"]["file"] in (SHOWN, NAME)


def test_a_fault_of_such_a_file_is_one_line(fleet: Fleet):
    fleet.repos["edge"].commit(
        "drafts/default/sites/ber/monitoring",
        {f"sites/ber/{NAME}": "a: b\n\tc: d\n", f"{NAME}.md": "outside\n"},
    )
    swept = fleet.later(minutes=1).sweep()
    output = swept.err + fleet.run("explain", "sites/ber").out + fleet.run("get", "variants").out
    assert SHOWN in output
    assert is_clean(output), output


def package(directory: Path, value: str) -> Path:
    directory.mkdir()
    files = {"Kptfile": PACKAGE["Kptfile"], NAME: config_map(value), f"{NAME}.txt": f"{value}\n"}
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def test_commands_about_directories(fleet: Fleet, tmp_path: Path):
    origin, upstream, local = (package(tmp_path / it, it[0]) for it in ("origin", "up", "local"))
    (local / "broken\nfile\u2066.yaml").write_text("a: b\n\tc: d\n", encoding="utf-8")
    sides = ("--upstream", str(upstream), "--local", str(local))
    three = ("--origin", str(origin), *sides)
    for line in (
        ("diff", *sides),
        ("diff", *three),
        ("validate", str(local)),
        ("validate", str(local), "-o", "json"),
        ("merge", *three, "--to", str(tmp_path / "to")),
        ("merge", *three, "--to", str(tmp_path / "other"), "-o", "json"),
        ("merge", *three, "--to", str(tmp_path / "third"), "--strategy", "force-delete-replace"),
        ("render", str(upstream), "--to", str(tmp_path / "rendered")),
    ):
        result = fleet.run("package", *line, files=False)
        assert "Usage" not in result.err
        assert "Traceback" not in result.err
        assert is_clean(result.out + result.err), (line, result.out, result.err)


def test_git_applies_a_patch_with_quoted_names(fleet: Fleet, tmp_path: Path):
    upstream, local = (package(tmp_path / it, it) for it in ("upstream", "local"))
    (local / 'with "quotes" and \\.txt').write_text("x\n", encoding="utf-8")
    (upstream / "gone\n.txt").write_text("x\n", encoding="utf-8")
    line = ("package", "diff", "--upstream", str(upstream), "--local", str(local))
    compared = fleet.run(*line, files=False)
    assert compared.code == 0, compared.err
    apply = ["git", "apply", "-p1"]
    subprocess.run(apply, cwd=upstream, input=compared.out.encode(), check=True)
    names = sorted(it.name for it in upstream.iterdir())
    assert names == sorted(it.name for it in local.iterdir())
    assert all((upstream / it).read_bytes() == (local / it).read_bytes() for it in names)
