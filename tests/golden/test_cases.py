"""Every folder in fixtures/cases is a case: objects go in; drafts, plan and status come out.

`pytest tests/golden --update-golden` writes what comes out; look at the difference before it is
committed.
"""

import shutil
from pathlib import Path

import pytest
from golden.world import Case
from repositories import below

CASES = sorted(path for path in (Path(__file__).parents[2] / "fixtures/cases").iterdir())


def write(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, tmp_path, monkeypatch, update_golden):
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "")  # set anew for each commit, and gone after the test
    outcome = Case(case, tmp_path).play()
    if update_golden:
        write(case / "expected", outcome)
    assert outcome == below(case / "expected")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_says_what_it_is_about_and_names_no_machine(case):
    assert (case / "README.md").read_text(encoding="utf-8").startswith("# ")
    for path, text in below(case / "expected").items():
        assert "/tmp/" not in text, path
