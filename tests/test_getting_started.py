"""Every command of docs/tutorial/getting-started.md prints what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from pages import parts, pattern, write

PAGE = Path(__file__).parent.parent / "docs" / "tutorial" / "getting-started.md"


def test_the_page_does_what_it_says(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for what, subject, content in parts(PAGE.read_text(encoding="utf-8")):
        if what == "write":
            write(tmp_path, subject, content)
            continue
        done = subprocess.run(
            ["bash", "-c", subject],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "80"},
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{subject}\n{done.stdout}"
        assert re.fullmatch(pattern(content), done.stdout), f"{subject}\n{done.stdout}"
        ran += 1
    assert ran > 20
