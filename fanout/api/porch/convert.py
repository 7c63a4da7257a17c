"""How one field of Porch's becomes one of fanout's; the table in `rows` names one for each."""

from collections.abc import Iterator, Mapping

from fanout.api.faults import BadValue
from fanout.api.foreign.convert import KUBECTL_S_OWN, copied
from fanout.api.foreign.pieces import Convert, Found, Put, Remark
from fanout.api.places import fields, items
from fanout.api.porch.cel import whole_objects
from fanout.api.texts import shown

_DESCRIPTION = "kubernetes.io/description"
_APPROVAL = "approval.nephio.org/policy"
_REVISION = ("spec", "upstream", "revision", "tag")


def annotations(found: Found) -> Iterator[Put | Remark]:
    """The same annotations without those that speak to kubectl or to Nephio."""
    if _APPROVAL in fields(found.value):
        yield Remark(
            (*found.path, _APPROVAL),
            "asks Nephio's controller for approval, which fanout does not ask",
            "name the policy or variant in a PromotionPolicy",
        )
    if isinstance(found.value, Mapping):
        gone = (KUBECTL_S_OWN, _APPROVAL)
        left = {key: value for key, value in found.value.items() if key not in gone}
        if left:
            yield Put(found.to, left, found.path)
    else:
        yield from copied(found)


def described(found: Found) -> Iterator[Put | Remark]:
    """A description as the annotation that Kubernetes knows for it."""
    if found.value:
        yield Put((*found.to, _DESCRIPTION), found.value, found.path)
    if _DESCRIPTION in fields(fields(found.object.get("metadata")).get("annotations")):
        problem = f"stands instead of the annotation {_DESCRIPTION}"
        yield Remark(found.path, problem, "keep the better one")


def directory(found: Found) -> Iterator[Put | Remark]:
    """A directory without slashes at its ends; to Porch `/` is the root as well."""
    value = found.value.strip("/") if isinstance(found.value, str) else found.value
    if value:
        yield Put(found.to, value, found.path)


def one_of(words: Mapping[str, str]) -> Convert:
    """One word for another."""

    def convert(found: Found) -> Iterator[Put | Remark]:
        if found.value in words.values():
            yield from copied(found)
        elif isinstance(found.value, str) and found.value in words:
            yield Put(found.to, words[found.value], found.path)
        elif found.value != "":
            yield Remark(
                found.path, f"{shown(found.value)} is not known", f"use {' or '.join(words)}"
            )

    return convert


def shared(words: Mapping[str, str], careful: str) -> Convert:
    """What Porch says for each target and fanout for the policy; the careful one if they differ."""
    usual = next(iter(words))

    def convert(found: Found) -> Iterator[Put | Remark]:
        field = str(found.path[-1])
        targets = items(fields(found.object.get("spec")).get("targets"))
        templates = [fields(fields(target).get("template")) for target in targets]
        said = {str(template.get(field) or usual) for template in templates}
        if len(said) == 1 or not said <= words.keys():
            yield from one_of(words)(found)
            return
        yield Put(found.to, words[careful], found.path)
        yield Remark(
            found.path,
            f"the targets differ, and a policy has one {field}: all have {words[careful]}",
            "make a policy of its own for the targets that need another",
        )

    return convert


def expression(found: Found) -> Iterator[Put | Remark]:
    """An expression about whole objects."""
    if found.value == "":
        return
    if isinstance(found.value, str):
        entry = items(fields(found.object.get("spec")).get("targets"))[int(found.path[2])]
        chosen = "repositories" not in fields(entry)
        try:
            value = whole_objects(found.value, target_is_object=chosen)
        except BadValue as error:
            problem = f"{shown(found.value)}: {error.problem}"
            yield Remark(found.path, problem, error.remedy, spoils=found.to)
            return
        yield Put(found.to, value, found.path)
    else:
        yield from copied(found)


def revision(found: Found) -> Iterator[Put | Remark]:
    """A revision's number as its tag: Porch publishes revision 3 as `<path>/v3`."""
    tag = _tag(found.value)
    if tag:
        yield Put(_REVISION, tag, found.path)
        if not fields(fields(found.object.get("spec")).get("upstream")).get("workspaceName"):
            yield Remark(
                found.path,
                "newer versions of Porch pass it over and look for the workspace main; fanout"
                f" takes {tag}, and nothing else",
                lost=False,
            )
    elif found.value not in (0, ""):
        yield Remark(
            found.path,
            f"{shown(found.value)} is the state of a branch, which has no tag",
            "write the number of a published revision",
            spoils=_REVISION,
        )


def workspace(found: Found) -> Iterator[Put | Remark]:
    """A workspace's name: nothing is tagged by it, so it can only stand in for a tag's."""
    name = shown(found.value)
    if found.value == "":
        return
    if tag := _tag(fields(fields(found.object.get("spec")).get("upstream")).get("revision")):
        yield Remark(
            found.path,
            f"no tag names a workspace; {tag} is taken, by spec.upstream.revision",
            f"check that {name} was published as {tag}",
        )
    elif found.value == "main":
        yield Remark(
            found.path,
            "main is the state of a branch, which has no tag",
            "write spec.upstream.revision, the number of a published revision",
            spoils=_REVISION,
        )
    else:
        yield Put(_REVISION, found.value, found.path)
        yield Remark(
            found.path,
            f"no tag names a workspace; {name} is written as if one did",
            "correct spec.upstream.revision.tag to the tag that it was published as, like v3",
        )


def repository_selector(found: Found) -> Iterator[Put | Remark]:
    """A label selector; an empty one chooses all, so it must not get lost."""
    yield from copied(found)


def object_selector(found: Found) -> Iterator[Put | Remark]:
    """A label selector with kind and name; Porch reads past the name."""
    yield from copied(found)
    if fields(found.value).get("name"):
        yield Remark(
            (*found.path, "name"),
            "Porch passes it over and takes all objects with the labels; fanout takes this one",
            "remove the name if all are meant",
            lost=False,
        )


def _tag(number: object) -> str:
    """The tag's name of a revision, `v3`; "" when it has none."""
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return f"v{number}"
    if isinstance(number, str) and number[:1] == "v" and number[1:].isdecimal():
        return number  # before it was a number it was written so
    return ""
