"""What `render` prints can be piped to a cluster; what it writes is the whole package."""

from pathlib import Path

import yaml
from companies import company
from fleet import Fleet

MORE = {
    "README.md": "# monitoring\n",
    "two.yaml": "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: tool\n"
    '  annotations: {config.kubernetes.io/local-config: "true"}\n',
    "last.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}}',
    "unended.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unended} # no line end",
}


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.release("v2", MORE)
    return made


def test_the_printed_rendering_is_a_stream_of_objects_for_a_cluster(fleet: Fleet):
    result = fleet.run("render", "sites/ams")
    assert result.code == 0
    objects = list(yaml.safe_load_all(result.out))
    assert [(it["kind"], it["metadata"]["name"]) for it in objects] == [
        ("Deployment", "prometheus"),
        ("ConfigMap", "last"),
        ("ConfigMap", "settings"),
        ("Service", "web"),
        ("ConfigMap", "unended"),
    ]
    assert result.out.startswith("---\n# deployment.yaml\napiVersion: apps/v1\n")
    assert "---\n# two.yaml\napiVersion: v1\nkind: Service\n" in result.out
    assert "name: prometheus # ours\n" in result.out
    assert result.err == (
        "omitted, not for a cluster: Kptfile, README.md, package-context.yaml; "
        "use --to DIR to write all files\n"
    )


def test_the_written_rendering_is_the_whole_package(fleet: Fleet, tmp_path: Path):
    result = fleet.run("render", "sites/ams", "--to", str(tmp_path / "out"))
    assert (result.code, result.out, result.err) == (0, "", "")
    written = {str(it.relative_to(tmp_path / "out")) for it in (tmp_path / "out").rglob("*")}
    assert written >= {"Kptfile", "README.md", "package-context.yaml", "two.yaml"}
    assert (tmp_path / "out" / "two.yaml").read_text() == MORE["two.yaml"]


def test_an_ignored_file_is_in_the_draft_and_not_printed(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    chart = "replicas: {{ .Values.replicas }}\n"
    fleet.release("v2", {".krmignore": "chart\n", "chart/web.yaml": chart, "chart/x.yaml": chart})
    swept = fleet.sweep()
    assert (swept.code, swept.err) == (0, "")
    [draft] = fleet.repos["edge"].refs("refs/heads/drafts/")
    assert fleet.repos["edge"].file(draft, "sites/ams/chart/web.yaml") == chart
    result = fleet.run("render", "sites/ams")
    assert result.code == 0
    assert "{{" not in result.out
    assert "chart/web.yaml" in result.err
