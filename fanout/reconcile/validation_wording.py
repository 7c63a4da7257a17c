"""Sentences and remedies of the findings of `fanout validate` that need several objects."""

from collections.abc import Iterable, Sequence

from fanout.api.field_errors import suggest_name
from fanout.api.text_fields import join_words, pluralize

# Problems and remedies without data.
CHOOSES_REPOSITORY = "this expression chooses the repository"
CODE_REMEDY = "correct it"
EXPRESSION_REMEDY = "correct the expression, or the target"
FORGE_REMEDY = (
    "ask an administrator to add it to forges of the FanoutConfiguration, or set forge.type: none"
)
GROUP_REMEDY = "compare them with the labels of the targets"
KIND_REMEDY = "correct kind and group, or pass the files of the objects to -f"
NO_STAGE = "it is in no stage, so its variant is held"
NOTIFIED_POLICY_REMEDY = "correct it, or give its files to -f too"
OBJECT_REMEDY = "compare its labels and name with those of the objects"
REPOSITORY_REMEDY = "compare its labels with those of the repositories"
SIGNATURE_REMEDY = "write a token to it, not an SSH key"
TARGET_REMEDY = "correct it, or add the target later"
WANTED_CONDITION = "true or false"
WANTED_TEXT = "a string that is not empty"
WINDOWS_REMEDY = "shorten the deny windows, or add an allow window outside them"


def describe_closed_windows(closure: str) -> str:
    """Describe windows that never open."""
    return f"nothing is ever published: {closure}"


def describe_targets(targets: Sequence[str], hidden: int, sentence: str) -> str:
    """Describe targets with the same problem; `targets` are the first of them."""
    number = len(targets) + hidden
    prefix = f"{pluralize(number, 'target')}: " if number > 1 else "target "
    more = f" and {hidden} more" if hidden else ""
    return f"{prefix}{', '.join(targets)}{more}: {sentence}"


def describe_missing_source(problem: str) -> str:
    """Describe an injector without an object."""
    return (
        f"{problem}; if the injection point is required, the variant is held: declare the object,"
        " or correct the injector"
    )


def describe_missing_objects(names: Iterable[str], namespace: str) -> str:
    """Describe names that no object has."""
    return f"there is no object {' or '.join(names)} of any kind in namespace {namespace}"


def describe_missing_object(kind: str, names: Iterable[str], namespace: str) -> str:
    """Describe names that no object of the kind has."""
    return f"there is no {kind} {' or '.join(names)} in namespace {namespace}"


def describe_missing_kind(kind: str, namespace: str) -> str:
    """Describe a selector of a kind without objects."""
    return f"there is no {kind} in namespace {namespace} and none without a namespace"


def describe_unmatched_selector(total: int, kind: str) -> str:
    """Describe a selector that matches no object."""
    return f"0 of {total} {kind} objects match, so no variant is created"


def describe_unmatched_group(number: int, stage: str) -> str:
    """Describe a rollout group that matches no variant."""
    return f"none of {pluralize(number, 'variant')} of stage {stage} has these labels"


def describe_unknown_stage(stage: str, stages: Sequence[str]) -> str:
    """Describe a target in a stage that the policy lacks."""
    remedy = suggest_name(stage, stages, f"there are: {', '.join(stages)}")
    return f"the policy has no stage {stage}; {remedy}"


def describe_unknown_target(policy: str, target: str) -> str:
    """Describe a dependency on a target that the policy lacks."""
    return f"UpstreamPolicy {policy} has no target {target}, so the variant waits"


def describe_code(code: str, problem: str) -> str:
    """Describe an expression or template with an error."""
    return f"{code}: {problem}"


def describe_unknown_field(code: str, variable: str, field: str) -> str:
    """Describe an expression that reads a field which does not exist."""
    return f"{code}: {variable} has no field {field}"


def describe_unknown_variables(code: str, names: Sequence[str]) -> str:
    """Describe an expression that reads variables which do not exist."""
    verb_phrase = "is not a variable" if len(names) == 1 else "are not variables"
    return f"{code}: {join_words(names, 'and')} {verb_phrase} here"


def format_available(names: Sequence[str]) -> str:
    """Format the names that exist."""
    return f"there are {join_words(names, 'and')}"


def format_key_remedy(available: str) -> str:
    """Format how keys with special characters are written."""
    return f"write such keys in brackets, as labels['a/b']; {available}"


def format_quote_remedy(code: str, available: str) -> str:
    """Format how a string is written in an expression."""
    return f"if it is a string, write \"'{code}'\", with both quotes; {available}"


def describe_unknown_revision(revision: str) -> str:
    """Describe a name that no revision can have."""
    return f"{revision} is not a revision"


def format_revision_remedy(*, allows_commit: bool) -> str:
    """Format which names revisions have."""
    by_commit = ", or the 40 digits of a commit" if allows_commit else ""
    return f"write a version such as v3 or v1.2.3{by_commit}"


def describe_unlisted_host(host: str) -> str:
    """Describe a forge that the FanoutConfiguration lacks."""
    return f"the host {host} is not configured as a forge"


def describe_other_forge(host: str, actual: str, wanted: str) -> str:
    """Describe a forge of another type than the Repository says."""
    return f"{host} is {actual} in the FanoutConfiguration, not {wanted}"


def describe_wrong_value(value: str, wanted: str) -> str:
    """Describe an expression whose value cannot be used."""
    return f"yields {value}, expected {wanted}"


def describe_unknown_policy(title: str) -> str:
    """Describe a notification of a policy or variant that does not exist."""
    return f"there is no UpstreamPolicy or PackageVariant {title}"


def describe_signing_secret(name: str) -> str:
    """Describe a secret that cannot sign."""
    return f"secret {name!r} has no text to sign with"
