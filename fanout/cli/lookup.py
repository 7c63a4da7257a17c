"""Names that somebody typed: what nothing has is an error that says what there is.

A misspelled name must never look like a policy that has nothing to do.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput
from fanout.gates.wording import listed

_NO_FILES = "check what is given to -f, or FANOUT_FILES"


def not_found(thing: str, missing: Iterable[str], known: Iterable[str]) -> InvalidInput:
    """The error for names of things (`policy`) of which none is known."""
    there = listed(set(known))
    return InvalidInput(
        "there is " + " and ".join(f"no {thing} {name}" for name in missing),
        reason="NotFound",
        remedy=f"there are: {there}" if there else "there is none at all",
    )


def check_files(paths: Sequence[Path], declared: Declared, namespace: str) -> None:
    """Is there anything to work with?

    Raises InvalidInput: no object is in the files, or nothing in the namespace.
    """
    if not (_namespaces(declared) or declared.unread or declared.faults or len(declared.objects)):
        raise InvalidInput(
            f"no object is in {' and '.join(map(str, paths))}",
            reason="NoFiles",
            remedy=f"objects are in files *.yaml, *.yml and *.json; {_NO_FILES}",
        )
    if namespace and namespace not in _namespaces(declared) and not declared.unread:
        raise not_found("namespace", [namespace], _namespaces(declared))


def check_policies(names: Collection[str], declared: Declared, namespace: str) -> None:
    """Is each a policy, or a variant written by hand? Raises InvalidInput naming what there is."""
    objects = [*declared.policies, *declared.variants]
    known = {it.metadata.name for it in objects if namespace in ("", it.metadata.namespace)}
    missing = sorted(set(names) - known)
    broken = {key.name: key for key in declared.left_out if namespace in ("", key.namespace)}
    for name in missing:
        if name in broken:
            raise InvalidInput(
                f"{broken[name].kind} {name} is declared and cannot be used",
                reason="InvalidObject",
                remedy="see `fanout validate`",
            )
    if missing:
        raise not_found("policy", missing, known)


def _namespaces(declared: Declared) -> set[str]:
    """Those in which something of ours is declared, usable or not."""
    kinds = (declared.repositories, declared.policies, declared.variants, declared.promotions)
    used = {item.metadata.namespace for kind in kinds for item in kind}
    return used | {key.namespace for key in declared.left_out}
