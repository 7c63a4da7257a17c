"""Writer of `tests/forge/github_api/schema.graphql`: the part of GitHub's schema in use.

    python tools/github_graphql.py schema.graphql

The file is of the npm package `@octokit/graphql-schema`, whose version is SOURCE:

    npm pack @octokit/graphql-schema@15.26.1 && tar xf octokit-graphql-schema-15.26.1.tgz

What is kept are the fields, arguments and fields of inputs that `documents.graphql` beside the
target names, and the types of them, without prose.
"""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphql import (
    DefinitionNode,
    DocumentNode,
    EnumTypeDefinitionNode,
    FieldDefinitionNode,
    FieldNode,
    GraphQLNamedType,
    GraphQLSchema,
    InputObjectTypeDefinitionNode,
    InputValueDefinitionNode,
    InterfaceTypeDefinitionNode,
    NamedTypeNode,
    NonNullTypeNode,
    ObjectFieldNode,
    ObjectTypeDefinitionNode,
    ScalarTypeDefinitionNode,
    TypeInfo,
    TypeInfoVisitor,
    UnionTypeDefinitionNode,
    VariableDefinitionNode,
    Visitor,
    build_ast_schema,
    get_named_type,
    parse,
    print_ast,
    type_from_ast,
    validate,
    visit,
)

SOURCE = "npm @octokit/graphql-schema 15.26.1, MIT, Copyright (c) GitHub 2025"
FOLDER = Path(__file__).parent.parent / "tests" / "forge" / "github_api"
HEAD = f"""\
# A part of GitHub's GraphQL schema, written by tools/github_graphql.py from
# {SOURCE}.

"""


class Uses(Visitor):
    """Collector of the fields and arguments of a document."""

    def __init__(self, schema: GraphQLSchema, info: TypeInfo) -> None:
        super().__init__()
        self.schema, self.info = schema, info
        self.fields: defaultdict[str, set[str]] = defaultdict(set)  # names by type
        self.arguments: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def enter_field(self, node: FieldNode, *_: object) -> None:
        parent, definition = self.info.get_parent_type(), self.info.get_field_def()
        name = node.name.value
        if name.startswith("__"):
            return
        assert parent is not None, "the document is valid"
        assert definition is not None, "the document is valid"
        self.fields[parent.name].add(name)
        self.arguments[parent.name, name].update(it.name.value for it in node.arguments or ())
        self._keep(get_named_type(definition.type))
        for argument in node.arguments or ():
            self._keep(get_named_type(definition.args[argument.name.value].type))

    def enter_object_field(self, node: ObjectFieldNode, *_: object) -> None:
        parent = get_named_type(self.info.get_parent_input_type())
        assert parent is not None, "the document is valid"
        self.fields[parent.name].add(node.name.value)
        self._keep(get_named_type(self.info.get_input_type()))

    def enter_named_type(self, node: NamedTypeNode, *_: object) -> None:
        self._keep(self.schema.get_type(node.name.value))

    def enter_variable_definition(self, node: VariableDefinitionNode, *_: object) -> None:
        self._keep(get_named_type(type_from_ast(self.schema, node.type)))

    def _keep(self, kind: GraphQLNamedType | None) -> None:
        assert kind is not None, "the document is valid"
        self.fields[kind.name].update(())


def cut_schema(schema_text: str, documents: str) -> str:
    """Return the text of the schema that the documents need."""
    source = parse(schema_text, no_location=True)
    schema = build_ast_schema(source, assume_valid=True, assume_valid_sdl=True)
    document = parse(documents)
    errors = validate(schema, document)
    assert not errors, errors
    info = TypeInfo(schema)
    uses = Uses(schema, info)
    visit(document, TypeInfoVisitor(info, uses))
    # An account is one of these wherever it is an actor.
    for name in ("User", "Bot", "Organization", "Mannequin"):
        uses.fields[name] |= uses.fields["Actor"]
    uses.fields["Node"].add("id")  # an interface has a field
    # What an interface is asked for, its kept types have.
    for definition in source.definitions:
        if isinstance(definition, ObjectTypeDefinitionNode):
            interfaces = [it.name.value for it in definition.interfaces or ()]
            if definition.name.value in uses.fields:
                for name in interfaces:
                    uses.fields[definition.name.value] |= uses.fields.get(name, set())
    kept = [
        cut
        for definition in source.definitions
        if (cut := cut_definition(definition, uses)) is not None
    ]
    return HEAD + print_ast(DocumentNode(definitions=tuple(kept))) + "\n"


def cut_definition(definition: DefinitionNode, uses: Uses) -> Any:
    """Return the kept part of a definition without its prose; None for one that nobody uses."""
    name = getattr(getattr(definition, "name", None), "value", "")
    if name not in uses.fields:
        return None
    names = uses.fields[name]
    match definition:
        case ObjectTypeDefinitionNode() | InterfaceTypeDefinitionNode():
            fields = tuple(
                omit_prose(it, arguments=cut_arguments(it, uses.arguments[name, it.name.value]))
                for it in definition.fields or ()
                if it.name.value in names
            )
            interfaces = tuple(
                it for it in definition.interfaces or () if uses.fields.get(it.name.value)
            )
            return omit_prose(definition, fields=fields, interfaces=interfaces) if fields else None
        case InputObjectTypeDefinitionNode():
            inputs = tuple(
                omit_prose(it)
                for it in definition.fields or ()
                if it.name.value in names or isinstance(it.type, NonNullTypeNode)
            )
            return omit_prose(definition, fields=inputs)
        case UnionTypeDefinitionNode():
            types = tuple(it for it in definition.types or () if uses.fields.get(it.name.value))
            return omit_prose(definition, types=types)
        case EnumTypeDefinitionNode():
            return omit_prose(
                definition, values=tuple(omit_prose(it) for it in definition.values or ())
            )
        case ScalarTypeDefinitionNode():
            return omit_prose(definition)
    return None


def cut_arguments(
    field: FieldDefinitionNode, names: set[str]
) -> tuple[InputValueDefinitionNode, ...]:
    """Return the arguments of a field that are used or required."""
    return tuple(
        omit_prose(it)
        for it in field.arguments or ()
        if it.name.value in names or isinstance(it.type, NonNullTypeNode)
    )


def omit_prose(node: Any, **changes: Any) -> Any:
    """Return a node of a definition without description and directives, and with the changes."""
    return replace(node, description=None, directives=(), **changes)


if __name__ == "__main__":
    texts = [Path(sys.argv[1]), FOLDER / "documents.graphql"]
    schema_file, documents_file = (it.read_text(encoding="utf-8") for it in texts)
    cut = cut_schema(schema_file, documents_file)
    (FOLDER / "schema.graphql").write_text(cut, encoding="utf-8")
