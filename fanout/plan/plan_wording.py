"""Sentences that several modules of `plan` say, and the names of those who can act."""

ADMINISTRATOR = "an administrator"
AUTHOR = "the policy's author"
NEXT_RUN = "the next pass"

REQUEST_NOT_OPEN = "its pull request is not open yet"
TARGET_GONE = "its target is gone"


def format_maintainers(repository: str) -> str:
    """Format who can change a downstream repository."""
    return f"the maintainers of {repository}"


def format_decision_command(verb: str, policy: str, stage: str) -> str:
    """Format a command that decides about a stage; `stage` is "" for the whole policy."""
    return f"fanout {verb} {policy}{f' --stage {stage}' if stage else ''} --reason WHY"


def describe_unreadable_namespace(namespace: str, policy_namespace: str) -> str:
    """Describe a check of an object in a namespace that checks of the policy may not read."""
    return (
        f"checks of policies in namespace {policy_namespace} may not read objects in"
        f" {namespace}; have an administrator add {namespace} to checks.namespaces of the"
        " FanoutConfiguration, or check an object in the policy's own namespace"
    )
