"""Problems and remedies of files, secrets and records, worded for people.

Most problems follow the name of a file, a field, a secret or a record, which is their subject.
"""

from collections.abc import Iterable

from fanout.api.text_fields import describe_value

# Files and declared objects.
CONFIG_REMEDY = "correct --config"
CONFIGURATION_COUNT = "must contain exactly one FanoutConfiguration"
CONFIGURATION_REMEDY = "remove all other objects"
DUPLICATE_REMEDY = "rename or remove one of them"
EXPECTED_OBJECT = "expected an object"
KEYS_REMEDY = "write keys and values"
LINK_OUTSIDE = "is a symlink to a path outside the directory"
LINK_REMEDY = "replace it with the file"
MISSING_OBJECT = "is missing or not an object"
MISSING_PATH = "does not exist"
MISSING_TEXT = "is missing or not a string"
NAME_REMEDY = "set metadata.name"
NAMESPACE_REMEDY = "use a string, or remove it"
NO_VALUE = "has no value"
NOT_OBJECT = "is not an object"
NOT_OBJECT_REMEDY = "write apiVersion, kind and metadata, or remove it"
NOT_REGULAR = "is not a regular file"
NOT_TEXT = "is not a string"
PATH_REMEDY = "correct the path of -f"
QUOTE_REMEDY = "quote it"
READABLE_REMEDY = "make it readable"
REMOVE_REMEDY = "remove it"
REMOVE_OR_READABLE_REMEDY = "remove it, or make it readable"
VALUE_REMEDY = "set a value, or remove the key"


def describe_unreadable_file(cause: str | None) -> str:
    """Describe a file that cannot be opened."""
    return f"cannot be read: {cause}"


def describe_unlisted_directory(cause: str | None) -> str:
    """Describe a directory that cannot be opened."""
    return f"cannot be listed: {cause}"


def describe_declared_record(kind: str) -> str:
    """Describe a record in a file of declared objects."""
    return f"{kind} is a record and cannot be declared in a file"


def format_use_remedy(command: str) -> str:
    """Format the command or value to use instead."""
    return f"use {command}"


def describe_wrong_type(value: object) -> str:
    """Describe a value in the place of a string."""
    return f"expected a string, got {describe_value(value)}"


def describe_boolean_key(spelling: str) -> str:
    """Describe an unquoted key that YAML reads as boolean."""
    return f"expected a string as key, got boolean `{spelling}`"


def describe_second_declaration(namespace: str, first: str) -> str:
    """Describe an object that another file declares, too."""
    return f"is already declared in namespace {namespace} at {first}; none of them is used"


def describe_repeated_declaration(namespace: str, others: Iterable[str]) -> str:
    """Describe the same where the lines are unknown."""
    places = ", ".join(others)
    also = f", also in {places}" if places else ""
    return f"is declared more than once in namespace {namespace}{also}; none of them is used"


def describe_repeated_object(name: str, number: int) -> str:
    """Describe an object that is not used because several files declare it."""
    return f"{name}, which is declared {f'{number} times' if number > 1 else 'more than once'}"


# Secrets.
EMPTY_CONTENT = "is empty"
INVALID_NAME = "is not a valid name of a secret"
INVALID_NAME_REMEDY = "use lowercase letters, digits, - and ."
MISSING_FIELDS_REMEDY = "add one of them"
NOT_FOUND = "was not found"
SEVERAL_LINES = "has several lines"
SEVERAL_LINES_REMEDY = "write user:password, a token, or an SSH key"
NOT_TEXT_REMEDY = "write a token or a key to it"


def describe_secret(name: str, problem: str) -> str:
    """Describe a secret that cannot be used."""
    return f"secret {name!r} {problem}"


def describe_missing_fields(directory: object) -> str:
    """Describe a directory of a secret without its files."""
    return f"has neither a file password nor a file key in {directory}"


def describe_binary_secret(path: object) -> str:
    """Describe a secret that is not text."""
    return f"is not UTF-8 text ({path})"


