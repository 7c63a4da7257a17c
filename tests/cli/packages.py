"""Packages in real directories, for tests of whole commands."""

import os
from pathlib import Path

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n"


def deployment(replicas=2, name="web", more=""):
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n"
        f"spec:\n  replicas: {replicas} # enough\n{more}"
    )


def config_map(name="settings", more=""):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{more}"


def pipeline(*entries, section="mutators"):
    """A Kptfile with these functions, each as YAML on one line."""
    return f"{KPTFILE}pipeline:\n  {section}:\n" + "".join(f"  - {entry}\n" for entry in entries)


def put(directory: Path, files) -> Path:
    """Write files by path; a name that ends in `*` is an executable."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name.removesuffix("*")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o755 if name.endswith("*") else 0o644)
    return directory


def state(directory: Path):
    """Return a directory's content: bytes of files (executables marked), None for directories."""
    files = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_dir() and not path.is_symlink():
            files[name] = None
        else:
            mark = "*" if os.access(path, os.X_OK) else ""
            files[name + mark] = path.read_bytes()
    return files
