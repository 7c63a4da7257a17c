"""Names of approvers: a subject of `approvers` is one person, who may have several names.

A person is known to Git by an address, to a forge as `<host>/<login>`, and to a cluster as
`user:<name>`, or by the name alone if it is an address. A login without its host would be another
person on another host. A subject `group:<name>` is everybody in a group of a cluster.
"""

import re
from collections.abc import Iterable, Iterator

from fanout.api.field_errors import FieldError, InvalidValue, suggest_name
from fanout.api.promotion_policy import USER_PREFIX, PromotionPolicy, governs_policy, is_person
from fanout.api.text_fields import format_value, join_words, pluralize
from fanout.api.upstream_policy import UpstreamPolicy

_HOST = r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
_LOGIN = r"[^\s/@<>]+"
_LOGIN_NAME = re.compile(f"{_HOST}/{_LOGIN}")
_TEAM_NAME = re.compile(f"{_HOST}(?:/{_LOGIN}){{2,}}")
_USER_NAME = re.compile(rf"{USER_PREFIX}[^\s<>]+")
_GROUP_PREFIX = "group:"


def format_user(user: str) -> str:
    """Return the name of a user of a cluster as a subject has it: an address as it is."""
    return user if is_person(user) and "<" not in user else f"{USER_PREFIX}{user}"


def format_group(group: str) -> str:
    """Return the subject that stands for everybody in a group of a cluster."""
    return f"{_GROUP_PREFIX}{group}"


def parse_group(subject: str) -> str:
    """Return the group of a cluster for which a subject stands."""
    return subject.removeprefix(_GROUP_PREFIX)


def is_group(subject: str) -> bool:
    """Return whether a subject is a group of a cluster, and not a person."""
    return subject.startswith(_GROUP_PREFIX)


def parse_subject(subject: str) -> tuple[str, ...]:
    """Return the names of the person that a subject stands for, in lower case.

    `Name <address> host/login user:name`, without the name in front, or any of its parts alone.
    Names of users and groups of a cluster stay as they are.
    """
    if is_group(subject):
        return (subject,)
    _, bracket, rest = subject.partition("<")
    address, _, more_names = rest.partition(">") if bracket else ("", "", subject)
    names = (name for name in (address.strip(), *more_names.split()) if name)
    return tuple(it if it.startswith(USER_PREFIX) else it.lower() for it in names)


def check_subject(subject: str) -> None:
    """Raise InvalidValue for a subject that no review and no record can come from."""
    if is_group(subject):
        group_name = parse_group(subject)
        is_stripped = group_name and group_name == group_name.strip()
        if not is_stripped or not group_name.isprintable():
            problem = f"{format_value(subject)} is not a group of a cluster"
            raise InvalidValue(problem, "write group:NAME as the API server knows the group")
        return
    names = parse_subject(subject)
    for name in names:
        if _TEAM_NAME.fullmatch(name):
            raise InvalidValue(f"{name} is a team, which is not supported yet", "list its members")
    is_closed = subject.count("<") == subject.count(">") <= 1
    are_known = all(
        _LOGIN_NAME.fullmatch(it) or _USER_NAME.fullmatch(it) or is_person(it) for it in names
    )
    if not names or not is_closed or not are_known:
        remedy = (
            "write Name <ann@example.com>, the address alone, git.example.com/ann, user:ann, or"
            " several; or group:NAME for a group of a cluster"
        )
        problem = f"{format_value(subject)} is not an identity of Git, a forge or a cluster"
        raise InvalidValue(problem, remedy)


def is_address(name: str) -> bool:
    """Return whether a name is an address, and not a login on a forge."""
    return "@" in name


def join_people(subjects: Iterable[str]) -> dict[str, str]:
    """Return by each name of the subjects the one under which its person is counted.

    Subjects that share a name are one person. Counted is the address, or else the login, that
    comes first in the alphabet.
    """
    names_by_name: dict[str, set[str]] = {}
    for subject in subjects:
        person: set[str] = set()
        for name in parse_subject(subject):
            person |= names_by_name.get(name, {name})
        names_by_name.update(dict.fromkeys(person, person))
    return {
        name: min(person, key=lambda it: (not is_address(it), it))
        for name, person in names_by_name.items()
    }


def check_approvers(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> Iterator[FieldError]:
    """Yield errors for undeclared groups and for groups with too few members.

    Where variants are counted, a number above the total means all of them (docs/concepts/gates.md).
    People are required by number because fewer are too few, so here it is an error.
    """
    groups = [
        group
        for promotion in promotions
        for group in (promotion.spec.approvers if governs_policy(promotion, policy) else ())
    ]
    people = join_people(subject for group in groups for subject in group.subjects)
    members_by_group: dict[str, set[str]] = {}
    for group in groups:
        # Several PromotionPolicies may declare the same group; their members add up.
        members_by_group.setdefault(group.group, set()).update(
            people[name] for subject in group.subjects for name in parse_subject(subject)
        )
    for index, stage in enumerate(policy.spec.stages):
        for number, check in enumerate(stage.requires):
            if check.approval is None:
                continue
            path = ("spec", "stages", index, "requires", number, "approval")
            names = check.approval.from_
            unknown = [(place, it) for place, it in enumerate(names) if it not in members_by_group]
            for place, name in unknown:
                problem = f"no PromotionPolicy for this policy has approvers {name}"
                otherwise = "have an administrator add the group to spec.approvers"
                remedy = suggest_name(name, sorted(members_by_group), otherwise)
                yield FieldError((*path, "from", place), problem, remedy)
            # A set, because a person who is in two groups approves once.
            members = {who for name in names for who in members_by_group.get(name, ())}
            count, required = len(members), check.approval.at_least
            # The API server alone knows how many are in a group of a cluster.
            if not unknown and required > count and not any(map(is_group, members)):
                verb = "has" if len(names) == 1 else "have"
                group_sizes = f"{join_words(names, 'and')} {verb} {pluralize(count, 'member')}"
                problem = f"{required} people can never approve: {group_sizes}"
                remedy = "lower it, or have an administrator add people"
                yield FieldError((*path, "atLeast"), problem, remedy)


def warn_unknown_authors(promotion: PromotionPolicy) -> Iterator[FieldError]:
    """Yield a warning for each subject of whom nobody can tell what they have changed."""
    if not promotion.spec.requires_separation:
        return
    for index, group in enumerate(promotion.spec.approvers):
        for number, subject in enumerate(group.subjects):
            if not is_group(subject) and not any(map(is_address, parse_subject(subject))):
                problem = (
                    "the subject has no address to compare with authors of commits: the approval"
                    " does not count for a draft with commits by people (requiresSeparation)"
                )
                path = ("spec", "approvers", index, "subjects", number)
                yield FieldError(path, problem, "add the person's address as in commits", "warning")
