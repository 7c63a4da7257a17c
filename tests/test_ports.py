"""The interfaces of what a pass asks of the world are loaded alone."""

import subprocess
import sys


def test_ports_load_nothing_that_plans_or_renders():
    """A verb that only reads objects and records starts in the time that these take."""
    code = "import sys, fanout.ports; print(*sorted(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, check=True
    )
    loaded = {name for name in answer.stdout.split() if name.startswith("fanout.")}
    packages = ("fanout.plan.changes", "fanout.plan.edits", "fanout.package.merge.object_merge")
    assert [name for name in sorted(loaded) if name.startswith(packages)] == []
    assert "fanout.plan.observation.repository_state" in loaded
