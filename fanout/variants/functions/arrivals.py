"""An object that is new in a package: where it goes."""

from fanout.variants.functions.function import Object, mapping


def file_of(item: Object) -> str:
    """Where kpt puts an object that has no file: below its namespace, by kind and name."""
    meta = mapping(item.get("metadata"))
    file = f"{str(item.get('kind', '')).lower()}_{meta.get('name', '')}.yaml".replace(":", "_")
    namespace = str(meta.get("namespace") or "")
    return f"{namespace}/{file}" if namespace else file
