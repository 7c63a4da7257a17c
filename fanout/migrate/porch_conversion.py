"""Conversions of single Porch fields.

Porch shows an expression only the name, namespace, labels and annotations of an object,
side by side (`target.name`); fanout shows the whole object (`target.metadata.name`).
The translation works on tokens without parsing and refuses what it does not recognize:
an expression with another meaning is worse than one that somebody has to rewrite.

The table of `porch_import` assigns a conversion to each field.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fanout.api.field_errors import InvalidValue, as_list, as_mapping
from fanout.api.text_fields import format_value
from fanout.migrate.field_mapping import (
    LAST_APPLIED_ANNOTATION,
    Conversion,
    FieldConverter,
    Remark,
    SourceField,
    TargetField,
    copy_value,
)

_STRING = r"""
    (?:[rR][bB]?|[bB][rR])(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*')
  | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
          |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
"""
_TOKEN = re.compile(
    rf"(?P<blank>\s+|//[^\n]*)|(?P<string>{_STRING})|(?P<name>[A-Za-z_]\w*)|(?P<number>\d\w*)"
    r"|(?P<other>[\s\S])",
    re.VERBOSE,
)
_OBJECT_VARIABLES = ("target", "repository")
_SCALAR_FIELDS = ("name", "namespace")
_MAP_FIELDS = ("labels", "annotations")
_REWRITE_REMEDY = "rewrite it for the whole object, as in target.metadata.name"


def translate_expression(expression: str, *, target_is_object: bool) -> str:
    """Translate an expression; the result yields the same and fails where Porch's failed.

    `target_is_object`: the target was chosen by a selector; otherwise it is `{repo, package}`,
    which both programs show alike. Raises InvalidValue for an expression that is not recognized.
    """
    tokens = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(expression)]
    token_positions = [index for index, (kind, _) in enumerate(tokens) if kind != "blank"]
    words = [tokens[index] for index in token_positions]
    texts = [text for _, text in tokens]
    for first, last, text in _find_replacements(words, target_is_object):
        texts[token_positions[first]] = text
        # Spaces and comments inside the replaced words go too; those between other words stay.
        for index in range(token_positions[first] + 1, token_positions[last] + 1):
            texts[index] = ""
    return "".join(texts)


def _find_replacements(
    words: Sequence[tuple[str, str]], target_is_object: bool
) -> Iterator[tuple[int, int, str]]:
    for position, (kind, text) in enumerate(words):
        if kind == "other" and text in ("'", '"'):
            raise InvalidValue("a string in it is not closed", "close it")
        if kind != "name" or text not in (*_OBJECT_VARIABLES, "upstream"):
            continue
        if _text_at(words, position - 1) == ".":  # a field (`x.target`), and not the variable
            owner_kind, owner = words[position - 2] if position > 1 else ("", "")
            if owner_kind not in ("name", "string") and owner not in (")", "]", "}"):
                raise InvalidValue("a name in it begins with a dot", _REWRITE_REMEDY)
            continue
        if text == "upstream":
            problem = "in Porch, upstream is a PackageRevision, which fanout does not have"
            raise InvalidValue(problem, "rewrite it; here upstream is {repository, package}")
        # A target of {repo, package} looks the same in both programs and stays.
        if text == "repository" or target_is_object:
            yield _build_replacement(words, position, text)


def _build_replacement(
    words: Sequence[tuple[str, str]], position: int, variable: str
) -> tuple[int, int, str]:
    # The field that is read of the variable, and the next word's position.
    if _text_at(words, position + 1) == ".":
        field, after = _text_at(words, position + 2), position + 3
    elif _text_at(words, position + 1) == "[" and _text_at(words, position + 3) == "]":
        field, after = _text_at(words, position + 2).strip("\"'"), position + 4
    else:
        problem = f"it uses {variable} as a whole, which is a different object here"
        raise InvalidValue(problem, _REWRITE_REMEDY)
    if field not in (*_SCALAR_FIELDS, *_MAP_FIELDS):
        supported_fields = ", ".join((*_SCALAR_FIELDS, *_MAP_FIELDS))
        problem = f"Porch shows no {field} of {variable}, only {supported_fields}"
        raise InvalidValue(problem, _REWRITE_REMEDY)
    if field in _SCALAR_FIELDS:
        return position, position, f"{variable}.metadata"
    full_path = f"{variable}.metadata.{field}"
    next_text = _text_at(words, after)
    if (_text_at(words, position - 2), _text_at(words, position - 1)) == ("has", "("):
        # `has(target.labels)` and `has(target.labels.tier)`
        has_dot = _text_at(words, position + 1) == "."
        if has_dot and next_text == ")":
            return position - 2, after, "true"
        key = _text_at(words, after + 1)
        if has_dot and next_text == "." and _text_at(words, after + 2) == ")":
            return position - 2, after + 2, f"(has({full_path}) && has({full_path}.{key}))"
        raise InvalidValue("the argument of has() in it cannot be converted", _REWRITE_REMEDY)
    if next_text == "[" or (next_text == "." and _text_at(words, after + 2) != "("):
        return position, after - 1, full_path  # both have the key, or neither has
    # Porch's map always exists, possibly empty
    return position, after - 1, f"(has({full_path}) ? {full_path} : {{}})"


def _text_at(words: Sequence[tuple[str, str]], position: int) -> str:
    return words[position][1] if 0 <= position < len(words) else ""


_DESCRIPTION_ANNOTATION = "kubernetes.io/description"
_APPROVAL_ANNOTATION = "approval.nephio.org/policy"
_UPSTREAM_KEYS = ("spec", "upstream")
_REVISION_TAG_PATH = (*_UPSTREAM_KEYS, "revision", "tag")
_REVISION_LATEST_PATH = (*_UPSTREAM_KEYS, "revision", "latest")
_REVISION_REMEDY = "write spec.upstream.revision, the number or tag of a published revision"
_BRANCH_WORKSPACE = "main"
_MAX_TAG = 128
# The names of revisions, as `package/revision.py` reads them.
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_PRERELEASE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_TAG = re.compile(
    rf"v{_NUMBER}(?:\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?)?", re.ASCII
)


def convert_annotations(source: SourceField) -> Conversion:
    """Copy annotations without those of kubectl and Nephio."""
    if _APPROVAL_ANNOTATION in as_mapping(source.value):
        problem = "requests approval of Nephio's controller, which fanout does not support"
        remedy = "use a PromotionPolicy for the policy or variant"
        yield Remark((*source.path, _APPROVAL_ANNOTATION), problem, remedy)
    if isinstance(source.value, Mapping):
        dropped_keys = (LAST_APPLIED_ANNOTATION, _APPROVAL_ANNOTATION)
        remaining = {key: value for key, value in source.value.items() if key not in dropped_keys}
        if remaining:
            yield TargetField(source.target, remaining, source.path)
    else:
        yield from copy_value(source)


def convert_description(source: SourceField) -> Conversion:
    """Convert a description to the annotation that Kubernetes has for it."""
    if source.value:
        yield TargetField((*source.target, _DESCRIPTION_ANNOTATION), source.value, source.path)
    if _DESCRIPTION_ANNOTATION in as_mapping(source.source_object, "metadata", "annotations"):
        problem = f"replaces the annotation {_DESCRIPTION_ANNOTATION}"
        yield Remark(source.path, problem, "keep one of them")


def convert_directory(source: SourceField) -> Conversion:
    """Strip slashes at both ends of a directory; `/` is the root in Porch too."""
    value = source.value.strip("/") if isinstance(source.value, str) else source.value
    if value:
        yield TargetField(source.target, value, source.path)


def convert_word(words: Mapping[str, str]) -> FieldConverter:
    """Return a converter that replaces one word by another."""

    def convert_field(source: SourceField) -> Conversion:
        if source.value in words.values():
            yield from copy_value(source)
        elif isinstance(source.value, str) and source.value in words:
            yield TargetField(source.target, words[source.value], source.path)
        elif source.value != "":
            problem = f"{format_value(source.value)} is not known"
            yield Remark(source.path, problem, f"use {' or '.join(words)}")

    return convert_field


def convert_shared_word(words: Mapping[str, str], cautious: str) -> FieldConverter:
    """Return a converter for a setting that Porch has per target and fanout per policy.

    If the targets differ, the policy gets the cautious word, with a remark.
    """
    # The first word of the table is Porch's default, which templates may leave out.
    default = next(iter(words))

    def convert_field(source: SourceField) -> Conversion:
        field = str(source.path[-1])
        targets = as_list(source.source_object, "spec", "targets")
        templates = [as_mapping(target, "template") for target in targets]
        distinct_words = {str(template.get(field) or default) for template in templates}
        if len(distinct_words) == 1 or not distinct_words <= words.keys():
            yield from convert_word(words)(source)
            return
        yield TargetField(source.target, words[cautious], source.path)
        problem = f"the targets differ, and a policy has one {field}; it becomes {words[cautious]}"
        remedy = "create a separate policy for targets that need another value"
        yield Remark(source.path, problem, remedy)

    return convert_field


def convert_expression(source: SourceField) -> Conversion:
    """Convert an expression to one about whole objects."""
    if source.value == "":
        return
    if isinstance(source.value, str):
        targets = as_list(source.source_object, "spec", "targets")
        is_selected = "repositories" not in as_mapping(targets[int(source.path[2])])
        try:
            value = translate_expression(source.value, target_is_object=is_selected)
        except InvalidValue as error:
            problem = f"{format_value(source.value)}: {error.problem}"
            yield Remark(source.path, problem, error.remedy, invalidates=source.target)
            return
        yield TargetField(source.target, value, source.path)
    else:
        yield from copy_value(source)


def convert_revision(source: SourceField) -> Conversion:
    """Convert a revision number to its tag: Porch publishes revision 3 as `<path>/v3`."""
    workspace = as_mapping(source.source_object, *_UPSTREAM_KEYS).get("workspaceName", "")
    if tag := _revision_tag(source.value):
        yield TargetField(_REVISION_TAG_PATH, tag, source.path)
        if not workspace:
            problem = "newer versions of Porch ignore it and use the workspace main; fanout uses"
            yield Remark(source.path, f"{problem} {tag} alone", is_lost=False)
    elif source.value in (-1, _BRANCH_WORKSPACE):  # the branch, by number or in text
        # A workspace beside it decides: it is what newer versions of Porch look for.
        if workspace in ("", _BRANCH_WORKSPACE):
            yield from _follow_latest(source)
    elif source.value not in (0, ""):
        problem = f"{format_value(source.value)} is not a revision with a tag"
        yield Remark(source.path, problem, _REVISION_REMEDY, invalidates=_REVISION_TAG_PATH)


def convert_workspace(source: SourceField) -> Conversion:
    """Convert a workspace name; it stands in for a tag if it has the form of one."""
    revision = as_mapping(source.source_object, *_UPSTREAM_KEYS).get("revision", "")
    name = format_value(source.value)
    if source.value == "":
        return
    if tag := _revision_tag(revision):
        problem = f"a workspace has no tag; {tag} of spec.upstream.revision is used"
        yield Remark(source.path, problem, f"check that {name} was published as {tag}")
    elif source.value == _BRANCH_WORKSPACE:
        if revision in (0, ""):
            yield from _follow_latest(source)
    elif isinstance(source.value, str) and _revision_tag(source.value):
        yield TargetField(_REVISION_TAG_PATH, source.value, source.path)
        problem = f"a workspace has no tag; {name} is written as the tag"
        yield Remark(source.path, problem, f"check that it was published as {name}")
    else:
        problem = f"a workspace has no tag, and {name} is not the name of one"
        yield Remark(source.path, problem, _REVISION_REMEDY, invalidates=_REVISION_TAG_PATH)


def convert_object_selector(source: SourceField) -> Conversion:
    """Copy a label selector with kind and name, and report a name, which Porch ignores."""
    yield from copy_value(source)
    if as_mapping(source.value).get("name"):
        yield Remark(
            (*source.path, "name"),
            "Porch ignores it and selects all objects with the labels; fanout selects this one",
            "remove the name to select all",
            is_lost=False,
        )


def _follow_latest(source: SourceField) -> Conversion:
    """Yield the rule for an object that follows a branch: the newest revision."""
    yield TargetField(_REVISION_LATEST_PATH, True, source.path)
    problem = "a policy or variant does not follow a branch; it takes the newest tag of the package"
    yield Remark(source.path, problem, "tag the package: <path>/v1, or <path>/v1.2.3")


def _revision_tag(revision: object) -> str:
    """Return the tag name of a revision, e.g. `v3` or `v1.2.3`, or "" if it has none."""
    if isinstance(revision, int) and not isinstance(revision, bool) and revision > 0:
        revision = f"v{revision}"
    is_tag = isinstance(revision, str) and len(revision) <= _MAX_TAG and _TAG.fullmatch(revision)
    return str(revision) if is_tag else ""