def format_secret_remedy(variable: str, path: object | None) -> str:
    """Format where a secret is read from; `path` is None without a directory of secrets."""
    remedy = f"set the environment variable {variable}"
    return remedy if path is None else f"{remedy}, or write the file {path}"


# Records and status.
CHANGED_RECORD = "was changed after it was recorded"
DUPLICATE_KEY = "a key occurs twice"
LINK = "is a symlink"
NOT_RECORD_FILE = "is not the file of a record (*.json)"
RECORDS_ACCESS_REMEDY = (
    "give the user of fanout a key that this records repository accepts, and its host key in"
    " known_hosts; in a cluster both are in the Secret fanout-ssh"
)
RECORDS_LOGIN_REMEDY = (
    "create a secret with a token that may read and push this records repository, and name it in"
    " records.secretRef of the FanoutConfiguration"
)
RECORDS_PUSH_REMEDY = (
    "allow the account of fanout to push branches below fanout/ to this records repository"
)
RECORDS_HTTPS_OUTAGE_REMEDY = (
    "make this records repository reachable, for a private authority with `ca.crt` in the secret of"
    " records.secretRef; nothing is published until then"
)
RECORDS_OUTAGE_REMEDY = "make this records repository reachable; nothing is published until then"
RECORDS_HISTORY_REMEDY = "put the branch back on a commit without the object"
RECORDS_REMEDY = "restore the records, or name their repository with --records"
SWEEP_LOG_REMEDY = "the next sweep replaces it and does not repeat earlier sweeps"


def format_token_remedy(secret: str) -> str:
    """Format what to do where the server refuses the secret of the records repository."""
    return (
        f"correct secret {secret!r} of records.secretRef, whose token may have expired, or permit"
        " its account to read and push this records repository"
    )


def format_missing_records_remedy(secret: str) -> str:
    """Format what to do where the server shows no records repository; `secret` may be ""."""
    access = format_token_remedy(secret) if secret else RECORDS_LOGIN_REMEDY
    return f"{RECORDS_REMEDY}; if it is private, {access}"


def describe_wrong_kind(kinds: Iterable[str]) -> str:
    """Describe a record of a kind that is not recorded."""
    return f"is none of {', '.join(kinds)}"


def describe_invalid_record(errors: Iterable[str]) -> str:
    """Describe a record with errors."""
    return f"is not valid: {'; '.join(errors)}"


def describe_other_policy(policy: str) -> str:
    """Describe a record on the branch of another policy."""
    return f"belongs to policy {policy}"


def describe_keyless_line(number: int) -> str:
    """Describe a line of a status file without its key."""
    return f"has no key in line {number}"


def describe_misplaced_key(key: str, number: int) -> str:
    """Describe a key that is in a status file twice or in the wrong one."""
    return f"has {key!r} twice or in the wrong file (line {number})"


def describe_invalid_json(position: str, error: object) -> str:
    """Describe a file or line that is not JSON."""
    return f"{position}is not JSON: {error}"


def describe_large_file(limit: int) -> str:
    """Describe a file that is larger than its limit."""
    return f"has more than {limit:,} bytes"


def describe_unreadable_status(path: str, problem: object) -> str:
    """Describe a status file that cannot be read."""
    return f"{path} {problem}; restore it from an earlier commit"


def describe_unreadable_record(path: str, problem: object) -> str:
    """Describe a record that cannot be read."""
    return f"{path} {problem}; restore it, or remove it with git"


def describe_blocked_directory(directory: str, problem: str) -> str:
    """Describe something in the place of a directory of records."""
    return f"{directory}: {problem}; move it away"


def describe_unreadable_branch(branch: str, problem: str) -> str:
    """Describe a records branch whose status cannot be read."""
    return f"cannot read the status on branch {branch}: {problem}"


def describe_missing_repository(path: object) -> str:
    """Describe a local records repository that does not exist."""
    return f"there is no records repository {path}"


def describe_empty_repository(url: str) -> str:
    """Describe a records repository without records of the installation."""
    return f"{url} has no records of this installation"


def describe_invalid_log(location: str, error: object) -> str:
    """Describe a log of sweeps that cannot be read."""
    return f"cannot read {location}: {error}"
