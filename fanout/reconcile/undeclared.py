"""What is on record and not declared: a bad merge or a forgotten -f takes no policy away.

What they published stays where it is and nothing looks after it, which nobody would know.
"""

from collections.abc import Iterator, Mapping

from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput
from fanout.plan.book import Book, BookKey
from fanout.reconcile.world import World


def undeclared(
    books: Mapping[BookKey, Book], declared: Declared, namespace: str
) -> tuple[str, ...]:
    """A sentence for each policy of the namespace (empty: of all) that has something and no file.

    And for each variant that was written by hand. None while a file cannot be read: it may be in
    that, and that is told. An object that cannot be used is declared.
    """
    if declared.unread:
        return ()
    known = {(it.metadata.namespace, it.metadata.name) for it in declared.policies}
    known |= {(it.namespace, it.name) for it in declared.left_out if it.kind == "UpstreamPolicy"}
    policies = (
        f"policy {key.namespace}/{key.policy} is not declared, and it has {has}; {_REMEDY}"
        f" `fanout remove {key.policy} --all-gone --reason WHY`"
        for key, book in sorted(books.items())
        if key.policy and (key.namespace, key.policy) not in known
        if namespace in ("", key.namespace)
        if (has := " and ".join(_what(book)))
    )
    by_hand = (
        sentence
        for key, book in sorted(books.items())
        if not key.policy and namespace in ("", key.namespace)
        for sentence in _variants(key.namespace, book, declared)
    )
    return (*policies, *by_hand)


def _variants(namespace: str, book: Book, declared: Declared) -> Iterator[str]:
    """A sentence for each variant written by hand of the namespace whose object is gone."""
    known = {(it.metadata.namespace, it.metadata.name) for it in declared.variants}
    known |= {(it.namespace, it.name) for it in declared.left_out if it.kind == "PackageVariant"}
    for key, line in sorted(book.status.items()):
        kind, _, name = key.partition("/")
        if kind != "variant" or (namespace, name) in known:
            continue
        stays = "its package stays published" if line.get("published") else "it is on record"
        yield (
            f"PackageVariant {namespace}/{name} is not declared any more: {stays}"
            f" ({line['repository']}, {line['path']}) and nothing looks after it; declare it again,"
            f" or remove it: fanout remove {name} --reason WHY"
        )


_REMEDY = "declare it again; if it is to go, give it targets that choose nothing, and then"


def _what(book: Book) -> Iterator[str]:
    """What there is of a policy, in words."""
    lines = [line for key, line in book.status.items() if key.startswith("variant/")]
    published = sum(bool(line.get("published")) for line in lines)
    if published:
        yield f"{published} published {'variant' if published == 1 else 'variants'}"
    if len(lines) > published:
        yield f"{len(lines) - published} released"
    if not lines and any(key.startswith("repository/") for key in book.status):
        yield "drafts"


def refuse_undeclared(world: World, declared: Declared, namespace: str, policy: str) -> None:
    """Raises InvalidInput when a policy is not declared and has something on record.

    Whether its packages are to stay (`deletionPolicy`) is written in the policy and nowhere else.
    """
    key = BookKey(namespace, policy)
    found = undeclared({key: world.records.read([key])[key]}, declared, namespace)
    if found:
        raise InvalidInput(
            f"policy {namespace}/{policy} is on record and not declared",
            reason="NotFound",
            remedy="declare it again, with targets that choose nothing, and run this again: its"
            " deletionPolicy says whether its packages stay",
        )
