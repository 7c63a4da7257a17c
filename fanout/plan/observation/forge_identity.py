"""Accounts of a host, by all the names that its answers have for them.

One account may have several: an app of GitHub is `slug[bot]` in one API and `slug` in another, and
a token of a project is a bot user of its own. Who closed, merged, opened, reviewed or set a status
is compared here, and nowhere as text.
"""

from fanout.values import Value


class ForgeIdentity(Value):
    """Account of a host.

    `aliases` are names that no other account of the host can have. A client lists them where it
    knows that the account is a bot: the person `ann` is not the app `ann[bot]`.
    """

    login: str = ""  # as people write it
    aliases: frozenset[str] = frozenset()
    ignores_case: bool = True  # as Gitea, GitHub and GitLab do

    @property
    def names(self) -> frozenset[str]:
        """All names, in one case where the host ignores it; none without a login."""
        names = {self.login, *self.aliases} - {""}
        return frozenset(map(self._fold, names))

    @property
    def key(self) -> str:
        """Text that is equal for two spellings of the same login."""
        return self._fold(self.login)

    def is_named(self, name: str) -> bool:
        """Return whether a name in an answer is one of the account; "" names nobody."""
        return self._fold(name) in self.names

    def _fold(self, name: str) -> str:
        return name.lower() if self.ignores_case else name
