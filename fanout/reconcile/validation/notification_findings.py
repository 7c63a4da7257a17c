"""Warnings about notifications of policies that are not declared."""

from collections.abc import Callable, Iterator

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.field_errors import suggest_name
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation


def find_unknown_policies(
    configuration: FanoutConfiguration,
    locate: Callable[[str], ErrorLocation],
    declared: DeclaredObjects,
) -> Iterator[Finding]:
    """Yield a warning for each policy of a notification that the files do not declare.

    Yields nothing while a file cannot be read, because it may declare the policy.
    """
    identities = [it.metadata for it in (*declared.policies, *declared.variants)]
    titles = [title for it in identities for title in (it.name, f"{it.namespace}/{it.name}")]
    if declared.unread:
        return
    for index, target in enumerate(configuration.notifications):
        for position, title in enumerate(target.policies):
            if title not in titles:
                yield Finding(
                    locate(f"notifications[{index}].policies[{position}]"),
                    f"there is no UpstreamPolicy or PackageVariant {title}",
                    suggest_name(title, titles, "correct it, or give its files to -f too"),
                    "warning",
                )
