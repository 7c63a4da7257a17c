"""Values between packages have classes: dictionaries are for what others give their fields.

What is public, used by another package, and has `dict[str, Any]` or `Mapping[str, Any]` in its
types is listed here with its reason. The command line is not looked at: it prints plain data.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator

from source_files import MODULES, ONE_PROCESS, PACKAGE, text_of

pytestmark = ONE_PROCESS

PLAIN_DATA = {
    "an object as a file or an API server has it, with any fields": {
        "Object",
        "ImportResult.objects",
        "KindSchemas.find_faults",
        "PolicyStateStore.append",
        "RecordCreator.create",
        "RecordEntry.fields",
        "RecordObject.manifest",
        "RecordOverlay.append",
        "RecordStore.append",
        "SubmittedRecord.manifest",
        "WrittenObject.content",
        "WrittenObject.defaults",
        "WrittenObject.status",
        "add_transition_times",
        "as_mapping",
        "build_admission_policies",
        "build_crds",
        "build_record_status",
        "dump_fleet_status",
        "dump_view",
        "dump_views",
        "find_expressions",
        "is_fanout_object",
        "load_objects",
        "merge_present",
        "read_scopes",
        "validate_object",
        "validate_stored_record",
    },
    "a JSON Schema": {"build_json_schemas", "build_schema"},
    "variables of an expression or a template, by name": {
        "ExpressionBatch.rows",
        "ExpressionRequest.variables",
        "InProcessExpression.evaluate",
        "InProcessExpression.reads",
        "ProcessSandbox.evaluate",
        "ProcessSandbox.render",
        "Sandbox.evaluate",
        "Sandbox.render",
        "Variables",
        "build_rollout_variables",
        "build_text_variables",
        "build_title_variables",
    },
    "a line of a file of records, before it is parsed or after it is written": {
        "StatusChange.lines",
        "StatusLines",
        "StatusRevision.lines",
        "as_data",
        "parse_status",
    },
}


def is_plain(annotation: ast.AST | None) -> bool:
    return annotation is not None and "[str, Any]" in ast.unparse(annotation)


def plain_parts(node: ast.stmt) -> Iterator[str]:
    """Yield the public parts of a definition that have plain data in their types."""
    match node:
        case ast.FunctionDef(name=name, args=arguments):
            types = [it.annotation for it in (*arguments.args, *arguments.kwonlyargs)]
            if any(map(is_plain, (*types, node.returns))):
                yield name
        case ast.Assign(targets=[ast.Name(id=name)]) if is_plain(node.value):
            yield name
        case ast.ClassDef(name=name):
            for part in node.body:
                match part:
                    case ast.AnnAssign(target=ast.Name(id=field)) if is_plain(part.annotation):
                        yield f"{name}.{field}"
                    case ast.FunctionDef(name=method) if not method.startswith("_"):
                        yield from (f"{name}.{it}" for it in plain_parts(part))


def test_packages_exchange_plain_data_only_for_what_others_give_its_fields():
    packages = {path: path.relative_to(PACKAGE).parts[0] for path in MODULES}
    trees = {path: ast.parse(text_of(path)) for path in MODULES}
    importers = defaultdict[tuple[str, str], set[str]](set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    importers[node.module or "", alias.name].add(packages[path])
    exchanged = {
        part
        for path, tree in trees.items()
        if packages[path] != "cli"
        for node in tree.body
        for part in plain_parts(node)
        if importers[
            ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts), part.partition(".")[0]
        ]
        - {packages[path]}
    }
    assert exchanged == set[str]().union(*PLAIN_DATA.values())


def test_plain_data_in_a_type_is_found():
    """The rule would hold if nothing were found."""
    [function, field] = ast.parse(
        "def read(rows: Sequence[Mapping[str, Any]]) -> None: ...\n"
        "class Line(Value):\n    fields: dict[str, Any] = {}\n    name: str\n"
    ).body
    assert [*plain_parts(function), *plain_parts(field)] == ["read", "Line.fields"]
