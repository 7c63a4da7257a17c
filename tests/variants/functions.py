"""Objects, configurations and what the functions change, for their tests."""

from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import dump
from fanout.variants.function_registry import FUNCTIONS_BY_NAME
from fanout.variants.functions.function_interface import PackageFacts, VisibleObject
from fanout.variants.overlay import Overlay
from fanout.variants.size_accounting import SizeCounter


def function_config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


def thing(api_version, kind, **rest):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **rest}


NOTHING_KNOWN = PackageFacts()


def changes(name, config, item, facts=NOTHING_KNOWN):
    """Return the function's changes as {path with dots: value}."""
    function = FUNCTIONS_BY_NAME[name]
    [document] = Manifest.parse(dump(item).encode(), "a.yaml").documents
    visible = VisibleObject(item, "a.yaml", Overlay("a.yaml", document), SizeCounter())
    field_changes = function.changes(function.configure(config), visible, facts)
    return {".".join(map(str, path)): value for path, value in field_changes}


def meta(**fields):
    return {"metadata": {"name": "x", **fields}}
