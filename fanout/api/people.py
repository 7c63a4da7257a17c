"""Who somebody is, as Git knows people: `Name <address>`, or the address alone."""

import re

_ADDRESS = re.compile(r"[^\s<>@]+@[^\s<>@]+")


def person(by: str) -> str:
    """Who that is: the address where there is one, so that a changed name is still one person."""
    name, bracket, rest = by.partition("<")
    return (rest.partition(">")[0] if bracket else name).strip().lower()


def is_person(text: str) -> bool:
    """Can this be the author of a record? Otherwise it names nobody, whoever was meant."""
    _, bracket, rest = text.partition("<")
    whole = not bracket or (rest.endswith(">") and rest.count(">") == 1)
    return whole and _ADDRESS.fullmatch(person(text)) is not None
